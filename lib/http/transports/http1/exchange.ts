import { abandonChunks } from '../../content/body.js'
import type { Timeouts } from '../../config.js'
import type { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import type { PhaseClock } from '../../timings.js'
import type { TransportResponse } from '../base.js'
import type { ResponseHead } from './response-parser.js'
import type { ResponseBody } from '../response-body.js'

/** How long `Expect: 100-continue` waits for the server before the body is sent anyway. */
const CONTINUE_WAIT_MS = 1_000

/** What is going on for one request. */
export class Http1Exchange {
  readonly request: Request
  readonly timeouts: Timeouts
  readonly clock: PhaseClock
  readonly resolve: (response: TransportResponse) => void
  readonly #reject: (error: unknown) => void
  head: ResponseHead | null = null
  body: ResponseBody | null = null
  trailers: Headers | undefined
  /** The request is on its way in full. */
  sent = false
  /** The response has arrived in full. */
  complete = false
  uploadStopped = false
  upload: Iterator<Uint8Array> | AsyncIterator<Uint8Array> | null = null
  onAbort: (() => void) | null = null
  #goAhead: (() => void) | null = null

  constructor(
    request: Request,
    timeouts: Timeouts,
    clock: PhaseClock,
    resolve: (response: TransportResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.request = request
    this.timeouts = timeouts
    this.clock = clock
    this.resolve = resolve
    this.#reject = reject
  }

  fail(error: unknown): void {
    this.stopUpload()
    this.abandonUpload()
    if (this.body === null) this.#reject(error)
    else this.body.fail(error)
  }

  informed(head: ResponseHead): void {
    if (head.statusCode === 100) this.goAhead()
    this.request.extensions.onInformation?.(head.statusCode, head.headers)
  }

  goAhead(): void {
    this.#goAhead?.()
  }

  stopUpload(): void {
    if (this.sent) return
    this.uploadStopped = true
    this.goAhead()
  }

  /** Lets the source of the body clean up; it may be in the middle of a wait of its own. */
  abandonUpload(): void {
    const { upload } = this
    this.upload = null
    this.uploadStopped = true
    abandonChunks(upload)
  }

  untilGoAhead(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, CONTINUE_WAIT_MS).unref()
      this.#goAhead = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  leave(): void {
    if (this.onAbort !== null) this.request.signal?.removeEventListener('abort', this.onAbort)
    this.onAbort = null
    this.goAhead()
  }
}
