/**
 * The schema of each kind of event. The compiler checks that all kinds and fields of the engine's
 * types are here, and no others; the tests check what is really sent against the schemas.
 *
 * @module
 */
import type {
  Attempts,
  ChildEnd,
  ChildUsage,
  DeltaPayload,
  EventKind,
  EventPayloads,
  FileChange,
  ForkOrigin,
  ImageInfo,
  JsonSchema,
} from '../../agent/index.js'
import {
  amount,
  ASSURANCE,
  CHANGE_COUNTS,
  CHECKPOINT_REASON,
  count,
  fields,
  flag,
  LEFT_OUT,
  listOf,
  object,
  oneOf,
  orNull,
  text,
  whole,
} from './fields.js'
import {
  AGENT_EVENT, CANDIDATE, END_REASONS, GATE_KIND, PLAN_STEP, RUN_STATUSES,
} from './schemas.js'

const decision: JsonSchema = { type: 'string', enum: ['approve', 'abort', 'reject'] }

const imageInfo: JsonSchema = fields<ImageInfo>(
  {
    media_type: oneOf('image/png', 'image/jpeg', 'image/gif', 'image/webp'),
    bytes: count,
    name: text,
  },
  'name',
)

const fileChange: JsonSchema = fields<FileChange>(
  {
    path: text,
    change: oneOf('created', 'modified', 'deleted', 'renamed'),
    from: text,
    added_lines: count,
    removed_lines: count,
    before_sha256: orNull(text),
    after_sha256: orNull(text),
    diff: text,
  },
  'from',
  'before_sha256',
  'after_sha256',
)

const COUNTS: JsonSchema = fields<NonNullable<EventPayloads['goal_check']['counts']>>({
  total: count,
  passed: count,
  failed: count,
  skipped: count,
})

const gatedCall: JsonSchema = fields<
  NonNullable<EventPayloads['human_check_required']['calls']>[number]
>({ call_id: text, tool: text, args: object })

const FILE_OPERATION: JsonSchema = oneOf('restore', 'apply', 'merge')

const sentMessage: JsonSchema = fields<EventPayloads['user_message']>({
  message_id: text,
  text,
  deliver: oneOf('next_turn', 'next_iteration'),
  by: orNull(text),
})

const endedChild = {
  run_id: text,
  status: { type: 'string', enum: RUN_STATUSES },
  end_reason: orNull({ type: 'string', enum: END_REASONS }),
  reason: text,
  assurance: orNull(ASSURANCE),
  changes: orNull(CHANGE_COUNTS),
  counts: orNull(COUNTS),
  usage: fields<ChildUsage>(
    {
      input_tokens: count,
      output_tokens: count,
      cached_tokens: count,
      reasoning_tokens: count,
      estimated_tokens: count,
      model_calls: count,
      tool_calls: count,
      cost_usd: amount,
      cost_known: flag,
    },
    'estimated_tokens',
  ),
} satisfies Readonly<Record<keyof ChildEnd, JsonSchema>>

