/**
 * Requests of OpenAI's Chat Completions API and of compatible servers, and their answers that are
 * not streamed.
 *
 * @module
 */
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type {
  AssistantMessage,
  ImagePart,
  ModelRequest,
  ModelTurn,
  ToolChoice,
  ToolSpec,
} from '../../model.js'
import type { ModelError } from '../../errors.js'
import { knownPrices } from '../pricing.js'
import type { ModelAdapter, WireOptions, WireRequest } from '../adapter.js'
import { dataUrl, exchanges, imagesTitle, resultText } from '../exchanges.js'
import { listOf, objectOf, textOf } from '../json-reader.js'
import { isReasoningModel } from '../known-models.js'
import { buildChatTurn, OPENAI_CHAT_FORMAT, readChatUsage } from './chat-answer.js'
import { OpenAiChatStream } from './chat-stream.js'
import { embeddedError, protocolError, withUsage, type WireContext } from '../provider-errors.js'
import {
  openAiFormat, takesOpenAiFormat, withFormat, withoutResultTool,
} from '../result-format.js'
import { refusedByOpenAi } from '../settings.js'
import { ToolNames } from '../tool-names.js'
import { isStrictSchema, openAiSchema } from '../tool-schemas.js'
import { WireIds } from '../wire-ids.js'

/** Options of this format besides the common ones: what differs between compatible servers. */
export interface OpenAiChatOptions extends WireOptions {
  /** Ask for token counts in streams; a few servers refuse this. @defaultValue true */
  readonly streamUsage?: boolean | undefined
  /** Mark tools as `strict` if their schema allows it. @defaultValue false */
  readonly strictTools?: boolean | undefined
  /** Force a tool by its name; a few servers only support `required`. @defaultValue true */
  readonly namedToolChoice?: boolean | undefined
  /**
   * Hold the model to the schema of a result by `response_format`, where it would be made to call
   * a tool otherwise. @defaultValue true for models of OpenAI that take it
   */
  readonly resultFormat?: boolean | undefined
  /** Limits the answer. @defaultValue `max_completion_tokens` for reasoning models */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined
}

const OPTIONS: OptionKinds<Omit<OpenAiChatOptions, keyof WireOptions>> = {
  streamUsage: 'boolean', strictTools: 'boolean', namedToolChoice: 'boolean',
  maxTokensField: 'string', resultFormat: 'boolean',
}

/** Creates the adapter for OpenAI or for a compatible server. */
export function openAiChatAdapter(
  quirks: Omit<OpenAiChatOptions, keyof WireOptions> = {},
): ModelAdapter {
  checkOptions(quirks, OPTIONS, 'openAiChatAdapter()')
  return {
    provider: 'openai',
    defaultBaseUrl: 'https://api.openai.com/v1',
    prices: knownPrices,
    refusedSetting: refusedByOpenAi,
    authHeaders: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
    encode: (request, options) => encodeOpenAiChatRequest(request, { ...quirks, ...options }),
    decode: decodeOpenAiChatResponse,
    decodeStream: (request, context) => new OpenAiChatStream(request, context),
  }
}

/** Encodes the request for one turn. */
export function encodeOpenAiChatRequest(
  request: ModelRequest,
  options: OpenAiChatOptions,
): WireRequest {
  const { resultFormat: isHeld = takesOpenAiFormat(options.model) } = options
  if (request.result === undefined || !isHeld) return encodeTurn(request, options)
  const json_schema = openAiFormat(request.result.schema as JsonObject)
  const wire = encodeTurn(withoutResultTool(request), options)
  return withFormat(wire, 'response_format', { type: 'json_schema', json_schema })
}

function encodeTurn(request: ModelRequest, options: OpenAiChatOptions): WireRequest {
  const names = new ToolNames(request)
  const reasons = isReasoningModel(options.model)
  const limitField = options.maxTokensField ?? (reasons ? 'max_completion_tokens' : 'max_tokens')
  const { maxOutputTokens, temperature, reasoningEffort, stream } = options
  const body: JsonObject = {
    model: options.model,
    messages: encodeMessages(request, names),
    ...(request.tools.length > 0 && {
      tools: encodeTools(request.tools, names, options.strictTools),
      tool_choice: encodeToolChoice(request.toolChoice, names, options.namedToolChoice),
    }),
    ...(maxOutputTokens !== undefined && { [limitField]: maxOutputTokens }),
    ...(temperature !== undefined && !reasons && { temperature }),
    ...(reasoningEffort !== undefined && { reasoning_effort: reasoningEffort }),
    stream,
    ...(stream && options.streamUsage !== false && { stream_options: { include_usage: true } }),
    ...options.extraBody,
  }
  return { path: '/chat/completions', params: {}, headers: {}, body }
}

function encodeToolChoice(
  choice: ToolChoice = 'auto',
  names: ToolNames,
  named = true,
): JsonValue {
  if (typeof choice === 'string') return choice
  if (!named) return 'required'
  return { type: 'function', function: { name: names.toWire(choice.tool) } }
}

function encodeTools(
  tools: readonly ToolSpec[],
  names: ToolNames,
  strictTools?: boolean,
): JsonObject[] {
  return tools.map(({ name, description, parameters }) => ({
    type: 'function',
    function: {
      name: names.toWire(name),
      ...openAiSchema(description, parameters),
      ...(strictTools === true && isStrictSchema(parameters) && { strict: true }),
    },
  }))
}

