/**
 * Builds a turn from a complete Gemini answer: parts, finish reason and token counts.
 *
 * @module
 */
import { isJsonObject, type JsonObject } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn, StopReason } from '../../model.js'
import type { Usage } from '../../usage.js'
import { countOf, textOf } from '../json-reader.js'
import { mistakeError, protocolError, withUsage, type WireContext } from '../provider-errors.js'
import { buildTurn } from '../build-turn.js'

/** `format` of the parts of a message that this adapter made. */
export const GEMINI_FORMAT = 'gemini'

/** A complete answer, streamed or not. */
export interface GeminiAnswer {
  readonly parts: readonly JsonObject[]
  readonly finishReason: string
  readonly finishMessage: string
  /** Why the prompt was refused, or empty. */
  readonly blockReason: string
  readonly hasCandidate: boolean
  readonly usage: JsonObject
}

/** By finish reason; a complete answer may omit it. */
const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  '': 'end',
  STOP: 'end',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'refusal',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
}

/** Finish reasons for an invalid tool call. */
const INVALID_CALL = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
])

/** Builds the turn. Its parts are the answer's parts, which are sent back with their signatures. */
export function buildGeminiTurn(
  answer: GeminiAnswer,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  const { finishReason, blockReason } = answer
  if (!answer.hasCandidate && blockReason === '') {
    const error = protocolError('the answer has no candidates', true, context)
    throw withUsage(error, readGeminiUsage(answer.usage))
  }
  const functionCalls = answer.parts.map((part) => part['functionCall']).filter(isJsonObject)
  const hasNoCall = finishReason === 'MALFORMED_FUNCTION_CALL' || functionCalls.length === 0
  if (INVALID_CALL.has(finishReason) && hasNoCall) {
    throw mistakeError(
      answer.finishMessage || `the tool call could not be made (${finishReason})`,
      context,
      readGeminiUsage(answer.usage),
    )
  }
  const textOfParts = (thought: boolean): string =>
    answer.parts
      .filter((part) => (part['thought'] === true) === thought)
      .map((part) => textOf(part['text']))
      .join('')
  const blocked = blockReason === '' ? '' : `(the prompt was refused: ${blockReason})`
  return buildTurn(
    {
      text: textOfParts(false) || blocked,
      reasoning: textOfParts(true),
      calls: functionCalls.map(({ id, name, args }) => ({
        id: textOf(id),
        name: textOf(name),
        arguments: args,
      })),
      usage: readGeminiUsage(answer.usage),
      stop: blockReason !== '' ? 'content_filter' : (STOP_REASONS[finishReason] ?? 'other'),
      parts: { format: GEMINI_FORMAT, value: answer.parts.filter((part) => !isEmpty(part)) },
    },
    request,
  )
}

/** Streams end with an empty part, which some of Google's servers refuse when it is sent back. */
function isEmpty(part: JsonObject): boolean {
  return (
    part['text'] === '' && Object.keys(part).every((key) => key === 'text' || key === 'thought')
  )
}

/** Token counts. Input includes cached tokens; thoughts are not part of the candidates' tokens. */
export function readGeminiUsage(usage: JsonObject): Usage {
  const input = countOf(usage['promptTokenCount']) + countOf(usage['toolUsePromptTokenCount'])
  const thoughts = countOf(usage['thoughtsTokenCount'])
  const output = countOf(usage['candidatesTokenCount']) + thoughts
  return {
    input_tokens: input,
    output_tokens: Math.max(output, countOf(usage['totalTokenCount']) - input),
    cached_tokens: Math.min(input, countOf(usage['cachedContentTokenCount'])),
    reasoning_tokens: thoughts,
  }
}
