import {
  checkOptions, checkString, describeValue, type OptionKinds,
} from '../../internal/options.js'
import type { JsonObject } from '../../internal/json.js'
import type {
  ApplyResult,
  ChangeRange,
  Checkpoint,
  FileContent,
  FileList,
  NetChanges,
  RestoreResult,
  RunWorkspaces,
  WorkspaceCaller,
} from '../checkpoint.js'
import { CheckpointError, InvalidRequestError, RunStateError } from '../errors.js'
import { isTerminal } from '../events.js'
import { redactor } from '../redaction/redactor.js'
import { ownerOf } from '../request/owner-of.js'
import type { RootsOf } from '../request/roots.js'
import { visibleHead } from '../request/visible-head.js'
import {
  APPLY_SCHEMA, RESTORE_SCHEMA, type ApplyRequest, type RestoreRequest,
} from '../request/workspace-requests.js'
import type { RunHead } from '../run-details.js'
import { checkRequest } from '../check-schema.js'
import type { JsonSchema } from '../schema.js'
import type { RunStore } from '../store.js'
import { applyChanges, noChanges } from './apply-changes.js'
import { isOfOriginal, newestFirst } from './checkpoint-chain.js'
import { FileOperations } from './file-operations.js'
import { restoreFolder } from './restore.js'
import type { CheckpointSettings } from './settings.js'
import type { Copies, RunLogs } from './run-logs.js'
import { nothingKept, RunTreeReader, type Viewer } from './run-trees.js'
import { assertFinished, withFailures } from './unfinished.js'
import { listTree, readTreeFile, showChanges, showPatch } from './views.js'

/** What {@link Workspaces} needs of its engine. */
export interface WorkspacesSettings {
  readonly store: RunStore
  readonly rootsOf: RootsOf
  readonly isolation: Copies | null
  /** Null: the engine has no object store. */
  readonly checkpoints: CheckpointSettings | null
  readonly logs: RunLogs
}

/** Everything that needs contents. */
interface Parts {
  readonly trees: RunTreeReader
  readonly operations: FileOperations
}

const RANGE: OptionKinds<ChangeRange> = {
  from: 'string', to: 'string', only: 'string',
}
const PATCH: OptionKinds<ChangeRange & { raw: boolean }> = {
  ...RANGE, raw: 'boolean! true if the caller may read files that hold secrets',
}
const LIST: OptionKinds<{ path?: string; at?: string }> = { path: 'string', at: 'string' }
const READ: OptionKinds<{ at?: string; raw: boolean }> = {
  at: 'string', raw: 'boolean! true if the caller may read files that hold secrets',
}

function checkOnly({ only }: ChangeRange): void {
  if (only === undefined || only === 'delivered') return
  throw new TypeError(`only must be 'delivered', got ${describeValue(only)}`)
}

/** What an engine offers as `workspaces`. */
export class Workspaces implements RunWorkspaces {
  readonly #settings: WorkspacesSettings
  readonly #parts: Parts | null

