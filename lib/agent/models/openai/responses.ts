/**
 * Requests of OpenAI's Responses API. Each call sends the whole conversation; the server stores
 * nothing.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import type {
  AssistantMessage, ImagePart, ModelRequest, ModelTurn, ToolChoice, ToolMessage, ToolSpec,
} from '../../model.js'
import type { CallUsage } from '../../usage.js'
import type { ModelAdapter, StreamDecoder, WireOptions, WireRequest } from '../adapter.js'
import { dataUrl, exchanges, resultText } from '../exchanges.js'
import { listOf, objectOf, textOf } from '../json-reader.js'
import { isReasoningModel } from '../known-models.js'
import { knownPrices } from '../pricing.js'
import { embeddedError, readPiece, unfinishedStream, type WireContext } from '../provider-errors.js'
import { openAiFormat, takesOpenAiFormat, withFormat, withoutResultTool } from '../result-format.js'
import { refusedByOpenAi } from '../settings.js'
import { ToolNames } from '../tool-names.js'
import { isStrictSchema, openAiSchema } from '../tool-schemas.js'
import { WireIds } from '../wire-ids.js'
import {
  buildResponsesTurn, isCall, OPENAI_RESPONSES_FORMAT, readResponsesUsage,
} from './responses-answer.js'

/** Options of this format besides the common ones. */
export interface OpenAiResponsesOptions extends WireOptions {
  /** Mark tools as `strict` if their schema allows it. @defaultValue true */
  readonly strictTools?: boolean | undefined
}

const OPTIONS: OptionKinds<Pick<OpenAiResponsesOptions, 'strictTools'>> = {
  strictTools: 'boolean',
}

/** Creates the adapter for OpenAI and for servers that are compatible with its Responses API. */
export function openAiResponsesAdapter(
  choices: Pick<OpenAiResponsesOptions, 'strictTools'> = {},
): ModelAdapter {
  checkOptions(choices, OPTIONS, 'openAiResponsesAdapter()')
  return {
    provider: 'openai-responses',
    defaultBaseUrl: 'https://api.openai.com/v1',
    prices: knownPrices,
    refusedSetting: refusedByOpenAi,
    authHeaders: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
    encode: (request, options) => encodeOpenAiResponsesRequest(request, { ...choices, ...options }),
    decode: decodeOpenAiResponsesResponse,
    decodeStream: (request, context) => new OpenAiResponsesStream(request, context),
  }
}

/** Encodes the request for one turn. */
function encodeOpenAiResponsesRequest(
  request: ModelRequest,
  options: OpenAiResponsesOptions,
): WireRequest {
  const isHeld = takesOpenAiFormat(options.model)
  if (request.result === undefined || !isHeld) return encodeRequest(request, options)
  const format = { type: 'json_schema', ...openAiFormat(request.result.schema as JsonObject) }
  return withFormat(encodeRequest(withoutResultTool(request), options), 'text', { format })
}

function encodeRequest(request: ModelRequest, options: OpenAiResponsesOptions): WireRequest {
  const names = new ToolNames(request)
  const reasons = isReasoningModel(options.model)
  const { maxOutputTokens, temperature, reasoningEffort } = options
  const body: JsonObject = {
    model: options.model,
    ...(request.system !== '' && { instructions: request.system }),
    input: encodeInput(request, names),
    ...(request.tools.length > 0 && {
      tools: encodeTools(request.tools, names, options.strictTools !== false),
      tool_choice: encodeToolChoice(request.toolChoice, names),
    }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(temperature !== undefined && !reasons && { temperature }),
    ...(reasoningEffort !== undefined && { reasoning: { effort: reasoningEffort } }),
    store: false,
    // Encrypted reasoning is sent back with its calls; models that do not reason refuse this field.
    ...(reasons && { include: ['reasoning.encrypted_content'] }),
    stream: options.stream,
    ...options.extraBody,
  }
  return { path: '/responses', params: {}, headers: {}, body }
}

function encodeToolChoice(choice: ToolChoice = 'auto', names: ToolNames): JsonValue {
  return typeof choice === 'string' ? choice : { type: 'function', name: names.toWire(choice.tool) }
}

/** `strict` is always set: the server's default is true, and it would rewrite the schema. */
function encodeTools(
  tools: readonly ToolSpec[],
  names: ToolNames,
  strictTools: boolean,
): JsonObject[] {
  return tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name: names.toWire(name),
    ...openAiSchema(description, parameters),
    strict: strictTools && isStrictSchema(parameters),
  }))
}

function encodeInput(request: ModelRequest, names: ToolNames): JsonObject[] {
  const list: JsonObject[] = []
  const ids = new WireIds()
  for (const exchange of exchanges(request.messages)) {
    if (exchange.kind === 'user') {
      list.push({ role: 'user', content: encodeContent(exchange.text, exchange.images) })
    } else {
      const items = encodeTurn(exchange.message, names, ids)
      list.push(...items, ...encodeResults(exchange.results, items))
    }
  }
  return list
}

