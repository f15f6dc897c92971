/**
 * Calls that read and send whole files: few are read at a time, and what is being sent has a bound.
 *
 * @module
 */
import type { ServerResponse } from 'node:http'
import { ProblemError } from '../errors.js'
import type { HttpRequest, Reply } from './reply.js'

/** Calls at work at a time; others wait. Each may need some multiples of 32 MiB. */
const MAX_AT_WORK = 4
/** Bytes of all large replies that are being sent. */
const MAX_SENDING = 256 * 1024 * 1024
/** Replies up to so many bytes are like any other. */
const LARGE = 1024 * 1024
/** Bytes written at a time. */
const PIECE = 65_536
/** Seconds after which large replies have probably been sent. */
const RETRY_SECONDS = 5

export class HeavyCalls {
  readonly #stuckMs: number
  readonly #waiting: (() => void)[] = []
  #atWork = 0
  #sending = 0

  /** @param stuckMs a reader that takes nothing for so long is disconnected */
  constructor(stuckMs: number) {
    this.#stuckMs = stuckMs
  }

  /** Does `work` as soon as fewer than {@link MAX_AT_WORK} calls are at work, in their order. */
  async limited<T>(work: () => Promise<T>): Promise<T> {
    if (this.#atWork < MAX_AT_WORK) this.#atWork += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#atWork -= 1
      else next()
    }
  }

  /** @throws `ProblemError` 429 while too much is being sent */
  reply(
    { method }: HttpRequest,
    headers: Readonly<Record<string, string>>,
    content: Uint8Array,
  ): Reply {
    const { length } = content
    if (length <= LARGE || method === 'HEAD') return { status: 200, headers, body: content }
    if (this.#sending + length > MAX_SENDING) {
      const detail = 'the service is sending too many large files; try again in a moment'
      throw new ProblemError(429, 'too_many_at_once', detail, {
        headers: { 'Retry-After': String(RETRY_SECONDS) },
      })
    }
    this.#sending += length
    return {
      status: 200,
      headers: { ...headers, 'Content-Length': String(length) },
      stream: (response) =>
        send(response, content, this.#stuckMs, () => {
          this.#sending -= length
        }),
    }
  }
}

/** Sends content in pieces, as the reader takes them; then calls `onEnd`, once. */
function send(
  response: ServerResponse,
  content: Uint8Array,
  stuckMs: number,
  onEnd: () => void,
): void {
  // Has the peer gone already, there may be no event any more.
  if (response.destroyed || response.writableEnded) return onEnd()
  let sent = 0
  const timer = setTimeout(() => response.destroy(), stuckMs)
  const write = (): void => {
    timer.refresh()
    while (sent < content.length) {
      const piece = content.subarray(sent, sent + PIECE)
      sent += piece.length
      if (!response.write(piece)) return
    }
    response.end()
  }
  response.on('drain', write)
  response.once('close', () => {
    clearTimeout(timer)
    onEnd()
  })
  write()
}
