/**
 * The checkpoints of one run while this process drives it.
 *
 * 1. The first one is made before the first check if that runs in place, and otherwise beside the
 *    first model call. It is in the log before the first call of a tool that is not a read; and
 *    before the first check if an earlier run has left changes, for then it names the start that
 *    checks compare with (see `check-start.ts`).
 * 2. A later one is made only after something that may have changed files, and recorded only if
 *    something did change.
 * 3. What a checkpoint needs is stored before its record; until that is durable, nothing of it is
 *    reclaimed.
 * 4. While the object store is unavailable the run waits, as it does for its log. A checkpoint that
 *    fails for another reason is missing, and the log says so; it never fails the run.
 *
 * @module
 */
import { inSlices, raceAbort } from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import type { ChangedFile, FilesAtStart, Rewind } from '../check-files.js'
import { isUnavailable } from '../errors.js'
import type { CheckpointReason, RecordDraft } from '../events.js'
import { MachineWait, mayPass, untilPossible } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import type { ObjectStore } from '../object-store.js'
import { countChanges, type CountedChanges } from '../workspace/render-changes.js'
import { TrackedFolder, type Captured } from '../workspace/tracked-folder.js'
import type { PinnedFolder } from '../workspace/pinned-folder.js'
import { netChanges } from '../workspace/net-changes.js'
import { readContent, readTree } from '../workspace/read-tree.js'
import { readDifference } from '../workspace/load-tree-diff.js'
import { planFolders } from '../workspace/tree-folders.js'
import { composeStart, type EarlierRun } from './check-start.js'
import { checkpointDraft } from './checkpoint-chain.js'
import { deliveredTree } from './delivered.js'
import type { CheckpointSettings } from './settings.js'
import type { LeftOut, Tree, TreeEntry } from '../tree.js'
import { applySteps, planRestore } from '../workspace/apply.js'
import { outsideTree, pathsLeftOut } from '../workspace/left-out.js'

/** What changed since the start of the run, or since its last gate; null when that is not known. */
export type Compare = (
  since: 'start' | 'gate',
  /** Paths that count as they were. */
  held?: readonly string[],
) => Promise<CountedChanges | null>

const MACHINE = 'waiting for the machine'

/** A run's checkpoints; the rules are in the comment of this file. */
export class RunCheckpoints implements AsyncDisposable {
  readonly #settings: CheckpointSettings
  readonly #folder: PinnedFolder
  readonly #tracked: TrackedFolder
  readonly #holds: Captured | null
  /** The first one, until it is in the log. */
  #first: Promise<Captured | null> | undefined
  /** Ends the use of the objects of the first one. */
  #firstRecorded: (() => void) | undefined
  /** `lastWrite` of the state at the newest look; what was written until then has been seen. */
  #seen = -1
  #isOff = false
  /** Aborted when the run is driven no longer. */
  readonly #over = new AbortController()

  /** @param holds the durable checkpoint that the folder holds, if that is known */
  constructor(settings: CheckpointSettings, folder: PinnedFolder, holds: Captured | null) {
    this.#settings = settings
    this.#folder = folder
    this.#holds = holds
    this.#tracked = new TrackedFolder(settings.rules)
  }

