import { compress, type Deflater } from './deflate.js'
import { encodeFrame, encodeText, Opcode, RSV1 } from './frame.js'
import { toBytes, type WebSocketBytes } from './payload.js'

// Functions, because methods would be public.

/** The frame of a prepared message for one connection. */
export let frameOf: (message: PreparedMessage, deflater: Deflater | null) => Buffer
/** What a prepared message contains, uncompressed. */
export let payloadOf: (message: PreparedMessage) => Buffer

/**
 * A message encoded once for any number of connections, which all send the same bytes. Created by
 * {@link prepare}. It keeps one uncompressed frame, and one for each compression setting in use.
 */
export class PreparedMessage {
  readonly #opcode: number
  readonly #plain: Buffer
  readonly #payload: Buffer
  #deflated: Map<number, Buffer> | null = null

  /** @internal */
  constructor(message: string | WebSocketBytes) {
    const isText = typeof message === 'string'
    this.#opcode = isText ? Opcode.TEXT : Opcode.BINARY
    this.#plain = isText
      ? encodeText(message)
      : encodeFrame(Opcode.BINARY, toBytes(message, 'a message'))
    const length = this.#plain[1]!
    this.#payload = this.#plain.subarray(length < 126 ? 2 : length === 126 ? 4 : 10)
  }

  /** Size of the payload before compression. */
  get byteLength(): number {
    return this.#payload.length
  }

  #frame(deflater: Deflater | null): Buffer {
    if (deflater === null || !deflater.wants(this.#payload.length)) return this.#plain
    const { level, memLevel } = deflater.config
    const setting = deflater.agreement.windowBits * 100 + level * 10 + memLevel
    const cached = this.#deflated?.get(setting)
    if (cached !== undefined) return cached
    const payload = compress(this.#payload, deflater.agreement.windowBits, deflater.config)
    const frame = encodeFrame(this.#opcode, payload, RSV1)
    this.#deflated ??= new Map()
    this.#deflated.set(setting, frame)
    return frame
  }

  static {
    frameOf = (message, deflater) => message.#frame(deflater)
    payloadOf = (message) => message.#payload
  }
}

/**
 * Encodes a message once, to be sent to many connections.
 *
 * @param message - a string is sent as text, bytes as binary; the bytes are copied.
 * @throws TypeError for anything else.
 * @example
 * ```ts
 * const event = prepare(JSON.stringify({ kind: 'log', text: 'hello' }))
 * for (const connection of server.connections) connection.send(event)
 * ```
 */
export function prepare(message: string | WebSocketBytes): PreparedMessage {
  return new PreparedMessage(message)
}
