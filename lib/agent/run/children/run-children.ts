import { describeError } from '../../../internal/errors.js'
import { uuidV7 } from '../../../internal/hash.js'
import type { Clock } from '../../../internal/time.js'
import { checkpointDraft, isOfOriginal, newestFirst } from '../../checkpoints/checkpoint-chain.js'
import { checkedFilesOf } from '../../checkpoints/delivered.js'
import { CheckpointError, isCorrupt, StoreError } from '../../errors.js'
import type { EventPayloads, RecordDraft } from '../../events.js'
import { untilAvailable } from '../../exhaustion.js'
import type { ChildEnd, ChildUsage } from '../../run-tree.js'
import { saysTestsChanged } from '../../goals/compare-tests.js'
import { readLog } from '../../log/read-log.js'
import { remainingBudget } from '../../log/remaining.js'
import type { ChildState, RunState } from '../../log/run-state.js'
import type { LogWriter } from '../../log/writer.js'
import { completeDetails } from '../../request/complete-details.js'
import type { RunDetails } from '../../run-details.js'
import {
  liveChildren, PARENT_ENDED, usageOf, whyEnded, type ChildRuns,
} from './child-runs.js'

type Chosen = EventPayloads['attempt_chosen']

/** Records read from the store at once. */
const PAGE = 1_000

/** What {@link RunChildren} needs of its run. */
export interface RunChildrenOptions {
  readonly runs: ChildRuns
  readonly clock: Clock
  /** The log as it is now: a run can get another writer. */
  readonly log: () => LogWriter
  /** Gives up the slot of the run, and waits for one again. */
  readonly slot: { pause(): void; enter(signal: AbortSignal): Promise<void> }
  /** Aborted once another process may drive the run. */
  readonly lost: AbortSignal
}

/** The runs that one run has started, while this process drives it. */
export class RunChildren {
  readonly #options: RunChildrenOptions
  /** Children that are being created. */
  readonly #beginning = new Map<string, Promise<void>>()
  /** Children that are being ended: they do not begin any more. */
  readonly #ending = new Set<string>()
  /** Waits for children. */
  #waits = 0

  constructor(options: RunChildrenOptions) {
    this.#options = options
  }

  /** Does the run wait for others, without a slot? */
  get isWaiting(): boolean {
    return this.#waits > 0
  }

  /** Names the attempts in the log; they begin when they are attended. */
  async nameAttempts(checkpoint: readonly RecordDraft[]): Promise<void> {
    const { clock, log } = this.#options
    const { count, models } = log().state.frozen.request.attempts!
    const started = Array.from({ length: count }, (_: unknown, i: number): RecordDraft => {
      const model_name = models[i % models.length] as string
      const payload = { attempt: i + 1, run_id: uuidV7(clock.now()), model_name }
      return { kind: 'attempt_started', iteration: 0, payload }
    })
    await log().append([...checkpoint, ...started])
  }

