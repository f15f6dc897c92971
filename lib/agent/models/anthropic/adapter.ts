/**
 * Requests of Anthropic's Messages API, and its answers that are not streamed.
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
  ToolMessage,
} from '../../model.js'
import type { ModelPrices } from '../../usage.js'
import { knownPrices } from '../pricing.js'
import type { ModelAdapter, WireOptions, WireRequest } from '../adapter.js'
import { ANTHROPIC_FORMAT, buildAnthropicTurn } from './answer.js'
import { AnthropicStream } from './stream.js'
import { exchanges, imagesTitle, resultText } from '../exchanges.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import {
  knownOutputLimit, refusesForcedCalls, refusesTemperature, thinksAdaptively,
} from '../known-models.js'
import { embeddedError, protocolError, type WireContext } from '../provider-errors.js'
import { anthropicFormat, withFormat, withoutResultTool } from '../result-format.js'
import { refusedByAnthropic } from '../settings.js'
import { ToolNames } from '../tool-names.js'
import { anthropicSchema } from '../tool-schemas.js'
import { WireIds } from '../wire-ids.js'

/** Options of this format besides the common ones. */
export interface AnthropicOptions extends WireOptions {
  /**
   * Mark the end of the system prompt and of the conversation for the provider's prompt cache. Each
   * call then pays the full price only for new input, plus a quarter for writing it to the cache.
   *
   * @defaultValue true
   */
  readonly promptCaching?: boolean | undefined
  /**
   * Tokens that the model may spend on thinking, at least 1024; without it, the model does not
   * think. Since Claude 4.6 models choose the amount, guided by `reasoningEffort`: any number here
   * switches thinking on.
   */
  readonly thinkingBudget?: number | undefined
}

const OPTIONS: OptionKinds<Omit<AnthropicOptions, keyof WireOptions>> = {
  promptCaching: 'boolean', thinkingBudget: 'number',
}

/** Creates the adapter for Anthropic and for servers that are compatible with its Messages API. */
export function anthropicAdapter(
  choices: Pick<AnthropicOptions, 'promptCaching' | 'thinkingBudget'> = {},
): ModelAdapter {
  checkOptions(choices, OPTIONS, 'anthropicAdapter()')
  return {
    provider: 'anthropic',
    defaultBaseUrl: 'https://api.anthropic.com',
    prices: (model) =>
      choices.promptCaching === false ? knownPrices(model) : withCacheWrites(knownPrices(model)),
    refusedSetting: refusedByAnthropic,
    authHeaders: (apiKey) => ({ 'x-api-key': apiKey }),
    encode: (request, options) => encodeAnthropicRequest(request, { ...choices, ...options }),
    decode: decodeAnthropicResponse,
    decodeStream: (request, context) => new AnthropicStream(request, context),
  }
}

/** Input that is not read from the cache is written to it, which costs a quarter more. */
function withCacheWrites(prices: ModelPrices | null): ModelPrices | null {
  return prices === null ? null : { ...prices, input: prices.input * 1.25 }
}

/** Encodes the request for one turn. */
export function encodeAnthropicRequest(
  request: ModelRequest,
  options: AnthropicOptions,
): WireRequest {
  const { result } = request
  const format = result && anthropicFormat(result.schema as JsonObject, options.model)
  if (format != null)
    return withFormat(encodeTurn(withoutResultTool(request), options), 'output_config', { format })
  return encodeTurn(refusesForcedCalls(options.model) ? unforced(request) : request, options)
}

/** The nearest to a forced call that a model accepts which refuses those: one tool, or none. */
function unforced(request: ModelRequest): ModelRequest {
  const { toolChoice, tools } = request
  if (toolChoice === 'required') return { ...request, toolChoice: 'auto' }
  if (typeof toolChoice !== 'object') return request
  const named = tools.filter(({ name }) => name === toolChoice.tool)
  return { ...request, toolChoice: 'auto', tools: named }
}

function encodeTurn(request: ModelRequest, options: AnthropicOptions): WireRequest {
  const names = new ToolNames(request)
  const caching = options.promptCaching !== false
  const { temperature } = options
  const toolChoice = encodeToolChoice(request.toolChoice, names)
  // The API refuses a forced tool call together with thinking.
  const forced = toolChoice['type'] === 'any' || toolChoice['type'] === 'tool'
  const thinking = forced ? null : encodeThinking(options)
  const budget = countOf(thinking?.['budget_tokens'])
  const answer = options.maxOutputTokens ?? knownOutputLimit(options.model)
  const tools = request.tools.map((tool) => {
    const { description, parameters } = anthropicSchema(tool.description, tool.parameters)
    return { name: names.toWire(tool.name), description, input_schema: parameters }
  })
  const body: JsonObject = {
    model: options.model,
    max_tokens: budget === 0 ? answer : Math.max(answer, budget + 1024),
    ...(request.system !== '' && { system: encodeSystem(request.system, caching) }),
    messages: encodeMessages(request, names, caching),
    ...(tools.length > 0 && { tools, tool_choice: toolChoice }),
    ...(thinking !== null && { thinking }),
    ...encodeEffort(options),
    // The API refuses a temperature together with thinking.
    ...(temperature !== undefined &&
      thinking === null &&
      !refusesTemperature(options.model) && { temperature }),
    stream: options.stream,
    ...options.extraBody,
  }
  return { path: '/v1/messages', params: {}, headers: { 'anthropic-version': '2023-06-01' }, body }
}

function encodeToolChoice(choice: ToolChoice = 'auto', names: ToolNames): JsonObject {
  if (typeof choice !== 'string') return { type: 'tool', name: names.toWire(choice.tool) }
  return { type: choice === 'required' ? 'any' : choice }
}

