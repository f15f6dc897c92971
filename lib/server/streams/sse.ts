/**
 * Event streams over plain HTTP (WHATWG HTML, section 9.2): one `id:` and `data:` for each event,
 * and regular comments, so that proxies keep the connection open.
 *
 * @module
 */
import type { ServerResponse } from 'node:http'
import type { RunSubscription, StreamItem } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import type { Reply } from '../messages/reply.js'
import { pump, type EventSink, type PumpEnd, type PumpOptions, type StreamEnd } from './pump.js'

/** Milliseconds after which an EventSource reconnects. */
const RECONNECT_MS = 2_000

const OPENING = `retry: ${RECONNECT_MS}\n\n`
const COMMENT = ': still here\n\n'

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // Asks nginx not to buffer.
  'X-Accel-Buffering': 'no',
}

/** Framed events, shared by all readers. */
const encoded = new WeakMap<StreamItem, string>()

function encode(event: StreamItem): string {
  let text = encoded.get(event)
  if (text === undefined) {
    // Compact JSON has no line breaks, so one data line carries it.
    const id = event.seq === null ? '' : `id: ${event.seq}\n`
    text = `${id}data: ${event.json}\n\n`
    encoded.set(event, text)
  }
  return text
}

class SseSink implements EventSink {
  readonly #response: ServerResponse
  /** The last `seq` written; null before the first. */
  lastSeq: number | null = null

  constructor(response: ServerResponse) {
    this.#response = response
  }

  write(events: readonly StreamItem[]): boolean {
    for (const { seq } of events) this.lastSeq = seq ?? this.lastSeq
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

/** Compressing middleware buffers what is written until `flush()`, which it adds. */
function flush(response: ServerResponse): void {
  const { flush } = response as { flush?: unknown }
  if (typeof flush === 'function') flush.call(response)
}

/** All server-sent event streams of one service. One timer sends the comments of all. */
export class SseStreams {
  readonly #open = new Map<ServerResponse, RunSubscription<StreamItem>>()
  readonly #context: ServiceContext
  #timer: NodeJS.Timeout | undefined

  constructor(context: ServiceContext) {
    this.#context = context
  }

  /** The reply that streams a subscription and closes it at the end; then calls `onEnd`. */
  reply(
    subscription: RunSubscription<StreamItem>,
    options: PumpOptions,
    requestId: string,
    onEnd: (end: StreamEnd) => void,
  ): Reply {
    return {
      status: 200,
      headers: HEADERS,
      stream: (response) => {
        this.#run(response, subscription, options).then(onEnd, (error: unknown) => {
          // While the service closes, the store may be closed before its readers.
          if (this.#context.state !== 'open') return onEnd('shutdown')
          onEnd('failed')
          const path = `${this.#context.config.basePath}/api/runs/{run_id}/events`
          this.#context.report(error, { method: 'GET', path, requestId })
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
      const sink = new SseSink(response)
      const end = await pump(subscription, sink, options)
      // A reader that has not seen the log's last id would reconnect for ever.
      if (end === 'run_end' && sink.lastSeq !== subscription.position) {
        response.write(`id: ${subscription.position}\n\n`)
      }
      // A reader that takes nothing would not take the end of the response either.
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
    const { commentMs } = this.#context.config.streams
    this.#timer ??= setInterval(() => this.#comment(), commentMs).unref()
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

  /** Ends all streams; their readers reconnect with their cursors. */
  close(): void {
    for (const [response, subscription] of this.#open) {
      subscription.close()
      // A reader that does not read would keep the server from closing.
      if (response.writableNeedDrain) response.destroy()
    }
  }
}
