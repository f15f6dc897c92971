/**
 * The trees that views of a run show: checkpoints by their names or ids, and the folder as it is.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import type { CheckedFiles } from '../check-files.js'
import type { Checkpoint } from '../checkpoint.js'
import { CheckpointError, WorkspaceError } from '../errors.js'
import type { ForkBase, RunOwner } from '../events.js'
import type { ObjectStore } from '../object-store.js'
import type { RootsOf } from '../request/roots.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'
import type { ContentOf, Tree, TreeEntry } from '../tree.js'
import { closedInCopy } from '../workspace/closed-folders.js'
import type { TreeRules } from '../workspace/left-out.js'
import { manifestOf } from '../workspace/tracked-folder.js'
import { openPinned } from '../workspace/open.js'
import { readContent, readTree } from '../workspace/read-tree.js'
import { exactPath } from '../workspace/raw-paths.js'
import { WalkedRoot } from '../workspace/walk-folder.js'
import { checkedFilesOf } from './delivered.js'
import { boundedObjects } from './object-use.js'
import { isOfOriginal, newestFirst } from './checkpoint-chain.js'
import type { Copies } from './run-logs.js'

/** A tree, the name by which it is known, and its contents. */
export interface NamedTree {
  /** The id of a checkpoint, or `now`. */
  readonly at: string
  readonly tree: Tree
  readonly contentOf: ContentOf
  /** The same for the file at a path, whatever it has by now. */
  readonly read: (path: string, entry: TreeEntry) => Promise<Uint8Array>
}

/** Who looks at a tree. */
export interface Viewer {
  /** Whose folders count. */
  readonly owner: RunOwner
  /** Ends the look. */
  readonly signal: AbortSignal | undefined
}

/** What {@link RunTreeReader} needs of its engine. */
export interface RunTreesSettings {
  readonly store: RunStore
  readonly rootsOf: RootsOf
  readonly isolation: Copies | null
  readonly objects: ObjectStore
  readonly rules: TreeRules
}

/** Bytes of a file that is read; no tree has larger ones. */
const MAX_FILE_BYTES = 32 * 1024 * 1024

/** Finds the trees of runs. */
export class RunTreeReader {
  readonly #settings: RunTreesSettings

  constructor(settings: RunTreesSettings) {
    this.#settings = settings
  }

  /** The first and the newest checkpoint of a run's folder; null without any. */
  async ends(
    head: RunHead,
  ): Promise<{ readonly start: string; readonly newest: string } | null> {
    let newest: string | undefined
    let start: string | undefined
    for await (const checkpoint of this.#ofRun(head)) {
      newest ??= checkpoint.checkpoint_id
      start = checkpoint.checkpoint_id
    }
    return start === undefined || newest === undefined ? null : { start, newest }
  }

  async *#ofRun(head: RunHead): AsyncGenerator<Checkpoint> {
    for await (const checkpoint of newestFirst(this.#settings.store, head)) {
      if (!isOfOriginal(checkpoint)) yield checkpoint
    }
  }

  /** The checkpoint of a run with this id. @throws {@link CheckpointError} with `unknown` */
  async find(head: RunHead, id: string): Promise<Pick<Checkpoint, 'checkpoint_id' | 'reason'>> {
    const { run_id } = head.details
    for await (const checkpoint of newestFirst(this.#settings.store, head)) {
      if (checkpoint.checkpoint_id === id) return checkpoint
    }
    const fork = await this.#fork(head)
    const isBase = fork?.checkpoint_id === id || fork?.applies_from === id
    if (isBase) return { checkpoint_id: id, reason: 'start' }
    throw new CheckpointError('unknown', `run ${run_id} has no checkpoint ${id.slice(0, 64)}`)
  }

  /** What a fork has of its source; undefined for other runs. */
  async #fork({ details }: RunHead): Promise<ForkBase | undefined> {
    if (details.forked_from == null) return undefined
    const [first] = await this.#settings.store.read(details.run_id, 0, 1)
    return first?.kind === 'run_created' ? first.private?.fork : undefined
  }