function encodeThinking({
  model,
  thinkingBudget,
  reasoningEffort,
}: AnthropicOptions): JsonObject | null {
  if (thinksAdaptively(model)) {
    const thinks = thinkingBudget !== undefined || reasoningEffort !== undefined
    return thinks ? { type: 'adaptive' } : null
  }
  return thinkingBudget === undefined ? null : { type: 'enabled', budget_tokens: thinkingBudget }
}

function encodeEffort({ model, reasoningEffort }: AnthropicOptions): JsonObject {
  const applies = reasoningEffort !== undefined && thinksAdaptively(model)
  return applies ? { output_config: { effort: reasoningEffort } } : {}
}

const CACHED: JsonObject = { type: 'ephemeral' }

function encodeSystem(system: string, caching: boolean): JsonValue {
  return caching ? [{ type: 'text', text: system, cache_control: CACHED }] : system
}

interface WireMessage {
  readonly role: 'user' | 'assistant'
  readonly content: JsonObject[]
}

/** Roles must alternate, and the user's message must come first and last. */
function encodeMessages(request: ModelRequest, names: ToolNames, caching: boolean): JsonObject[] {
  const list: WireMessage[] = []
  const ids = new WireIds()
  const add = (role: WireMessage['role'], blocks: readonly JsonObject[]): void => {
    const last = list.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else if (blocks.length > 0) list.push({ role, content: [...blocks] })
  }
  for (const exchange of exchanges(request.messages)) {
    if (exchange.kind === 'user') {
      add('user', [...exchange.images.map(imageBlock), ...textBlocks(exchange.text)])
    } else {
      if (list.length === 0) add('user', CONTINUED)
      const blocks = assistantBlocks(exchange.message, names, ids)
      add('assistant', blocks)
      add('user', resultBlocks(exchange.results, blocks))
      // An error is text alone.
      const failed = exchange.results.filter(({ exit_code }) => exit_code !== 0)
      add('user', failed.flatMap((result) => titledImages(result)))
    }
  }
  if (list.at(-1)?.role !== 'user') add('user', list.length === 0 ? BEGIN : CONTINUE)
  const last = list.at(-1)!.content
  if (caching) last[last.length - 1] = { ...last.at(-1)!, cache_control: CACHED }
  return list.map(({ role, content }) => ({ role, content }))
}

const CONTINUED = textBlocks('(The beginning of this conversation was left out.)')
const CONTINUE = textBlocks('Go on.')
const BEGIN = textBlocks('Begin.')

/** The API refuses empty text blocks. */
function textBlocks(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }]
}

/** A turn of this format is sent back unchanged, with its signatures; any other is rebuilt. */
function assistantBlocks(
  message: AssistantMessage,
  names: ToolNames,
  ids: WireIds,
): JsonObject[] {
  if (message.parts?.format === ANTHROPIC_FORMAT) {
    let call = 0
    return listOf(message.parts.value)
      .map(objectOf)
      .filter(isAcceptable)
      .map((block) => {
        if (block['type'] !== 'tool_use') return block
        const id = ids.take(textOf(block['id']), message.calls[call++]?.call_id ?? '')
        return { ...block, id }
      })
  }
  const calls = message.calls.map((call) => ({
    type: 'tool_use',
    id: ids.take('', call.call_id),
    name: names.toWire(call.tool),
    input: call.args,
  }))
  return [...textBlocks(message.text), ...calls]
}

/** The API refuses empty text, and thinking that was cut off before its signature. */
function isAcceptable(block: JsonObject): boolean {
  if (block['type'] === 'text') return textOf(block['text']).trim() !== ''
  return block['type'] !== 'thinking' || textOf(block['signature']) !== ''
}

function imageBlock({ data, media_type }: ImagePart): JsonObject {
  return { type: 'image', source: { type: 'base64', media_type, data } }
}

function titledImages(result: ToolMessage): JsonObject[] {
  const { images = [] } = result
  return images.length === 0
    ? []
    : [...textBlocks(imagesTitle(result)), ...images.map(imageBlock)]
}

function resultContent(result: ToolMessage): JsonValue {
  const { exit_code, images = [] } = result
  const text = resultText(result)
  if (images.length === 0 || exit_code !== 0) return text
  return [...textBlocks(text), ...images.map(imageBlock)]
}

/** Results must come in one message, before any text; `encodeMessages` merges them. */
function resultBlocks(results: readonly ToolMessage[], turn: readonly JsonObject[]): JsonObject[] {
  const ids = turn
    .filter((block) => block['type'] === 'tool_use')
    .map((block) => textOf(block['id']))
  return results.map((result, i) => ({
    type: 'tool_result',
    tool_use_id: ids[i] ?? result.call_id,
    content: resultContent(result),
    ...(result.exit_code !== 0 && { is_error: true }),
  }))
}

/** Decodes an answer that was not streamed. */
export function decodeAnthropicResponse(
  body: unknown,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  const answer = objectOf(body)
  if (answer['type'] === 'error' || isJsonObject(answer['error']))
    throw embeddedError(answer, context)
  if (!Array.isArray(answer['content'])) {
    throw protocolError(
      'the answer has no content; is the base URL that of a Messages interface?',
      false,
      context,
    )
  }
  const calls = listOf(answer['content'])
    .map(objectOf)
    .filter((block) => block['type'] === 'tool_use')
    .map((block) => block['input'])
  return buildAnthropicTurn(
    {
      content: listOf(answer['content']).map(objectOf),
      inputs: calls,
      stopReason: textOf(answer['stop_reason']),
      stopDetails: objectOf(answer['stop_details']),
      usage: objectOf(answer['usage']),
    },
    request,
  )
}