function encodeMessages(request: ModelRequest, names: ToolNames): JsonObject[] {
  const list: JsonObject[] =
    request.system === '' ? [] : [{ role: 'system', content: request.system }]
  const ids = new WireIds()
  for (const exchange of exchanges(request.messages)) {
    if (exchange.kind === 'user') {
      list.push({ role: 'user', content: encodeUser(exchange.text, exchange.images) })
      continue
    }
    const { message, results } = exchange
    const own = ownParts(message)
    const calls = encodeCalls(message, own, names, ids)
    list.push(encodeAssistant(message, own, calls))
    results.forEach((result, i) => {
      list.push({
        role: 'tool',
        tool_call_id: textOf(calls[i]!['id']),
        content: resultText(result),
      })
    })
    // The result of a call is text alone.
    const seen = results.flatMap((result) => encodeImages(imagesTitle(result), result.images))
    if (seen.length > 0) list.push({ role: 'user', content: seen })
  }
  return list
}

function encodeUser(text: string, images: readonly ImagePart[]): JsonValue {
  return images.length === 0 ? text : encodeImages(text, images)
}

/** Nothing without images. */
function encodeImages(text: string, images: readonly ImagePart[] = []): JsonObject[] {
  const parts = images.map((image): JsonObject => ({
    type: 'image_url', image_url: { url: dataUrl(image) },
  }))
  return images.length === 0 || text.trim() === '' ? parts : [{ type: 'text', text }, ...parts]
}

/** The provider's own message if this format made it, else an empty object. */
function ownParts(message: AssistantMessage): JsonObject {
  return message.parts?.format === OPENAI_CHAT_FORMAT ? objectOf(message.parts.value) : {}
}

/** Fields of an assistant message that some servers require back unchanged. */
const ECHOED_FIELDS = ['reasoning_details', 'thinking_blocks', 'extra_content']

function encodeAssistant(
  message: AssistantMessage,
  own: JsonObject,
  calls: readonly JsonObject[],
): JsonObject {
  const echoed: Record<string, JsonValue> = {}
  for (const field of ECHOED_FIELDS) if (isPresent(own[field])) echoed[field] = own[field]!
  for (const field of reasoningFields(own, calls.length > 0))
    if (isPresent(own[field])) echoed[field] = own[field]!
  const content = Array.isArray(own['content']) ? own['content'] : message.text
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...echoed,
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

/**
 * The fields that have the reasoning as text, under the names under which it came: the second one
 * from vLLM, Ollama, Groq and others. DeepSeek requires it back with tool calls and refuses it
 * everywhere else; with OpenRouter's details it would be sent twice.
 */
function reasoningFields(own: JsonObject, hasCalls: boolean): readonly string[] {
  if (!hasCalls) return []
  return isPresent(own['reasoning_details'])
    ? ['reasoning_content']
    : ['reasoning_content', 'reasoning']
}

function isPresent(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== ''
}

function encodeCalls(
  message: AssistantMessage,
  own: JsonObject,
  names: ToolNames,
  ids: WireIds,
): JsonObject[] {
  const wire = listOf(own['tool_calls'])
  return message.calls.map((call, i) => {
    const { id: given, index: _, function: raw, ...rest } = objectOf(wire[i])
    const text = textOf(objectOf(raw)['arguments'])
    // Invalid arguments are sent back as an empty object, since some servers fail to parse them.
    const usable = call.error === undefined && text.trimStart().startsWith('{')
    return {
      ...rest,
      id: ids.take(textOf(given), call.call_id),
      type: 'function',
      function: {
        name: names.toWire(call.tool),
        arguments: usable ? text : JSON.stringify(call.args),
      },
    }
  })
}

function missingChoice(answer: JsonObject, context: WireContext): ModelError {
  // MiniMax reports errors in its own field, beside null choices.
  const { status_code: code, status_msg: message } = objectOf(answer['base_resp'])
  if (typeof code === 'number' && code !== 0) {
    return embeddedError({ error: { message: textOf(message), code: String(code) } }, context)
  }
  if (Array.isArray(answer['choices'])) {
    const error = protocolError('the answer has no choices', true, context)
    return withUsage(error, readChatUsage(objectOf(answer['usage'])))
  }
  const where = 'is the base URL that of a Chat Completions interface?'
  return protocolError(`the answer has no choices[0].message; ${where}`, false, context)
}

/** Decodes an answer that was not streamed. */
export function decodeOpenAiChatResponse(
  body: unknown,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  const answer = objectOf(body)
  if (isPresent(answer['error'])) throw embeddedError(answer, context)
  const choice = objectOf(listOf(answer['choices'])[0])
  const finishReason = textOf(choice['finish_reason'])
  if (!isJsonObject(choice['message']) && finishReason === '') {
    if (isPresent(choice['error'])) throw embeddedError(choice, context)
    throw missingChoice(answer, context)
  }
  return buildChatTurn(
    objectOf(choice['message']),
    finishReason,
    objectOf(answer['usage'] ?? choice['usage']),
    request,
    context,
  )
}
