import { constants } from 'node:buffer'
import { isToken } from './extensions.js'
import type { UpgradeRequest } from './handshake.js'

/** What becomes of a message that a slow reader has no room for. */
export type BackpressurePolicy = 'close' | 'drop' | 'coalesce'

/** How much a connection holds for a peer that reads slowly, and what happens beyond. */
export interface Backpressure {
  /** Above this many octets `send()` says `full`: wait for `drained()`. @defaultValue 65536 */
  readonly highWaterBytes: number
  /**
   * The most octets held for one peer, the message at hand included; a single message larger than
   * that still goes to a peer that is owed nothing. @defaultValue 4194304 (4 MiB)
   */
  readonly limitBytes: number
  /**
   * `close`: end the connection with 1013. `drop`: leave the message out and say `dropped`.
   * `coalesce`: from `highWaterBytes` on, keep only the latest message of each `key` and send it
   * once the peer has caught up; a message without a key is treated as by `drop`.
   * A source that can pause does so on `full`, whatever the policy. @defaultValue 'close'
   */
  readonly policy: BackpressurePolicy
}

/** Detection of peers that are gone (RFC 6455, section 5.5.2); one timer serves all connections. */
export interface KeepAlive {
  /** Time between two pings, in milliseconds. @defaultValue 30000 */
  readonly intervalMs: number
  /**
   * A connection from which no octet at all came for this long is ended (1006). Rounded up to whole
   * intervals, at least one. @defaultValue 60000
   */
  readonly timeoutMs: number
}

/** permessage-deflate (RFC 7692). Costs memory and time: of use for large, repetitive text. */
export interface Deflate {
  /** Largest LZ77 window of this server, as a power of two: 8 to 15. @defaultValue 15 */
  readonly serverMaxWindowBits: number
  /** Largest window asked of a client that lets us choose: 8 to 15. @defaultValue 15 */
  readonly clientMaxWindowBits: number
  /**
   * Whether later messages to a client may refer to earlier ones. `false` lets one compressed
   * message be shared by all subscribers; `true` costs 32 KiB a connection. @defaultValue false
   */
  readonly serverContextTakeover: boolean
  /** Whether clients may do so; `true` costs 32 KiB a connection. @defaultValue false */
  readonly clientContextTakeover: boolean
  /** Messages with fewer octets go out as they are. @defaultValue 1024 */
  readonly thresholdBytes: number
  /**
   * Messages with more octets go out as they are: compressing is done at once, on the calling
   * thread, and 1 MiB takes some 30 ms of it. @defaultValue 1048576
   */
  readonly maxBytes: number
  /** 0 (none) to 9 (best). @defaultValue 6 */
  readonly level: number
  /** 1 (least) to 9 (most memory while compressing). @defaultValue 8 */
  readonly memLevel: number
}

/**
 * Which pages may connect, by the Origin header that browsers send (RFC 6455, section 10.2).
 * `same`: only pages of the host that the request is for. A list: these origins, written as
 * `https://app.example`, and no other. A function decides itself. A request without the header
 * comes from no browser and always passes.
 */
export type OriginPolicy =
  | 'same'
  | 'any'
  | readonly string[]
  | ((origin: string, request: UpgradeRequest) => boolean)

/** Every setting of a server, resolved. */
export interface WebSocketServerConfig {
  /** Subprotocols served, best first (RFC 6455, section 1.9). @defaultValue [] */
  readonly protocols: readonly string[]
  /** @defaultValue 'same' */
  readonly origins: OriginPolicy
  /** Largest message taken, in octets, after inflating; more is 1009. @defaultValue 1048576 */
  readonly maxMessageBytes: number
  /** Most frames in one message; more is 1008. @defaultValue 1024 */
  readonly maxFragments: number
  /** Most control frames within one second; more is 1008, `null` is no limit. @defaultValue 1000 */
  readonly maxControlFramesPerSecond: number | null
  /** Most connections, handshakes at work included; more is 503. @defaultValue 16384 */
  readonly maxConnections: number
  /** Most header fields of an opening handshake; more is 431. @defaultValue 128 */
  readonly maxHeaders: number
  /** Time for `authorize`; then 503. @defaultValue 10000 */
  readonly handshakeTimeoutMs: number
  /** Time for the rest of a closing handshake; then the socket is destroyed. @defaultValue 5000 */
  readonly closeTimeoutMs: number
  /** Messages taken ahead of an async iteration, in octets; then reading pauses. @defaultValue 65536 */
  readonly receiveAheadBytes: number
  /** `null` sends no pings and never gives a peer up. */
  readonly keepAlive: KeepAlive | null
  readonly backpressure: Backpressure
  /** `null` declines compression, which is the default. */
  readonly deflate: Deflate | null
}