  /** Begins the first checkpoint, unless the run has one. */
  begin(log: LogWriter): void {
    const { checkpoints, lastWrite } = log.state
    if (this.#first !== undefined || checkpoints !== null || this.#isOff) return
    // Files were changed by a version that made none, or while none could be made.
    if (lastWrite > 0) {
      this.#isOff = true
      return
    }
    if (this.#holds !== null) {
      this.#first = Promise.resolve(this.#holds)
      return
    }
    const recorded = new Promise<void>((resolve) => (this.#firstRecorded = resolve))
    this.#first = new Promise((resolve) => {
      void this.#settings.use.capturing(async (objects) => {
        const capture = this.#capture(log, objects, this.#over.signal)
        resolve(capture)
        if ((await capture.catch(() => null)) !== null) await recorded
      })
    })
    this.#first.catch(() => undefined) // what waits for it gets the error
  }

  /**
   * Records the first checkpoint of a run whose checks need one, unless there is one: before the
   * first check of a run that begins in a folder in which an earlier one has left changes.
   *
   * @throws what the store of runs or objects throws while it is unavailable; the signal's reason.
   */
  async recordStart(
    earlier: EarlierRun | null,
    log: LogWriter,
    signal: AbortSignal,
  ): Promise<void> {
    if (log.state.checkpoints !== null || this.#isOff) return
    await this.#settings.use.capturing(async (objects) => {
      const captured = await this.#capture(log, objects, signal)
      if (captured === null) {
        this.#isOff = true
        return
      }
      const start = earlier && (await this.#startAfter(earlier, captured, log, objects))
      await log.append([checkpointDraft(captured, 'start', log.state.head, start)])
      this.#seen = log.state.lastWrite
    })
  }

  async #startAfter(
    earlier: EarlierRun,
    { checkpoint_id: now }: Captured,
    log: LogWriter,
    objects: ObjectStore,
  ): Promise<string | null> {
    try {
      return await composeStart(objects, earlier, now)
    } catch (error) {
      if (mayPass(error)) throw error
      const what = `the files with which run ${earlier.runId} began cannot be read`
      const why = describeError(error)
      this.#warn(log, `${what}, so checks compare with the folder as it is: ${why}`)
      return null
    }
  }

  /** The paths that the checkpoint of the start leaves out; null if it cannot be read. */
  async leftOutAtStart(
    { state }: LogWriter,
    signal: AbortSignal,
  ): Promise<{ readonly left_out: readonly LeftOut[] } | null> {
    const { start } = state.checkpoints ?? {}
    const tree = await this.#treeAt(start, signal)
    return tree && { left_out: tree.leftOut }
  }

  async #treeAt(id: string | undefined, signal: AbortSignal): Promise<Tree | null> {
    if (id === undefined || this.#isOff) return null
    const { objects } = this.#settings.use
    return await raceAbort(readTree(objects, id), signal).catch((error: unknown) => {
      if (mayPass(error)) throw error
      return null
    })
  }

  /** The folder's files as they were at the start of the run, as its checks see that. */
  filesAtStart({ state }: LogWriter, signal: AbortSignal): FilesAtStart {
    const { objects } = this.#settings.use
    const read = async (): Promise<Tree | null> => {
      const { checkStart, start } = state.checkpoints ?? {}
      const id = checkStart ?? state.frozen.fork?.applies_from ?? start
      return await this.#treeAt(id, signal)
    }
    return new StartFiles(objects, read, () => this.#tracked.manifest(this.#folder.path, signal))
  }

  /** Records the first checkpoint; resolves once it is durable. */
  async recordFirst(log: LogWriter, signal: AbortSignal): Promise<void> {
    this.begin(log)
    if (this.#first === undefined) return
    const drafts = await this.#takeFirst(log, signal)
    if (drafts.length > 0) await log.append(drafts)
    this.#endFirst()
  }

  /**
   * Calls `append` with the record of a new checkpoint, or with none when nothing has changed; the
   * records that it appends must include that one. It also gets a function that compares.
   */
  async record(
    reason: CheckpointReason,
    log: LogWriter,
    signal: AbortSignal,
    append: (drafts: readonly RecordDraft[], compare: Compare) => Promise<void>,
  ): Promise<void> {
    this.begin(log)
    if (this.#first !== undefined) {
      const drafts = await this.#takeFirst(log, signal)
      await append(drafts, this.#comparer(log, drafts, signal))
      this.#endFirst()
      return
    }
    const { lastWrite } = log.state
    // At a hand-over it also says that nothing is lost.
    const isAsked = reason === 'shutdown'
    if (this.#isOff || (lastWrite <= this.#seen && !isAsked))
      return await append([], this.#comparer(log, [], signal))
    await this.#settings.use.capturing(async (objects) => {
      const captured = await this.#capture(log, objects, signal)
      this.#seen = lastWrite
      const { newest } = log.state.checkpoints ?? {}
      const isNew = captured !== null && (isAsked || captured.checkpoint_id !== newest)
      const drafts = isNew ? [checkpointDraft(captured, reason, log.state.head)] : []
      await append(drafts, this.#comparer(log, drafts, signal))
    })
  }

  /** Compares the newest checkpoint, the one in `drafts` included, with an earlier one. */
  #comparer(
    { state }: LogWriter,
    [draft]: readonly RecordDraft[],
    signal: AbortSignal,
  ): Compare {
    const { checkpoints, frozen } = state
    const added = draft?.kind === 'checkpoint' ? draft.payload.checkpoint_id : undefined
    const newest = added ?? checkpoints?.newest
    return async (since, held = []) => {
      const began = since === 'start' ? frozen.fork?.applies_from : undefined
      const from = began ?? checkpoints?.[since] ?? newest
      if (from === undefined || newest === undefined || this.#isOff) return null
      const { clock, use } = this.#settings
      const compare = (): Promise<CountedChanges> =>
        raceAbort(compareTrees(use.objects, from, newest, held), signal)
      // What cannot be read any more is named where people look at the changes.
      return await untilPossible(compare, signal, clock).catch(() => null)
    }
  }

  /** The draft of the first checkpoint; none when it failed. */
  async #takeFirst(log: LogWriter, signal: AbortSignal): Promise<RecordDraft[]> {
    const captured = await raceAbort(this.#first!, signal)
    if (captured === null) {
      this.#isOff = true
      return []
    }
    this.#seen = log.state.lastWrite
    return [checkpointDraft(captured, 'start', log.state.head)]
  }

  /**
   * As {@link RunCheckpoints.record} when the run is worked on no more: without a checkpoint if
   * that takes more than `ms` milliseconds.
   */
  async recordLast(
    reason: 'end' | 'shutdown',
    ms: number,
    log: LogWriter,
    append: (drafts: readonly RecordDraft[], compare: Compare) => Promise<void>,
  ): Promise<void> {
    const stop = new AbortController()
    const late = new Error('the last checkpoint took too long')
    const timer = this.#settings.clock.setTimeout(() => stop.abort(late), Math.max(0, ms))
    let isAppending = false
    try {
      await this.record(reason, log, stop.signal, async (drafts, compare) => {
        isAppending = true
        await append(drafts, compare)
      })
    } catch (error) {
      if (isAppending) throw error
      this.#warn(log, `no checkpoint was made: ${(error as Error).message}`)
      await append([], () => Promise.resolve(null))
    } finally {
      timer.cancel()
    }
  }

  #endFirst(): void {
    this.#firstRecorded?.()
    this.#first = this.#firstRecorded = undefined
  }

  /** Null when it failed for good. @throws the signal's reason. */
  async #capture(
    log: LogWriter,
    objects: ObjectStore,
    signal: AbortSignal,
  ): Promise<Captured | null> {
    const { clock } = this.#settings
    const { path } = this.#folder
    const wait = new MachineWait()
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#folder.guard(async () => {
            const previous = log.state.checkpoints?.newest ?? null
            return await this.#tracked.capture(path, objects, { previous, signal })
          })
        } catch (error) {
          signal.throwIfAborted()
          const message = describeError(error)
          if (!mayPass(error)) {
            this.#warn(log, `no checkpoint was made: ${message}`)
            return null
          }
          const what = isUnavailable(error) ? 'a checkpoint waits for its store' : MACHINE
          if (attempt === 1) this.#warn(log, `${what}: ${message}`)
          await log.idleWhile(wait.pause(error, signal, clock))
        }
      }
    } finally {
      wait.end()
    }
  }

  #warn(log: LogWriter, message: string): void {
    const { iteration } = log.state.head.details
    log.note({ kind: 'log', iteration, payload: { level: 'warn', message } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new Error('the run is driven no longer'))
    this.#endFirst()
    await this.#tracked[Symbol.asyncDispose]()
  }
}

