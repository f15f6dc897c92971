/**
 * Schemas of the JSON documents of the service. The same objects validate requests and build the
 * API description, so the two cannot differ.
 *
 * @module
 */
import { checkSchema, type EndReason, type JsonSchema, type RunStatus } from '../../agent/index.js'
import { ProblemError } from '../errors.js'
import { ASSURANCE, CHANGE_COUNTS } from './fields.js'

const text: JsonSchema = { type: 'string' }
const flag: JsonSchema = { type: 'boolean' }
const count: JsonSchema = { type: 'integer', minimum: 0 }
const amount: JsonSchema = { type: 'number', minimum: 0 }
const time: JsonSchema = { type: 'string', format: 'date-time' }
const runId: JsonSchema = { type: 'string', format: 'uuid' }
const nothing: JsonSchema = { type: 'null' }

function orNull(schema: JsonSchema, description?: string): JsonSchema {
  const either: JsonSchema = { anyOf: [schema, nothing] }
  return description === undefined ? either : { ...either, description }
}

/** The members of a union; the compiler checks that none is missing. */
function namesOf<T extends string>(names: Readonly<Record<T, true>>): readonly T[] {
  return Object.keys(names) as T[]
}

/** An object with these fields; later versions may add more. */
function record(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', properties, required }
}

/** An object with these fields only. */
function closed(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false }
}

export const RUN_STATUSES: readonly RunStatus[] = namesOf<RunStatus>({
  pending: true,
  running: true,
  awaiting_human: true,
  achieved: true,
  failed: true,
  aborted: true,
})

const status: JsonSchema = { type: 'string', enum: RUN_STATUSES }

export const END_REASONS: readonly EndReason[] = namesOf<EndReason>({
  goal_achieved: true,
  max_iterations: true,
  token_budget: true,
  cost_budget: true,
  time_budget: true,
  tool_call_budget: true,
  setup_failed: true,
  holdout_exhausted: true,
  stuck: true,
  content_filter: true,
  context_exhausted: true,
  provider_error: true,
  goal_check_error: true,
  internal_error: true,
  recovery_failed: true,
  human_abort: true,
  cancelled: true,
  gate_timeout: true,
  attempts_failed: true,
  result_invalid: true,
})

const endReason: JsonSchema = { type: 'string', enum: END_REASONS }

const decision: JsonSchema = {
  type: 'string',
  enum: ['approve', 'abort', 'reject'],
  description: '`reject` is valid only for gates of kind `tool`',
}

const anyObject: JsonSchema = { type: 'object' }

const gatedCall: JsonSchema = record({ call_id: text, tool: text, args: anyObject })

export const GATE_KIND: JsonSchema = {
  type: 'string',
  enum: ['iteration', 'tool', 'recovery', 'choice'],
}

/** An attempt among which a human chooses. */
export const CANDIDATE: JsonSchema = record({
  attempt: count,
  run_id: runId,
  model_name: text,
  status,
  reason: text,
  assurance: orNull(ASSURANCE),
  changes: orNull(CHANGE_COUNTS, 'what would be delivered'),
  held_back: {
    type: 'array',
    items: text,
    description: 'files that its verdict does not cover; absent for none',
  },
  changed_tests: {
    type: 'array',
    items: text,
    description: 'tests of the start that it has edited; absent for none',
  },
  total_tokens: count,
  cost_usd: amount,
  cost_known: flag,
}, ['held_back', 'changed_tests'])

export const GATE: JsonSchema = record({
  gate_id: text,
  kind: GATE_KIND,
  iteration: count,
  summary: text,
  deadline: orNull(time, 'null: the gate waits indefinitely'),
  opened_at: time,
  calls: { type: 'array', items: gatedCall },
  candidates: {
    type: 'array',
    items: CANDIDATE,
    description: 'of a gate of kind `choice`; absent for others',
  },
}, ['candidates'])

const failure: JsonSchema = record({ message: text, traceback: text, code: text, iteration: count })

const finalState: JsonSchema = record({
  iteration: count,
  goal_achieved: flag,
  goal_reason: text,
  total_tokens: count,
  estimated_cost_usd: amount,
})

const usage: JsonSchema = record({
  input_tokens: { ...count, description: 'cached tokens included' },
  output_tokens: { ...count, description: 'reasoning tokens included' },
  cached_tokens: count,
  reasoning_tokens: count,
  estimated_tokens: { ...count, description: 'of calls that broke off: not counted by a provider' },
  model_calls: count,
  tool_calls: { ...count, description: 'calls that were executed' },
})

const modelUsage: JsonSchema = record({
  model_name: text,
  input_tokens: count,
  output_tokens: count,
  cached_tokens: count,
  reasoning_tokens: count,
  model_calls: count,
  cost_usd: amount,
})

const APPROVAL_MODE: JsonSchema = { type: 'string', enum: ['never', 'writes', 'all'] }

const role: JsonSchema = { type: 'string', enum: ['root', 'attempt', 'delegate'] }

