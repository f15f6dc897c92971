/**
 * How a run ends: the records that close its log, the outcome of a run in which a step threw, and
 * the answer to a gate, which may be the end of the run.
 *
 * @module
 */
import { asError, describeError } from '../../../internal/errors.js'
import { AgentError, GoalCheckError, GoalError, ModelError } from '../../errors.js'
import type { ChangeCounts, RecordDraft } from '../../events.js'
import { STOPPED } from '../../log/progress.js'
import type { CallState, RunState } from '../../log/run-state.js'
import type { LogWriter } from '../../log/writer.js'
import { clip } from '../../output.js'
import { responseRecord, type ResumeAnswer } from '../../request/gate-answer.js'
import type { Gate, RunFailure } from '../../run-details.js'
import { ABORTED_BY_HUMAN, type Outcome } from '../outcome.js'

/** Characters of an error's message, and of its traceback, that are logged. */
const MESSAGE_CHARACTERS = 8_000
const TRACEBACK_CHARACTERS = 8_000
/** Milliseconds for the checkpoint at the end of a run. */
const LAST_CHECKPOINT_MS = 10_000
/** The same for somebody who waits for an abort. */
const ABORTED_CHECKPOINT_MS = 2_000

/** The error that ended a run, as its `error` event reports it. */
export type Failure = Omit<RunFailure, 'iteration'>

/** The outcome and the error report of a run in which `error` was thrown. */
export function failureOf(
  error: unknown,
  cwd: string,
): { readonly outcome: Outcome; readonly failure: Failure } {
  const code = error instanceof AgentError ? error.code : 'ERR_AGENT_INTERNAL'
  const hide = (text: string): string => relativeTo(process.cwd(), relativeTo(cwd, text))
  const reason = hide(clip(describeError(error), MESSAGE_CHARACTERS))
  const traceback = hide(clip(asError(error).stack ?? '', TRACEBACK_CHARACTERS))
  return {
    outcome: { status: 'failed', endReason: endReasonOf(error), reason },
    failure: { message: reason, traceback, code },
  }
}

/**
 * Paths below the folder become relative; the folder itself keeps its name. A run without a folder,
 * and `/`, which begins every path and stands in every address, leave the text as it is.
 */
function relativeTo(folder: string, text: string): string {
  return folder === '' || folder === '/' ? text : text.replaceAll(`${folder}/`, './')
}

function endReasonOf(error: unknown): Outcome['endReason'] {
  if (error instanceof GoalCheckError || error instanceof GoalError) return 'goal_check_error'
  if (!(error instanceof ModelError)) return 'internal_error'
  if (error.code === 'ERR_AGENT_MODEL_FILTER') return 'content_filter'
  return error.code === 'ERR_AGENT_MODEL_CONTEXT' ? 'context_exhausted' : 'provider_error'
}

/** Makes the last checkpoint of a run; see `RunCheckpoints`. */
export interface LastCheckpoint {
  recordLast(
    reason: 'end' | 'shutdown',
    ms: number,
    log: LogWriter,
    append: (
      drafts: readonly RecordDraft[],
      compare: (since: 'start', held?: readonly string[]) => Promise<ChangeCounts | null>,
    ) => Promise<void>,
  ): Promise<void>
}

/** Ends the run, after a last checkpoint if it has any; resolves once its end is durable. */
export async function finishRun(
  log: LogWriter,
  outcome: Outcome,
  failure?: Failure,
  checkpoints: LastCheckpoint | null = null,
): Promise<void> {
  if (checkpoints === null) return await log.append(endingRecords(log.state, outcome, failure))
  const ms = outcome.status === 'aborted' ? ABORTED_CHECKPOINT_MS : LAST_CHECKPOINT_MS
  await checkpoints.recordLast('end', ms, log, async (drafts, compare) => {
    const held = outcome.status === 'achieved' ? log.state.checkedFiles?.held_back : undefined
    const net = await netChange(compare, held)
    await log.append([...drafts, ...endingRecords(log.state, outcome, failure, net)])
  })
}

/** The net change of a run's folder; null where that is not known. */
export interface NetChange {
  readonly changes: ChangeCounts | null
  /** The part of it that is delivered; null for all of it. */
  readonly delivered: ChangeCounts | null
}

const UNKNOWN: NetChange = { changes: null, delivered: null }

/** @param held paths of what is held back */
export async function netChange(
  compare: (since: 'start', held?: readonly string[]) => Promise<ChangeCounts | null>,
  held: readonly string[] = [],
): Promise<NetChange> {
  const changes = await compare('start')
  return { changes, delivered: held.length === 0 ? null : await compare('start', held) }
}

/**
 * Answers a gate; resolves once the answer is durable, with the end of the run if it aborts. An
 * answer that the store refuses was never given.
 */
export function answerGate(
  log: LogWriter,
  gate: Gate,
  answer: ResumeAnswer,
  by: string | null,
): Promise<void> {
  const end = answer.decision === 'abort' ? endingRecords(log.state, ABORTED_BY_HUMAN) : []
  return log.offer([responseRecord(gate, answer, by), ...end])
}

/** The last records of a run: a result for each open call, the error if any, `run_end`. */
export function endingRecords(
  state: RunState,
  outcome: Outcome,
  failure?: Failure,
  net: NetChange = UNKNOWN,
): readonly RecordDraft[] {
  const { iteration } = state.head.details
  const records = state.calls
    .filter(({ status }) => status !== 'done')
    .map((call) =>
      call.status === 'started'
        ? closingRecord(iteration, call, STOPPED, 'Stopped: the run ended while this ran.')
        : closingRecord(iteration, call, STOPPED, 'Not run: the run ended before.'),
    )
  if (failure !== undefined) records.push({ kind: 'error', iteration, payload: failure })
  return [...records, endRecord(state, outcome, net)]
}

/** The `run_end` of a run without open calls. */
export function endRecord(
  { head, messages }: Pick<RunState, 'head' | 'messages'>,
  outcome: Outcome,
  { changes, delivered }: NetChange = UNKNOWN,
): RecordDraft {
  const { iteration, cost_known, final_state } = head.details
  const unheard = messages.waiting.map(({ payload }) => payload.message_id)
  return {
    kind: 'run_end',
    iteration,
    payload: {
      achieved: outcome.status === 'achieved',
      iterations: iteration,
      total_tokens: final_state.total_tokens,
      status: outcome.status,
      end_reason: outcome.endReason,
      reason: outcome.reason,
      estimated_cost_usd: final_state.estimated_cost_usd,
      cost_known,
      ...(changes !== null && { changes: countsOf(changes) }),
      ...(delivered !== null && { delivered: countsOf(delivered) }),
      ...(unheard.length > 0 && { unheard }),
    },
  }
}

function countsOf({ files, additions, deletions, uncounted = 0 }: ChangeCounts): ChangeCounts {
  return { files, additions, deletions, ...(uncounted > 0 && { uncounted }) }
}

/** A result for a call that produced none. */
export function closingRecord(
  iteration: number,
  { call }: CallState,
  exitCode: number,
  output: string,
): RecordDraft {
  const { tool, call_id } = call
  const payload = { tool, output, exit_code: exitCode, call_id, duration_ms: 0 }
  return { kind: 'tool_result', iteration, payload }
}

/** Results for calls that were stopped while they ran. */
export function startedResults(
  { head, calls }: RunState,
  output: string,
  which: (call: CallState) => boolean = () => true,
): RecordDraft[] {
  return calls
    .filter((call) => call.status === 'started' && which(call))
    .map((call) => closingRecord(head.details.iteration, call, STOPPED, output))
}