/** The items of a turn of this format are sent back unchanged; any other turn is rebuilt. */
function encodeTurn(message: AssistantMessage, names: ToolNames, ids: WireIds): JsonObject[] {
  if (message.parts?.format !== OPENAI_RESPONSES_FORMAT) return rebuild(message, names, ids)
  const own = listOf(message.parts.value).map(objectOf)
  const kept = own.filter(
    (item, i) => item['type'] !== 'reasoning' || isUsableReasoning(item, own[i + 1]),
  )
  let call = 0
  return kept.map((item) => {
    // An item whose reasoning was dropped must not have the id by which the server links the two.
    const { id, ...rest } = item
    const echoed: JsonObject = kept.length === own.length ? item : rest
    if (!isCall(item)) return echoed
    const made = message.calls[call++]
    const call_id = ids.take(textOf(item['call_id']), made?.call_id ?? '')
    if (made?.error === undefined || item['type'] !== 'function_call') return { ...echoed, call_id }
    const { status: _, ...whole } = echoed
    return { ...whole, call_id, arguments: '{}' }
  })
}

/** Reasoning is accepted only if it is encrypted and followed by the item that it led to. */
function isUsableReasoning(item: JsonObject, next: JsonObject | undefined): boolean {
  return textOf(item['encrypted_content']) !== '' && next !== undefined
}

function rebuild(message: AssistantMessage, names: ToolNames, ids: WireIds): JsonObject[] {
  const text: JsonObject[] =
    message.text === '' ? [] : [{ role: 'assistant', content: message.text }]
  const calls = message.calls.map((call) => ({
    type: 'function_call',
    call_id: ids.take('', call.call_id),
    name: names.toWire(call.tool),
    arguments: JSON.stringify(call.args),
  }))
  return [...text, ...calls]
}

/** Results refer to the call's `call_id`, not to the `id` of its item. */
function encodeResults(
  results: readonly ToolMessage[],
  items: readonly JsonObject[],
): JsonObject[] {
  const calls = items.filter(isCall)
  return results.map((result, i) => ({
    type: `${textOf(calls[i]?.['type'])}_output`,
    call_id: calls[i]?.['call_id'] ?? result.call_id,
    output: encodeContent(resultText(result), result.images),
  }))
}

function encodeContent(text: string, images: readonly ImagePart[] = []): string | JsonObject[] {
  if (images.length === 0) return text
  const parts = images.map((image): JsonObject => ({
    type: 'input_image', detail: 'auto', image_url: dataUrl(image),
  }))
  return text.trim() === '' ? parts : [{ type: 'input_text', text }, ...parts]
}

/** Decodes an answer that was not streamed. */
function decodeOpenAiResponsesResponse(
  body: unknown,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  return buildResponsesTurn(objectOf(body), request, context)
}

/**
 * Reads a streamed Responses answer. Its last event holds the complete response; the items streamed
 * before are used if a server leaves its `output` empty.
 */
export class OpenAiResponsesStream implements StreamDecoder {
  readonly #request: ModelRequest
  readonly #context: WireContext
  readonly #items = new Map<number, JsonObject>()
  #final: JsonObject | null = null
  #received = 0

  constructor(request: ModelRequest, context: WireContext) {
    this.#request = request
    this.#context = context
  }

  get done(): boolean {
    return this.#final !== null
  }

  push({ event, data }: { readonly event: string; readonly data: string }): string {
    const value = readPiece(data, this.#context)
    if (value === null) return ''
    const type = textOf(value['type']) || event
    if (type.endsWith('.delta')) this.#received += textOf(value['delta']).length
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return textOf(value['delta'])
      case 'response.output_item.done':
        this.#items.set(this.#indexOf(value['output_index']), objectOf(value['item']))
        return ''
      case 'response.completed':
      case 'response.incomplete':
      case 'response.done':
        this.#final = objectOf(value['response'])
        return ''
      case 'response.failed': {
        const failed = objectOf(value['response'])
        const error = failed['error'] ??
          value['error'] ?? { message: 'the response failed', type: 'server_error' }
        const usage = readResponsesUsage(objectOf(failed['usage']))
        throw embeddedError({ error }, this.#context, usage)
      }
      case 'error':
        throw embeddedError(value, this.#context)
      default:
        if (isJsonObject(value['error'])) throw embeddedError(value, this.#context)
        return ''
    }
  }

  get usage(): CallUsage {
    return readResponsesUsage(objectOf(this.#final?.['usage']))
  }

  get isCounted(): boolean {
    return this.#final !== null && this.usage.input_tokens > 0
  }

  get received(): number {
    return this.#received
  }

  finish(): ModelTurn {
    if (this.#final === null) throw unfinishedStream(this.#context)
    const items = [...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item)
    const output = listOf(this.#final['output']).length > 0 ? this.#final['output']! : items
    return buildResponsesTurn({ ...this.#final, output }, this.#request, this.#context)
  }

  /** Items without an index are kept in the order of their arrival. */
  #indexOf(index: JsonValue | undefined): number {
    return typeof index === 'number' ? index : this.#items.size
  }
}
