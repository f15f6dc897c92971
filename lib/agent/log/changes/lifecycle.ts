import { isoTime } from '../../../internal/time.js'
import type { EventPayloads, RunStatus } from '../../events.js'
import type { RunDetails } from '../../run-details.js'
import { areHashed } from '../../test-outcomes.js'
import type { Trigger } from '../transitions.js'
import { outdateCheck, type Changes, type DraftOf, type Version } from './change.js'

/** The run begins, is interrupted, and ends. */
export const LIFECYCLE: Changes<
  | 'run_created' | 'run_started' | 'run_suspended' | 'run_recovered' | 'abort_requested'
  | 'setup_started' | 'setup_ended' | 'run_end' | 'error' | 'log'
> = {
  // It creates the head and the state: see `head.ts` and `state.ts`.
  run_created: { version: 1, newerVersion: versionOfCreated },
  run_started: {
    version: 1,
    trigger: () => 'start',
    head({ details }, { private: hidden, ts }) {
      details.started_at = isoTime(ts)
      details.check_files = Object.keys(hidden?.baseline?.files ?? {}).length
    },
    state(state, { private: hidden }) {
      state.baseline = hidden?.baseline ?? null
      state.folder = hidden?.folder ?? null
    },
  },
  setup_started: {
    version: 4,
    state(state) {
      state.setup = 'due'
      state.mayHaveStrays = true
    },
  },
  setup_ended: {
    version: 4,
    head({ details }, { private: hidden }) {
      const { files } = hidden?.baseline ?? {}
      if (files !== undefined) details.check_files = Object.keys(files).length
    },
    state(state, { payload, private: hidden }) {
      state.setup = payload.exit_code === 0 ? null : payload
      state.baseline = hidden?.baseline ?? state.baseline
      state.fruitlessRecoveries = 0
    },
  },
  run_suspended: {
    version: 1,
    state(state) {
      state.suspended = true
    },
  },
  run_recovered: {
    version: 1,
    trigger: () => 'recover',
    head(head, { payload }) {
      head.recoveries = payload.attempt
      const { details } = head
      // A call that begins again counts when it does so, not twice.
      const tool_calls = details.usage.tool_calls - (payload.repeats ?? 0)
      details.usage = { ...details.usage, tool_calls }
    },
    state(state, { seq }) {
      state.fruitlessRecoveries += 1
      if (state.lastWrite > 0) state.lastWrite = seq
      // Calls that were started run again, unless a following result settles them.
      for (const call of state.calls) if (call.status === 'started') call.status = 'approved'
      outdateCheck(state)
    },
  },
  abort_requested: {
    version: 1,
    state(state, { payload }) {
      state.abortRequested = true
      state.abortWhy = payload.why ?? null
    },
  },
  run_end: {
    version: 1,
    trigger: ({ payload }) => END_TRIGGERS[payload.status],
    head({ details }, { payload, ts }) {
      const { attempts, final_state } = details
      details.end_reason = payload.end_reason
      details.ended_at = isoTime(ts)
      details.gate = null
      // The check was passed, and that was not enough.
      const isInvalid = payload.end_reason === 'result_invalid'
      if (isInvalid) final_state.goal_achieved = false
      // No check of its own says why.
      const isUnchecked = payload.end_reason === 'setup_failed' || attempts?.chosen === null
      if (isInvalid || isUnchecked) final_state.goal_reason = payload.reason
      if (hasPendingChanges(details, payload)) details.changes ??= 'pending'
    },
  },
  error: {
    version: 1,
    head({ details }, { payload: { message, traceback, code }, iteration }) {
      details.error = { message, traceback, code, iteration }
    },
  },
  log: { version: 1 },
}

const END_TRIGGERS: Readonly<Partial<Record<RunStatus, Trigger>>> = {
  achieved: 'achieve',
  failed: 'fail',
  aborted: 'abort',
}

function hasPendingChanges(
  { workspace }: RunDetails,
  { achieved, changes }: EventPayloads['run_end'],
): boolean {
  return workspace === 'isolated' && achieved && (changes?.files ?? 0) > 0
}

function versionOfCreated({ payload, private: hidden }: DraftOf<'run_created'>): Version {
  const { fork, holdout, instructions: told, request } = hidden ?? {}
  const needsFourth = [
    // An earlier engine would fail instead of going on with another model.
    request?.fallback_models,
    // It would not show them.
    request?.images,
    // It would offer every tool.
    request?.tools,
    // It would end the run without the result that was asked for.
    request?.result_schema,
    // It would check a folder that is not set up.
    request?.setup,
    // It would go on without what the host and the caller say; what the project says, it can read.
    told?.system, told?.host, request?.instructions,
    // It would work in place of the attempts, start no other runs, or outlive its parent.
    payload.role, payload.attempts, request?.delegation,
    // It would take what it does not find there for what the start did not have.
    fork?.seal,
  ]
  if (needsFourth.some((part) => part !== undefined)) return 4
  // It would run calls without asking.
  if (typeof request?.approval === 'object') return 4
  // It would take a goal for met that nothing has sealed.
  if (holdout !== undefined || request?.sealed_checks === 'require') return 3
  if (areHashed(fork?.baselineTests)) return 3
  return payload.workspace === undefined && payload.forked_from === undefined ? 1 : 2
}