  constructor(settings: WorkspacesSettings) {
    this.#settings = settings
    const { checkpoints } = settings
    this.#parts = checkpoints && {
      trees: new RunTreeReader({
        ...settings, objects: checkpoints.use.objects, rules: checkpoints.rules,
      }),
      operations: new FileOperations(checkpoints),
    }
  }

  async checkpoints(runId: string, caller?: WorkspaceCaller): Promise<readonly Checkpoint[]> {
    const head = await this.#head(runId, caller)
    const found: Checkpoint[] = []
    for await (const checkpoint of newestFirst(this.#settings.store, head)) found.push(checkpoint)
    return found.reverse()
  }

  async changes(
    runId: string,
    range: ChangeRange = {},
    caller?: WorkspaceCaller,
  ): Promise<NetChanges> {
    checkOptions(range, RANGE, 'changes()')
    checkOnly(range)
    const head = await this.#head(runId, caller)
    requireUnix()
    return await showChanges(this.#parts?.trees ?? null, head, range, viewerFor(head, caller))
  }

  async patch(
    runId: string,
    range: ChangeRange & { readonly raw: boolean },
    caller?: WorkspaceCaller,
  ): Promise<Uint8Array> {
    checkOptions(range, PATCH, 'patch()')
    checkOnly(range)
    const head = await this.#head(runId, caller)
    return await showPatch(this.#ready(head).trees, head, range, viewerFor(head, caller))
  }

  async list(
    runId: string,
    options: { readonly path?: string | undefined; readonly at?: string | undefined } = {},
    caller?: WorkspaceCaller,
  ): Promise<FileList> {
    checkOptions(options, LIST, 'list()')
    const head = await this.#head(runId, caller)
    return await listTree(this.#ready(head).trees, head, options, viewerFor(head, caller))
  }

  async read(
    runId: string,
    path: string,
    options: { readonly at?: string | undefined; readonly raw: boolean },
    caller?: WorkspaceCaller,
  ): Promise<FileContent> {
    checkString('path', path)
    checkOptions(options, READ, 'read()')
    const head = await this.#head(runId, caller)
    return await readTreeFile(this.#ready(head).trees, head, path, options, viewerFor(head, caller))
  }

  async restore(
    runId: string,
    request: JsonObject,
    caller?: WorkspaceCaller,
  ): Promise<RestoreResult> {
    const head = await this.#head(runId, caller)
    const given = checked<RestoreRequest>(RESTORE_SCHEMA, request, ['paths'])
    const { checkpoint_id, paths = null, force = false } = given
    refuseSecrets(paths)
    const { operations, trees } = this.#ready(head)
    const target = await trees.find(head, checkpoint_id)
    const { workspace, cwd } = head.details
    // Of the folders that had this content, the one that had it last: so every restore and apply
    // is taken back where it was done.
    const isOriginal = workspace === 'in_place' || isOfOriginal(target)
    const folder = isOriginal ? cwd : await this.#copyOf(head)
    const { rootsOf, logs } = this.#settings
    const allowed = await rootsOf(ownerFor(head, caller))
    // A copy is made of a folder that the caller must be allowed to use.
    const roots = isOriginal ? allowed : [folder]
    const reason = workspace === 'isolated' && isOriginal ? 'apply' : 'restore'
    const by = caller?.owner.id ?? null
    assertFinished(runId, folder)
    return await logs.operate(head, isOriginal ? cwd : null, async (log, signal) => {
      await operations.finish(log, signal, false)
      const newest = await this.#newest(log.state.head, isOriginal && workspace === 'isolated')
      const restored = { checkpointId: checkpoint_id, paths, reason, force, by } as const
      return await withFailures('restore', () =>
        operations.inFolder(folder, roots, log, signal, (stored) =>
          restoreFolder(operations, stored, {
            ...restored, newest: newest ?? checkpoint_id,
          }),
        ),
      )
    })
  }

  async apply(runId: string, request: JsonObject, caller?: WorkspaceCaller): Promise<ApplyResult> {
    const head = await this.#head(runId, caller)
    const given = checked<ApplyRequest>(APPLY_SCHEMA, request, ['paths'])
    const { paths = null, dry_run: dryRun = false, force = false } = given
    const { include_held_back: includesHeldBack = false } = given
    refuseSecrets(paths)
    const { operations } = this.#ready(head)
    requireChanges(head)
    const { rootsOf, logs } = this.#settings
    const { cwd } = head.details
    const roots = await rootsOf(ownerFor(head, caller))
    const by = caller?.owner.id ?? null
    assertFinished(runId, cwd)
    const result = await logs.operate(head, dryRun ? null : cwd, async (log, signal) => {
      await operations.finish(log, signal, false)
      requireChanges(log.state.head)
      const wanted = { paths, includesHeldBack, dryRun, force, by, waits: false }
      return await withFailures('apply', () =>
        operations.inFolder(cwd, roots, log, signal, (folder) =>
          applyChanges(operations, folder, wanted),
        ),
      )
    })
    const after = await this.#settings.store.head(runId)
    if (after?.details.changes === 'applied') await this.#removeCopy(runId)
    return result
  }

  async discard(runId: string, caller?: WorkspaceCaller): Promise<void> {
    const head = await this.#head(runId, caller)
    requireUnix()
    requireChanges(head)
    const { logs } = this.#settings
    await logs.operate(head, null, async (log) => {
      requireChanges(log.state.head)
      const { iteration, changes } = log.state.head.details
      if (changes === 'applied') throw noChanges(runId)
      const by = caller?.owner.id ?? null
      const payload = { changes: 'discarded', by } as const
      await log.offer([{ kind: 'changes_decided', iteration, payload }])
    })
    await this.#removeCopy(runId)
  }

  /** It has been decided what becomes of the changes: what cannot be removed, a sweep removes. */
  async #removeCopy(runId: string): Promise<void> {
    await this.#settings.isolation?.remove(runId).catch(() => undefined)
  }

  async #head(runId: string, caller: WorkspaceCaller | undefined): Promise<RunHead> {
    return await visibleHead(this.#settings.store, runId, ownerOf(caller))
  }

  #ready(head: RunHead): Parts {
    requireUnix()
    if (head.details.workspace === 'none') throw new CheckpointError('off', nothingKept(head))
    if (this.#parts !== null) return this.#parts
    throw new CheckpointError('off', `${nothingKept(head)}; this host has no checkpoints`)
  }

  async #copyOf({ details }: RunHead): Promise<string> {
    const { attempts, run_id } = details
    const folder = (await this.#settings.isolation?.find(run_id))?.root ?? null
    // The copy of a run with attempts is what they begin with.
    if (folder !== null && attempts === null) return folder
    const message =
      `the copy in which run ${run_id} worked was removed, or another machine has it; ` +
      'fork the run from this checkpoint'
    throw new CheckpointError('not_kept', message)
  }

  /** The newest checkpoint of the folder that was meant, or of the one in which the run works. */
  async #newest(head: RunHead, ofOriginal: boolean): Promise<string | undefined> {
    for await (const checkpoint of newestFirst(this.#settings.store, head)) {
      if (isOfOriginal(checkpoint) === ofOriginal) return checkpoint.checkpoint_id
    }
    return undefined
  }
}

/** @throws {@link InvalidRequestError} */
function refuseSecrets(paths: readonly string[] | null): void {
  const secret = paths?.findIndex((path) => redactor.forbids(path)) ?? -1
  if (secret < 0) return
  const detail = 'contains a key or password, which would be logged'
  throw new InvalidRequestError([{ pointer: `/paths/${secret}`, detail }])
}

/** Whose folders count: the caller's, or the run's when the host itself is calling. */
function ownerFor(head: RunHead, caller: WorkspaceCaller | undefined): RunHead['owner'] {
  return ownerOf(caller) ?? head.owner
}

function viewerFor(head: RunHead, caller: WorkspaceCaller | undefined): Viewer {
  return { owner: ownerFor(head, caller), signal: caller?.signal }
}

/** `exact`: as for {@link checkRequest}. @throws {@link InvalidRequestError} */
function checked<T>(schema: JsonSchema, request: JsonObject, exact?: readonly string[]): T {
  const violations = checkRequest(schema, request, exact)
  if (violations.length > 0) throw new InvalidRequestError(violations)
  return request as T
}

/** @throws {@link CheckpointError} with `unsupported` */
function requireUnix(): void {
  if (process.platform !== 'win32') return
  const message = 'files of runs are not shown, restored or applied on Windows'
  throw new CheckpointError('unsupported', message)
}

/** Refuses what only isolated runs that have ended can do. */
function requireChanges({ details }: RunHead): void {
  const { run_id, status, workspace, changes } = details
  if (workspace !== 'isolated') {
    const message =
      workspace === 'none'
        ? `run ${run_id} has no folder, so it changes no files`
        : `run ${run_id} works in its folder itself: restore a checkpoint instead`
    throw new RunStateError('no_changes', message)
  }
  if (!isTerminal(status)) {
    const message = `run ${run_id} is ${status}; its changes can be applied when it has ended`
    throw new RunStateError('live', message)
  }
  if (changes === 'discarded') throw noChanges(run_id)
}
