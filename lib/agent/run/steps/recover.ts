import type { RecordDraft } from '../../events.js'
import type { CallState } from '../../log/run-state.js'
import { NO_RUNS } from '../children/call-runs.js'
import { liveChildren } from '../children/child-runs.js'
import { toolContext, withCheckpoint, type StepContext } from '../step-context.js'
import { closingRecord, finishRun } from './finish.js'
import { gateRecords } from './human-check.js'

/**
 * Takes over a run whose process died while it worked, after its stray processes were killed:
 * settles the calls that were started and have no result. Reads run again. Idempotent calls are
 * verified, and run again only if they did not happen. Unsafe calls never run twice: their outcome
 * is unknown, and a gate opens if the run has gates.
 */
export async function recoverRun(context: StepContext): Promise<void> {
  const { log, maxRecoveries } = context
  const { head, calls, frozen, fruitlessRecoveries, suspended } = log.state
  const attempt = head.recoveries + 1
  const started = calls.filter(({ status }) => status === 'started')
  const { iteration } = head.details
  // The run may be what crashes the process. One that waits for others makes no progress itself.
  const waits = suspended || liveChildren(log.state).length > 0
  if (fruitlessRecoveries >= maxRecoveries && !waits) {
    const message =
      `the service stopped ${fruitlessRecoveries + 1} times while this run worked, ` +
      'without progress in between; it is not resumed again'
    const failure = { message, traceback: '', code: 'ERR_AGENT_RECOVERY' }
    await finishRun(
      log,
      { status: 'failed', endReason: 'recovery_failed', reason: message },
      failure,
    )
    return
  }
  const settled = await Promise.all(started.map((call) => settle(context, call)))
  const records: RecordDraft[] = settled.filter((record) => record !== null)
  // Its process has not died: calls that have started runs were left open.
  if (suspended) return records.length === 0 ? undefined : await log.append(records)
  const unknown = records.some(
    (record) => record.kind === 'tool_result' && record.payload.exit_code === -1,
  )
  const in_doubt = started.map(({ call }) => call.call_id)
  const repeats = settled.length - records.length
  const payload = { attempt, in_doubt, ...(repeats > 0 && { repeats }) }
  const recovered: RecordDraft[] = [
    { kind: 'run_recovered', iteration, payload },
    ...records,
  ]
  if (!unknown || !frozen.request.hitl_enabled) return await log.append(recovered)
  await withCheckpoint(context, 'gate', async (drafts, compare) => {
    const changes = await compare('gate')
    const note = 'The service stopped while a command ran; whether it did its work is not known.'
    await log.append([...recovered, ...drafts], (state) =>
      gateRecords(state, { kind: 'recovery', calls: [], note, changes }, context),
    )
  })
}

/** The result that settles a call, or null when it may run again. */
async function settle(context: StepContext, state: CallState): Promise<RecordDraft | null> {
  const { call, args, plan } = state
  const { iteration } = context.log.state.head.details
  const tool = context.tools.get(call.tool)
  if (tool?.effect === 'read') return null
  if (tool?.effect === 'idempotent' && plan !== null && tool.verify !== undefined) {
    const working = toolContext(context, call.call_id, context, NO_RUNS, () => Promise.resolve())
    const happened = await tool.verify(args, plan, working)
    if (happened === 'undone') return null
    if (happened === 'done') {
      return closingRecord(
        iteration,
        state,
        0,
        'Done: the change is there (verified after a restart).',
      )
    }
  }
  const message = 'Outcome unknown: the service stopped while this ran. It was not run again.'
  return closingRecord(iteration, state, -1, message)
}