  /**
   * Waits until one of the live children has ended, or ends them all, and records that.
   *
   * @throws the signal's reason; {@link StoreError}.
   */
  async awaitChildren(
    children: readonly ChildState[],
    ends: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const stop = new AbortController()
    const until = AbortSignal.any([signal, stop.signal])
    await this.waiting(async () => {
      try {
        if (ends) return await this.#endAll(children, until)
        const { attempts } = this.#options.log().state.head.details
        for (const child of children) {
          const info = attempts?.runs.find(({ attempt }) => attempt === child.number)
          if (info === undefined) continue
          await this.#beginAttempt(child, info.model_name)
        }
        const ended = this.#live(children).map(async (child) => {
          await this.untilEnded(child, until)
          await this.recordEnd(child)
        })
        for (const one of ended) one.catch(() => undefined)
        if (ended.length === children.length) await Promise.race(ended)
      } finally {
        stop.abort(new Error('another child has ended'))
      }
    })
  }

  /** An attempt that cannot be created has failed. */
  async #beginAttempt(child: ChildState, modelName: string): Promise<void> {
    const { runId, role, checkpointId } = child
    try {
      const asked = { model_name: modelName }
      const begin = await this.prepare({ runId, role, asked })
      await this.begin(child, () => begin(checkpointId))
    } catch (error) {
      if (error instanceof StoreError && !isCorrupt(error)) throw error
      await this.recordEnd(child, describeError(error))
    }
  }

  prepare(child: Parameters<ChildRuns['prepare']>[2]): ReturnType<ChildRuns['prepare']> {
    const { log, runs } = this.#options
    const { state } = log()
    return runs.prepare(state, remainingBudget(state, log().now()), child)
  }

  /**
   * Begins a child whose id is in the log, unless it has ended there meanwhile, or is about to.
   * What was asked of the store is repeated until it is known whether the child exists, also when
   * the run is to stop: else its end could be recorded before it begins.
   *
   * @throws the reason for which the run was lost.
   */
  async begin({ runId }: ChildState, begin: () => Promise<void>): Promise<void> {
    const isOver = this.#options.log().state.children.get(runId)?.end !== null
    if (isOver || this.#ending.has(runId)) return
    const { lost } = this.#options
    lost.throwIfAborted()
    const begun = this.retryWhileUnavailable(begin, lost)
    this.#beginning.set(runId, begun.catch(() => undefined))
    await begun.finally(() => this.#beginning.delete(runId))
  }

  #live(children: readonly ChildState[]): readonly ChildState[] {
    const { children: now } = this.#options.log().state
    return children.filter(({ runId }) => now.get(runId)?.end === null)
  }

  /** Ends children, and records that. */
  async #endAll(children: readonly ChildState[], signal: AbortSignal): Promise<void> {
    const { log, runs } = this.#options
    const why = whyEnded(log().state)
    await Promise.all(
      this.#live(children).map(async (child) => {
        this.#ending.add(child.runId)
        await this.#beginning.get(child.runId)
        await this.retryWhileUnavailable(() => runs.abort(child.runId, why), signal)
        await this.untilEnded(child, signal)
        await this.recordEnd(child)
      }),
    )
  }

  /** Ends the children that a call has left. */
  async endOfCall(callId: string, signal: AbortSignal): Promise<void> {
    const left = liveChildren(this.#options.log().state).filter((one) => one.callId === callId)
    if (left.length > 0) await this.waiting(() => this.#endAll(left, signal), signal)
  }

  /**
   * Calls `work`, which waits for children, without a slot; that time is no work of the run. With
   * `signal`, the run has a slot again when the last of such waits is over.
   */
  async waiting<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { log, slot } = this.#options
    this.#waits += 1
    if (this.#waits === 1) slot.pause()
    try {
      return await log().idleWhile(work())
    } finally {
      this.#waits -= 1
      if (this.#waits === 0 && signal !== undefined) await slot.enter(signal)
    }
  }

  /** Resolves when a child has ended. */
  async untilEnded({ runId }: ChildState, signal: AbortSignal): Promise<void> {
    await this.retryWhileUnavailable(() => this.#options.runs.follow(runId, signal), signal)
  }

  /** Records the end of a child, unless that was done; `problem`: it could not begin. */
  async recordEnd(child: ChildState, problem?: string): Promise<void> {
    const end = await this.retryWhileUnavailable(() => this.endOf(child, problem))
    const log = this.#options.log()
    const known = log.state.children.get(child.runId)
    if (known?.end !== null) return
    const conflicts = known.merged?.conflicts ?? []
    const { iteration } = log.state.head.details
    const { callId, number, role } = child
    await log.append([
      role === 'attempt'
        ? { kind: 'attempt_ended', iteration, payload: { attempt: number, ...end } }
        : { kind: 'delegate_ended', iteration, payload: { call_id: callId, conflicts, ...end } },
    ])
  }

  /** The newest checkpoint of a child that has changed something; null for one that has not. */
  async filesOf({ runId, checkpointId }: ChildState): Promise<string | null> {
    const head = await this.#options.runs.head(runId)
    const id = head?.details.checkpoint_id ?? null
    return id === checkpointId ? null : id
  }

  /** How a child has ended, by its log. */
  async endOf({ role, runId }: ChildState, problem: string = NEVER_BEGAN): Promise<ChildEnd> {
    const { log, runs } = this.#options
    const head = await runs.head(runId)
    if (head === null) {
      const nothing = { assurance: null, changes: null, counts: null, usage: NO_USAGE }
      return { run_id: runId, status: 'failed', end_reason: null, reason: problem, ...nothing }
    }
    const { assurance, end_reason, status } = head.details
    let counts: ChildEnd['counts'] = null
    let changes: ChildEnd['changes'] = null
    let reason = head.details.final_state.goal_reason
    try {
      for await (const records of readLog(log(), runId, PAGE)) {
        for (const { kind, payload } of records) {
          if (kind === 'goal_check')
            counts = saysTestsChanged(payload.reason) ? null : payload.counts
          if (kind === 'run_end') reason = payload.reason
          // Delegates bring everything: the check of their parent covers it.
          if (kind === 'run_end')
            changes = (role === 'attempt' ? payload.delivered : null) ?? payload.changes ?? null
        }
      }
    } catch (error) {
      // What its head tells is enough.
      if (!isCorrupt(error)) throw error
    }
    const usage = usageOf(head)
    const verdict = { status, end_reason, reason, assurance, changes, ...filesOf(head.details) }
    return { run_id: runId, ...verdict, counts, usage }
  }

  /** What a child has said at last, and its result. */
  async outputOf({ runId }: ChildState): Promise<Pick<RunDetails, 'answer' | 'result'>> {
    const { log, runs } = this.#options
    const head = await this.retryWhileUnavailable(() => runs.head(runId))
    if (head === null) return { answer: '', result: null }
    try {
      const complete = (): Promise<RunDetails> => completeDetails(log(), head)
      const { answer, result } = await this.retryWhileUnavailable(complete)
      return { answer, result }
    } catch (error) {
      if (!isCorrupt(error)) throw error
      return { answer: '', result: null }
    }
  }

  /** Takes the files of an attempt for those of the run. */
  async choose(attempt: number, why: string): Promise<void> {
    const { log: current, runs } = this.#options
    const log = current()
    const chosen = [...log.state.children.values()].find(({ number }) => number === attempt)
    const runId = chosen?.runId ?? ''
    const head = await this.retryWhileUnavailable(() => runs.head(runId))
    let draft: RecordDraft | undefined
    if (head !== null) {
      for await (const checkpoint of newestFirst(log, head)) {
        if (isOfOriginal(checkpoint)) continue
        const stored = { ...checkpoint, new_bytes: 0 }
        draft = checkpointDraft(stored, 'attempt', log.state.head)
        break
      }
    }
    // Its goal was met at the start: its files are those with which it began.
    const isUntouched = draft === undefined && head?.details.iteration === 0
    if (draft === undefined && !isUntouched) {
      const message = `the files of attempt ${attempt}, run ${runId}, were not stored`
      throw new CheckpointError('not_kept', message)
    }
    const payload = { attempt, run_id: runId, why, ...(await this.#told(chosen)) }
    const files = head && (await this.retryWhileUnavailable(() => checkedFilesOf(log, head)))
    const chosenRecord: RecordDraft = {
      kind: 'attempt_chosen',
      iteration: 0,
      payload,
      private: files === null ? {} : { files },
    }
    await log.append(draft === undefined ? [chosenRecord] : [draft, chosenRecord])
  }

  /** What the log of the run gets of the attempt that it takes. */
  async #told(chosen: ChildState | undefined): Promise<Pick<Chosen, 'answer' | 'result'>> {
    if (chosen === undefined) return {}
    const { answer, result } = await this.outputOf(chosen)
    return { ...(answer !== '' && { answer }), ...(result !== null && { result }) }
  }

  /** Repeats `attempt` while the store is unavailable. */
  async retryWhileUnavailable<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return await untilAvailable(attempt, this.#options.clock, signal)
  }

  /** Requests the end of children whose parent has ended without them; never rejects. */
  async abandon({ children }: RunState): Promise<void> {
    const { runs } = this.#options
    for (const { runId } of liveChildren({ children }))
      await runs.abort(runId, PARENT_ENDED).catch(() => undefined)
  }
}

/** What the verdict of a child says of its files; a list without files is left out. */
function filesOf({
  held_back, changed_tests,
}: RunDetails): Pick<ChildEnd, 'held_back' | 'changed_tests'> {
  return {
    ...(held_back?.length && { held_back }),
    ...(changed_tests?.length && { changed_tests }),
  }
}

const NEVER_BEGAN = 'it was not started, or its log cannot be read'
const NO_USAGE: ChildUsage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
  model_calls: 0,
  tool_calls: 0,
  cost_usd: 0,
  cost_known: true,
}
