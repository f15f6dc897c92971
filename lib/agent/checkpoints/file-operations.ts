/**
 * Changes of a folder by a restore, an apply or a merge. Neither a kill nor a fault of the disk
 * leaves it half changed permanently, or without a report.
 *
 * 1. The folder is stored first. The record of that checkpoint and the intent, `files_changing`,
 *    become durable together, before anything is changed.
 * 2. What is changed follows from checkpoints alone: after a kill, the next start finds the same
 *    steps and does those that are not done. A step that finds neither what it expects nor what it
 *    makes does nothing: another program has changed the file.
 * 3. `files_changed` ends it, with a checkpoint of what the folder has then.
 * 4. If the system refuses a step, all are undone (see `workspace/apply.ts`). What cannot be undone
 *    keeps the intent open: it is tried again until the folder is as before or as wanted, and until
 *    then, other operations in that folder are refused.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { inSlices } from '../../internal/time.js'
import { uuidV7 } from '../../internal/hash.js'
import { describeError } from '../../internal/errors.js'
import { isCorrupt, StoreError, WorkspaceChangedError } from '../errors.js'
import {
  isTerminal,
  type ChangesState,
  type FileOperation,
  type RecordDraft,
  type RunRecord,
} from '../events.js'
import { faultIn, MachineWait, mayPass, untilAvailable, untilPossible } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import type { ObjectStore } from '../object-store.js'
import type { ContentOf, Tree } from '../tree.js'
import {
  applySteps, baseOfTakenOver, findInTheWay, HalfAppliedError, planApply, planRestore,
  type PathStep,
} from '../workspace/apply.js'
import { closedInCopy } from '../workspace/closed-folders.js'
import type { TreeRules } from '../workspace/left-out.js'
import { comparePaths, isSameEntry } from '../workspace/net-changes.js'
import { TrackedFolder, type Captured } from '../workspace/tracked-folder.js'
import {
  NO_FOLDERS, onlyFolders, planFolders, type FolderPlan, type FolderStep,
} from '../workspace/tree-folders.js'
import { openPinned } from '../workspace/open.js'
import type { PinnedFolder } from '../workspace/pinned-folder.js'
import { readContent, readTree } from '../workspace/read-tree.js'
import { checkpointDraft } from './checkpoint-chain.js'
import { deliveredPaths } from './delivered.js'
import type { CheckpointSettings } from './settings.js'
import { failureOf, noteHalf, noteWhole, warnOf } from './unfinished.js'

/** A change of a folder that is asked for. */
export interface Operation {
  readonly operation: FileOperation
  /** The checkpoint whose content the files get. */
  readonly after: string
  /** Only these; null for all. */
  readonly paths: readonly string[] | null
  /** Of an apply: take the run's content where both sides changed a file. */
  readonly force: boolean
  readonly by: string | null
  /** True for what a run does by itself: it waits while the machine or the disk is at fault. */
  readonly waits: boolean
  /** Of a merge: the run whose changes are brought, where they began, and what stays as it is. */
  readonly merge?: {
    readonly runId: string
    readonly base: string
    readonly conflicts: readonly string[]
  }
}

/** How an operation has ended; the error tells why nothing was changed. */
interface Ended {
  readonly error: Error | null
  readonly changed: Changed
}

/** What became of it. */
export interface Changed {
  readonly paths: readonly string[]
  readonly skipped: readonly string[]
}

type Intent = Extract<RunRecord, { kind: 'files_changing' }>

/** Paths that an event names. */
const MAX_NAMED = 1_000
/** Paths that a text names. */
const MAX_IN_TEXT = 10

/** A folder in which a run operates: it is pinned, and can be stored as often as needed. */
export class StoredFolder implements AsyncDisposable {
  readonly log: LogWriter
  readonly pinned: PinnedFolder
  readonly signal: AbortSignal
  /** Folders in it that do not exist for runs. */
  readonly closed: readonly string[]
  readonly #objects: ObjectStore
  readonly #tracker: TrackedFolder

