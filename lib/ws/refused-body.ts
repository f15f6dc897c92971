import { type ResponseHead, valuesOf } from './response-head.js'

/** Most bytes kept of the content, framing included. */
const MAX_BODY_BYTES = 16_384

/** Collects the beginning of the content of a refused handshake (RFC 9112, section 6). */
export class RefusedBody {
  readonly #chunked: boolean
  readonly #bytes: Buffer
  #filled = 0

  constructor(head: ResponseHead) {
    const { status } = head
    this.#chunked = valuesOf(head, 'transfer-encoding').some((value) => /\bchunked$/i.test(value))
    const [length] = valuesOf(head, 'content-length')
    const declared =
      !this.#chunked && length !== undefined && /^[0-9]{1,15}$/.test(length) ? Number(length) : null
    const wanted = status === 204 || status === 304 ? 0 : (declared ?? MAX_BODY_BYTES)
    this.#bytes = Buffer.allocUnsafe(Math.min(wanted, MAX_BODY_BYTES))
  }

  /** Adds a chunk. Returns whether nothing further is wanted. */
  push(chunk: Uint8Array): boolean {
    const taken = chunk.subarray(0, this.#bytes.length - this.#filled)
    this.#bytes.set(taken, this.#filled)
    this.#filled += taken.length
    if (this.#filled === this.#bytes.length) return true
    return this.#chunked && this.#received.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
  }

  /** The content so far. */
  take(): Buffer {
    return this.#chunked ? unchunk(this.#received) : this.#received
  }

  get #received(): Buffer {
    return this.#bytes.subarray(0, this.#filled)
  }
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** The data of the chunks, as far as they are there and well-formed. */
function unchunk(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const end = bytes.indexOf('\r\n', at, 'latin1')
    const line = end === -1 ? '' : bytes.toString('latin1', at, end)
    const size = Number.parseInt(/^[0-9a-f]{1,8}(?![0-9a-f])/i.exec(line)?.[0] ?? '0', 16)
    if (size === 0) return Buffer.concat(parts)
    parts.push(bytes.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}
