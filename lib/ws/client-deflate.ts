import type { Deflate } from './config.js'
import { type DeflateAgreement, isWindowBits } from './deflate.js'
import { HandshakeError } from './errors.js'
import type { ExtensionOffer } from './extensions.js'

const NAME = 'permessage-deflate'
const FLAGS = ['server_no_context_takeover', 'client_no_context_takeover']
const WINDOWS = ['server_max_window_bits', 'client_max_window_bits']

/** The value of Sec-WebSocket-Extensions in a client's request (RFC 7692, section 7.1). */
export function offerDeflate(config: Deflate): string {
  const parts = [NAME]
  if (!config.serverContextTakeover) parts.push('server_no_context_takeover')
  if (!config.clientContextTakeover) parts.push('client_no_context_takeover')
  if (config.serverMaxWindowBits < 15) {
    parts.push(`server_max_window_bits=${config.serverMaxWindowBits}`)
  }
  // Without it, the server must not limit the window of this side (section 7.1.2.2).
  const clientBits = config.clientMaxWindowBits
  parts.push(`client_max_window_bits${clientBits < 15 ? `=${clientBits}` : ''}`)
  return parts.join('; ')
}

/**
 * What a server's response to the offer means for this side; `null` when it declined.
 *
 * @throws HandshakeError for an extension or parameter that was not offered, or a value that is
 *   invalid or weaker than the offer asked for.
 */
export function agreeToResponse(
  extensions: readonly ExtensionOffer[],
  config: Deflate | null,
): DeflateAgreement | null {
  const [extension, second] = extensions
  if (extension === undefined) return null
  if (config === null || extension.name !== NAME || second !== undefined) {
    throw new HandshakeError('the server chose an extension that was not offered')
  }
  const given = new Map(extension.parameters)
  const valid = extension.parameters.every(([name, value]) =>
    WINDOWS.includes(name) ? isWindowBits(value) : FLAGS.includes(name) && value === true,
  )
  if (!valid || given.size !== extension.parameters.length) {
    throw new HandshakeError(`the server's response has invalid parameters of ${NAME}`)
  }
  const bitsOf = (name: string): number => Number(given.get(name) ?? 15)
  const serverTakesOver = !given.has('server_no_context_takeover')
  const isWeaker =
    (serverTakesOver && !config.serverContextTakeover) ||
    bitsOf('server_max_window_bits') > config.serverMaxWindowBits ||
    (given.has('client_max_window_bits') &&
      bitsOf('client_max_window_bits') > config.clientMaxWindowBits)
  if (isWeaker) {
    throw new HandshakeError(`the server's response does not keep to the offer of ${NAME}`)
  }
  return {
    windowBits: Math.min(bitsOf('client_max_window_bits'), config.clientMaxWindowBits),
    contextTakeover: config.clientContextTakeover && !given.has('client_no_context_takeover'),
    peerContextTakeover: serverTakesOver,
  }
}
