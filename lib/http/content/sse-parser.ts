import { checkObject, checkOptions, type OptionKinds } from '../../internal/options.js'
import { DecodingError } from '../errors.js'

/** One event of an event stream. */
export interface ServerSentEvent {
  /** The type of the event; "message" unless the stream sets one. */
  readonly event: string
  /** The `data:` lines joined by LF. */
  readonly data: string
  /** The last `id:` so far in the stream, or "". */
  readonly id: string
  /** Milliseconds of the last `retry:` line since the previous event, or null. */
  readonly retry: number | null
}

/** Most characters of one event; a longer one is an error. */
export const MAX_SSE_EVENT_LENGTH: number = 16 * 1024 * 1024

const OPTIONS: OptionKinds<{ maxEventLength?: number; lastEventId?: string }> = {
  maxEventLength: 'number', lastEventId: 'string',
}

/**
 * Parses a `text/event-stream` (WHATWG HTML, section 9.2.6). Chunks may end anywhere: inside a
 * character, between CR and LF, or in a field. An event without its final blank line is dropped,
 * as the standard requires.
 *
 * @example
 * ```ts
 * const parser = new SseParser()
 * parser.feed('event: tick\ndata: 1\n\n') // [{ event: 'tick', data: '1', id: '', retry: null }]
 * ```
 */
export class SseParser {
  readonly #decoder = new TextDecoder('utf-8')
  readonly #maxLength: number
  #rest = ''
  #skipLineFeed = false
  #event = ''
  #data: string[] = []
  #length = 0
  #retry: number | null = null
  #lastEventId = ''
  #pendingId = ''

  /** @param options - `maxEventLength`: most characters of one event, 16 Mi by default. */
  constructor(options: { readonly maxEventLength?: number; readonly lastEventId?: string } = {}) {
    checkOptions(options, OPTIONS, 'new SseParser()')
    this.#maxLength = options.maxEventLength ?? MAX_SSE_EVENT_LENGTH
    this.#lastEventId = this.#pendingId = options.lastEventId ?? ''
  }

  /** The id to send as Last-Event-ID when the stream is opened again. */
  get lastEventId(): string {
    return this.#lastEventId
  }

  /**
   * Takes the next bytes or characters and returns the events that they complete.
   *
   * @throws {@link DecodingError} when one event is longer than the limit.
   */
  feed(chunk: Uint8Array | string): ServerSentEvent[] {
    let text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true })
    const events: ServerSentEvent[] = []
    if (this.#skipLineFeed && text !== '') {
      if (text.startsWith('\n')) text = text.slice(1)
      this.#skipLineFeed = false
    }
    // `#rest` has no line end, so only the new text is searched; long lines stay linear.
    const lineEnd = /\r\n?|\n/g
    let from = 0
    for (let match = lineEnd.exec(text); match !== null; match = lineEnd.exec(text)) {
      this.#line(this.#rest + text.slice(from, match.index), events)
      this.#rest = ''
      from = match.index + match[0].length
      if (match[0] === '\r' && from === text.length) this.#skipLineFeed = true
    }
    this.#rest += from === 0 ? text : text.slice(from)
    if (this.#rest.length + this.#length > this.#maxLength) this.#tooLong()
    return events
  }

  #line(line: string, events: ServerSentEvent[]): void {
    if (line === '') {
      this.#dispatch(events)
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon === -1 ? line : line.slice(0, colon)
    const start = colon === -1 ? line.length : line[colon + 1] === ' ' ? colon + 2 : colon + 1
    const value = line.slice(start)
    if (field === 'data') {
      this.#data.push(value)
      this.#length += value.length + 1
      if (this.#length > this.#maxLength) this.#tooLong()
    } else if (field === 'event') this.#event = value
    else if (field === 'id') {
      if (!value.includes('\0')) this.#pendingId = value
    } else if (field === 'retry' && /^[0-9]{1,15}$/.test(value)) this.#retry = Number(value)
  }

  #dispatch(events: ServerSentEvent[]): void {
    this.#lastEventId = this.#pendingId
    if (this.#data.length > 0) {
      events.push({
        event: this.#event === '' ? 'message' : this.#event,
        data: this.#data.join('\n'),
        id: this.#lastEventId,
        retry: this.#retry,
      })
      this.#retry = null
    }
    this.#event = ''
    this.#data = []
    this.#length = 0
  }

  /** `retry:` since the last event, which the next event will report. @internal */
  get retry(): number | null {
    return this.#retry
  }

  #tooLong(): never {
    throw new DecodingError(`a server-sent event is longer than ${this.#maxLength} characters`)
  }
}

/** The events of an event stream, from its bytes or text. */
export async function* parseSse(
  source: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  if (typeof source !== 'string') checkObject('the source of an event stream', source)
  const parser = new SseParser()
  for await (const chunk of source) yield* parser.feed(chunk)
}