/**
 * The net change between two checkpoints, in numbers.
 *
 * @throws as `readTree` does.
 */
async function compareTrees(
  objects: ObjectStore,
  from: string,
  to: string,
  held: readonly string[],
): Promise<CountedChanges> {
  const both = from === to ? null : await readDifference(objects, from, to)
  const after = both && deliveredTree(both.before, both.after, held)
  const changes = after === null ? [] : await inSlices(netChanges(both!.before, after))
  return await countChanges(changes, (entry) => readContent(objects, entry))
}

/** The files of the checkpoint of a run's start; none is known where there is none. */
export class StartFiles implements FilesAtStart {
  readonly #objects: ObjectStore
  readonly #read: () => Promise<Tree | null>
  readonly #now: () => Promise<Tree>
  #tree: Promise<Tree | null> | undefined

  /**
   * @param read is called when the first file is asked for
   * @param now looks at the folder
   */
  constructor(objects: ObjectStore, read: () => Promise<Tree | null>, now: () => Promise<Tree>) {
    this.#objects = objects
    this.#read = read
    this.#now = now
  }

  async hashOf(path: string): Promise<string | null | undefined> {
    const tree = await this.#start()
    if (tree === null) return undefined
    const entry = tree.entries.get(path)
    if (entry === undefined) return outsideTree(tree)(path) ? undefined : null
    // A link is compared by where it leads, not by its target's text.
    return entry.kind === 'link' ? undefined : entry.sha256
  }

