import { isCloseCode } from './close-codes.js'
import { InvalidPayloadError, ProtocolError, type WebSocketError } from './errors.js'
import { FIN, Opcode, RSV, RSV1 } from './frame.js'
import { checkUtf8, UTF8_BOUNDARY } from './utf8.js'

/**
 * What is wrong with the first byte of a frame, or `null`: reserved bits and opcodes, and the order
 * of frames (RFC 6455, sections 5.2 and 5.4).
 *
 * @param inMessage - whether the last message is not complete yet.
 */
export function faultOfFirst(first: number, deflate: boolean, inMessage: boolean): string | null {
  const opcode = first & 0x0f
  if ((first & (RSV ^ RSV1)) !== 0) return 'RSV2 and RSV3 must be 0'
  if ((first & RSV1) !== 0) {
    if (!deflate) return 'RSV1 must be 0 without compression'
    // RFC 7692, section 6.1: set on the first frame of a message only.
    if (opcode !== Opcode.TEXT && opcode !== Opcode.BINARY) {
      return 'RSV1 is only allowed on the first frame of a message'
    }
  }
  if (opcode >= Opcode.CLOSE) {
    if (opcode > Opcode.PONG) return `opcode ${opcode} is reserved`
    return (first & FIN) === 0 ? 'a control frame must not be fragmented' : null
  }
  if (opcode > Opcode.BINARY) return `opcode ${opcode} is reserved`
  if (opcode === Opcode.CONTINUATION) {
    return inMessage ? null : 'a continuation frame without a message to continue'
  }
  return inMessage ? 'a new message before the end of the previous one' : null
}

/** The payload of a Close frame. */
export interface CloseFrame {
  /** `null` when the frame had none. */
  readonly code: number | null
  readonly reason: string
  /** The rule that the payload breaks. */
  readonly fault: WebSocketError | null
}

/** Section 5.5.1: a Close is empty, or a valid code (section 7.4) and a reason in UTF-8. */
export function parseClose(payload: Buffer): CloseFrame {
  if (payload.length === 0) return { code: null, reason: '', fault: null }
  const code = payload.length === 1 ? null : payload.readUInt16BE(0)
  const fault = faultOf(code, payload)
  return { code, reason: fault === null ? payload.toString('utf8', 2) : '', fault }
}

function faultOf(code: number | null, payload: Buffer): WebSocketError | null {
  if (code === null) return new ProtocolError('the code of a Close frame must have two bytes')
  if (!isCloseCode(code)) return new ProtocolError(`close code ${code} may not be sent`)
  if (checkUtf8(payload, 2, payload.length, UTF8_BOUNDARY) === UTF8_BOUNDARY) return null
  return new InvalidPayloadError('the reason of a Close frame must be UTF-8')
}

/** A message as the program receives it: text as a string, binary as a Buffer it may keep. */
export type WebSocketMessage = string | Buffer

/** The callbacks of a receiver. One table serves all connections, hence the `owner` parameter. */
export interface ReceiverEvents<Owner> {
  /** A whole message. Returning `false` pauses parsing until {@link Receiver.resume}. */
  message(owner: Owner, message: WebSocketMessage): boolean
  ping(owner: Owner, payload: Buffer): void
  pong(owner: Owner, payload: Buffer): void
  /** The peer's Close frame; `null` when it had no code. The receiver is done. */
  close(owner: Owner, code: number | null, reason: string): void
  /** The peer broke a rule. The receiver is done. */
  failed(owner: Owner, error: WebSocketError): void
  /** Parsing paused or resumed: so should the socket. */
  paused(owner: Owner, paused: boolean): void
}

/** The limits of a receiver; see `WebSocketServerConfig`. */
export interface ReceiverLimits {
  readonly maxMessageBytes: number
  readonly maxFragments: number
  readonly maxControlFramesPerSecond: number | null
}
