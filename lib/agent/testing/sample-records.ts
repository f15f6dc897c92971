import type { RunRecord, RunRequest, RunStatus } from '../events.js'
import type { ChildRole } from '../run-tree.js'

/** Options of {@link sampleRun}. */
export interface SampleRunOptions {
  /** Float seconds since the epoch. @defaultValue 1 700 000 000 */
  readonly createdAt?: number | undefined
  readonly goal?: string | undefined
  readonly modelName?: string | undefined
  readonly ownerId?: string | null | undefined
  readonly tenant?: string | null | undefined
  /** @defaultValue `/work` */
  readonly cwd?: string | undefined
  readonly key?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Of a child with its root, of a retry without. */
  readonly parentRunId?: string | undefined
  readonly rootRunId?: string | undefined
  /** Of a child. @defaultValue `attempt` */
  readonly role?: ChildRole | undefined
  /** Status after the last record. @defaultValue `achieved` */
  readonly status?: RunStatus | undefined
  /** How many records to create, raised to what the status needs. @defaultValue 4 */
  readonly records?: number | undefined
  /** Text of log records and reasons, which determines their size. @defaultValue `all well` */
  readonly text?: string | undefined
}

/** The fewest records with which a run can have a status. */
const MIN_RECORDS: Readonly<Record<RunStatus, number>> = {
  pending: 1,
  running: 2,
  awaiting_human: 3,
  achieved: 3,
  failed: 3,
  aborted: 3,
}

/** A fictitious but valid log of one run, for tests of stores. */
export function sampleRun(runId: string, options: SampleRunOptions = {}): RunRecord[] {
  const { createdAt = 1_700_000_000, status = 'achieved', text = 'all well' } = options
  const count = Math.max(options.records ?? 4, MIN_RECORDS[status])
  const fields = (seq: number) => ({
    v: 1 as const,
    run_id: runId,
    seq,
    iteration: seq < 3 ? 0 : 1,
    ts: createdAt + (seq - 1) / 64,
  })
  const records: RunRecord[] = [createdRecord(fields(1), options)]
  if (status !== 'pending') {
    records.push({
      ...fields(2),
      kind: 'run_started',
      payload: {},
      private: { baseline: { files: { 'test/a.test.js': '0'.repeat(64) } } },
    })
  }
  const last = status === 'pending' || status === 'running' ? count : count - 1
  for (let seq = records.length + 1; seq <= last; seq++) {
    records.push({ ...fields(seq), kind: 'log', payload: { level: 'info', message: text } })
  }
  if (status === 'awaiting_human') {
    records.push({
      ...fields(count),
      kind: 'human_check_required',
      payload: {
        iteration: 1,
        summary: text,
        gate_id: `gate-${runId}`,
        kind: 'iteration',
        deadline: null,
      },
    })
  } else if (last < count) {
    records.push({
      ...fields(count),
      kind: 'run_end',
      payload: {
        achieved: status === 'achieved',
        iterations: 1,
        total_tokens: 0,
        status,
        end_reason: status === 'achieved' ? 'goal_achieved' : 'max_iterations',
        reason: text,
        estimated_cost_usd: 0,
        cost_known: true,
      },
    })
  }
  return records
}

function createdRecord(
  fields: Pick<RunRecord, 'v' | 'run_id' | 'seq' | 'iteration' | 'ts'>,
  options: SampleRunOptions,
): RunRecord {
  const { goal = 'npm-test', modelName = 'builtin:repair', key } = options
  const { ownerId = null, tenant = null, parentRunId = null, rootRunId, role } = options
  const isChild = rootRunId !== undefined
  const request: RunRequest = {
    goal,
    cwd: options.cwd ?? '/work',
    model_name: modelName,
    max_iterations: 20,
    hitl_enabled: false,
    check: null,
    approval: 'never',
    max_total_tokens: null,
    max_cost_usd: null,
    max_seconds: null,
    max_tool_calls: null,
    metadata: options.metadata ?? {},
  }
  return {
    ...fields,
    v: isChild ? 4 : fields.v,
    kind: 'run_created',
    payload: {
      goal,
      model_name: modelName,
      cwd: request.cwd,
      max_iterations: request.max_iterations,
      hitl_enabled: request.hitl_enabled,
      parent_run_id: parentRunId,
      ...(isChild && { root_run_id: rootRunId, role: role ?? 'attempt' }),
    },
    private: {
      request,
      goal: {
        name: goal,
        goal,
        command: 'npm test',
        env: {},
        timeout_ms: 60_000,
        success_exit_code: 0,
        reporter: null,
        protected: [],
        allow_test_changes: false,
        instructions: '',
      },
      prices: null,
      tools: [],
      owner: { id: ownerId, tenant },
      idempotency: key === undefined ? null : { key, body_hash: 'b'.repeat(64) },
    },
  }
}
