import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn } from '../../model.js'
import type { CallUsage } from '../../usage.js'
import type { StreamDecoder } from '../adapter.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import { embeddedError, readPiece, unfinishedStream, type WireContext } from '../provider-errors.js'
import { buildChatTurn, readChatUsage, readContent, THOUGHT_TAGS } from './chat-answer.js'

/** Fields of a delta that are not joined into the message. */
const SEPARATE_FIELDS = new Set(['role', 'tool_calls', 'function_call'])

/** A tool call whose deltas are still arriving. */
interface OpenCall {
  id: string
  name: string
  /** The arguments as JSON text, as far as received. */
  text: string
  readonly end: ObjectEnd
  /** The arguments, where a server sends them as an object. */
  object: JsonObject | null
  /** Further fields of the call, such as `extra_content`. */
  rest: Record<string, JsonValue>
}

/**
 * Assembles a streamed Chat Completions answer into the message of one that was not streamed. Calls
 * are distinguished by index and id: the same index with another id is another call, and complete
 * calls without index and id are separate calls.
 */
export class OpenAiChatStream implements StreamDecoder {
  readonly #request: ModelRequest
  readonly #context: WireContext
  readonly #calls: OpenCall[] = []
  readonly #byIndex = new Map<number, OpenCall>()
  /** The last call of each id. */
  readonly #byId = new Map<string, OpenCall>()
  readonly #message: Joined = { role: 'assistant', content: null }
  readonly #details: JsonValue[] = []
  /** The first of the details with each `index`. */
  readonly #detailsByIndex = new Map<JsonValue, Joined>()
  readonly #thought = new LeadingThought()
  #finishReason = ''
  #usage: JsonObject = {}
  #anything = false
  done = false

  constructor(request: ModelRequest, context: WireContext) {
    this.#request = request
    this.#context = context
  }

