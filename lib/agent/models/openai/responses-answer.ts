/**
 * Builds a turn from a complete Responses answer: output items, status and token counts.
 *
 * @module
 */
import { isJsonObject, type JsonObject } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn, StopReason } from '../../model.js'
import type { CallUsage } from '../../usage.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import { embeddedError, protocolError, type WireContext } from '../provider-errors.js'
import { reportedCost } from '../reported-cost.js'
import { buildTurn } from '../build-turn.js'

/** `format` of the parts of a message that this adapter made. */
export const OPENAI_RESPONSES_FORMAT = 'openai-responses'

/** Builds the turn of a complete response, streamed or not. */
export function buildResponsesTurn(
  response: JsonObject,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  const status = textOf(response['status'])
  if (isJsonObject(response['error']) || status === 'failed' || status === 'cancelled') {
    const error = response['error'] ?? {
      message: `the response was ${status}`,
      type: 'server_error',
    }
    throw embeddedError({ error }, context, readResponsesUsage(objectOf(response['usage'])))
  }
  if (!Array.isArray(response['output'])) {
    throw protocolError(
      'the answer has no output; is the base URL that of a Responses interface?',
      false,
      context,
    )
  }
  const items = listOf(response['output']).map(objectOf)
  const contents = items
    .filter(({ type }) => type === 'message')
    .flatMap(({ content }) => listOf(content).map(objectOf))
  const refusal = contents.map((part) => textOf(part['refusal'])).join('')
  const text = contents.map((part) => textOf(part['text'])).join('')
  const calls = items.filter(isCall).map((item) => ({
    id: textOf(item['call_id']),
    name: textOf(item['name']),
    arguments:
      item['type'] === 'function_call' ? item['arguments'] : { input: item['input'] ?? '' },
  }))
  return buildTurn(
    {
      text: text === '' ? refusal : text,
      reasoning: items
        .filter(({ type }) => type === 'reasoning')
        .map(readReasoning)
        .filter(Boolean)
        .join('\n\n'),
      calls,
      usage: readResponsesUsage(objectOf(response['usage'])),
      stop: refusal !== '' ? 'refusal' : stopOf(status, response),
      parts: { format: OPENAI_RESPONSES_FORMAT, value: items },
    },
    request,
  )
}

/** Whether an item calls a function, or a tool that takes free text as its only `input`. */
export function isCall({ type }: JsonObject): boolean {
  return type === 'function_call' || type === 'custom_tool_call'
}

function stopOf(status: string, response: JsonObject): StopReason {
  if (status === 'completed' || status === '') return 'end'
  const reason = textOf(objectOf(response['incomplete_details'])['reason'])
  if (/^max_(?:output_)?tokens$|^length$/.test(reason)) return 'length'
  return reason === 'content_filter' ? reason : 'other'
}

function readReasoning(item: JsonObject): string {
  const parts = listOf(item['summary']).length > 0 ? item['summary'] : item['content']
  return listOf(parts)
    .map((part) => textOf(objectOf(part)['text']))
    .join('\n\n')
}

/** Token counts. Input includes cached tokens, output includes reasoning. */
export function readResponsesUsage(usage: JsonObject): CallUsage {
  const input = countOf(usage['input_tokens'])
  const output = countOf(usage['output_tokens'])
  return {
    input_tokens: input,
    output_tokens: output,
    cached_tokens: Math.min(
      input,
      countOf(objectOf(usage['input_tokens_details'])['cached_tokens']),
    ),
    reasoning_tokens: Math.min(
      output,
      countOf(objectOf(usage['output_tokens_details'])['reasoning_tokens']),
    ),
    ...reportedCost(usage),
  }
}
