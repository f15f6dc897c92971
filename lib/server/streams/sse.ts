/**
 * Event streams over plain HTTP (WHATWG HTML, section 9.2): one `id:` and `data:` for each event,
 * a comment now and then so that proxies keep the connection.
 *
 * @module
 */
import type { ServerResponse } from 'node:http'
import type { RunSubscription, StreamItem } from '../../agent/index.js'
import type { Reply } from '../messages/reply.js'
import { pump, type EventSink, type PumpEnd, type PumpOptions } from './pump.js'

/** Milliseconds after which an EventSource connects again. */
const RECONNECT_MS = 2_000

const OPENING = `retry: ${RECONNECT_MS}\n\n`
const COMMENT = ': still here\n\n'

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // Asks nginx not to buffer.
  'X-Accel-Buffering': 'no',
}

/** Each event in the framing of an event stream, made once for all its readers. */
const encoded = new WeakMap<StreamItem, string>()

function encode(event: StreamItem): string {
  let text = encoded.get(event)
  if (text === undefined) {
    // Compact JSON has no line ends, so that one data line carries it.
    const id = event.seq === null ? '' : `id: ${event.seq}\n`
    text = `${id}data: ${event.json}\n\n`
    encoded.set(event, text)
  }
  return text
}

/** A response as the end of a stream. */
class SseSink implements EventSink {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  write(events: readonly StreamItem[]): boolean {
    if (this.#response.destroyed) return true
    const room = this.#response.write(events.map(encode).join(''))
    flush(this.#response)
    return room
  }

  get pending(): number {
    return this.#response.writableLength
  }

  drained(): Promise<void> {
    const response = this.#response
    return new Promise((resolve) => {
      const done = (): void => {
        response.off('drain', done).off('close', done)
        resolve()
      }
      if (response.destroyed || !response.writableNeedDrain) resolve()
      else response.on('drain', done).on('close', done)
    })
  }
}

/** Compressing middleware keeps what is written until it is told to let it go. */
function flush(response: ServerResponse): void {
  const { flush } = response as { flush?: unknown }
  if (typeof flush === 'function') flush.call(response)
}

/** All event streams over HTTP of one service. One timer serves them all. */
export class SseStreams {
  readonly #open = new Map<ServerResponse, RunSubscription<StreamItem>>()
  readonly #commentMs: number
  readonly #onError: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined

  constructor(commentMs: number, onError: (error: unknown) => void) {
    this.#commentMs = commentMs
    this.#onError = onError
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size
  }

  /** The reply that streams a subscription, and ends it when the reader goes; `onEnd` is told how. */
  reply(
    subscription: RunSubscription<StreamItem>,
    options: PumpOptions,
    onEnd: (end: PumpEnd | 'failed') => void,
  ): Reply {
    return {
      status: 200,
      headers: HEADERS,
      stream: (response) => {
        this.#run(response, subscription, options).then(onEnd, (error: unknown) => {
          onEnd('failed')
          this.#onError(error)
        })
      },
    }
  }

  async #run(
    response: ServerResponse,
    subscription: RunSubscription<StreamItem>,
    options: PumpOptions,
  ): Promise<PumpEnd> {
    response.on('close', () => {
      this.#remove(response)
      subscription.close()
    })
    response.on('error', () => subscription.close())
    if (response.destroyed || response.writableEnded) {
      subscription.close()
      return 'closed'
    }
    this.#add(response, subscription)
    response.write(OPENING)
    try {
      const end = await pump(subscription, new SseSink(response), options)
      // Its last id must be the log's last, or an EventSource would come back for ever.
      if (end === 'run_end' && options.kinds?.has('run_end') === false) {
        response.write(`id: ${subscription.position}\n\n`)
      }
      // A reader that takes nothing would not take the end of the stream either.
      if (end === 'stuck') response.destroy()
      else response.end()
      return end
    } catch (error) {
      response.destroy()
      throw error
    } finally {
      this.#remove(response)
      subscription.close()
    }
  }

  #add(response: ServerResponse, subscription: RunSubscription<StreamItem>): void {
    this.#open.set(response, subscription)
    this.#timer ??= setInterval(() => this.#comment(), this.#commentMs).unref()
  }

  #remove(response: ServerResponse): void {
    this.#open.delete(response)
    if (this.#open.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #comment(): void {
    for (const response of this.#open.keys()) {
      if (response.writableNeedDrain || response.writableEnded) continue
      response.write(COMMENT)
      flush(response)
    }
  }

  /** Ends all streams; their readers come back with their cursors. */
  close(): void {
    for (const [response, subscription] of this.#open) {
      subscription.close()
      // A reader that does not read would hold the server up.
      if (response.writableNeedDrain) response.destroy()
    }
  }
}
