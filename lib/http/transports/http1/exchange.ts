import { abandonChunks } from '../../content/body.js'
import type { Timeouts } from '../../config.js'
import type { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import type { PhaseClock } from '../../timings.js'
import type { TransportResponse } from '../base.js'
import type { ResponseHead } from './response-parser.js'
import type { ResponseBody } from '../response-body.js'
import type { Upload } from '../upload.js'

/** How long `Expect: 100-continue` waits for the server before the body is sent anyway. */
const CONTINUE_WAIT_MS = 1_000

/** The state of one request and its response on an {@link Http1Connection}. */
export class Http1Exchange {
  readonly request: Request
  readonly timeouts: Timeouts
  readonly clock: PhaseClock
  readonly resolve: (response: TransportResponse) => void
  readonly #reject: (error: unknown) => void
  head: ResponseHead | null = null
  body: ResponseBody | null = null
  trailers: Headers | undefined
  /** Whether the whole request was written to the socket. */
  sent = false
  /** Whether the whole response has arrived. */
  complete = false
  uploadStopped = false
  upload: Upload | null = null
  onAbort: (() => void) | null = null
  #continue: (() => void) | null = null

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

  /** Rejects the call, or fails the response body once the call was resolved. */
  fail(error: unknown): void {
    this.stopUpload()
    this.abandonUpload()
    if (this.body === null) this.#reject(error)
    else this.body.fail(error)
  }

  onInformation(head: ResponseHead): void {
    if (head.statusCode === 100) this.continueUpload()
    this.request.extensions.onInformation?.(head.statusCode, head.headers)
  }

  /** Resolves when the server agrees to receive the body, or after a second without an answer. */
  waitForContinue(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, CONTINUE_WAIT_MS).unref()
      this.#continue = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  continueUpload(): void {
    this.#continue?.()
  }

  /** Sends no further chunk: the server has answered without waiting for the rest. */
  stopUpload(): void {
    if (this.sent) return
    this.uploadStopped = true
    this.continueUpload()
  }

  /** Lets the source of the body clean up; it may be waiting for something itself. */
  abandonUpload(): void {
    const { upload } = this
    this.upload = null
    this.uploadStopped = true
    abandonChunks(upload)
  }

  /** Removes the abort listener and releases an upload that waits for 100. */
  detach(): void {
    if (this.onAbort !== null) this.request.signal?.removeEventListener('abort', this.onAbort)
    this.onAbort = null
    this.continueUpload()
  }
}
