/**
 * Builds a turn from a complete Chat Completions answer: message, finish reason, token counts.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn, StopReason } from '../../model.js'
import type { CallUsage } from '../../usage.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import { embeddedError, type WireContext } from '../provider-errors.js'
import { reportedCost } from '../reported-cost.js'
import { buildTurn, type RawCall } from '../build-turn.js'

/** `format` of the parts of a message that this adapter made. */
export const OPENAI_CHAT_FORMAT = 'openai-chat'

/** Builds the turn of a complete assistant message, streamed or not. */
export function buildChatTurn(
  message: JsonObject,
  finishReason: string,
  usage: JsonObject,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  if (FAILURES.has(finishReason)) {
    throw embeddedError(
      { error: { message: `it stopped with ${finishReason}`, type: 'server_error' } },
      context,
      readChatUsage(usage),
    )
  }
  const content = separateThought(readContent(message['content']))
  const refusal = textOf(message['refusal'])
  return buildTurn(
    {
      text: content.text === '' ? refusal : content.text,
      reasoning:
        content.reasoning || textOf(message['reasoning_content']) || textOf(message['reasoning']),
      calls: callsOf(message).map(readCall),
      usage: readChatUsage(usage),
      stop: refusal !== '' ? 'refusal' : (STOP_REASONS[finishReason.toLowerCase()] ?? 'other'),
      parts: { format: OPENAI_CHAT_FORMAT, value: message },
    },
    request,
  )
}

/** Finish reasons of servers that failed in the middle of an answer. */
const FAILURES = new Set(['error', 'insufficient_system_resource', 'network_error', 'abort'])

/** By finish reason in lower case; servers may omit it from complete answers. */
const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  '': 'end',
  stop: 'end',
  eos: 'end',
  eos_token: 'end',
  end_turn: 'end',
  stop_sequence: 'end',
  tool_calls: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'tool_calls',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refusal',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  guardrail_intervened: 'content_filter',
  safety: 'content_filter',
  sensitive: 'content_filter',
}

/** The calls of a message. Old servers send a single `function_call` without an id. */
function callsOf(message: JsonObject): readonly JsonValue[] {
  const { tool_calls: calls, function_call: only } = message
  return calls === undefined && isJsonObject(only) ? [{ function: only }] : listOf(calls)
}

function readCall(value: JsonValue): RawCall {
  const call = objectOf(value)
  const named = objectOf(call['function'])
  return { id: textOf(call['id']), name: textOf(named['name']), arguments: named['arguments'] }
}

/** Content is text or, with Mistral's reasoning models, a list of parts. */
export function readContent(content: JsonValue | undefined): {
  readonly text: string
  readonly reasoning: string
} {
  if (!Array.isArray(content)) return { text: textOf(content), reasoning: '' }
  let text = ''
  let reasoning = ''
  for (const part of content.map(objectOf)) {
    if (part['type'] === 'thinking') {
      reasoning += listOf(part['thinking'])
        .map((piece) => textOf(objectOf(piece)['text']))
        .join('')
    } else text += textOf(part['text'])
  }
  return { text, reasoning }
}

/** Delimiters of reasoning that a server did not separate from the text. */
export const THOUGHT_TAGS = ['<think>', '</think>'] as const

/** Separates the tagged reasoning that local models write before their text. */
function separateThought(content: ReturnType<typeof readContent>): typeof content {
  const [open, close] = THOUGHT_TAGS
  const text = content.text.trimStart()
  if (!text.startsWith(open)) return content
  const end = text.indexOf(close)
  const thought = end === -1 ? text.slice(open.length) : text.slice(open.length, end)
  return {
    text: end === -1 ? '' : text.slice(end + close.length).trimStart(),
    reasoning: content.reasoning || thought.trim(),
  }
}

/**
 * Token counts. Cached input is part of the prompt. Most servers include reasoning in the
 * completion tokens; with others it shows only as the difference between the total and the sum.
 */
export function readChatUsage(usage: JsonObject): CallUsage {
  const input = countOf(usage['prompt_tokens'])
  const completion = countOf(usage['completion_tokens'])
  const total = countOf(usage['total_tokens'])
  const reported = countOf(objectOf(usage['completion_tokens_details'])['reasoning_tokens'])
  const outside = reported > completion ? reported : 0
  const beyond = total > 0 ? Math.max(0, total - input - completion) : outside
  const cached =
    countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']) ||
    countOf(usage['prompt_cache_hit_tokens']) ||
    countOf(usage['cached_tokens'])
  return {
    input_tokens: input,
    output_tokens: completion + beyond,
    cached_tokens: Math.min(cached, input),
    reasoning_tokens: Math.min(Math.max(reported, beyond), completion + beyond),
    ...reportedCost(usage),
  }
}
