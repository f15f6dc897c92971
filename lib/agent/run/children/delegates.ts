/**
 * The runs that calls of tools start: each works in a copy of the folder as it is at that moment,
 * and its changes come back, three-way, when it has achieved its goal.
 *
 * @module
 */
import { uuidV7 } from '../../../internal/hash.js'
import type { FileOperations } from '../../checkpoints/file-operations.js'
import { DelegationError } from '../../errors.js'
import type { RecordDraft } from '../../events.js'
import type { ChildEnd } from '../../run-tree.js'
import type { ChildState } from '../../log/run-state.js'
import { parseDelegateRequest } from '../../request/delegate-request.js'
import type { DelegateRequest, DelegateResult } from '../../tool.js'
import { readTree } from '../../workspace/read-tree.js'
import type { CallContext, CallRuns, CallStop, StartsRuns } from './call-runs.js'
import type { RunChildren } from './run-children.js'

/** What the calls of one run need to start others. */
export interface DelegatesOptions {
  readonly children: RunChildren
  /** Null: there are no checkpoints, and runs start no others. */
  readonly operations: FileOperations | null
  /** Aborted when the folder and the log belong to another process. */
  readonly lost: AbortSignal
}

/** A call of a tool that may start runs. */
interface StartingCall {
  readonly id: string
  /** True once it has a result, or was stopped. */
  isOver: boolean
}

const OVER = 'the call of the tool is over: await startRun()'

/** See the comment of this file. */
export class Delegates implements StartsRuns {
  readonly #options: DelegatesOptions
  /** What waits or happens of what may happen to the folder one at a time. */
  #busy = 0
  /** Settles when that is over. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Settles when no changes are being brought. */
  #bringing: Promise<unknown> = Promise.resolve()

  constructor(options: DelegatesOptions) {
    this.#options = options
  }

