import { isCorrupt, StoreError } from '../errors.js'
import { isTerminal, type RecordDraft } from '../events.js'
import type { RunFeed } from '../log/feed.js'
import { foldHead } from '../log/head.js'
import { newMessages, noteMessage, takeHeard } from '../log/messages.js'
import { readLog } from '../log/read-log.js'
import type { RunState } from '../log/run-state.js'
import { loadState } from '../log/state.js'
import { stamp, type LogWriter, type LogWriterOptions } from '../log/writer.js'
import { warn } from '../output.js'
import { redactedDraft } from '../log/redacted-draft.js'
import { aborted, type Outcome } from './outcome.js'
import { endRecord, failureOf, finishRun, type Failure } from './steps/finish.js'

/** Records read from the store at once. */
const PAGE = 1_000

/**
 * The last resort: ends a run whose log cannot be continued in the ordinary way, because folding or
 * extending its state throws. Needs nothing of the state: the head in the store, and which calls in
 * the log have no result.
 *
 * @returns false when it had ended before, or does not exist.
 * @throws {@link StoreError} when the log cannot be read or written.
 */
export async function endFromRecords(
  { clock, observers, redactor, store }: LogWriterOptions,
  feed: RunFeed,
  outcome: Outcome,
  failure?: Failure,
): Promise<boolean> {
  const { runId } = feed
  const head = await store.head(runId)
  if (head === null || isTerminal(head.details.status)) return false
  const { iteration, last_seq } = head.details
  let end = outcome
  const drafts: RecordDraft[] = []
  const messages = newMessages()
  const open: { readonly call_id: string; readonly tool: string }[] = []
  for await (const page of readLog(store, runId, PAGE)) {
    for (const { kind, payload } of page) {
      if (kind === 'abort_requested') end = aborted(payload.why)
      if (kind === 'run_created') payload.messages?.forEach((sent) => noteMessage(messages, sent))
      if (kind === 'user_message') noteMessage(messages, payload)
      if (kind === 'model_turn') takeHeard(messages, payload.heard ?? [])
      if (kind === 'tool_call') open.push(payload)
      if (kind !== 'tool_result') continue
      const at = open.findIndex(({ call_id }) => call_id === payload.call_id)
      open.splice(Math.max(at, 0), 1)
    }
  }
  for (const { tool, call_id } of open) {
    const output = 'Stopped: the run ended, and whether this ran is not known.'
    const payload = { tool, output, exit_code: -1, call_id, duration_ms: 0 }
    drafts.push({ kind: 'tool_result', iteration, payload })
  }
  if (failure !== undefined) drafts.push({ kind: 'error', iteration, payload: failure })
  drafts.push(endRecord({ head, messages }, end))
  const ts = Math.max(head.last_ts, clock.now() / 1000)
  const records = drafts.map((draft, index) =>
    stamp(redactedDraft(draft, redactor), runId, last_seq + 1 + index, ts),
  )
  const began = performance.now()
  await store.append(runId, records)
  feed.publish(records)
  const { details } = records.reduce(foldHead, head)
  observers.notify(details, records, performance.now() - began)
  return true
}

/**
 * What becomes of a run that cannot be taken over because loading its state threw `error`: it stays
 * as it is if the store cannot read it now, and ends if its log makes no sense. Never rejects.
 */
export async function endUnreadable(
  error: unknown,
  options: LogWriterOptions,
  feed: RunFeed,
): Promise<null> {
  const { outcome, failure } = failureOf(error, process.cwd())
  warn(`run ${feed.runId} was not resumed: ${failure.message}`)
  if (error instanceof StoreError) return null
  await endFromRecords(options, feed, outcome, failure).catch((second: unknown) => {
    const { message } = failureOf(second, process.cwd()).failure
    warn(`run ${feed.runId} could not be ended: ${message}`)
  })
  return null
}

/** What {@link endFromStore} needs of the run's loop. */
export interface EndingRun {
  readonly log: LogWriter
  /** True once the next start is to resume the run, or another process has it. */
  readonly isOver: () => boolean
  /** Continues the log with a state that was loaded again. */
  readonly reload: (state: RunState) => LogWriter
  /** Waits for the store, after an attempt that failed. */
  readonly pause: (why: StoreError) => Promise<void>
}

/**
 * Ends a run whose log could not be written. What was not stored never happened, so the state is
 * loaded again, and the end appended once the store accepts it. If that throws as well, the end
 * comes from the records alone. Stops when the service shuts down: the next start resumes the run.
 *
 * @throws {@link StoreError} when another process has taken the run or the store, or its log is
 * damaged.
 */
export async function endFromStore(
  options: LogWriterOptions,
  run: EndingRun,
  outcome: Outcome,
  failure: Failure,
): Promise<void> {
  const { log, isOver } = run
  await log.flush().catch(() => undefined) // what it still writes belongs to the log
  let lastResort = false
  while (!isOver()) {
    try {
      if (lastResort) {
        await endFromRecords(options, log.feed, outcome, failure)
        return
      }
      const state = await loadState(options.store, log.runId)
      if (state === null || isTerminal(state.head.details.status) || isOver()) return
      const end = state.abortRequested ? aborted(state.abortWhy) : outcome
      return await finishRun(run.reload(state), end, failure)
    } catch (error) {
      if (!(error instanceof StoreError)) {
        if (lastResort) throw error
        lastResort = true
        continue
      }
      if (isTakenAway(error) || isCorrupt(error)) throw error
      await run.pause(error)
    }
  }
}

/** Has another process taken over the run, or the store with all its runs? */
export function isTakenAway(error: unknown): error is StoreError {
  return error instanceof StoreError && TAKEN_AWAY.has(error.code)
}

const TAKEN_AWAY = new Set(['ERR_AGENT_CLAIM_LOST', 'ERR_AGENT_STORE_LOCKED'])