/** What a caller writes: any subset of {@link WebSocketServerConfig}. */
export type WebSocketServerSettings = {
  readonly [K in Exclude<keyof WebSocketServerConfig, 'keepAlive' | 'backpressure' | 'deflate'>]?:
    | WebSocketServerConfig[K]
    | undefined
} & {
  /** `null` sends no pings and never gives a peer up. */
  readonly keepAlive?:
    | { readonly [K in keyof KeepAlive]?: KeepAlive[K] | undefined }
    | null
    | undefined
  /** How much is held for a slow reader, and what happens beyond. */
  readonly backpressure?:
    | { readonly [K in keyof Backpressure]?: Backpressure[K] | undefined }
    | undefined
  /** `true` or an object agrees to permessage-deflate when a client offers it. @defaultValue false */
  readonly deflate?:
    | { readonly [K in keyof Deflate]?: Deflate[K] | undefined }
    | boolean
    | null
    | undefined
}

/** The settings of a server that is told nothing. */
export const DEFAULT_CONFIG: WebSocketServerConfig = {
  protocols: [],
  origins: 'same',
  maxMessageBytes: 1_048_576,
  maxFragments: 1_024,
  maxControlFramesPerSecond: 1_000,
  maxConnections: 16_384,
  maxHeaders: 128,
  handshakeTimeoutMs: 10_000,
  closeTimeoutMs: 5_000,
  receiveAheadBytes: 65_536,
  keepAlive: { intervalMs: 30_000, timeoutMs: 60_000 },
  backpressure: { highWaterBytes: 65_536, limitBytes: 4_194_304, policy: 'close' },
  deflate: null,
}

/** The settings of `deflate: true`. */
export const DEFAULT_DEFLATE: Deflate = {
  serverMaxWindowBits: 15,
  clientMaxWindowBits: 15,
  serverContextTakeover: false,
  clientContextTakeover: false,
  thresholdBytes: 1_024,
  maxBytes: 1_048_576,
  level: 6,
  memLevel: 8,
}

/** The longest delay that a timer of Node takes, in milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * Fills in the defaults and checks every value.
 *
 * @throws TypeError naming the option, what was expected and what came.
 */
export function resolveConfig(settings: WebSocketServerSettings): WebSocketServerConfig {
  const { keepAlive, backpressure, deflate, ...plain } = settings
  const config: WebSocketServerConfig = {
    ...merge(DEFAULT_CONFIG, plain),
    keepAlive: keepAlive === null ? null : merge(DEFAULT_CONFIG.keepAlive!, keepAlive ?? {}),
    backpressure: merge(DEFAULT_CONFIG.backpressure, backpressure ?? {}),
    deflate: resolveDeflate(deflate),
  }
  checkLimits(config)
  checkBackpressure(config.backpressure)
  checkDeflate(config.deflate)
  return {
    ...config,
    protocols: checkProtocols(config.protocols),
    origins: checkOrigins(config.origins),
  }
}

type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined }

/** `defaults` with the fields of `given` that it knows and that are not undefined. */
function merge<T extends object>(defaults: T, given: Optional<T>): T {
  const merged = { ...defaults }
  for (const key of Object.keys(defaults) as (keyof T)[]) {
    const value = given[key]
    if (value !== undefined) merged[key] = value as T[keyof T]
  }
  return merged
}

