import type { Duplex } from 'node:stream'
import { HandshakeError } from './errors.js'
import { HeadReader, type ResponseHead, valuesOf } from './response-head.js'

/** Milliseconds to wait for the content of a refusal, behind its head. */
const BODY_WAIT_MS = 1_000

/** A response to an opening handshake. */
export interface OpeningAnswer {
  readonly head: ResponseHead
  /** After a 101, the first bytes of the server's frames; otherwise content. */
  readonly rest: Buffer
}

/**
 * Reads the response to an opening handshake, and the content of a refusal, for at most a second
 * after `onHead` was called. Then the transport is paused, and what follows is still in it.
 *
 * @throws HandshakeError when the transport ends first, or the response is malformed.
 */
export function readResponse(socket: Duplex, onHead: () => void): Promise<OpeningAnswer> {
  return new Promise((resolve, reject) => {
    const reader = new HeadReader()
    let head: ResponseHead | null = null
    let body: RefusedBody | null = null
    let timer: NodeJS.Timeout | undefined

    const settle = (): void => {
      clearTimeout(timer)
      socket.off('data', onData)
      socket.off('end', onEnd)
      socket.off('error', onError)
      socket.off('close', onEnd)
      socket.pause()
    }
    const finish = (rest: Buffer): void => {
      settle()
      resolve({ head: head!, rest })
    }
    const fail = (error: unknown): void => {
      settle()
      reject(error as Error)
    }
    const takeHead = (chunk: Buffer): void => {
      head = reader.push(chunk)
      if (head === null) return
      onHead()
      if (head.status === 101) return finish(reader.rest())
      body = new RefusedBody(head)
      if (body.push(reader.rest())) return finish(body.take())
      timer = setTimeout(onEnd, BODY_WAIT_MS)
    }
    const onData = (chunk: Buffer): void => {
      try {
        if (body === null) takeHead(chunk)
        else if (body.push(chunk)) finish(body.take())
      } catch (error) {
        fail(error)
      }
    }
    const onEnd = (): void => {
      if (body !== null) finish(body.take())
      else fail(new HandshakeError('the server closed the connection before its response'))
    }
    const onError = (cause: Error): void => {
      if (body !== null) return finish(body.take())
      const text = `the connection was lost before the response: ${cause.message}`
      fail(new HandshakeError(text, { cause }))
    }
    socket.on('data', onData)
    socket.on('end', onEnd)
    socket.on('error', onError)
    socket.on('close', onEnd)
    socket.resume()
    if (socket.destroyed) onEnd()
  })
}

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