const attempts: JsonSchema = record({
  count,
  choose: { type: 'string', enum: ['first', 'smallest', 'human'] },
  chosen: orNull(count, 'the attempt whose changes are those of the run'),
  runs: {
    type: 'array',
    items: record({
      attempt: count,
      run_id: runId,
      model_name: text,
      status: orNull(status, 'null until it has ended'),
      reason: text,
      assurance: orNull(ASSURANCE),
      changes: orNull(CHANGE_COUNTS),
    }),
  },
})

const projectInstructions: JsonSchema = record({
  path: { ...text, description: 'relative to `cwd`' },
  text,
  bytes: { ...count, description: 'size of the file' },
  truncated: { ...flag, description: 'its last lines were left out' },
})

export const PLAN_STEP: JsonSchema = record({
  text,
  status: { type: 'string', enum: ['pending', 'in_progress', 'done'] },
})

export const RUN_DETAILS: JsonSchema = record({
  run_id: runId,
  goal: text,
  status,
  model_name: text,
  max_iterations: count,
  hitl_enabled: flag,
  cwd: { ...text, description: 'empty for a run without a folder' },
  error: orNull(failure, 'set when an error occurred'),
  final_state: finalState,
  created_at: time,
  started_at: orNull(time),
  ended_at: orNull(time),
  iteration: count,
  end_reason: orNull(endReason),
  gate: orNull(GATE, 'the open gate'),
  last_seq: count,
  parent_run_id: orNull(runId),
  metadata: { type: 'object', additionalProperties: text },
  usage,
  cost_known: {
    ...flag,
    description: 'false: a price is unknown and counted as 0, or tokens are estimated',
  },
  check: orNull(text),
  approval: {
    anyOf: [
      APPROVAL_MODE,
      record({
        default: APPROVAL_MODE,
        tools: {
          type: 'object',
          additionalProperties: { type: 'string', enum: ['never', 'always'] },
        },
      }),
    ],
  },
  max_total_tokens: orNull(count),
  max_cost_usd: orNull(amount),
  max_seconds: orNull(amount),
  max_tool_calls: orNull(count),
  temperature: orNull(amount, 'of the model'),
  reasoning_effort: orNull(text, 'how much the model thinks'),
  max_output_tokens: orNull(count, 'of one answer'),
  workspace: { type: 'string', enum: ['in_place', 'isolated', 'none'] },
  checkpoint_id: orNull(text, 'the newest checkpoint'),
  changes: orNull(
    { type: 'string', enum: ['pending', 'applied', 'discarded'] },
    'of an isolated run that achieved its goal',
  ),
  forked_from: orNull(record({ run_id: runId, seq: count })),
  assurance: orNull(ASSURANCE, 'what the last verdict rests on'),
  check_files: orNull(count, 'files that belong to the check'),
  held_back: orNull(
    { type: 'array', items: text },
    'files of the run that the last verdict does not cover; null if it was not sealed',
  ),
  changed_tests: orNull(
    { type: 'array', items: text },
    'tests of the start that the run has edited; null if the last verdict was not sealed',
  ),
  allowed: orNull(
    { type: 'array', items: text },
    'files of the check that `may_change` let it change; null if the last verdict was not sealed',
  ),
  may_change: orNull(
    { type: 'array', items: text },
    "files of the check that count as the run's, as globs: the newest list",
  ),
  root_run_id: { ...runId, description: 'the run at the top of the tree' },
  role,
  attempts: orNull(attempts, 'null for a run that works itself'),
  delegation: orNull(record({ depth: count, children: count })),
  delegates: { ...count, description: 'runs that it has started to work for it' },
  instructions: orNull(text, 'those of the request'),
  project_instructions: orNull(projectInstructions, "the project's AGENTS.md, as the model got it"),
  tools: orNull({ type: 'array', items: text }, 'null: all that the host offers'),
  compaction: { type: 'string', enum: ['summary', 'drop'] },
  plan: orNull({ type: 'array', items: PLAN_STEP }, 'the newest of its model'),
  images: { ...count, description: 'of the request' },
  fallback_models: orNull({ type: 'array', items: text }, 'they take over in turn'),
  active_model: { ...text, description: '`model_name`, or the model that has taken over' },
  usage_by_model: orNull(
    { type: 'array', items: modelUsage },
    'without runs that it has started; null for a run without `fallback_models`',
  ),
  result_schema: orNull(anyObject, 'what its result must match'),
  result: orNull(anyObject, 'matches result_schema; null before it was given'),
  answer: { ...text, description: 'the last text of the model, but for its result' },
})

/** An element of a list of runs. */
export const RUN_SUMMARY: JsonSchema = record({
  run_id: runId,
  goal: text,
  status,
  created_at: time,
  model_name: text,
  iteration: count,
  end_reason: orNull(endReason),
  started_at: orNull(time),
  ended_at: orNull(time),
  parent_run_id: orNull(runId),
  root_run_id: runId,
  role,
  attempts: { ...count, description: '0 for a run that works itself' },
  delegates: count,
  metadata: { type: 'object', additionalProperties: text },
  cwd: { ...text, description: 'empty for a run without a folder' },
  max_iterations: count,
  estimated_cost_usd: amount,
  cost_known: flag,
  last_seq: count,
  problem: orNull(text, 'why the run cannot be used, usually null: its log is damaged'),
})

