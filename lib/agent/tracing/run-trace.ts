/**
 * Creates the spans of one run:
 *
 * ```
 * invoke_agent runwright            one each time that a process starts driving the run
 * ├─ check <goal>                   the check before the first iteration
 * ├─ iteration
 * │  ├─ chat <model>                one for each attempt
 * │  ├─ execute_tool <tool>
 * │  └─ check <goal>
 * └─ human_check                    a wait for a human
 * ```
 *
 * @module
 */
import { describeError } from '../../internal/errors.js'
import { AgentError } from '../errors.js'
import type { GoalVerdict } from '../goal.js'
import type { ModelTurn, StopReason, TraceContext } from '../model.js'
import { clip } from '../output.js'
import type { RunDetails } from '../run-details.js'
import type { Tool } from '../tool.js'
import type { OpenSpan, SpanAttributes, SpanFailure, Tracing } from './tracing.js'

/** Characters of a goal that go into a span. */
const GOAL_CHARACTERS = 256

/** Creates the spans of one run. Without a tracer or subscriber, every method does nothing. */
export class RunTrace {
  readonly #tracing: Tracing
  readonly #runId: string
  /** The context of the request that created the run; forwarded as it is when tracing is off. */
  readonly #remote: TraceContext | null
  #run: OpenSpan | null = null
  #iteration: { readonly number: number; readonly span: OpenSpan } | null = null

  constructor(tracing: Tracing, runId: string, remote: TraceContext | null) {
    this.#tracing = tracing
    this.#runId = runId
    this.#remote = remote
  }

  /** Called when this process starts driving the run, which another one may have driven before. */
  beginRun(details: RunDetails): void {
    if (!this.#tracing.isActive) return
    this.#run = this.#tracing.start({
      name: 'invoke_agent runwright',
      kind: 'internal',
      parent: null,
      remoteParent: this.#remote,
      // The run id has the size of a trace id, so all processes that drive the run share one trace.
      traceId: this.#runId.replaceAll('-', ''),
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'runwright',
        ...modelAttributes(details.model_name),
        'gen_ai.conversation.id': this.#runId,
        'runwright.goal': clip(details.goal, GOAL_CHARACTERS),
        'runwright.resumed': details.last_seq > 1,
        ...(details.parent_run_id !== null && { 'runwright.parent_run_id': details.parent_run_id }),
      },
    })
  }

  /** Called when the run has ended, or when this process stops driving it. */
  endRun(details: RunDetails): void {
    this.#endIteration()
    this.#tracing.end(this.#run, endAttributes(details), failureOfRun(details))
    this.#run = null
  }

  /** Adds an event to the run's span. */
  event(name: string, attributes: SpanAttributes): void {
    this.#tracing.event(this.#run, name, attributes)
  }

  /** Begins a model call; null when tracing is off. */
  beginChat(iteration: number, model: string, attempt: number): OpenSpan | null {
    if (this.#run === null) return null
    const names = modelAttributes(model)
    return this.#begin(iteration, `chat ${String(names['gen_ai.request.model'])}`, 'client', {
      'gen_ai.operation.name': 'chat',
      ...names,
      'gen_ai.conversation.id': this.#runId,
      'runwright.attempt': attempt,
    })
  }

  /** Ends a model call that was answered. */
  endChat(span: OpenSpan | null, turn: ModelTurn): void {
    if (span === null) return
    const { usage, stop, message } = turn
    this.#tracing.end(span, {
      'gen_ai.usage.input_tokens': usage.input_tokens,
      'gen_ai.usage.output_tokens': usage.output_tokens,
      'gen_ai.usage.cache_read.input_tokens': usage.cached_tokens,
      'gen_ai.usage.reasoning.output_tokens': usage.reasoning_tokens,
      'gen_ai.response.finish_reasons': [message.calls.length > 0 ? 'tool_call' : FINISH[stop]],
    })
  }

  /** Begins a tool call; null when tracing is off. */
  beginTool(iteration: number, tool: Tool, callId: string): OpenSpan | null {
    if (this.#run === null) return null
    return this.#begin(iteration, `execute_tool ${tool.name}`, 'internal', {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool.name,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': callId,
      'gen_ai.tool.description': tool.description,
      'gen_ai.conversation.id': this.#runId,
    })
  }

  /** Ends a tool call. A command's own exit code is a result, not a failure of the call. */
  endTool(span: OpenSpan | null, exitCode: number, isCommand: boolean): void {
    if (span === null) return
    const type = TOOL_FAILURES[exitCode] ?? (exitCode === 0 || isCommand ? undefined : 'tool_error')
    const failure = type === undefined ? undefined : { type, message: `exit code ${exitCode}` }
    this.#tracing.end(span, { 'runwright.exit_code': exitCode }, failure)
  }

  /** Begins a goal check; null when tracing is off. */
  beginCheck(iteration: number, goal: string): OpenSpan | null {
    return this.#begin(iteration, `check ${goal}`, 'internal', {
      'gen_ai.operation.name': 'check',
      'gen_ai.conversation.id': this.#runId,
      'runwright.goal': goal,
    })
  }

  /** Ends a goal check with its verdict. */
  endCheck(span: OpenSpan | null, goal: string, verdict: GoalVerdict): void {
    if (span === null) return
    this.#tracing.event(span, 'gen_ai.evaluation.result', {
      'gen_ai.evaluation.name': goal,
      'gen_ai.evaluation.score.label': verdict.achieved ? 'pass' : 'fail',
      'gen_ai.evaluation.explanation': verdict.reason,
    })
    this.#tracing.end(span, { 'runwright.achieved': verdict.achieved })
  }

  /** Begins a wait for a human; null when tracing is off. */
  beginGate(gateId: string, kind: string): OpenSpan | null {
    this.#endIteration()
    return this.#begin(0, 'human_check', 'internal', {
      'gen_ai.conversation.id': this.#runId,
      'runwright.gate.id': gateId,
      'runwright.gate.kind': kind,
    })
  }

  /** Ends a wait with the decision, or with null if there was none. */
  endGate(span: OpenSpan | null, decision: string | null): void {
    if (span === null) return
    this.#tracing.end(span, decision === null ? {} : { 'runwright.gate.decision': decision })
  }

  /** Ends a span whose work threw. */
  fail(span: OpenSpan | null, error: unknown): void {
    if (span === null) return
    const type =
      error instanceof AgentError ? error.code : error instanceof Error ? error.name : '_OTHER'
    this.#tracing.end(
      span,
      {},
      { type, message: describeError(error) },
    )
  }

  /** The trace context for a request made during `span`; undefined when there is none. */
  outgoing(span: OpenSpan | null): TraceContext | undefined {
    return (span?.context ?? this.#run?.context ?? this.#remote) ?? undefined
  }

  #begin(
    iteration: number,
    name: string,
    kind: OpenSpan['kind'],
    attributes: SpanAttributes,
  ): OpenSpan | null {
    if (!this.#tracing.isActive || this.#run === null) return null
    const parent = this.#parent(iteration, this.#run)
    return this.#tracing.start({ name, kind, parent, remoteParent: null, traceId: '', attributes })
  }

  /** The iteration's span, begun with its first child; the run's span before iteration 1. */
  #parent(iteration: number, run: OpenSpan): OpenSpan {
    if (iteration === 0) return run
    if (this.#iteration?.number === iteration) return this.#iteration.span
    this.#endIteration()
    const span = this.#tracing.start({
      name: 'iteration',
      kind: 'internal',
      parent: run,
      remoteParent: null,
      traceId: '',
      attributes: { 'gen_ai.conversation.id': this.#runId, 'runwright.iteration': iteration },
    })
    this.#iteration = { number: iteration, span }
    return span
  }

  #endIteration(): void {
    if (this.#iteration !== null) this.#tracing.end(this.#iteration.span)
    this.#iteration = null
  }
}

