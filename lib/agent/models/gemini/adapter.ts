/**
 * Requests of Gemini's `generateContent` API, and its answers that are not streamed.
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
  ReasoningEffort,
  ToolChoice,
  ToolMessage,
  ToolSpec,
} from '../../model.js'
import { knownPrices } from '../pricing.js'
import type { ModelAdapter, WireOptions, WireRequest } from '../adapter.js'
import { exchanges, imagesTitle, resultText } from '../exchanges.js'
import { buildGeminiTurn, GEMINI_FORMAT } from './answer.js'
import { GeminiStream } from './stream.js'
import { listOf, objectOf, textOf } from '../json-reader.js'
import { bareName } from '../known-models.js'
import { embeddedError, type WireContext } from '../provider-errors.js'
import { geminiFormat, takesGeminiFormat, withFormat } from '../result-format.js'
import { geminiThinking, refusedByGemini } from '../settings.js'
import { ToolNames } from '../tool-names.js'
import { geminiSchema } from '../tool-schemas.js'
import { WireIds } from '../wire-ids.js'

/** Options of this format besides the common ones. */
export interface GeminiOptions extends WireOptions {
  /** Ask for thought summaries; models that do not think refuse this. @defaultValue false */
  readonly includeThoughts?: boolean | undefined
  /** Tokens that the model may spend on thinking. */
  readonly thinkingBudget?: number | undefined
}

const OPTIONS: OptionKinds<Omit<GeminiOptions, keyof WireOptions>> = {
  includeThoughts: 'boolean', thinkingBudget: 'number',
}

/** Creates the adapter for the Gemini API. */
export function geminiAdapter(
  choices: Pick<GeminiOptions, 'includeThoughts' | 'thinkingBudget'> = {},
): ModelAdapter {
  checkOptions(choices, OPTIONS, 'geminiAdapter()')
  return {
    provider: 'gemini',
    defaultBaseUrl: 'https://generativelanguage.googleapis.com',
    prices: knownPrices,
    refusedSetting: refusedByGemini,
    authHeaders: (apiKey) => ({ 'x-goog-api-key': apiKey }),
    encode: (request, options) => encodeGeminiRequest(request, { ...choices, ...options }),
    decode: decodeGeminiResponse,
    decodeStream: (request, context) => new GeminiStream(request, context),
  }
}

/** Encodes the request for one turn. */
export function encodeGeminiRequest(request: ModelRequest, options: GeminiOptions): WireRequest {
  const { result } = request
  if (result === undefined || !takesGeminiFormat(options.model)) return encodeCall(request, options)
  const format = geminiFormat(result.schema as JsonObject)
  return withFormat(encodeCall({ ...request, tools: [] }, options), 'generationConfig', format)
}

function encodeCall(request: ModelRequest, options: GeminiOptions): WireRequest {
  const names = new ToolNames(request)
  const config = generationConfig(options, request.settings?.reasoning_effort)
  const body: JsonObject = {
    ...(request.system !== '' && { systemInstruction: { parts: [{ text: request.system }] } }),
    contents: encodeContents(request, names, options.model),
    ...(request.tools.length > 0 && {
      tools: [{ functionDeclarations: request.tools.map((tool) => encodeTool(tool, names)) }],
      toolConfig: { functionCallingConfig: encodeToolChoice(request.toolChoice, names) },
    }),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
    ...options.extraBody,
  }
  const model = options.model.includes('/') ? options.model : `models/${options.model}`
  const method = options.stream ? 'streamGenerateContent' : 'generateContent'
  const params: Record<string, string> = options.stream ? { alt: 'sse' } : {}
  return { path: `/v1beta/${model}:${method}`, params, headers: {}, body }
}

function encodeToolChoice(choice: ToolChoice = 'auto', names: ToolNames): JsonObject {
  if (typeof choice !== 'string')
    return { mode: 'ANY', allowedFunctionNames: [names.toWire(choice.tool)] }
  return { mode: choice === 'required' ? 'ANY' : choice.toUpperCase() }
}

/** `effort`: of the run, in place of what the host has set; the API refuses budget and level. */
function generationConfig(options: GeminiOptions, effort?: ReasoningEffort): JsonObject {
  const { maxOutputTokens, temperature, reasoningEffort, includeThoughts, thinkingBudget } = options
  const thinking: JsonObject = {
    ...(includeThoughts === true && { includeThoughts: true }),
    ...(effort !== undefined
      ? geminiThinking(effort, options.model)
      : {
          ...(thinkingBudget !== undefined && { thinkingBudget }),
          ...(reasoningEffort !== undefined && { thinkingLevel: reasoningEffort }),
        }),
  }
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(Object.keys(thinking).length > 0 && { thinkingConfig: thinking }),
  }
}

/** A function without parameters has no schema, because the API refuses an empty one. */
function encodeTool({ name, description, parameters }: ToolSpec, names: ToolNames): JsonObject {
  const { type: _, additionalProperties: __, properties = {}, ...rules } = parameters
  const hasParameters = Object.keys(properties).length + Object.keys(rules).length > 0
  return {
    name: names.toWire(name),
    description,
    ...(hasParameters && { parametersJsonSchema: geminiSchema(parameters) }),
  }
}

/**
 * The message after a turn with calls must hold exactly one result per call and nothing else; user
 * text goes into the message after it.
 */