  ofCall(callId: string, context: CallContext, stop: CallStop): CallRuns {
    let started = 0
    const call: StartingCall = { id: callId, isOver: false }
    const starting = new Set<Promise<unknown>>()
    return {
      startRun: (request) => {
        const number = ++started
        const result = call.isOver
          ? Promise.reject(new DelegationError(OVER))
          : this.#run(call, number, request, context, stop, (child) => {
              starting.add(child)
              const settle = (): unknown => starting.delete(child)
              child.then(settle, settle)
            })
        // A tool that does not wait for it must not end the process of the host.
        result.catch(() => undefined)
        return result
      },
      end: async () => {
        call.isOver = true
        await Promise.allSettled(starting)
        await this.#bringing
        // A run that is stopped ends them, or goes on with them later.
        if (started === 0 || context.signal.aborted) return
        await this.#options.children.endOfCall(callId, context.signal)
      },
    }
  }

  async #run(
    call: StartingCall,
    number: number,
    request: unknown,
    context: CallContext,
    stop: CallStop,
    onStart: (child: Promise<ChildState>) => void,
  ): Promise<DelegateResult> {
    const { children } = this.#options
    const asked = parseDelegateRequest(request)
    const starting = this.#inTurn(() => this.#started(call.id, number, asked, context))
    onStart(starting)
    const child = await starting
    const known = this.#stateOf(child, context)
    if (known.end === null) {
      const waited = children.waiting(async () => {
        await children.untilEnded(child, stop.signal)
        const bringBack = (): Promise<void> => this.#bringBack(child, call, context, stop.signal)
        await this.#inTurn(() => children.retryWhileUnavailable(bringBack, stop.signal))
      }, context.signal)
      await stop.pauseFor(waited)
    }
    const { end, merged } = this.#stateOf(child, context)
    const output = await children.outputOf(child)
    return { ...resultOf(end as ChildEnd, merged?.conflicts ?? []), ...output }
  }

  /** Is a run being started, or are changes being brought back? */
  get isBusy(): boolean {
    return this.#busy > 0
  }

  /** Resolves when nothing happens to the folder any more that has begun. */
  async atRest(): Promise<void> {
    await this.#turn
  }

  #stateOf({ runId }: ChildState, { log }: CallContext): ChildState {
    return log.state.children.get(runId) as ChildState
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#busy += 1
    const done = this.#turn.then(work).finally(() => (this.#busy -= 1))
    this.#turn = done.catch(() => undefined)
    return done
  }

  /** The child, which exists then; a call that is repeated after a crash finds it again. */
  async #started(
    callId: string,
    number: number,
    asked: DelegateRequest,
    context: CallContext,
  ): Promise<ChildState> {
    const { clock, log } = context
    const { children } = this.#options
    const all = [...log.state.children.values()]
    const known = all.find((one) => one.callId === callId && one.number === number)
    const runId = known?.runId ?? uuidV7(clock.now())
    if (known?.end != null) return known
    if (known === undefined) this.#assertAllowed(all.length, context)
    const begin = await children.prepare({ runId, role: 'delegate', asked })
    if (known === undefined) {
      const start = async (drafts: readonly RecordDraft[]): Promise<void> => {
        const [draft] = drafts
        const made = draft?.kind === 'checkpoint' ? draft.payload.checkpoint_id : undefined
        const checkpoint_id = made ?? log.state.checkpoints?.newest
        if (checkpoint_id === undefined) {
          const message = 'no run was started: the files of this one cannot be stored'
          throw new DelegationError(message)
        }
        const { iteration } = log.state.head.details
        const payload = { call_id: callId, number, run_id: runId, goal: asked.goal, checkpoint_id }
        await log.append([...drafts, { kind: 'delegate_started', iteration, payload }])
      }
      await (context.checkpoints?.record('delegate', log, context.signal, start) ?? start([]))
    }
    const child = log.state.children.get(runId) as ChildState
    await children.begin(child, () => begin(child.checkpointId))
    return child
  }

  /** @throws {@link DelegationError} */
  #assertAllowed(started: number, { log }: CallContext): void {
    const { delegation } = log.state.frozen.request
    if (delegation === undefined || this.#options.operations === null) {
      const message = 'this run must not start others: its request and the host must allow it'
      throw new DelegationError(message)
    }
    if (started < delegation.children) return
    throw new DelegationError(`this run has started ${started} others, which is its limit`)
  }

  /** Brings the changes of a child that has achieved its goal, and records its end. */
  async #bringBack(
    child: ChildState,
    call: StartingCall,
    context: CallContext,
    signal: AbortSignal,
  ): Promise<void> {
    const { children, operations } = this.#options
    if (this.#stateOf(child, context).end !== null) return
    const end = await children.endOf(child)
    const { merged } = this.#stateOf(child, context)
    const after = end.status === 'achieved' ? await children.filesOf(child) : null
    if (after !== null && merged === null && operations !== null) {
      const bringing = this.#bring(child, after, operations, context, () => {
        signal.throwIfAborted()
        if (call.isOver) throw new DelegationError(OVER)
      })
      this.#bringing = bringing.catch(() => undefined)
      await bringing
    }
    await children.recordEnd(child)
  }

  /** Brings changes as a whole, once that has begun: a stop does not leave half of them. */
  async #bring(
    { checkpointId: base, runId }: ChildState,
    after: string,
    operations: FileOperations,
    { folder, log }: CallContext,
    assertWanted: () => void,
  ): Promise<void> {
    const { lost } = this.#options
    await operations.inFolder(folder.real, [folder.real], log, lost, async (stored) => {
      const { captured, tree: theirs } = await stored.capture()
      const ours = await readTree(operations.objects, after)
      const plan = await operations.planMerge(base, { ours, theirs })
      const { conflicts } = plan
      const merge = { runId, base, conflicts }
      const rest = { paths: null, force: false, by: null, waits: true, merge }
      const operation = { operation: 'merge', after, ...rest } as const
      assertWanted()
      await operations.change(stored, operation, captured, plan)
    })
  }
}

function resultOf(
  end: ChildEnd,
  conflicts: readonly string[],
): Omit<DelegateResult, 'answer' | 'result'> {
  const { assurance, changes, reason, run_id, status } = end
  return { run_id, status, reason, assurance, changes, conflicts }
}
