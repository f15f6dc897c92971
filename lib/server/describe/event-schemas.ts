/**
 * What the service says of each kind of event, and its schema: from here come the descriptions of
 * the API and of the streams, the kinds that readers and webhooks may ask for, and the labels of
 * the dashboard. The compiler checks that all kinds and fields of the engine's types are here, and
 * no others; the tests check what is really sent against the schemas.
 *
 * @module
 */
import type {
  AgentEvent,
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
import { CANDIDATE, END_REASONS, GATE_KIND, PLAN_STEP, RUN_STATUSES } from './schemas.js'

/** How a kind of event is presented. */
interface EventFacts {
  /** For the description of the streams. */
  readonly meaning: string
  /** Names the entry in the dashboard's timeline; null: the event has no entry of its own. */
  readonly label: string | null
  /** When the dashboard reads the details again that have changed. Absent: with a later event. */
  readonly refresh?: 'soon' | 'now'
}

/** All kinds, in the order in which a run may have them. */
export const EVENTS: { readonly [K in EventKind]: EventFacts } = {
  run_created: { meaning: 'The run was created', label: 'Run created' },
  run_started: { meaning: 'The run starts working', label: null, refresh: 'soon' },
  setup_started: { meaning: 'The setup of the run begins', label: 'Setup' },
  setup_ended: { meaning: 'The setup of the run has ended', label: 'Setup' },
  run_suspended: {
    meaning: 'The service shut down cleanly; the run resumes when it starts again',
    label: null,
  },
  run_recovered: {
    meaning: 'The run resumes after an interruption of the service',
    label: 'Resumed',
    refresh: 'soon',
  },
  abort_requested: { meaning: 'An abort of the run was requested', label: 'Abort requested' },
  step_start: { meaning: 'A node starts', label: null },
  llm_usage: { meaning: 'A model was called', label: 'Tokens', refresh: 'soon' },
  model_switched: { meaning: 'Another model takes over', label: 'Model changed', refresh: 'soon' },
  model_turn: { meaning: 'The text of a model turn', label: 'Model' },
  reasoning: {
    meaning: 'The reasoning of the model, as far as the provider reveals it',
    label: 'Reasoning',
  },
  tool_call: { meaning: 'The model requests a tool call', label: 'Tool' },
  tool_started: { meaning: 'A tool call starts', label: null },
  tool_result: { meaning: 'The result of a tool call', label: null },
  plan_updated: { meaning: 'The model has a new plan', label: null },
  conversation_compacted: {
    meaning: 'The beginning of the conversation is not sent any more',
    label: 'Summary',
  },
  holdout_evaluation: {
    meaning: 'The held-out tests are about to be evaluated',
    label: 'Held-out tests',
  },
  goal_check: { meaning: 'The goal was evaluated', label: 'Goal check', refresh: 'soon' },
  result: {
    meaning: 'The model gave the result, or what it gave is not valid',
    label: 'Result',
    refresh: 'soon',
  },
  iteration_complete: { meaning: 'An iteration is complete', label: null, refresh: 'soon' },
  human_check_required: { meaning: 'The run waits at a gate', label: 'Gate', refresh: 'now' },
  human_check_response: { meaning: 'A gate was answered', label: 'Answer', refresh: 'now' },
  user_message: { meaning: 'A message for the model, from a human or a program', label: 'Message' },
  checkpoint: {
    meaning: "The content of the run's folder was stored",
    label: 'Checkpoint',
    refresh: 'soon',
  },
  run_end: {
    meaning: 'The run has ended; only what becomes of its files follows',
    label: 'End of the run',
    refresh: 'now',
  },
  files_changing: {
    meaning: 'Files are about to be restored or applied',
    label: 'Change of files',
  },
  files_changed: {
    meaning: 'Files were restored or applied',
    label: 'Files changed',
    refresh: 'soon',
  },
  changes_decided: {
    meaning: 'The changes of an isolated run were applied or discarded',
    label: 'Changes',
    refresh: 'soon',
  },
  attempt_started: {
    meaning: 'An attempt starts, in a run of its own',
    label: 'Attempt',
    refresh: 'soon',
  },
  attempt_ended: { meaning: 'An attempt has ended', label: 'Attempt', refresh: 'soon' },
  attempt_chosen: {
    meaning: 'The attempt whose changes are those of this run',
    label: 'Choice',
    refresh: 'soon',
  },
  delegate_started: {
    meaning: 'A call starts a run that works for this one',
    label: 'Delegate',
    refresh: 'soon',
  },
  delegate_ended: {
    meaning: 'A run that worked for this one has ended; its changes are in the folder',
    label: 'Delegate',
    refresh: 'soon',
  },
  error: { meaning: 'An error occurred', label: 'Error', refresh: 'soon' },
  log: { meaning: 'A log message', label: 'Note' },
}

export const EVENT_KINDS: readonly EventKind[] = Object.keys(EVENTS) as EventKind[]

/** An event of any kind. */
export const AGENT_EVENT: JsonSchema = fields<AgentEvent>({
  kind: { ...text, description: `one of ${EVENT_KINDS.join(', ')}; ignore unknown kinds` },
  run_id: { type: 'string', format: 'uuid' },
  iteration: count,
  ts: { type: 'number', description: 'seconds since the Unix epoch; never decreases within a run' },
  seq: { type: 'integer', minimum: 1, description: '1, 2, 3, … within a run, without gaps' },
  payload: { ...object, description: 'its shape depends on kind' },
})

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
  may_change: { ...listOf(text), description: 'from now on, in place of the list before' },
}, 'may_change')

const endedChild = {
  run_id: text,
  status: { type: 'string', enum: RUN_STATUSES },
  end_reason: orNull({ type: 'string', enum: END_REASONS }),
  reason: text,
  assurance: orNull(ASSURANCE),
  changes: orNull(CHANGE_COUNTS),
  held_back: listOf(text),
  changed_tests: listOf(text),
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
  setup_started: fields<EventPayloads['setup_started']>({ command: text, again: flag }, 'again'),
  setup_ended: fields<EventPayloads['setup_ended']>({
    exit_code: { ...whole, description: 'any but 0 ends the run; 124 after its time limit' },
    output: text,
    duration_ms: count,
  }),
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
    held_back: listOf(text),
    changed_tests: listOf(text),
    allowed: listOf(text),
  }, 'assurance', 'sealed_unavailable', 'held_back', 'changed_tests', 'allowed'),
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
  attempt_ended: fields<EventPayloads['attempt_ended']>(
    { attempt: count, ...endedChild },
    'held_back',
    'changed_tests',
  ),
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
  }, 'held_back', 'changed_tests'),
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
      delivered: CHANGE_COUNTS,
    },
    'changes',
    'delivered',
    'unheard',
  ),
  error: fields<EventPayloads['error']>({ message: text, traceback: text, code: text }),
  log: fields<EventPayloads['log']>({ level: oneOf('info', 'warn', 'error'), message: text }),
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