const PAYLOADS: { readonly [K in EventKind]: JsonSchema } = {
  run_created: fields<EventPayloads['run_created']>(
    {
      goal: text,
      model_name: text,
      cwd: text,
      max_iterations: count,
      hitl_enabled: flag,
      parent_run_id: orNull(text),
      root_run_id: text,
      role: oneOf('attempt', 'delegate'),
      attempts: fields<Attempts>({
        count,
        models: listOf(text),
        choose: oneOf('first', 'smallest', 'human'),
      }),
      workspace: oneOf('in_place', 'isolated', 'none'),
      forked_from: fields<ForkOrigin>({ run_id: text, seq: count }),
      messages: listOf(sentMessage),
    },
    'root_run_id',
    'role',
    'attempts',
    'workspace',
    'forked_from',
    'messages',
  ),
  run_started: fields<EventPayloads['run_started']>({}),
  abort_requested: fields<EventPayloads['abort_requested']>(
    { by: orNull(text), why: text },
    'why',
  ),
  run_suspended: fields<EventPayloads['run_suspended']>({}),
  run_recovered: fields<EventPayloads['run_recovered']>(
    { attempt: count, in_doubt: listOf(text), repeats: count },
    'repeats',
  ),
  step_start: fields<EventPayloads['step_start']>({
    node: oneOf('plan', 'act', 'evaluate', 'human_check'),
  }),
  llm_usage: fields<EventPayloads['llm_usage']>(
    {
      input_tokens: count,
      output_tokens: count,
      cached_tokens: count,
      reasoning_tokens: count,
      cost_usd: orNull(amount),
      purpose: oneOf('worker', 'judge', 'summary'),
      model_name: text,
      failed: flag,
      estimated_tokens: count,
    },
    'failed',
    'estimated_tokens',
    'model_name',
  ),
  model_switched: fields<EventPayloads['model_switched']>({
    from: text,
    to: text,
    cause: oneOf('refusal', 'retries', 'context', 'error'),
    message: text,
  }),
  model_turn: fields<EventPayloads['model_turn']>(
    { turn: count, text, stop: text, heard: listOf(text), gives_result: flag },
    'heard',
    'gives_result',
  ),
  reasoning: fields<EventPayloads['reasoning']>({ text }),
  tool_call: fields<EventPayloads['tool_call']>({ tool: text, args: object, call_id: text }),
  tool_started: fields<EventPayloads['tool_started']>(
    { call_id: text, args_hash: text, effect: oneOf('read', 'idempotent', 'unsafe'), pgid: whole },
    'pgid',
  ),
  tool_result: fields<EventPayloads['tool_result']>(
    {
      tool: text,
      output: text,
      exit_code: whole,
      call_id: text,
      duration_ms: amount,
      changes: listOf(fileChange),
      images: listOf(imageInfo),
    },
    'changes',
    'images',
  ),
  plan_updated: fields<EventPayloads['plan_updated']>({ call_id: text, steps: listOf(PLAN_STEP) }),
  conversation_compacted: fields<EventPayloads['conversation_compacted']>(
    { turns: count, verbatim: count, summary: orNull(text), problem: text },
    'problem',
  ),
  goal_check: fields<EventPayloads['goal_check']>({
    achieved: flag,
    reason: text,
    verified_by: oneOf('command', 'judge', 'schema'),
    cached: flag,
    counts: orNull(COUNTS),
    duration_ms: amount,
    assurance: ASSURANCE,
    sealed_unavailable: text,
  }, 'assurance', 'sealed_unavailable'),
  result: fields<EventPayloads['result']>({
    attempt: count,
    result: orNull(object),
    problem: orNull(text),
  }),
  holdout_evaluation: fields<EventPayloads['holdout_evaluation']>({
    number: count,
    of: { ...count, description: 'how often they are evaluated at most' },
  }),
  iteration_complete: fields<EventPayloads['iteration_complete']>({
    iteration: count,
    tokens: count,
  }),
  human_check_required: fields<EventPayloads['human_check_required']>(
    {
      iteration: count,
      summary: text,
      gate_id: text,
      kind: GATE_KIND,
      deadline: orNull(text),
      calls: listOf(gatedCall),
      candidates: listOf(CANDIDATE),
    },
    'calls',
    'candidates',
  ),
  human_check_response: fields<EventPayloads['human_check_response']>(
    {
      decision,
      gate_id: text,
      decided_by: orNull(text),
      feedback: text,
      edits: object,
      attempt: count,
    },
    'feedback',
    'edits',
    'attempt',
  ),
  user_message: sentMessage,
  checkpoint: fields<EventPayloads['checkpoint']>({
    checkpoint_id: text,
    reason: CHECKPOINT_REASON,
    files: count,
    bytes: count,
    new_bytes: count,
    left_out: listOf(LEFT_OUT),
  }),
  files_changing: fields<EventPayloads['files_changing']>(
    {
      operation_id: text,
      operation: FILE_OPERATION,
      before: text,
      after: text,
      by: orNull(text),
      run_id: text,
      conflicts: listOf(text),
    },
    'run_id',
    'conflicts',
  ),
  files_changed: fields<EventPayloads['files_changed']>(
    {
      operation_id: text,
      operation: FILE_OPERATION,
      paths: listOf(text),
      skipped: listOf(text),
      more: count,
    },
    'more',
  ),
  attempt_started: fields<EventPayloads['attempt_started']>({
    attempt: count,
    run_id: text,
    model_name: text,
  }),
  attempt_ended: fields<EventPayloads['attempt_ended']>({ attempt: count, ...endedChild }),
  attempt_chosen: fields<EventPayloads['attempt_chosen']>(
    { attempt: count, run_id: text, why: text, answer: text, result: object },
    'answer',
    'result',
  ),
  delegate_started: fields<EventPayloads['delegate_started']>({
    call_id: text,
    number: count,
    run_id: text,
    goal: text,
    checkpoint_id: text,
  }),
  delegate_ended: fields<EventPayloads['delegate_ended']>({
    call_id: text,
    conflicts: listOf(text),
    ...endedChild,
  }),
  changes_decided: fields<EventPayloads['changes_decided']>({
    changes: oneOf('pending', 'applied', 'discarded'),
    by: orNull(text),
  }),
  run_end: fields<EventPayloads['run_end']>(
    {
      achieved: flag,
      iterations: count,
      total_tokens: count,
      status: { type: 'string', enum: RUN_STATUSES },
      end_reason: { type: 'string', enum: END_REASONS },
      reason: text,
      estimated_cost_usd: amount,
      cost_known: flag,
      unheard: listOf(text),
      changes: CHANGE_COUNTS,
    },
    'changes',
    'unheard',
  ),
  error: fields<EventPayloads['error']>({ message: text, traceback: text, code: text }),
  log: fields<EventPayloads['log']>({ level: oneOf('info', 'warn', 'error'), message: text }),
}