function encodeContents(request: ModelRequest, names: ToolNames, model: string): JsonObject[] {
  const list: JsonObject[] = []
  const ids = new WireIds()
  for (const exchange of exchanges(request.messages)) {
    if (exchange.kind === 'user')
      list.push({ role: 'user', parts: encodeUser(exchange.text, exchange.images) })
    else {
      if (list.length === 0) list.push({ role: 'user', parts: [{ text: BEGINNING }] })
      const parts = encodeTurn(exchange.message, names, model, ids)
      list.push({ role: 'model', parts })
      const { results } = exchange
      if (results.length === 0) continue
      const holdsImages = resultsHoldImages(model)
      list.push({ role: 'user', parts: encodeResults(results, parts, holdsImages) })
      const seen = holdsImages ? [] : results.filter(({ images = [] }) => images.length > 0)
      const after = seen.flatMap((result) => encodeUser(imagesTitle(result), result.images))
      if (after.length > 0) list.push({ role: 'user', parts: after })
    }
  }
  return list
}

/** Since Gemini 3, the result of a call can hold images; before, they come after the results. */
function resultsHoldImages(model: string): boolean {
  return /^gemini-[3-9]/.test(bareName(model))
}

/** The text comes last, as the API advises. */
function encodeUser(text: string, images: readonly ImagePart[] = []): JsonObject[] {
  return [...images.map(imagePart), ...(text.trim() === '' ? [] : [{ text }])]
}

/** The API refuses GIF. */
function imagePart({ data, media_type }: ImagePart): JsonObject {
  if (media_type === 'image/gif') return { text: '[a GIF image, which this model does not take]' }
  return { inlineData: { mimeType: media_type, data } }
}

const BEGINNING = '(The beginning of this conversation was left out.)'

/** Replaces the signature of a call that another model made; Gemini 3 requires one. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

function encodeTurn(
  message: AssistantMessage,
  names: ToolNames,
  model: string,
  ids: WireIds,
): JsonObject[] {
  if (message.parts?.format === GEMINI_FORMAT) {
    const own = listOf(message.parts.value).map(objectOf)
    // Parts with signatures are sent back unchanged; unsigned thought summaries are dropped.
    const kept = own.filter(
      (part) => part['thought'] !== true || part['thoughtSignature'] !== undefined,
    )
    if (kept.length > 0) return withIds(kept, message, ids)
  }
  const signed = /^gemini-[3-9]/.test(bareName(model))
  const calls = message.calls.map((call, i): JsonObject => ({
    functionCall: { name: names.toWire(call.tool), args: call.args },
    ...(signed && i === 0 && { thoughtSignature: NO_SIGNATURE }),
  }))
  return [...(message.text === '' ? [] : [{ text: message.text }]), ...calls]
}

/** A call that came without an id goes back without one. */
function withIds(
  parts: readonly JsonObject[],
  message: AssistantMessage,
  ids: WireIds,
): JsonObject[] {
  let call = 0
  return parts.map((part) => {
    const { functionCall } = part
    if (!isJsonObject(functionCall)) return part
    const ours = message.calls[call++]?.call_id ?? ''
    const own = textOf(functionCall['id'])
    if (own === '') return part
    return { ...part, functionCall: { ...functionCall, id: ids.take(own, ours) } }
  })
}

/** The API matches results to calls by position, name, and the call's id if it has one. */
function encodeResults(
  results: readonly ToolMessage[],
  turn: readonly JsonObject[],
  holdsImages: boolean,
): JsonObject[] {
  const calls = turn.map((part) => part['functionCall']).filter(isJsonObject)
  return results.map((result, i) => {
    const { name, id } = calls[i] ?? {}
    const text = resultText(result)
    const response: JsonObject = result.exit_code === 0 ? { output: text } : { error: text }
    const seen = holdsImages ? (result.images ?? []) : []
    const parts = seen.map(imagePart).filter((part) => isJsonObject(part['inlineData']))
    return {
      functionResponse: {
        ...(textOf(id) !== '' && { id: id as JsonValue }),
        name: textOf(name) || result.tool,
        response,
        ...(parts.length > 0 && { parts }),
      },
    }
  })
}

/** Decodes an answer that was not streamed. */
export function decodeGeminiResponse(
  body: unknown,
  request: ModelRequest,
  context: WireContext,
): ModelTurn {
  // Without `alt=sse` a stream is a JSON array of its chunks.
  if (Array.isArray(body)) {
    const stream = new GeminiStream(request, context)
    for (const chunk of listOf(body)) stream.add(objectOf(chunk))
    return stream.finish()
  }
  const answer = objectOf(body)
  if (isJsonObject(answer['error'])) throw embeddedError(answer, context)
  const candidate = objectOf(listOf(answer['candidates'])[0])
  return buildGeminiTurn(
    {
      parts: listOf(objectOf(candidate['content'])['parts']).map(objectOf),
      finishReason: textOf(candidate['finishReason']),
      finishMessage: textOf(candidate['finishMessage']),
      blockReason: textOf(objectOf(answer['promptFeedback'])['blockReason']),
      hasCandidate: listOf(answer['candidates']).length > 0,
      usage: objectOf(answer['usageMetadata']),
    },
    request,
    context,
  )
}