  constructor(
    log: LogWriter,
    signal: AbortSignal,
    pinned: PinnedFolder,
    rules: TreeRules,
    objects: ObjectStore,
  ) {
    this.log = log
    this.pinned = pinned
    this.signal = signal
    this.closed = rules.closed ?? []
    this.#objects = objects
    this.#tracker = new TrackedFolder(rules)
  }

  /** Stores the content of the folder as it is. */
  async capture(): Promise<{ readonly captured: Captured; readonly tree: Tree }> {
    const { log, signal } = this
    const options = { previous: log.state.checkpoints?.newest ?? null, signal }
    const captured = await this.pinned.guard(() =>
      this.#tracker.capture(this.pinned.path, this.#objects, options),
    )
    return { captured, tree: await readTree(this.#objects, captured.checkpoint_id) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tracker[Symbol.asyncDispose]()
    await this.pinned[Symbol.asyncDispose]()
  }
}

/** Does and finishes operations; the rules are in the comment of this file. */
export class FileOperations {
  readonly #settings: CheckpointSettings

  constructor(settings: CheckpointSettings) {
    this.#settings = settings
  }

  get objects(): ObjectStore {
    return this.#settings.use.objects
  }

  /**
   * Works in a folder; nothing that is stored meanwhile is reclaimed.
   *
   * @param roots folders of which one must contain it
   */
  async inFolder<T>(
    folder: string,
    roots: readonly string[],
    log: LogWriter,
    signal: AbortSignal,
    work: (folder: StoredFolder) => Promise<T>,
  ): Promise<T> {
    const { rules, use } = this.#settings
    const closed = await closedInCopy(folder, rules.closed ?? [])
    const pinned = await openPinned(folder, { roots, closed }, null, () => undefined)
    return await use.capturing(async (objects) => {
      const { folder: held } = pinned
      await using stored = new StoredFolder(log, signal, held, { ...rules, closed }, objects)
      return await work(stored)
    })
  }

  /**
   * Does an operation; resolves once that is durable.
   *
   * @param before what the folder has
   * @throws {@link WorkspaceChangedError} for files in folders that would have to make room;
   * {@link FileOperationError} when the system refused a change: all were undone, or the intent is
   * still open.
   */
  async change(
    folder: StoredFolder,
    { operation, after, paths, force, by, merge, waits }: Operation,
    before: Captured,
    steps: Steps,
  ): Promise<Changed> {
    const { log, pinned, signal } = folder
    if (operation !== 'merge') await this.assertRoom(folder, steps)
    const { head } = log.state
    const { iteration } = head.details
    const operation_id = uuidV7(this.#settings.clock.now())
    const isOriginal = pinned.real === head.details.cwd
    const intent = { operation_id, operation, before: before.checkpoint_id, after, by }
    const from = merge && { run_id: merge.runId, conflicts: merge.conflicts }
    const base = merge && { base: merge.base }
    const key = randomUUID()
    // An intent that a request cannot store is none.
    await (waits ? log.append : log.offer).call(log, [
      checkpointDraft(before, reasonOf(log, isOriginal, operation), head),
      {
        kind: 'files_changing',
        iteration,
        payload: { ...intent, ...from },
        private: { paths, folder: pinned.real, force, ...base, key },
      },
    ])
    const error = await this.#perform(folder, steps, { key, again: false, waits })
    const failure = error && failureOf(operation, error, before.checkpoint_id)
    if (error instanceof HalfAppliedError) {
      noteHalf(log, pinned.real, error)
      const ended = waits ? await this.#finish(log, signal, true) : null
      if (ended === null || ended.error !== null) throw ended?.error ?? failure
      return ended.changed
    }
    const done = { operation_id, operation, by }
    const changed = await this.#end(log, signal, folder, done, steps)
    if (failure !== null) throw failure
    return changed
  }

  /** @throws {@link WorkspaceChangedError} for files in folders that would have to make room. */
  async assertRoom({ closed, pinned }: StoredFolder, { steps }: Steps): Promise<void> {
    const inTheWay = await findInTheWay(pinned.path, steps, closed)
    if (inTheWay.length > 0) throw new WorkspaceChangedError('in_the_way', inTheWay)
  }

  /** As `RunFiles.finish`; unless it `waits`, a fault that lasts is thrown. */
  async finish(log: LogWriter, signal: AbortSignal, waits: boolean): Promise<void> {
    await this.#finish(log, signal, waits)
  }

  /** Null if there is nothing to finish, or the log was given up before. */
  async #finish(log: LogWriter, signal: AbortSignal, waits: boolean): Promise<Ended | null> {
    const intent = await this.#openIntent(log)
    if (intent === null) return null
    const { operation_id, operation, before, by } = intent.payload
    const { folder, paths, force = false, base, key = '' } = intent.private!
    const done = { operation_id, operation, by }
    let planned: Steps = { steps: [] }
    const how = { key, again: true, waits }
    const attempt = async (): Promise<Ended> => {
      const plan = { ...intent.payload, paths, force, base }
      planned = await this.#patiently(signal, () => this.#planAgain(log, plan))
      return await this.inFolder(folder, [folder], log, signal, async (stored) => {
        const error = await this.#perform(stored, planned, how)
        if (error instanceof HalfAppliedError) throw error
        if (error !== null) warnOf(log, operation, error)
        return { error, changed: await this.#end(log, signal, stored, done, planned) }
      })
    }
    const wait = new MachineWait()
    try {
      for (;;) {
        const ended = await attempt().catch((error: Error) => ({ error, changed: null }))
        if (ended.changed !== null) return ended
        const { error } = ended
        signal.throwIfAborted()
        if (log.hasFailed || log.state.head.operation === null) throw error
        // A store that is closed says nothing about the folder; damaged contents stay damaged.
        const isOfStore = error instanceof StoreError && !isCorrupt(error)
        const isForNow = isOfStore || faultIn(error) !== null || mayPass(error)
        if (!isForNow && !(error instanceof HalfAppliedError)) {
          warnOf(log, operation, error)
          return { error, changed: await this.#end(log, signal, null, done, planned) }
        }
        noteHalf(log, folder, error)
        if (!waits) throw failureOf(operation, new HalfAppliedError('', { cause: error }), before)
        const isOver = await pauseUnless(log.givenUp, signal, (either) =>
          wait.pause(error, either, this.#settings.clock),
        )
        if (isOver) return null
      }
    } finally {
      wait.end()
      if (waits) noteWhole(log.runId)
    }
  }

  /** The steps of an operation, from its checkpoints alone. */
  async #planAgain(
    log: LogWriter,
    {
      operation, before, after, paths, force, base,
    }: Omit<Operation, 'by' | 'merge' | 'waits'> & {
      readonly before: string
      readonly base: string | undefined
    },
  ): Promise<Steps> {
    const { objects } = this.#settings.use
    const [now, target] = [await readTree(objects, before), await readTree(objects, after)]
    if (operation === 'restore') {
      const steps = restorable(await inSlices(planRestore(now, target)), paths)
      return { steps, folders: onlyFolders(await inSlices(planFolders(now, target)), paths) }
    }
    const sides = { ours: target, theirs: now }
    if (base !== undefined) return await this.planMerge(base, sides)
    return await this.planApply(log, sides, paths, force)
  }

  /** The three-way apply of what another run changed since the tree with which it began. */
  async planMerge(
    base: string,
    sides: { readonly ours: Tree; readonly theirs: Tree },
  ): Promise<Awaited<ReturnType<typeof planApply>>> {
    const { objects } = this.#settings.use
    const contentOf: ContentOf = (entry) => readContent(objects, entry)
    const began = await readTree(objects, base)
    return await planApply({ base: began, ...sides }, contentOf, { paths: null, force: false })
  }

  /** Where the changes of a run began that an apply brings; some may be those of its source. */
  async changesBegan({ state }: LogWriter): Promise<Tree> {
    const { checkpoints, frozen } = state
    const id = frozen.fork?.applies_from ?? checkpoints!.start
    return await readTree(this.#settings.use.objects, id)
  }

  /** The three-way apply of what a run changed, of all files or some. */
  async planApply(
    log: LogWriter,
    { ours, theirs }: { readonly ours: Tree; readonly theirs: Tree },
    paths: readonly string[] | null,
    force: boolean,
  ): Promise<Awaited<ReturnType<typeof planApply>>> {
    const { objects } = this.#settings.use
    const contentOf: ContentOf = (entry) => readContent(objects, entry)
    let base = await this.changesBegan(log)
    const { checkpoints, frozen } = log.state
    if (frozen.fork?.applies_from !== undefined) {
      const start = await readTree(objects, checkpoints!.start)
      base = await inSlices(baseOfTakenOver(base, start, theirs))
    }
    return await planApply({ base, ours, theirs }, contentOf, { paths, force })
  }

  /**
   * Null, or why nothing was changed in the end, or a {@link HalfAppliedError}.
   *
   * @throws the signal's reason
   */
  async #perform(
    { closed, pinned, signal }: StoredFolder,
    steps: Steps,
    { key, again, waits }: Attempt,
  ): Promise<Error | null> {
    const { clock, use } = this.#settings
    const contentOf: ContentOf = async (entry) => {
      signal.throwIfAborted()
      return steps.contents?.get(entry.sha256) ?? (await readContent(use.objects, entry))
    }
    let isAgain = again
    /** May the folder be half changed? */
    let isHalf = again
    const attempt = async (): Promise<void> => {
      // Nothing is changed in a folder that was moved, either.
      await pinned.check()
      const options = { closed, key, again: isAgain, signal, folders: steps.folders }
      ;[isAgain, isHalf] = [true, true]
      let isApplied = false
      const apply = async (): Promise<void> => {
        await applySteps(pinned.path, steps.steps, contentOf, options)
        ;[isApplied, isHalf] = [true, false]
      }
      await pinned.guard(() => apply().catch((error: Error) => {
        isHalf = error instanceof HalfAppliedError
        throw error
      })).catch((error: unknown) => {
        // The disk may fail when all is done, so that it does not tell if the folder was moved.
        if (!isApplied || faultIn(error) === null) throw error
      })
    }
    try {
      await (waits ? this.#patiently(signal, attempt) : untilAvailable(attempt, clock, signal))
      return null
    } catch (error) {
      signal.throwIfAborted()
      if (!isHalf || error instanceof HalfAppliedError) return error as Error
      return new HalfAppliedError(describeError(error), { cause: error })
    }
  }

  /** Repeats `attempt` while the object store is unavailable. @throws the signal's reason */
  async #patiently<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    return await untilPossible(attempt, signal, this.#settings.clock)
  }

  /** Ends an operation with what the folder has now; null: that is not known. */
  async #end(
    log: LogWriter,
    signal: AbortSignal,
    folder: StoredFolder | null,
    { operation_id, operation, by }: Pick<Intent['payload'], 'operation_id' | 'operation' | 'by'>,
    { steps, folders = NO_FOLDERS }: Steps,
  ): Promise<Changed> {
    const capturing = folder && this.#patiently(signal, () => folder.capture())
    const now = (await capturing?.catch(() => null)) ?? null
    const isDone = ({ path, after }: PathStep): boolean =>
      now !== null && isSameEntry(now.tree.entries.get(path) ?? null, after)
    const isDoneFolder = ({ path, after }: FolderStep): boolean => {
      const mode = now?.tree.folders?.get(path) ?? null
      return now !== null && (mode === after || (folders.known === null && mode !== null))
    }
    // A file and a folder may swap places.
    const all = [...new Set([...steps, ...folders.steps].map(({ path }) => path))]
    const left = new Set([
      ...steps.filter((step) => !isDone(step)),
      ...folders.steps.filter((step) => !isDoneFolder(step)),
    ].map(({ path }) => path))
    const paths = all.filter((path) => !left.has(path)).sort(comparePaths)
    const skipped = [...left].sort(comparePaths)
    const more = [paths, skipped].reduce((n, some) => n + Math.max(0, some.length - MAX_NAMED), 0)
    const { iteration } = log.state.head.details
    const drafts: RecordDraft[] = [
      {
        kind: 'files_changed',
        iteration,
        payload: {
          operation_id,
          operation,
          paths: paths.slice(0, MAX_NAMED),
          skipped: skipped.slice(0, MAX_NAMED),
          ...(more > 0 && { more }),
        },
      },
    ]
    // The log of a run that has ended takes no messages; the answer to the request names them.
    const { status } = log.state.head.details
    if (skipped.length > 0 && operation === 'apply' && !isTerminal(status)) {
      const named = skipped.slice(0, MAX_IN_TEXT).join(', ')
      const others = skipped.length > MAX_IN_TEXT ? ` and ${skipped.length - MAX_IN_TEXT} more` : ''
      const message = `the apply left these files as they are: ${named}${others}`
      drafts.push({ kind: 'log', iteration, payload: { level: 'warn', message } })
    }
    if (folder !== null && now !== null) {
      const isOriginal = folder.pinned.real === log.state.head.details.cwd
      const reason = reasonOf(log, isOriginal, operation)
      drafts.push(checkpointDraft(now.captured, reason, log.state.head))
      const state = isOriginal ? await this.#stateOf(log, now.tree) : null
      if (state !== null) {
        drafts.push({ kind: 'changes_decided', iteration, payload: { changes: state, by } })
      }
    }
    await log.append(drafts)
    noteWhole(log.runId)
    return { paths, skipped }
  }

  /** What has become of an isolated run's changes; null when that is no news. */
  async #stateOf(log: LogWriter, theirs: Tree): Promise<ChangesState | null> {
    const { checkpoints, head } = log.state
    const { changes, workspace } = head.details
    if (workspace !== 'isolated' || checkpoints === null || changes === 'discarded') return null
    const { objects } = this.#settings.use
    const ours = await readTree(objects, checkpoints.newest)
    const files = log.state.checkedFiles
    const paths = await deliveredPaths(await this.changesBegan(log), ours, files)
    const { steps, folders, conflicts } = await this.planApply(log, { ours, theirs }, paths, false)
    const left = steps.length + folders.steps.length + conflicts.length
    const state = left === 0 ? 'applied' : 'pending'
    return state === changes ? null : state
  }

  /** The intent without an end; null when there is none. */
  async #openIntent(log: LogWriter): Promise<Intent | null> {
    const { operation, checkpointSeq } = log.state.head
    if (operation === null) return null
    // It was appended together with the checkpoint before it.
    const [record] = await log.read(log.runId, checkpointSeq ?? 0, 1)
    if (record?.kind === 'files_changing') return record
    throw new StoreError('ERR_AGENT_STORE_CORRUPT', `operation ${operation} is not in the log`)
  }
}

/** Steps, and contents that are in no store. */
export interface Steps {
  readonly steps: readonly PathStep[]
  readonly contents?: ReadonlyMap<string, Uint8Array>
  readonly folders?: FolderPlan
}

/** The steps for some paths, or for all (null), whose content is stored. */
export function restorable(
  steps: readonly PathStep[],
  paths: readonly string[] | null = null,
): readonly PathStep[] {
  const wanted = paths && new Set(paths)
  return steps.filter(
    ({ path, before, after }) =>
      (after?.stored !== false || before?.sha256 === after.sha256) && wanted?.has(path) !== false,
  )
}

interface Attempt {
  /** As for {@link applySteps}. */
  readonly key: string
  readonly again: boolean
  readonly waits: boolean
}

/** True if `givenUp` aborts during a pause. @throws the signal's reason */
async function pauseUnless(
  givenUp: AbortSignal,
  signal: AbortSignal,
  pause: (either: AbortSignal) => Promise<void>,
): Promise<boolean> {
  await pause(AbortSignal.any([signal, givenUp])).catch(() => undefined)
  signal.throwIfAborted()
  return givenUp.aborted
}

/** An isolated run works in a copy: `apply` marks what concerns the folder that was meant. */
function reasonOf(
  { state }: LogWriter,
  isOriginal: boolean,
  operation: FileOperation,
): 'restore' | 'apply' | 'merge' {
  if (operation === 'merge') return operation
  return isOriginal && state.head.details.workspace === 'isolated' ? 'apply' : 'restore'
}