  /** The files that the newest verdict of a run covers; null if unknown. */
  async checkedFiles(head: RunHead): Promise<CheckedFiles | null> {
    return await checkedFilesOf(this.#settings.store, head)
  }

  /** The tree, by its name, with which the changes began that applying the run brings. */
  async appliesFrom(head: RunHead): Promise<string> {
    return (await this.#fork(head))?.applies_from ?? 'start'
  }

  /**
   * The tree with this name: `start`, `newest`, `now`, or the id of a checkpoint.
   *
   * @throws {@link CheckpointError}: `unknown`, or `off` for a run without checkpoints;
   * {@link WorkspaceError} for the folder as it is; the signal's reason, as do the functions of the
   * tree.
   */
  async at(head: RunHead, name: string, viewer: Viewer): Promise<NamedTree> {
    const { signal } = viewer
    signal?.throwIfAborted()
    if (name === 'now') return await this.#now(head, viewer)
    const id = await this.#idOf(head, name)
    const { objects: all } = this.#settings
    const objects = signal === undefined ? all : boundedObjects(all, signal)
    const tree = await readTree(objects, id)
    return {
      at: id,
      tree,
      contentOf: (entry) => readContent(objects, entry),
      read: (path, entry) => readContent(objects, entry, path),
    }
  }

  async #idOf(head: RunHead, name: string): Promise<string> {
    if (name !== 'start' && name !== 'newest') return (await this.find(head, name)).checkpoint_id
    if (name === 'newest' && head.details.checkpoint_id != null) return head.details.checkpoint_id
    const ends = await this.ends(head)
    if (ends !== null) return ends[name]
    throw new CheckpointError('off', `${nothingKept(head)}, so there is no checkpoint`)
  }

  async #now(head: RunHead, viewer: Viewer): Promise<NamedTree> {
    const { owner, signal } = viewer
    const { isolation, rootsOf, rules } = this.#settings
    const { run_id, workspace, cwd } = head.details
    if (workspace === 'none') throw new CheckpointError('off', nothingKept(head))
    // The copy of a run with attempts is what they begin with.
    const isOwn = workspace === 'isolated' && head.details.attempts === null
    const copy = isOwn ? ((await isolation?.find(run_id))?.root ?? null) : null
    // Another machine may have the copy, or it was removed: its newest checkpoint is what is left.
    if (workspace === 'isolated' && copy === null) return await this.at(head, 'newest', viewer)
    const folder = copy ?? cwd
    const roots = copy === null ? await rootsOf(owner) : [copy]
    const closed = await closedInCopy(folder, rules.closed ?? [])
    const pinned = await openPinned(folder, { roots, closed }, null, () => undefined)
    await using held = pinned.folder
    const tree = await held.guard(() => manifestOf(held.path, { ...rules, closed }, signal))
    const paths = new Map([...tree.entries].map(([path, { sha256 }]) => [sha256, path]))
    const read = async (path: string, entry: TreeEntry): Promise<Uint8Array> => {
      signal?.throwIfAborted()
      const again = await openPinned(folder, { roots, closed }, held.identity, () => undefined)
      await using _ = again.folder
      return readEntry(again.folder.path, path, entry)
    }
    const contentOf: ContentOf = async (entry) => {
      const path = paths.get(entry.sha256) ?? ''
      const content = await read(path, entry)
      if (hash('sha256', content) === entry.sha256) return content
      throw new CheckpointError('not_kept', `${path} was changed while it was read`, [path])
    }
    return { at: 'now', tree, contentOf, read }
  }
}

/** The content of a file, or the target of a link, of a folder as it is. */
function readEntry(folder: string, path: string, { kind }: TreeEntry): Uint8Array {
  using root = new WalkedRoot(folder)
  const slash = path.lastIndexOf('/')
  const parent = root.open(path.slice(0, Math.max(0, slash)))
  if (parent === null || parent === 'unreadable') throw gone(path)
  using open = parent
  const name = exactPath(path.slice(slash + 1))
  if (kind === 'link') return open.target(name) ?? fail(gone(path))
  const found = open.read(name, MAX_FILE_BYTES, (bytes) => new Uint8Array(bytes))
  if (found === null || typeof found === 'string') throw gone(path)
  return found.content
}

function gone(path: string): WorkspaceError {
  return new WorkspaceError('ERR_AGENT_WORKSPACE', `${path} cannot be read any more`)
}

function fail(error: Error): never {
  throw error
}

/** Why there may be nothing to show of a run. */
export function nothingKept({ details }: RunHead): string {
  if (details.workspace === 'none')
    return `run ${details.run_id} has no folder, so it changes no files`
  return (
    `nothing was kept of the files of run ${details.run_id}: it has not worked yet, it is of an ` +
    'earlier version, or checkpoints were off'
  )
}