/** The response to the answer of a gate. */
export const RESUME_RESULT: JsonSchema = record({ run_id: runId, status, decision, gate_id: text })

/** The body of calls without fields: absent or an empty object. */
export const NO_FIELDS: JsonSchema = closed({})

export const MODEL_INFO: JsonSchema = record({
  name: text,
  provider: text,
  is_language_model: flag,
  default: flag,
  description: text,
  prices: orNull(
    record({ input: amount, output: amount, cached: amount, as_of: text }, ['cached']),
    'US dollars per million tokens',
  ),
  context_window: orNull(count, 'tokens of one call'),
})

const FOLDER: JsonSchema = record({ path: text, name: text })

export const FOLDER_OFFER: JsonSchema = record({
  path: orNull(text, 'null: the folders are the roots of the caller'),
  folders: { type: 'array', items: FOLDER, description: 'at most 200' },
  more: { ...count, description: 'folders beyond these' },
  left_out: {
    ...count,
    description: 'hidden folders, dependencies, caches, links, and those of other tenants',
  },
})

export const RESOLVED_REQUEST: JsonSchema = record({
  cwd: { ...text, description: 'the real path; empty for a run without a folder' },
  workspace: { type: 'string', enum: ['in_place', 'isolated', 'none'] },
  model_name: text,
  max_iterations: count,
  goal: record({
    name: { ...text, description: 'a registered name, `shell`, `result` or `text`' },
    command: { ...text, description: 'the check; empty where a model judges, or for a result' },
    timeout_ms: count,
    reporter: orNull(text, 'the test runner whose report is read'),
    protected: {
      type: 'array',
      items: text,
      description: 'globs of files that must not change; `!` excludes paths',
    },
    allow_test_changes: flag,
    judge_model: orNull(text, 'the model that judges in place of a command'),
    by_result: { ...flag, description: 'a valid result meets the goal' },
  }),
})

export const GOAL_INFO: JsonSchema = record({ name: text, description: text, usage: text })

export const HEALTH: JsonSchema = record(
  {
    status: {
      type: 'string',
      enum: ['ok', 'damaged', 'busy', 'failing', 'draining'],
      description:
        '`damaged`: works, but stored data is damaged or missing; `busy`: accepts no more runs ' +
        'for now; `failing`: cannot store anything',
    },
    problem: orNull(text, 'what is wrong'),
    damaged: {
      ...record({ runs: count, files: count }),
      description: 'damaged runs, and missing or unreadable files; absent when there are none',
    },
    version: text,
    runs: { type: 'object', additionalProperties: count, description: 'number of runs by status' },
    demo: { const: true, description: '`POST /api/demo` is offered; absent otherwise' },
  },
  ['version', 'problem', 'damaged', 'runs', 'demo'],
)

/** Problem details (RFC 9457). */
export const PROBLEM: JsonSchema = record(
  {
    type: text,
    title: text,
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: text,
    code: { type: 'string', description: 'stable, for programs' },
    errors: {
      type: 'array',
      items: record(
        {
          pointer: { type: 'string', description: 'JSON Pointer (RFC 6901) to the field' },
          detail: text,
          in: {
            type: 'string',
            enum: ['query', 'header', 'path'],
            description: 'the body when absent',
          },
        },
        ['in'],
      ),
    },
    paths: { type: 'array', items: text, description: 'the files concerned' },
    quota: {
      ...record({
        used: { type: 'number', description: 'runs, or US dollars within 24 hours' },
        allowed: { type: 'number' },
        frees_at: orNull(time, 'when the oldest of what is used no longer counts; null: not known'),
      }),
      description: 'the limit that the tenant exceeds',
    },
    files: {
      ...record({
        changed: {
          type: 'string',
          enum: ['nothing', 'some'],
          description: '`some`: that is tried again until all files are changed, or none',
        },
        checkpoint_id: orNull(text, 'the checkpoint that was made before'),
        missing_bytes: orNull(count, 'bytes that are missing on the disk; null: not known'),
      }),
      description: 'what a restore or an apply that failed has changed',
    },
    request_id: { ...text, description: 'the X-Request-Id of the response' },
  },
  ['errors', 'paths', 'quota', 'files', 'request_id'],
)

/**
 * Checks the body of a request against its schema.
 *
 * @throws {@link ProblemError} 422 with all invalid fields.
 */
export function validate<T>(schema: JsonSchema, body: unknown): T {
  const violations = checkSchema(schema, body)
  if (violations.length === 0) return body as T
  const detail = violations.map(
    ({ pointer, detail }) => `${pointer.slice(1) || 'the body'} ${detail}`,
  )
  throw new ProblemError(422, 'invalid_request', detail.join('; '), { errors: violations })
}