  async stored(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const tree = await this.#start()
    const hashes = new Map<string, string>()
    for (const path of paths) {
      const { kind, sha256, stored } = tree?.entries.get(path) ?? {}
      if (kind === 'file' && sha256 !== undefined && stored !== false) hashes.set(path, sha256)
    }
    return hashes
  }

  async restore(folder: string, paths: readonly string[]): Promise<readonly string[]> {
    const tree = await this.#start()
    const steps = paths.flatMap((path) => {
      const after = tree?.entries.get(path)
      return after === undefined ? [] : [{ path, before: null, after }]
    })
    return (await applySteps(folder, steps, this.#contentOf)).done
  }

  async changed(): Promise<readonly ChangedFile[] | null> {
    const start = await this.#start()
    if (start === null) return null
    const now = await this.#now()
    const left = pathsLeftOut(now.leftOut)
    if (left === null) throw new Error('too much in the folder is left out of checkpoints')
    const known = new Set(pathsLeftOut(start.leftOut))
    const isNew = (path: string): boolean => !known.has(path) && !start.entries.has(path)
    const steps = await inSlices(planRestore(now, start))
    return [
      ...steps.map(({ path, before, after }) => ({
        path, isNew: after === null, isGone: before === null,
      })),
      ...left.filter(isNew).map((path) => ({ path, isNew: true, isGone: false })),
    ]
  }

  async rewind(): Promise<Rewind | null> {
    const start = await this.#start()
    if (start === null) return null
    const now = await this.#now()
    const all = await inSlices(planRestore(now, start))
    const folders = await inSlices(planFolders(now, start))
    const steps = all.flatMap(({ path, after }) =>
      after === null ? [] : [{ path, before: null, after }],
    )
    const { folders: before } = start
    const added = [...(now.folders?.keys() ?? [])].filter((path) => before?.has(path) === false)
    const changed = all.flatMap(({ path, before }) => (before === null ? [] : [path]))
    return {
      without: [...added, ...changed],
      leftOut: pathsLeftOut(now.leftOut),
      lost: steps.flatMap(({ path, after }) => (after.stored === false ? [path] : [])),
      complete: async (copy) =>
        (await applySteps(copy, steps, this.#contentOf, { folders })).done,
    }
  }

  readonly #contentOf = async (entry: TreeEntry): Promise<Uint8Array> =>
    await readContent(this.#objects, entry)

  async #start(): Promise<Tree | null> {
    this.#tree ??= this.#read().catch((error: unknown) => {
      this.#tree = undefined
      throw error
    })
    return await this.#tree
  }
}