function resolveDeflate(deflate: WebSocketServerSettings['deflate']): Deflate | null {
  if (deflate === undefined || deflate === null || deflate === false) return null
  return merge(DEFAULT_DEFLATE, deflate === true ? {} : deflate)
}

function expect(ok: boolean, option: string, expected: string, got: unknown): void {
  if (ok) return
  const shown = typeof got === 'string' ? JSON.stringify(got) : String(got)
  throw new TypeError(`${option} must be ${expected}, got ${shown}`)
}

function checkCount(option: string, value: unknown, least: number, most: number): void {
  const ok = Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
  expect(ok, option, `a whole number from ${least} to ${most}`, value)
}

function checkLimits(config: WebSocketServerConfig): void {
  const any = Number.MAX_SAFE_INTEGER
  checkCount('maxMessageBytes', config.maxMessageBytes, 1, constants.MAX_STRING_LENGTH)
  checkCount('maxFragments', config.maxFragments, 1, any)
  checkCount('maxConnections', config.maxConnections, 1, any)
  checkCount('maxHeaders', config.maxHeaders, 1, any)
  checkCount('receiveAheadBytes', config.receiveAheadBytes, 1, any)
  checkCount('handshakeTimeoutMs', config.handshakeTimeoutMs, 1, MAX_DELAY_MS)
  checkCount('closeTimeoutMs', config.closeTimeoutMs, 1, MAX_DELAY_MS)
  if (config.maxControlFramesPerSecond !== null) {
    checkCount('maxControlFramesPerSecond', config.maxControlFramesPerSecond, 1, any)
  }
  if (config.keepAlive !== null) {
    checkCount('keepAlive.intervalMs', config.keepAlive.intervalMs, 1, MAX_DELAY_MS)
    checkCount('keepAlive.timeoutMs', config.keepAlive.timeoutMs, 1, MAX_DELAY_MS)
  }
}

function checkBackpressure({ highWaterBytes, limitBytes, policy }: Backpressure): void {
  checkCount('backpressure.highWaterBytes', highWaterBytes, 1, Number.MAX_SAFE_INTEGER)
  checkCount('backpressure.limitBytes', limitBytes, highWaterBytes, Number.MAX_SAFE_INTEGER)
  const known = ['close', 'drop', 'coalesce'].includes(policy)
  expect(known, 'backpressure.policy', 'close, drop or coalesce', policy)
}

function checkDeflate(deflate: Deflate | null): void {
  if (deflate === null) return
  checkCount('deflate.serverMaxWindowBits', deflate.serverMaxWindowBits, 8, 15)
  checkCount('deflate.clientMaxWindowBits', deflate.clientMaxWindowBits, 8, 15)
  checkCount('deflate.thresholdBytes', deflate.thresholdBytes, 0, Number.MAX_SAFE_INTEGER)
  checkCount('deflate.maxBytes', deflate.maxBytes, 0, Number.MAX_SAFE_INTEGER)
  checkCount('deflate.level', deflate.level, 0, 9)
  checkCount('deflate.memLevel', deflate.memLevel, 1, 9)
  for (const side of ['serverContextTakeover', 'clientContextTakeover'] as const) {
    expect(typeof deflate[side] === 'boolean', `deflate.${side}`, 'true or false', deflate[side])
  }
}

function checkProtocols(protocols: readonly string[]): readonly string[] {
  expect(Array.isArray(protocols), 'protocols', 'a list of subprotocol names', protocols)
  for (const name of protocols) {
    const ok = typeof name === 'string' && isToken(name)
    expect(ok, 'protocols', 'names made of token characters (RFC 9110, section 5.6.2)', name)
  }
  return [...protocols]
}

function checkOrigins(origins: OriginPolicy): OriginPolicy {
  if (typeof origins === 'function' || origins === 'same' || origins === 'any') return origins
  expect(Array.isArray(origins), 'origins', 'same, any, a list of origins or a function', origins)
  return origins.map((origin) => {
    const url = URL.canParse(origin) ? new URL(origin) : null
    expect(
      url !== null && url.origin !== 'null',
      'origins',
      'a list like https://app.example',
      origin,
    )
    return url!.origin
  })
}
