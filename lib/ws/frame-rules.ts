import { FIN, Opcode, RSV, RSV1 } from './frame.js'

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
