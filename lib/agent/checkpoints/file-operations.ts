/**
 * Changes of a folder by a restore or an apply, such that a kill at any moment leaves nothing half
 * done.
 *
 * 1. The folder is stored first. The record of that checkpoint and the intent, `files_changing`,
 *    become durable together, before anything is changed.
 * 2. What is changed follows from checkpoints alone: after a kill, the next start finds the same
 *    steps and does those that are not done. A step that finds neither what it expects nor what it
 *    makes does nothing: somebody else has changed the file meanwhile.
 * 3. `files_changed` ends it, with a checkpoint of what the folder has then.
 * 4. If the system refuses a step, the steps before it are taken back.
 *
 * @module
 */
import { describeError } from '../../internal/errors.js'
import { inSlices } from '../../internal/time.js'
import { uuidV7 } from '../../internal/bytes.js'
import { StoreError } from '../errors.js'
import {
  isTerminal,
  type ChangesState,
  type FileOperation,
  type RecordDraft,
  type RunRecord,
} from '../events.js'
import { untilPossible } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import { warn } from '../output.js'
import type { ObjectStore } from '../object-store.js'
import type { ContentOf, Tree } from '../tree.js'
import { applySteps, planApply, planRestore, type PathStep } from '../workspace/apply.js'
import { closedInCopy } from '../workspace/closed-folders.js'
import type { TreeRules } from '../workspace/left-out.js'
import { isSameEntry } from '../workspace/net-changes.js'
import { TrackedFolder, type Captured } from '../workspace/tracked-folder.js'
import { openPinned } from '../workspace/open.js'
import type { PinnedFolder } from '../workspace/pinned-folder.js'
import { readContent, readTree } from '../workspace/read-tree.js'
import { checkpointDraft } from './checkpoint-chain.js'
import type { CheckpointSettings } from './settings.js'
import { baseOfTakenOver } from './taken-over.js'

/** A change of a folder that is asked for. */
export interface Operation {
  readonly operation: FileOperation
  /** The checkpoint whose content the files get. */
  readonly after: string
  /** Of an apply: only these; null for all. */
  readonly paths: readonly string[] | null
  /** Of an apply: take the run's content where both sides changed a file. */
  readonly force: boolean
  readonly by: string | null
  /** Of a merge: the run whose changes are brought, where they began, and what stays as it is. */
  readonly merge?: {
    readonly runId: string
    readonly base: string
    readonly conflicts: readonly string[]
  }
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

/** A folder that is pinned, and can be stored as often as needed. */
export class StoredFolder implements AsyncDisposable {
  readonly pinned: PinnedFolder
  /** Folders in it that do not exist for runs. */
  readonly closed: readonly string[]
  readonly #objects: ObjectStore
  readonly #signal: AbortSignal
  readonly #tracker: TrackedFolder

  constructor(
    pinned: PinnedFolder,
    rules: TreeRules,
    objects: ObjectStore,
    signal: AbortSignal,
  ) {
    this.pinned = pinned
    this.closed = rules.closed ?? []
    this.#objects = objects
    this.#signal = signal
    this.#tracker = new TrackedFolder(rules)
  }