  push({ event, data }: { readonly event: string; readonly data: string }): string {
    if (data.trim() === '[DONE]') this.done = true
    const chunk = readPiece(data, this.#context)
    if (chunk === null) return ''
    const groq = objectOf(chunk['x_groq'])
    const usage = chunk['usage'] ?? groq['usage']
    if (isJsonObject(usage)) this.#usage = usage
    // A host may request several choices; only the first is used.
    const choice = listOf(chunk['choices']).find((one) => countOf(objectOf(one)['index']) === 0)
    const { error, finish_reason, usage: ofChoice } = objectOf(choice)
    if (isJsonObject(ofChoice)) this.#usage = ofChoice
    // Even beside an error: the counts are those of the whole answer then.
    this.#finishReason = textOf(finish_reason) || this.#finishReason
    if (event === 'error' || isError(chunk['error'])) throw embeddedError(chunk, this.#context)
    if (isError(groq['error'])) throw embeddedError(groq, this.#context)
    if (isError(error)) throw embeddedError(objectOf(choice), this.#context)
    if (!isJsonObject(choice)) return ''
    return this.#delta(objectOf(choice['delta'] ?? choice['message']))
  }

  get usage(): CallUsage {
    return readChatUsage(this.#usage)
  }

  /** The counts come after the answer; a few servers have those so far in each chunk. */
  get isCounted(): boolean {
    return (this.done || this.#finishReason !== '') && this.usage.input_tokens > 0
  }

  get received(): number {
    if (!this.#anything) return 0
    const inCalls = this.#calls.reduce((sum, { name, text, object }) => {
      return sum + name.length + text.length + (object === null ? 0 : JSON.stringify(object).length)
    }, 0)
    return inCalls + JSON.stringify(this.#message).length
  }

  finish(): ModelTurn {
    if (this.#finishReason === '' && !(this.done && this.#anything))
      throw unfinishedStream(this.#context)
    const finishReason = this.#finishReason === '' ? 'stop' : this.#finishReason
    const message: JsonObject =
      this.#calls.length === 0
        ? this.#message
        : { ...this.#message, tool_calls: this.#calls.map(closeCall) }
    return buildChatTurn(message, finishReason, this.#usage, this.#request, this.#context)
  }

  #delta(delta: JsonObject): string {
    // Read first: what is joined becomes part of the message.
    const { text } = readContent(delta['content'])
    for (const [key, value] of Object.entries(delta)) {
      if (SEPARATE_FIELDS.has(key) || value === null || value === '') continue
      this.#message[key] =
        key === 'reasoning_details'
          ? this.#joinDetails(listOf(value))
          : join(this.#message[key], value)
      this.#anything = true
    }
    for (const call of listOf(delta['tool_calls'])) this.#callDelta(objectOf(call))
    // Old servers send a single call without an id.
    const only = delta['function_call']
    if (isJsonObject(only)) this.#callDelta({ index: 0, function: only })
    const content = this.#thought.pass(text)
    // A refusal is visible only when there is no other text.
    return this.#message['content'] === null ? textOf(delta['refusal']) : content
  }

  /** Merges the pieces of each reasoning block, which have the same `index`. */
  #joinDetails(pieces: readonly JsonValue[]): JsonValue {
    for (const piece of pieces.map(objectOf)) {
      const { index } = piece
      const block = index === undefined ? undefined : this.#detailsByIndex.get(index)
      if (block !== undefined) joinBlock(block, piece)
      else {
        this.#details.push(piece)
        if (index !== undefined) this.#detailsByIndex.set(index, piece as Joined)
      }
    }
    return this.#details
  }

  #callDelta(delta: JsonObject): void {
    this.#anything = true
    const { index, id, function: named, ...rest } = delta
    const { name, arguments: args } = objectOf(named)
    const hasArguments = isJsonObject(args) || textOf(args).trim() !== ''
    const call = this.#callFor(index, textOf(id), textOf(name), hasArguments)
    call.id ||= textOf(id)
    if (call.id !== '') this.#byId.set(call.id, call)
    call.name ||= textOf(name)
    Object.assign(call.rest, rest)
    if (isJsonObject(args)) call.object = args
    else {
      call.text += textOf(args)
      call.end.add(textOf(args))
    }
  }

  #callFor(
    index: JsonValue | undefined,
    id: string,
    name: string,
    hasArguments: boolean,
  ): OpenCall {
    const position = typeof index === 'number' ? index : null
    let call = position === null ? this.#calls.at(-1) : this.#byIndex.get(position)
    if (position === null && id !== '') call = this.#byId.get(id)
    const another =
      call === undefined ||
      (id !== '' && call.id !== '' && id !== call.id) ||
      // What has a name and follows complete arguments is another call, even of the same id.
      (name !== '' && hasArguments && isComplete(call)) ||
      // Without an id: a name after a complete call, or a different name, starts another call.
      (id === '' && name !== '' && call.name !== '' && (isComplete(call) || name !== call.name))
    if (another) {
      call = { id: '', name: '', text: '', end: new ObjectEnd(), object: null, rest: {} }
      this.#calls.push(call)
    }
    if (position !== null) this.#byIndex.set(position, call!)
    return call!
  }
}

function isError(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** What grows as pieces arrive: the message, and the parts of it that pieces continue. */
type Joined = Record<string, JsonValue>

/**
 * Appends to text and to lists of parts (also plain text to a list); replaces anything else. A list
 * grows in place: copied for each piece, a long answer would take quadratic time.
 */
function join(before: JsonValue | undefined, value: JsonValue): JsonValue {
  if (typeof before === 'string' && typeof value === 'string') return before + value
  if (!Array.isArray(before) && !Array.isArray(value)) return value
  const parts: JsonValue[] = Array.isArray(before) ? before : [...partsOf(before)]
  for (const part of partsOf(value)) {
    if (!continues(objectOf(parts.at(-1)) as Joined, objectOf(part))) parts.push(part)
  }
  return parts
}

/** Adds a piece to the text or thought that it continues; false for a part of its own. */
function continues(last: Joined, part: JsonObject): boolean {
  const { type } = part
  if (type !== last['type']) return false
  if (type === 'text') {
    last['text'] = textOf(last['text']) + textOf(part['text'])
    return true
  }
  const { thinking } = last
  if (type !== 'thinking' || !Array.isArray(thinking)) return false
  Object.assign(last, part, { thinking: join(thinking, part['thinking'] ?? []) })
  return true
}

function partsOf(value: JsonValue | undefined): readonly JsonValue[] {
  return typeof value === 'string' ? [{ type: 'text', text: value }] : listOf(value)
}

function joinBlock(block: Joined, piece: JsonObject): void {
  for (const [key, value] of Object.entries(piece)) {
    if (value === null) continue
    block[key] = ['text', 'summary', 'data'].includes(key) ? join(block[key], value) : value
  }
}

function isComplete(call: OpenCall): boolean {
  return call.object !== null || call.end.isReached
}

function closeCall(call: OpenCall): JsonObject {
  const named = { name: call.name, arguments: call.object ?? call.text }
  return { ...call.rest, id: call.id, type: 'function', function: named }
}

/**
 * Removes the tagged reasoning at the beginning of streamed text. Text is held back while it may be
 * the beginning of a tag, so never more than the length of a tag.
 */
export class LeadingThought {
  /** White space before the first other character. */
  #blanks = ''
  #held = ''
  #state: 'start' | 'thought' | 'gap' | 'text' = 'start'

  /** Takes the next piece and returns the text that is now known to be visible. */
  pass(piece: string): string {
    if (this.#state === 'text' || piece === '') return piece
    const [open, close] = THOUGHT_TAGS
    this.#held += piece
    if (this.#state === 'start') {
      const text = this.#held.trimStart()
      this.#blanks += this.#held.slice(0, this.#held.length - text.length)
      this.#held = text
      if (text.length < open.length && open.startsWith(text)) return ''
      if (!text.startsWith(open)) return this.#release()
      this.#held = text.slice(open.length)
      this.#blanks = ''
      this.#state = 'thought'
    }
    if (this.#state === 'thought') {
      const end = this.#held.indexOf(close)
      this.#held =
        end === -1 ? this.#held.slice(1 - close.length) : this.#held.slice(end + close.length)
      if (end === -1) return ''
      this.#state = 'gap'
    }
    this.#held = this.#held.trimStart()
    return this.#held === '' ? '' : this.#release()
  }

  #release(): string {
    const text = this.#blanks + this.#held
    this.#held = this.#blanks = ''
    this.#state = 'text'
    return text
  }
}

/** Says whether a JSON object that comes in pieces is complete. It looks at each character once. */
export class ObjectEnd {
  /** Received text that has not been scanned yet. */
  #pieces: string[] = []
  #depth = 0
  #isInString = false
  #isEscaped = false
  #state: 'before' | 'within' | 'after' | 'no object' = 'before'

  /** Adds the next piece of the text. */
  add(piece: string): void {
    if (this.#isOpen) this.#pieces.push(piece)
  }

  /** True if the object ends in the text received so far. */
  get isReached(): boolean {
    for (const piece of this.#pieces)
      for (let i = 0; i < piece.length && this.#isOpen; i++) this.#take(piece.charAt(i))
    this.#pieces = []
    return this.#state === 'after'
  }

  get #isOpen(): boolean {
    return this.#state === 'before' || this.#state === 'within'
  }

  #take(char: string): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isInString) {
      if (char === '"') this.#isInString = false
      else if (char === '\\') this.#isEscaped = true
    } else if (char === '{' || char === '[') {
      this.#state = this.#state === 'before' && char === '[' ? 'no object' : 'within'
      this.#depth += 1
    } else if (char === '}' || char === ']') {
      this.#depth -= 1
      this.#state = this.#depth > 0 ? 'within' : this.#depth === 0 ? 'after' : 'no object'
    } else if (this.#state === 'before' && char.trim() !== '') this.#state = 'no object'
    else if (char === '"') this.#isInString = true
  }
}
