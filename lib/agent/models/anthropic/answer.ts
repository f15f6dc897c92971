/**
 * Builds a turn from a complete Messages answer: content blocks, stop reason and token counts.
 *
 * @module
 */
import type { JsonObject } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn, StopReason } from '../../model.js'
import type { CallUsage, Usage } from '../../usage.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import { buildTurn } from '../build-turn.js'
import { reportedCost } from '../reported-cost.js'

/** `format` of the parts of a message that this adapter made. */
export const ANTHROPIC_FORMAT = 'anthropic'

/** A complete answer, streamed or not. */
export interface AnthropicAnswer {
  readonly content: readonly JsonObject[]
  /** The arguments of each `tool_use` block: an object, or JSON text as it was streamed. */
  readonly inputs: readonly unknown[]
  readonly stopReason: string
  /** What the API says of a `refusal`. */
  readonly stopDetails: JsonObject
  readonly usage: JsonObject
}

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  '': 'end',
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  // Not the model's own words, but the API's classifiers.
  refusal: 'content_filter',
}

/** Builds the turn. Its parts are the content blocks, which are sent back unchanged. */
export function buildAnthropicTurn(answer: AnthropicAnswer, request: ModelRequest): ModelTurn {
  const blocksOf = (type: string): JsonObject[] =>
    answer.content.filter((block) => block['type'] === type)
  const calls = blocksOf('tool_use').map((block, i) => ({
    id: textOf(block['id']),
    name: textOf(block['name']),
    arguments: answer.inputs[i],
  }))
  const text = blocksOf('text').map((block) => textOf(block['text'])).join('')
  return buildTurn(
    {
      text: text === '' ? textOf(answer.stopDetails['explanation']) : text,
      reasoning: blocksOf('thinking')
        .map((block) => textOf(block['thinking']))
        .join('\n\n'),
      calls,
      usage: readAnthropicUsage(answer.usage),
      stop: STOP_REASONS[answer.stopReason] ?? 'other',
      parts: { format: ANTHROPIC_FORMAT, value: answer.content },
    },
    request,
  )
}

/**
 * Token counts. `input_tokens` excludes tokens read from and written to the cache; thinking is part
 * of the output, and only newer models report it separately. When `iterations` lists the provider's
 * own steps, the top-level counts may omit some of them although they are billed.
 */
export function readAnthropicUsage(usage: JsonObject): CallUsage {
  return { ...readTokens(usage), ...reportedCost(usage) }
}

function readTokens(usage: JsonObject): Usage {
  const total = readCounts(usage)
  const steps = listOf(usage['iterations']).map((step) => readCounts(objectOf(step)))
  const sum = (count: keyof Usage): number => steps.reduce((all, step) => all + step[count], 0)
  if (sum('input_tokens') + sum('output_tokens') <= total.input_tokens + total.output_tokens)
    return total
  return {
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
    cached_tokens: sum('cached_tokens'),
    reasoning_tokens: Math.min(
      Math.max(total.reasoning_tokens, sum('reasoning_tokens')),
      sum('output_tokens'),
    ),
  }
}

function readCounts(usage: JsonObject): Usage {
  const cached = countOf(usage['cache_read_input_tokens'])
  const written = countOf(usage['cache_creation_input_tokens'])
  const output = countOf(usage['output_tokens'])
  const thinking = countOf(objectOf(usage['output_tokens_details'])['thinking_tokens'])
  return {
    input_tokens: countOf(usage['input_tokens']) + cached + written,
    output_tokens: output,
    cached_tokens: cached,
    reasoning_tokens: Math.min(thinking, output),
  }
}
