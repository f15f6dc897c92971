/**
 * Calls that read and send whole files: few are read at a time, in rounds over the accounts, and
 * what is being sent has a bound.
 *
 * @module
 */
import type { ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { FairSlots } from '../../internal/queues.js'
import { ProblemError } from '../errors.js'
import type { HttpRequest, Reply } from './reply.js'

/** Calls at work at a time; others wait. Each may need some multiples of 32 MiB. */
const MAX_AT_WORK = 4
/** Calls of one account that wait. */
const MAX_WAITING = 100
/** Bytes of all large replies that are being sent. */
const MAX_SENDING = 256 * 1024 * 1024
/** Replies up to so many bytes are like any other. */
const LARGE = 1024 * 1024
/** Bytes written at a time. */
const PIECE = 65_536
/** Seconds after which some calls are probably over, or large replies sent. */
const RETRY_SECONDS = 5

export class HeavyCalls {
  readonly #stuckMs: number
  readonly #slots = new FairSlots(MAX_AT_WORK)
  #sending = 0

  /** @param stuckMs a reader that takes nothing for so long is disconnected */
  constructor(stuckMs: number) {
    this.#stuckMs = stuckMs
  }

  /**
   * Does `work` when it is the turn of the account, see {@link FairSlots}. Its signal ends it when
   * the connection closes; a call that waits is over then.
   *
   * @throws `ProblemError` 429 while too many calls of the account wait
   */
  async limited<T>(
    account: string,
    request: HttpRequest,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.#slots.waitingOf(account) >= MAX_WAITING) {
      throw tooMany(`${MAX_WAITING} calls that read files are waiting; try again in a moment`)
    }
    const signal = goneSignal(request)
    return await this.#slots.run(account, () => work(signal), signal)
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
      throw tooMany('the service is sending too many large files; try again in a moment')
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

function tooMany(detail: string): ProblemError {
  return new ProblemError(429, 'too_many_at_once', detail, {
    headers: { 'Retry-After': String(RETRY_SECONDS) },
  })
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

/** One for all requests of a connection, or of a stream of HTTP/2. */
const signals = new WeakMap<object, AbortSignal>()

/** Aborts when the connection closes, of HTTP/2 the stream; the reply has no reader then. */
function goneSignal(request: HttpRequest): AbortSignal {
  const source =
    request.httpVersionMajor < 2 ? request.socket : (request as Http2ServerRequest).stream
  const known = signals.get(source)
  if (known !== undefined) return known
  const controller = new AbortController()
  const abort = (): void => controller.abort(gone())
  signals.set(source, controller.signal)
  if (source.destroyed) abort()
  else source.once('close', abort)
  return controller.signal
}

/** Nobody gets it: it is for the log only. */
function gone(): ProblemError {
  return new ProblemError(499, 'client_gone', 'the caller has closed the connection')
}
