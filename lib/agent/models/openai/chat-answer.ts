/**
 * The answer of a Chat Completions server, whole: its message, stop word and token counts.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn, StopReason, Usage } from '../../model.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import { embeddedError, type WireContext } from '../provider-errors.js'
import { buildTurn, type RawCall } from '../build-turn.js'

/** The name under which this format's own parts are kept. */
export const OPENAI_CHAT_FORMAT = 'openai-chat'

/** Makes the turn of an assistant message, whether it came whole or in pieces. */
export function buildChatTurn(
  message: JsonObject,
  finishReason: string,
  usage: JsonObject,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  if (BROKEN_OFF.has(finishReason)) {
    throw embeddedError(
      { error: { message: `it stopped with ${finishReason}`, type: 'server_error' } },
      context,
      readChatUsage(usage),
    )
  }
  const content = apartFromThought(readContent(message['content']))
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

/** Stop words of servers that gave up in the middle of an answer. */
const BROKEN_OFF = new Set(['error', 'insufficient_system_resource', 'network_error', 'abort'])

/** Stop words in lower case; a server that leaves the word out has answered to the end. */
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
  content_filter: 'refusal',
  refusal: 'refusal',
  safety: 'refusal',
  sensitive: 'refusal',
}

/** The calls of a message; before there were several, there was one without an id. */
function callsOf(message: JsonObject): readonly JsonValue[] {
  const only = message['function_call']
  if (message['tool_calls'] !== undefined || !isJsonObject(only)) return listOf(message['tool_calls'])
  return [{ function: only }]
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

/** What opens and closes reasoning that a server left in the text. */
export const THOUGHT_TAGS = ['<think>', '</think>'] as const

/** Content without the reasoning that stands before it in tags, as local models write it. */
function apartFromThought(content: ReturnType<typeof readContent>): typeof content {
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
 * Token counts. Cached input is part of the prompt. Reasoning is part of the completion with most
 * servers; with others it is missing there, and shows only in a total that is more than the sum.
 */
export function readChatUsage(usage: JsonObject): Usage {
  const input = countOf(usage['prompt_tokens'])
  const completion = countOf(usage['completion_tokens'])
  const total = countOf(usage['total_tokens'])
  const told = countOf(objectOf(usage['completion_tokens_details'])['reasoning_tokens'])
  const beyond = total > 0 ? Math.max(0, total - input - completion) : told > completion ? told : 0
  const cached =
    countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']) ||
    countOf(usage['prompt_cache_hit_tokens']) ||
    countOf(usage['cached_tokens'])
  return {
    input_tokens: input,
    output_tokens: completion + beyond,
    cached_tokens: Math.min(cached, input),
    reasoning_tokens: Math.min(Math.max(told, beyond), completion + beyond),
  }
}
