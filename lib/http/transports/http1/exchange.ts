import { abandonChunks } from '../../content/body.js'
import type { Headers } from '../../headers.js'
import { Timer } from '../../timer-wheel.js'
import type { ExchangeCall } from '../exchange-call.js'
import type { ResponseBody } from '../response-body.js'
import type { Upload } from '../upload.js'
import type { ResponseHead } from './response-parser.js'

/** How long `Expect: 100-continue` waits for the server before the body is sent anyway. */
const CONTINUE_WAIT_MS = 1_000

/** The state of one request and its response on an {@link Http1Connection}. */
export class Http1Exchange {
  readonly call: ExchangeCall
  head: ResponseHead | null = null
  body: ResponseBody | null = null
  trailers: Headers | undefined
  /** Whether the whole request was written to the socket. */
  sent = false
  /** Whether the body is sent in several parts. */
  large = false
  /** Whether the whole response has arrived. */
  complete = false
  uploadStopped = false
  upload: Upload | null = null
  onAbort: (() => void) | null = null
  #continue: (() => void) | null = null

  constructor(call: ExchangeCall) {
    this.call = call
  }

  /**
   * Whether the server, which has answered, is taken to have read the whole request. It need not
   * have when it refuses a large one: the rest may be in the buffers of the kernel. A server that
   * reads no further must close the connection, but some say so too late, or not at all.
   */
  get tookAll(): boolean {
    return this.sent && !(this.large && this.head!.statusCode >= 300)
  }

  /** Rejects the call, or fails the response body once the call was resolved. */
  fail(error: unknown): void {
    this.stopUpload()
    this.abandonUpload()
    if (this.body === null) this.call.reject(error)
    else this.body.fail(error)
  }

  onInformation(head: ResponseHead): void {
    if (head.statusCode === 100) this.continueUpload()
    this.call.request.extensions.onInformation?.(head.statusCode, head.headers)
  }

  /** Resolves when the server agrees to receive the body, or after a second without an answer. */
  waitForContinue(): Promise<void> {
    return new Promise((resolve) => {
      const timer = new Timer(() => resolve())
      timer.start(CONTINUE_WAIT_MS)
      this.#continue = () => {
        timer.clear()
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
    const { onAbort } = this
    if (onAbort !== null) this.call.request.signal?.removeEventListener('abort', onAbort)
    this.onAbort = null
    this.continueUpload()
  }
}
