import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn } from '../../model.js'
import type { Usage } from '../../usage.js'
import type { StreamDecoder } from '../adapter.js'
import { buildGeminiTurn, readGeminiUsage } from './answer.js'
import { listOf, objectOf, textOf } from '../json-reader.js'
import { embeddedError, readPiece, unfinishedStream, type WireContext } from '../provider-errors.js'

/**
 * Assembles a streamed Gemini answer, whose chunks are responses with further parts. Only the end
 * of the stream marks the last chunk, so `done` stays false.
 */
export class GeminiStream implements StreamDecoder {
  readonly #request: ModelRequest
  readonly #context: WireContext
  /** Pieces that continue a part are added to it in place. */
  readonly #parts: Record<string, JsonValue>[] = []
  #finishReason = ''
  #finishMessage = ''
  #blockReason = ''
  #hasCandidate = false
  #usage: JsonObject = {}
  readonly done = false

  constructor(request: ModelRequest, context: WireContext) {
    this.#request = request
    this.#context = context
  }

  push({ data }: { readonly data: string }): string {
    const chunk = readPiece(data, this.#context)
    return chunk === null ? '' : this.add(chunk)
  }

  /** Takes a chunk as `push` does. */
  add(chunk: JsonObject): string {
    // Each chunk repeats the counts; the last ones count.
    if (isJsonObject(chunk['usageMetadata'])) this.#usage = chunk['usageMetadata']
    if (isJsonObject(chunk['error'])) throw embeddedError(chunk, this.#context)
    this.#blockReason ||= textOf(objectOf(chunk['promptFeedback'])['blockReason'])
    const candidate = listOf(chunk['candidates'])[0]
    if (!isJsonObject(candidate)) return ''
    this.#hasCandidate = true
    this.#finishReason = textOf(candidate['finishReason']) || this.#finishReason
    this.#finishMessage = textOf(candidate['finishMessage']) || this.#finishMessage
    let visible = ''
    for (const part of listOf(objectOf(candidate['content'])['parts']).map(objectOf)) {
      this.#addPart(part)
      if (part['thought'] !== true) visible += textOf(part['text'])
    }
    return visible
  }

  get usage(): Usage {
    return readGeminiUsage(this.#usage)
  }

  /** Each chunk has the counts so far, and the last one a finish reason. */
  get isCounted(): boolean {
    const isOver = this.#finishReason !== '' || this.#blockReason !== ''
    return isOver && this.usage.input_tokens > 0
  }

  get received(): number {
    let characters = 0
    for (const { text, functionCall } of this.#parts) {
      characters += textOf(text).length
      if (functionCall !== undefined) characters += JSON.stringify(functionCall).length
    }
    return characters
  }

  finish(): ModelTurn {
    if (this.#finishReason === '' && this.#blockReason === '')
      throw unfinishedStream(this.#context)
    return buildGeminiTurn(
      {
        parts: this.#parts,
        finishReason: this.#finishReason,
        finishMessage: this.#finishMessage,
        blockReason: this.#blockReason,
        hasCandidate: this.#hasCandidate,
        usage: this.#usage,
      },
      this.#request,
      this.#context,
    )
  }

  /**
   * Text continues the part before it, unless a signature ends that part; a call without a name
   * carries further arguments of the call before it.
   */
  #addPart(part: JsonObject): void {
    const last = this.#parts.at(-1)
    const call = part['functionCall']
    const open = last?.['functionCall']
    const continues = isJsonObject(call) && textOf(call['name']) === ''
    if (last !== undefined && continues && isJsonObject(open)) {
      const args = isJsonObject(open['args']) ? open['args'] : {}
      const more = Object.entries(call).filter(([key]) => !Object.hasOwn(open, key))
      Object.assign(args, call['args'])
      Object.assign(open, Object.fromEntries(more), { args })
      Object.assign(last, part, { functionCall: open })
      return
    }
    const joins =
      last !== undefined &&
      isPlainText(last) &&
      isPlainText(part) &&
      last['thought'] === part['thought']
    if (joins) last['text'] = textOf(last['text']) + textOf(part['text'])
    else this.#parts.push(copyOf(part))
  }
}

/** A part of ours, to whose call more can be added. */
function copyOf(part: JsonObject): Record<string, JsonValue> {
  const call = part['functionCall']
  if (!isJsonObject(call)) return { ...part }
  const args = call['args']
  return { ...part, functionCall: { ...call, ...(isJsonObject(args) && { args: { ...args } }) } }
}

function isPlainText(part: JsonObject): boolean {
  return typeof part['text'] === 'string' && part['thoughtSignature'] === undefined
}
