/**
 * What a form needs before a run is started: folders to choose from, and what a request would
 * begin. Nothing is run and nothing is stored.
 *
 * @module
 */
import { basename, join } from 'node:path'
import type { JsonObject } from '../../internal/json.js'
import type { Caller } from '../engine-calls.js'
import { InvalidRequestError, WorkspaceError } from '../errors.js'
import type { RunOwner } from '../events.js'
import type { FolderOffer, OfferedFolder, ResolvedRequest } from '../offers.js'
import type { RunStore } from '../store.js'
import { listFolder } from '../workspace/list.js'
import { confine, type NamedFolder } from '../workspace/paths.js'
import { hasForeignRun } from './foreign-run.js'
import type { NewRun } from './new-run.js'
import { ownerOf } from './owner-of.js'
import { requestedFolder } from './requested-folder.js'
import type { NamedRootsOf } from './roots.js'

const HOST: RunOwner = { id: null, tenant: null }
/** Folders of one answer. */
const MAX_FOLDERS = 200
/** Entries of a folder that are looked at. */
const MAX_ENTRIES = 5_000
/** Folders of which a store is asked whose they are: each may be a query of a database. */
const MAX_ASKED = 1_000

export interface OffersOptions {
  readonly namedRootsOf: NamedRootsOf
  readonly store: RunStore
  /** Folders of the store's data. */
  readonly closed: readonly string[]
  /** As a run is begun, without beginning it. */
  readonly resolveRun: (request: JsonObject, owner: RunOwner) => Promise<NewRun>
  /** @throws when the engine is closed. */
  readonly assertOpen: () => void
}

/** What an engine offers before a run is started. Every method takes the principal that calls. */
export interface RunOffers {
  /**
   * What a request would begin: its folder, model and goal, by the code that begins runs. Nothing
   * is run. Held-out tests and instructions are not read.
   *
   * @throws {@link InvalidRequestError}, {@link GoalError}, {@link ForeignFolderError}, as
   * `RunEngine.create()` does; what the host's `roots` throws
   */
  resolve(request: JsonObject, caller?: Caller): Promise<ResolvedRequest>
  /**
   * The folders in one, or without `path` the roots of the caller, one level at a time. Links are
   * not followed. Where tenants share a store without `hasForeignRun`, they get the roots only.
   *
   * @param path - absolute, or relative to the first root.
   * @throws {@link InvalidRequestError} for a path outside the roots, or that is no folder;
   * {@link ForeignFolderError}; what the host's `roots` throws
   */
  folders(path?: string, caller?: Caller): Promise<FolderOffer>
}

export class Offers implements RunOffers {
  readonly #options: OffersOptions

  constructor(options: OffersOptions) {
    this.#options = options
  }

  async resolve(request: JsonObject, caller?: Caller): Promise<ResolvedRequest> {
    const { assertOpen, resolveRun } = this.#options
    assertOpen()
    const { request: resolved, goal } = await resolveRun(request, ownerOf(caller) ?? HOST)
    const { cwd, workspace = 'in_place', model_name, max_iterations } = resolved
    return {
      cwd,
      workspace,
      model_name,
      max_iterations,
      goal: {
        name: goal.name,
        command: goal.command,
        timeout_ms: goal.timeout_ms,
        reporter: goal.reporter,
        protected: goal.protected,
        allow_test_changes: goal.allow_test_changes,
        judge_model: goal.judge?.model ?? null,
        by_result: goal.by_result ?? false,
      },
    }
  }

  async folders(path?: string, caller?: Caller): Promise<FolderOffer> {
    const { assertOpen, namedRootsOf } = this.#options
    assertOpen()
    const owner = ownerOf(caller) ?? HOST
    const roots = await namedRootsOf(owner)
    if (path === undefined) {
      const folders = roots
        .slice(0, MAX_FOLDERS)
        .map(({ real }) => ({ path: real, name: real }))
      return { path: null, folders, more: roots.length - folders.length, left_out: 0 }
    }
    try {
      return await this.#foldersIn(path, roots, owner, caller?.signal)
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      throw new InvalidRequestError([{ pointer: '/path', detail: error.message }])
    }
  }

  async #foldersIn(
    path: string,
    roots: readonly NamedFolder[],
    owner: RunOwner,
    signal: AbortSignal | undefined,
  ): Promise<FolderOffer> {
    const { closed, store } = this.#options
    const { tenant } = owner
    const rules = { store, closed, allowsRoots: true }
    const folder = await requestedFolder(path, roots, owner, rules)
    const confinement = await confine(folder, undefined, closed)
    const isBlind = tenant !== null && store.hasForeignRun === undefined
    const folders: OfferedFolder[] = []
    let [more, leftOut, asked] = [0, 0, 0]
    const entries = await listFolder(confinement, '.', {
      recursive: false,
      limit: MAX_ENTRIES,
      onPassedOver: () => (leftOut += 1),
    })
    const named = entries.filter(({ type }) => type === 'directory' || type === 'symlink')
    for (const { path: name, type } of named) {
      const offered = { path: join(folder, name), name: basename(name) }
      if (type === 'symlink' || offered.name.startsWith('.') || isBlind) leftOut += 1
      else if (folders.length >= MAX_FOLDERS || asked >= MAX_ASKED) more += 1
      else {
        signal?.throwIfAborted()
        asked += 1
        if (await hasForeignRun(store, offered.path, tenant)) leftOut += 1
        else folders.push(offered)
      }
    }
    return { path: folder, folders, more, left_out: leftOut }
  }
}
