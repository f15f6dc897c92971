import type { Deflate } from './config.js'
import type { ExtensionOffer } from './extensions.js'
import { slide } from './inflater.js'

/** The negotiated parameters (RFC 7692, section 7.1), as they apply to one side. */
export interface DeflateAgreement {
  /** The largest window that this side may compress with, as a power of two. */
  readonly windowBits: number
  /** Whether messages of this side may refer to earlier ones. */
  readonly contextTakeover: boolean
  /** Whether messages of the peer may. */
  readonly peerContextTakeover: boolean
}

/** What a server agrees to. */
export interface AcceptedOffer extends DeflateAgreement {
  /** The value of Sec-WebSocket-Extensions in the response. */
  readonly response: string
}

interface Offer {
  serverNoContextTakeover: boolean
  clientNoContextTakeover: boolean
  /** `null`: the client does not limit the server's window. */
  serverMaxWindowBits: number | null
  /** `null`: the client cannot limit its window, so the response must not ask it to. */
  clientMaxWindowBits: number | null
}

/** Accepts the first valid offer; `null` if there is none (RFC 7692, section 5.1). */
export function negotiateDeflate(
  offers: readonly ExtensionOffer[],
  config: Deflate,
): AcceptedOffer | null {
  for (const { name, parameters } of offers) {
    const offer = name === 'permessage-deflate' ? readOffer(parameters) : null
    if (offer !== null) return agree(offer, config)
  }
  return null
}

/** `null` for an unknown, repeated or invalid parameter (RFC 7692, section 7.1). */
function readOffer(parameters: ExtensionOffer['parameters']): Offer | null {
  const offer: Offer = {
    serverNoContextTakeover: false,
    clientNoContextTakeover: false,
    serverMaxWindowBits: null,
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
export function isWindowBits(value: string | true): boolean {
  return value !== true && /^(?:[89]|1[0-5])$/.test(value)
}

function agree(offer: Offer, config: Deflate): AcceptedOffer {
  const serverContextTakeover = config.serverContextTakeover && !offer.serverNoContextTakeover
  const clientContextTakeover = config.clientContextTakeover && !offer.clientNoContextTakeover
  const serverWindowBits = Math.min(offer.serverMaxWindowBits ?? 15, config.serverMaxWindowBits)
  const parts = ['permessage-deflate']
  if (!serverContextTakeover) parts.push('server_no_context_takeover')
  if (!clientContextTakeover) parts.push('client_no_context_takeover')
  // A client that asked for a limit must find it in the response, 15 too (section 7.1.2.1).
  if (offer.serverMaxWindowBits !== null || serverWindowBits < 15) {
    parts.push(`server_max_window_bits=${serverWindowBits}`)
  }
  if (offer.clientMaxWindowBits !== null) {
    const bits = Math.min(offer.clientMaxWindowBits, config.clientMaxWindowBits)
    if (bits < 15) parts.push(`client_max_window_bits=${bits}`)
  }
  return {
    windowBits: serverWindowBits,
    contextTakeover: serverContextTakeover,
    peerContextTakeover: clientContextTakeover,
    response: parts.join('; '),
  }
}

const EMPTY = Buffer.alloc(0)

/** The settings of zlib that change the output. */
type Effort = Pick<Deflate, 'level' | 'memLevel'>

/**
 * Compresses one message (RFC 7692, section 7.2.1). `window` is the end of the previous messages,
 * with context takeover.
 *
 * Synchronous: frames keep their order without waiting, no callback can follow a close, and no zlib
 * engine outlives the call. `maxBytes` bounds how long it takes.
 */
export function compress(
  bytes: Uint8Array,
  windowBits: number,
  { level, memLevel }: Effort,
  window: Buffer = EMPTY,
): Buffer {
  // zlib has no raw window of 2^8. In one of 2^9 it refers back 250 bytes at most, which fits a
  // peer's window of 2^8.
  const engineBits = Math.max(9, windowBits)
  const { constants, deflateRawSync } = process.getBuiltinModule('node:zlib')
  const deflated = deflateRawSync(bytes, {
    level,
    memLevel,
    windowBits: engineBits,
    finishFlush: constants.Z_SYNC_FLUSH,
    ...(window.length > 0 ? { dictionary: window } : {}),
  })
  return deflated.subarray(0, deflated.length - 4)
}

/** Compresses the messages sent on one connection. */
export class Deflater {
  readonly agreement: DeflateAgreement
  readonly config: Deflate
  /** The end of the messages sent so far; empty without context takeover. */
  #window: Buffer = EMPTY

  constructor(agreement: DeflateAgreement, config: Deflate) {
    this.agreement = agreement
    this.config = config
  }

  /** Whether to compress a message of `length` bytes. */
  wants(length: number): boolean {
    return length >= this.config.thresholdBytes && length <= this.config.maxBytes
  }

  /** Compresses the next message; once it is certain to be sent, call {@link remember}. */
  compress(bytes: Uint8Array): Buffer {
    return compress(bytes, this.agreement.windowBits, this.config, this.#window)
  }

  /** Adds a compressed message, in the order of sending, to what later ones may refer to. */
  remember(bytes: Uint8Array): void {
    if (this.agreement.contextTakeover) this.#window = slide(this.#window, bytes)
  }

  destroy(): void {
    this.#window = EMPTY
  }
}
