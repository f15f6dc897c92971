import type { RunRecord } from '../../../lib/agent/events.js'

type Fields = Pick<RunRecord, 'v' | 'run_id' | 'seq' | 'iteration' | 'ts'>

/**
 * The record `seq` of a run, as small as its kind permits: first `run_created` and `run_started`,
 * then a log record with `length` characters, or `run_end` if that is null.
 */
export function smallRecord(
  runId: string,
  seq: number,
  ts: number,
  length: number | null,
): RunRecord {
  const fields: Fields = { v: 1, run_id: runId, seq, iteration: 0, ts }
  if (seq === 1) return created(fields)
  if (seq === 2) return { ...fields, kind: 'run_started', payload: {} }
  if (length === null) return ended(fields)
  return { ...fields, kind: 'log', payload: { level: 'info', message: 'x'.repeat(length) } }
}

/** Without its private part. */
function created(fields: Fields): RunRecord {
  return {
    ...fields,
    kind: 'run_created',
    payload: {
      goal: 'g',
      model_name: 'm',
      cwd: '/',
      max_iterations: 1,
      hitl_enabled: false,
      parent_run_id: null,
    },
  }
}

function ended(fields: Fields): RunRecord {
  return {
    ...fields,
    kind: 'run_end',
    payload: {
      achieved: true,
      iterations: 1,
      total_tokens: 0,
      status: 'achieved',
      end_reason: 'goal_achieved',
      reason: '',
      estimated_cost_usd: 0,
      cost_known: true,
    },
  }
}
