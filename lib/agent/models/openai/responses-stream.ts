import { isJsonObject, type JsonObject, type JsonValue } from '../../../internal/json.js'
import type { ModelRequest, ModelTurn } from '../../model.js'
import type { CallUsage } from '../../usage.js'
import type { StreamDecoder } from '../adapter.js'
import { listOf, objectOf, textOf } from '../json-reader.js'
import { buildResponsesTurn, readResponsesUsage } from './responses-answer.js'
import { embeddedError, readPiece, unfinishedStream, type WireContext } from '../provider-errors.js'

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