/** What an event of each kind means, for the description of the streams. */
export const EVENT_MEANINGS: { readonly [K in EventKind]: string } = {
  run_created: 'The run was created',
  run_started: 'The run starts working',
  abort_requested: 'An abort of the run was requested',
  run_suspended: 'The service shut down cleanly; the run resumes when it starts again',
  run_recovered: 'The run resumes after an interruption of the service',
  step_start: 'A node starts',
  llm_usage: 'A model was called',
  model_switched: 'Another model takes over',
  model_turn: 'The text of a model turn',
  reasoning: 'The reasoning of the model, as far as the provider reveals it',
  tool_call: 'The model requests a tool call',
  tool_started: 'A tool call starts',
  tool_result: 'The result of a tool call',
  plan_updated: 'The model has a new plan',
  conversation_compacted: 'The beginning of the conversation is not sent any more',
  holdout_evaluation: 'The held-out tests are about to be evaluated',
  goal_check: 'The goal was evaluated',
  result: 'The model gave the result, or what it gave is not valid',
  iteration_complete: 'An iteration is complete',
  human_check_required: 'The run waits at a gate',
  human_check_response: 'A gate was answered',
  user_message: 'A message for the model, from a human or a program',
  checkpoint: "The content of the run's folder was stored",
  run_end: 'The run has ended; only what becomes of its files follows',
  files_changing: 'Files are about to be restored or applied',
  files_changed: 'Files were restored or applied',
  attempt_started: 'An attempt starts, in a run of its own',
  attempt_ended: 'An attempt has ended',
  attempt_chosen: 'The attempt whose changes are those of this run',
  delegate_started: 'A call starts a run that works for this one',
  delegate_ended: 'A run that worked for this one has ended; its changes are in the folder',
  changes_decided: 'The changes of an isolated run were applied or discarded',
  error: 'An error occurred',
  log: 'A log message',
}

/** The schema of a whole event, by kind. */
export const EVENT_SCHEMAS: { readonly [kind: string]: JsonSchema } = Object.fromEntries(
  Object.entries(PAYLOADS).map(([kind, payload]): [string, JsonSchema] => {
    const constant: JsonSchema = { type: 'string', const: kind }
    return [
      kind,
      { ...AGENT_EVENT, properties: { ...AGENT_EVENT.properties, kind: constant, payload } },
    ]
  }),
)

const { kind: _kind, seq: _seq, payload: _payload, ...common } = AGENT_EVENT.properties ?? {}

/** A piece of text that a model is generating: no event of the log, hence without `seq`. */
export const MODEL_DELTA: JsonSchema = {
  type: 'object',
  required: ['kind', 'run_id', 'iteration', 'ts', 'payload'],
  properties: {
    kind: { type: 'string', const: 'model_delta' },
    ...common,
    payload: fields<DeltaPayload>({
      turn: count,
      attempt: { ...count, description: 'text of earlier attempts of the turn is void' },
      offset: { ...count, description: 'UTF-16 units of this attempt before `text`' },
      text,
    }),
  },
}