/** `error.type` by the exit codes that the engine assigns. */
const TOOL_FAILURES: Readonly<Record<number, string>> = {
  124: 'timeout',
  126: 'refused',
  127: 'unknown_tool',
  130: 'aborted',
  [-1]: 'outcome_unknown',
}

/** Finish reasons in the terms of the semantic conventions. */
const FINISH: Readonly<Record<StopReason, string>> = {
  end: 'stop',
  tool_calls: 'tool_call',
  length: 'length',
  refusal: 'content_filter',
  content_filter: 'content_filter',
  other: 'error',
}

/** Providers whose name in the semantic conventions differs from their id. */
const PROVIDERS: Readonly<Record<string, string>> = {
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  xai: 'x_ai',
  azure: 'azure.ai.openai',
}

function modelAttributes(name: string): SpanAttributes {
  const colon = name.indexOf(':')
  const provider = colon < 0 ? '_OTHER' : name.slice(0, colon)
  return {
    'gen_ai.provider.name': PROVIDERS[provider] ?? provider,
    'gen_ai.request.model': name.slice(colon + 1),
  }
}

function endAttributes({ final_state, usage, status, end_reason }: RunDetails): SpanAttributes {
  return {
    'gen_ai.usage.input_tokens': usage.input_tokens,
    'gen_ai.usage.output_tokens': usage.output_tokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cached_tokens,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoning_tokens,
    'runwright.iterations': final_state.iteration,
    'runwright.cost_usd': final_state.estimated_cost_usd,
    'runwright.status': status,
    ...(end_reason !== null && { 'runwright.end_reason': end_reason }),
  }
}

function failureOfRun({ error }: RunDetails): SpanFailure | undefined {
  return error === null ? undefined : { type: error.code, message: error.message }
}