  /** Stores the content of the folder as it is. */
  async capture(log: LogWriter): Promise<{ readonly captured: Captured; readonly tree: Tree }> {
    const options = { previous: log.state.checkpoints?.newest ?? null, signal: this.#signal }
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
    signal: AbortSignal,
    work: (folder: StoredFolder) => Promise<T>,
  ): Promise<T> {
    const { rules, use } = this.#settings
    const closed = await closedInCopy(folder, rules.closed ?? [])
    const pinned = await openPinned(folder, { roots, closed }, null, () => undefined)
    return await use.capturing(async (objects) => {
      await using stored = new StoredFolder(pinned.folder, { ...rules, closed }, objects, signal)
      return await work(stored)
    })
  }

  /**
   * Does an operation; resolves once that is durable.
   *
   * @param append makes the intent durable, or throws and leaves everything as it was
   * @throws {@link WorkspaceError} when the system refused a change: all were taken back.
   */
  async change(
    log: LogWriter,
    signal: AbortSignal,
    folder: StoredFolder,
    { operation, after, paths, force, by, merge }: Operation,
    before: Captured,
    steps: Steps,
    append: (drafts: readonly RecordDraft[]) => Promise<void>,
  ): Promise<Changed> {
    const { head } = log.state
    const { iteration } = head.details
    const operation_id = uuidV7(this.#settings.clock.now())
    const isOriginal = folder.pinned.real === head.details.cwd
    const intent = { operation_id, operation, before: before.checkpoint_id, after, by }
    const from = merge && { run_id: merge.runId, conflicts: merge.conflicts }
    const base = merge && { base: merge.base }
    await append([
      checkpointDraft(before, reasonOf(log, isOriginal, operation), head),
      {
        kind: 'files_changing',
        iteration,
        payload: { ...intent, ...from },
        private: { paths, folder: folder.pinned.real, force, ...base },
      },
    ])
    const error = await this.#perform(signal, folder, steps)
    const done = { operation_id, operation, by }
    const changed = await this.#end(log, signal, folder, done, steps.steps)
    if (error !== null) throw error
    return changed
  }

  /** As `RunFiles.finish`. */
  async finish(log: LogWriter, signal: AbortSignal): Promise<void> {
    const intent = await this.#openIntent(log)
    if (intent === null) return
    const { operation_id, operation, by } = intent.payload
    const { folder, paths, force = false, base } = intent.private!
    let steps: readonly PathStep[] = []
    try {
      const plan = { ...intent.payload, paths, force, base }
      const planned = await this.#patiently(signal, () => this.#planAgain(log, plan))
      steps = planned.steps
      await this.#patiently(signal, () =>
        this.inFolder(folder, [folder], signal, async (stored) => {
          const error = await this.#perform(signal, stored, planned)
          if (error !== null) throw error
          await this.#end(log, signal, stored, { operation_id, operation, by }, steps)
        }),
      )
    } catch (error) {
      signal.throwIfAborted()
      if (log.hasFailed || log.state.head.operation === null) throw error
      const reason = describeError(error)
      warn(`run ${log.runId}: its ${operation} was cut off and cannot be finished: ${reason}`)
      await this.#end(log, signal, null, { operation_id, operation, by }, steps)
    }
  }

  /** The steps of an operation, from its checkpoints alone. */
  async #planAgain(
    log: LogWriter,
    { operation, before, after, paths, force, base }: Omit<Operation, 'by' | 'merge'> & {
      readonly before: string
      readonly base: string | undefined
    },
  ): Promise<Steps> {
    const { objects } = this.#settings.use
    const [now, target] = [await readTree(objects, before), await readTree(objects, after)]
    if (operation === 'restore') {
      return { steps: restorable(await inSlices(planRestore(now, target))) }
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

  /** Null, or why nothing was changed in the end. @throws the signal's reason */
  async #perform(signal: AbortSignal, folder: StoredFolder, steps: Steps): Promise<Error | null> {
    const { objects } = this.#settings.use
    const { closed } = folder
    const contentOf: ContentOf = async (entry) => {
      signal.throwIfAborted()
      return steps.contents?.get(entry.sha256) ?? (await readContent(objects, entry))
    }
    const apply = (these: readonly PathStep[]): Promise<unknown> =>
      this.#patiently(signal, async () => {
        const { pinned } = folder
        // Nothing is changed in a folder that was moved, either.
        await pinned.check()
        await pinned.guard(() => applySteps(pinned.path, these, contentOf, { closed }))
      })
    try {
      await apply(steps.steps)
      return null
    } catch (error) {
      signal.throwIfAborted()
      const back = steps.steps.map(({ path, before: after, after: before }) => ({
        path,
        before,
        after,
      }))
      await apply(back).catch(() => signal.throwIfAborted())
      return error as Error
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
    steps: readonly PathStep[],
  ): Promise<Changed> {
    const capturing = folder && this.#patiently(signal, () => folder.capture(log))
    const now = (await capturing?.catch(() => null)) ?? null
    const isDone = ({ path, after }: PathStep): boolean =>
      now !== null && isSameEntry(now.tree.entries.get(path) ?? null, after)
    const paths = steps.filter(isDone).map(({ path }) => path)
    const skipped = steps.filter((step) => !isDone(step)).map(({ path }) => path)
    const more = [paths, skipped].reduce((n, all) => n + Math.max(0, all.length - MAX_NAMED), 0)
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
    return { paths, skipped }
  }

  /** What has become of an isolated run's changes; null when that is no news. */
  async #stateOf(log: LogWriter, theirs: Tree): Promise<ChangesState | null> {
    const { checkpoints, head } = log.state
    const { changes, workspace } = head.details
    if (workspace !== 'isolated' || checkpoints === null || changes === 'discarded') return null
    const { objects } = this.#settings.use
    const ours = await readTree(objects, checkpoints.newest)
    const { steps, conflicts } = await this.planApply(log, { ours, theirs }, null, false)
    const state = steps.length + conflicts.length === 0 ? 'applied' : 'pending'
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
}

/** Those whose content was stored. */
export function restorable(steps: readonly PathStep[]): readonly PathStep[] {
  return steps.filter(
    ({ before, after }) => after?.stored !== false || before?.sha256 === after.sha256,
  )
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
