import type { JsonObject } from '../../internal/json.js'
import type { ModelRequest, ModelTurn } from '../model.js'
import type { StreamDecoder } from './adapter.js'
import { countOf, isObject, listOf, objectOf, parseJson, textOf } from './json-reader.js'
import { buildResponsesTurn } from './openai-responses-answer.js'
import { embeddedError, protocolError, type WireContext } from './provider-errors.js'

/**
 * Reads a streamed Responses answer. The event that ends it holds the whole response; the items
 * that came before stand in where a server leaves its `output` empty.
 */
export class OpenAiResponsesStream implements StreamDecoder {
  readonly #request: ModelRequest
  readonly #context: WireContext
  readonly #items = new Map<number, JsonObject>()
  #final: JsonObject | null = null

  constructor(request: ModelRequest, context: WireContext) {
    this.#request = request
    this.#context = context
  }

  get done(): boolean {
    return this.#final !== null
  }

  push({ event, data }: { readonly event: string; readonly data: string }): string {
    if (data.trim() === '[DONE]') return ''
    const value = parseJson(data)
    if (!isObject(value))
      throw protocolError('a piece of the stream is not JSON', true, this.#context)
    const type = textOf(value['type']) || event
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return textOf(value['delta'])
      case 'response.output_item.done':
        this.#items.set(countOf(value['output_index']), objectOf(value['item']))
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
        throw embeddedError({ error }, this.#context)
      }
      case 'error':
        throw embeddedError(value, this.#context)
      default:
        if (isObject(value['error'])) throw embeddedError(value, this.#context)
        return ''
    }
  }

  finish(): ModelTurn {
    if (this.#final === null) {
      throw protocolError('the stream ended in the middle of the answer', true, this.#context)
    }
    const items = [...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item)
    const output = listOf(this.#final['output']).length > 0 ? this.#final['output']! : items
    return buildResponsesTurn({ ...this.#final, output }, this.#request, this.#context)
  }
}
