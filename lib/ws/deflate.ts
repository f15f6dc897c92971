import { constants, deflateRawSync } from 'node:zlib'
import type { Deflate } from './config.js'
import type { ExtensionOffer } from './extensions.js'
import { slide } from './inflater.js'

/** What both sides agreed on (RFC 7692, section 7.1). */
export interface DeflateAgreement {
  readonly serverWindowBits: number
  readonly serverContextTakeover: boolean
  readonly clientContextTakeover: boolean
  /** The value of the Sec-WebSocket-Extensions header of the answer. */
  readonly response: string
}

interface Offer {
  serverNoContextTakeover: boolean
  clientNoContextTakeover: boolean
  serverMaxWindowBits: number
  /** `null`: the client cannot limit its window, so no answer may ask it to. */
  clientMaxWindowBits: number | null
}

/** Takes the first offer that can be met; `null` when there is none (RFC 7692, section 5.1). */
export function negotiateDeflate(
  offers: readonly ExtensionOffer[],
  config: Deflate,
): DeflateAgreement | null {
  for (const { name, parameters } of offers) {
    const offer = name === 'permessage-deflate' ? readOffer(parameters) : null
    if (offer !== null) return agree(offer, config)
  }
  return null
}

/** `null` declines: an unknown, repeated or ill-valued parameter (RFC 7692, section 7.1). */
function readOffer(parameters: ExtensionOffer['parameters']): Offer | null {
  const offer: Offer = {
    serverNoContextTakeover: false,
    clientNoContextTakeover: false,
    serverMaxWindowBits: 15,
    clientMaxWindowBits: null,
  }
  if (new Set(parameters.map(([name]) => name)).size !== parameters.length) return null
  return parameters.every(([name, value]) => readParameter(offer, name, value)) ? offer : null
}

function readParameter(offer: Offer, name: string, value: string | true): boolean {
  switch (name) {
    case 'server_no_context_takeover':
      offer.serverNoContextTakeover = true
      return value === true
    case 'client_no_context_takeover':
      offer.clientNoContextTakeover = true
      return value === true
    case 'server_max_window_bits':
      offer.serverMaxWindowBits = Number(value)
      return isWindowBits(value)
    case 'client_max_window_bits':
      offer.clientMaxWindowBits = value === true ? 15 : Number(value)
      return value === true || isWindowBits(value)
    default:
      return false
  }
}

/** 8 to 15, without leading zeros (RFC 7692, section 7.1.2). */
function isWindowBits(value: string | true): boolean {
  return value !== true && /^(?:[89]|1[0-5])$/.test(value)
}

function agree(offer: Offer, config: Deflate): DeflateAgreement {
  const serverContextTakeover = config.serverContextTakeover && !offer.serverNoContextTakeover
  const clientContextTakeover = config.clientContextTakeover && !offer.clientNoContextTakeover
  const serverWindowBits = Math.min(offer.serverMaxWindowBits, config.serverMaxWindowBits)
  const parts = ['permessage-deflate']
  if (!serverContextTakeover) parts.push('server_no_context_takeover')
  if (!clientContextTakeover) parts.push('client_no_context_takeover')
  if (serverWindowBits < 15) parts.push(`server_max_window_bits=${serverWindowBits}`)
  if (offer.clientMaxWindowBits !== null) {
    const bits = Math.min(offer.clientMaxWindowBits, config.clientMaxWindowBits)
    if (bits < 15) parts.push(`client_max_window_bits=${bits}`)
  }
  return {
    serverWindowBits,
    serverContextTakeover,
    clientContextTakeover,
    response: parts.join('; '),
  }
}

/** The settings that make one compressed message differ from another. */
type Effort = Pick<Deflate, 'level' | 'memLevel'>

/**
 * Compresses one message (RFC 7692, section 7.2.1). `window` is what went before, when the peer may
 * still refer to it.
 *
 * It happens at once, on this thread: frames then never wait for one another, nothing has to be
 * called back after a close, and no engine outlives the call. `maxBytes` bounds how long it takes.
 */
export function compress(
  octets: Uint8Array,
  windowBits: number,
  { level, memLevel }: Effort,
  window?: Buffer,
): Buffer {
  // zlib has no raw window of 2^8. In one of 2^9 it refers back 250 octets at most, which a peer
  // with 2^8 can follow.
  const engineBits = Math.max(9, windowBits)
  const deflated = deflateRawSync(octets, {
    level,
    memLevel,
    windowBits: engineBits,
    finishFlush: constants.Z_SYNC_FLUSH,
    ...(window !== undefined && window.length > 0 ? { dictionary: window } : {}),
  })
  return deflated.subarray(0, deflated.length - 4)
}

/** The compressing side of one connection. */
export class Deflater {
  readonly agreement: DeflateAgreement
  readonly config: Deflate
  #window: Buffer = Buffer.alloc(0)

  constructor(agreement: DeflateAgreement, config: Deflate) {
    this.agreement = agreement
    this.config = config
  }

  /** Whether a message of so many octets is worth compressing. */
  wants(length: number): boolean {
    return length >= this.config.thresholdBytes && length <= this.config.maxBytes
  }

  compress(octets: Uint8Array): Buffer {
    const { serverWindowBits, serverContextTakeover } = this.agreement
    if (!serverContextTakeover) return compress(octets, serverWindowBits, this.config)
    const deflated = compress(octets, serverWindowBits, this.config, this.#window)
    this.#window = slide(this.#window, octets)
    return deflated
  }

  /** Takes note of a message that was compressed apart: it is part of the peer's window now. */
  note(octets: Uint8Array): void {
    if (this.agreement.serverContextTakeover) this.#window = slide(this.#window, octets)
  }

  destroy(): void {
    this.#window = Buffer.alloc(0)
  }
}
