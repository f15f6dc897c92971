import { isJsonObject, parseJson, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn } from '../../model.js'
import type { CallUsage } from '../../usage.js'
import type { StreamDecoder } from '../adapter.js'
import { buildAnthropicTurn, readAnthropicUsage } from './answer.js'
import { countOf, listOf, objectOf, textOf } from '../json-reader.js'
import {
  embeddedError,
  protocolError,
  readPiece,
  unfinishedStream,
  type WireContext,
} from '../provider-errors.js'

/** A content block whose deltas are still arriving. */
interface OpenBlock {
  readonly block: Record<string, JsonValue>
  /** Those of the block, if it has any. */
  readonly citations: JsonValue[]
  /** The arguments of a `tool_use` block, as JSON text. */
  input: string
}

/** The field of a block that each kind of delta appends to. */
const GROWING_FIELDS: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  compaction_delta: 'content',
}

/** Assembles a streamed Messages answer into the content blocks of one that was not streamed. */
export class AnthropicStream implements StreamDecoder {
  readonly #request: ModelRequest
  readonly #context: WireContext
  readonly #blocks = new Map<number, OpenBlock>()
  readonly #usage: Record<string, JsonValue> = {}
  #stopReason = ''
  #stopDetails: JsonObject = {}
  done = false

  constructor(request: ModelRequest, context: WireContext) {
    this.#request = request
    this.#context = context
  }

  push({ event, data }: { readonly event: string; readonly data: string }): string {
    const value = readPiece(data, this.#context)
    if (value === null) return ''
    const type = textOf(value['type']) || event
    switch (type) {
      case 'message_start':
        this.#count(objectOf(objectOf(value['message'])['usage']))
        return ''
      case 'content_block_start':
        return this.#start(countOf(value['index']), objectOf(value['content_block']))
      case 'content_block_delta':
        return this.#delta(countOf(value['index']), objectOf(value['delta']))
      case 'message_delta':
        this.#stop(objectOf(value['delta']))
        this.#count(objectOf(value['usage']))
        return ''
      case 'message_stop':
        this.done = true
        return ''
      case 'error':
        throw embeddedError(value, this.#context)
      default:
        if (isJsonObject(value['error'])) throw embeddedError(value, this.#context)
        return ''
    }
  }

  get usage(): CallUsage {
    return readAnthropicUsage(this.#usage)
  }

  /** The counts come with the stop reason; those of the stream's beginning cover the input only. */
  get isCounted(): boolean {
    return this.#stopReason !== ''
  }

  get received(): number {
    let characters = 0
    for (const { block, input } of this.#blocks.values()) {
      characters += input.length
      for (const field of ['text', 'thinking']) characters += textOf(block[field]).length
    }
    return characters
  }

  finish(): ModelTurn {
    if (!this.done && this.#stopReason === '') throw unfinishedStream(this.#context)
    const ordered = [...this.#blocks].sort(([a], [b]) => a - b).map(([, open]) => open)
    return buildAnthropicTurn(
      {
        content: ordered.map(closeBlock),
        inputs: ordered.filter(({ block }) => block['type'] === 'tool_use').map(inputOf),
        stopReason: this.#stopReason,
        stopDetails: this.#stopDetails,
        usage: this.#usage,
      },
      this.#request,
    )
  }

  #stop({ stop_reason, stop_details }: JsonObject): void {
    this.#stopReason = textOf(stop_reason) || this.#stopReason
    if (isJsonObject(stop_details)) this.#stopDetails = stop_details
  }

  #start(index: number, block: JsonObject): string {
    const citations = [...listOf(block['citations'])]
    this.#blocks.set(index, { block: { ...block }, citations, input: '' })
    return block['type'] === 'text' ? textOf(block['text']) : ''
  }

  #delta(index: number, delta: JsonObject): string {
    const type = textOf(delta['type'])
    const open = this.#blocks.get(index) ?? this.#unannounced(index, type)
    if (open === undefined) return ''
    if (type === 'input_json_delta') open.input += textOf(delta['partial_json'])
    if (type === 'citations_delta' && delta['citation'] !== undefined)
      open.citations.push(delta['citation'])
    const field = GROWING_FIELDS[type]
    if (field === undefined) return ''
    const piece = textOf(delta[field])
    open.block[field] = textOf(open.block[field]) + piece
    return type === 'text_delta' ? piece : ''
  }

  /** A block without a start event; its first delta tells its type, but not which tool it calls. */
  #unannounced(index: number, type: string): OpenBlock | undefined {
    if (type === 'input_json_delta')
      throw protocolError(`arguments came for no tool call (block ${index})`, true, this.#context)
    const field = GROWING_FIELDS[type]
    if (field === undefined || field === 'content') return undefined
    const kind = field === 'signature' ? 'thinking' : field
    this.#start(index, { type: kind, [kind]: '' })
    return this.#blocks.get(index)
  }

  /** Counts are sent twice, and the later ones are cumulative: the larger one counts. */
  #count(usage: JsonObject): void {
    for (const [name, value] of Object.entries(usage)) {
      const before = this.#usage[name]
      if (typeof value === 'number' && typeof before === 'number')
        this.#usage[name] = Math.max(before, value)
      else if (value !== null) this.#usage[name] = value
    }
  }
}

/** Arguments arrive as deltas after an empty `input`, or complete in it. */
function inputOf({ block, input }: OpenBlock): JsonValue {
  return input === '' ? (block['input'] ?? {}) : input
}

function closeBlock(open: OpenBlock): JsonObject {
  const { citations } = open
  if (citations.length > 0) open.block['citations'] = citations
  // Blocks of the provider's own tools have arguments too.
  if (open.block['type'] !== 'tool_use' && open.input === '') return open.block
  const input = inputOf(open)
  const parsed = typeof input === 'string' ? parseJson(input) : input
  // Arguments that were cut off are sent back as an object, since the API accepts nothing else.
  return { ...open.block, input: isJsonObject(parsed) ? parsed : {} }
}
