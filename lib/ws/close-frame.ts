import { isCloseCode } from './close-codes.js'
import { InvalidPayloadError, ProtocolError, type WebSocketError } from './errors.js'
import { checkUtf8, UTF8_BOUNDARY } from './utf8.js'

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
