import { constants } from 'node:buffer'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import { isToken } from './extensions.js'
import type { OriginPolicy } from './origin.js'

/** What to do with a message for which a slow reader has no room. */
export type BackpressurePolicy = 'close' | 'drop' | 'coalesce'

/** How much a connection buffers for a peer that reads slowly, and what happens beyond that. */
export interface Backpressure {
  /** Above this many bytes `send()` returns `full`: wait for `drained()`. @defaultValue 65536 */
  readonly highWaterBytes: number
  /**
   * Most bytes buffered for one peer, including the message being sent, and 64 more for each
   * message. A single larger message still goes to a peer for which nothing is waiting.
   * @defaultValue 4194304 (4 MiB)
   */
  readonly limitBytes: number
  /**
   * `close`: end the connection with 1013. `drop`: discard the message and return `dropped`.
   * `coalesce`: from `highWaterBytes` on, a message with a `key` waits until the peer has caught
   * up, and a newer one with that key takes its place, behind all others. So of each key the newest
   * accepted message arrives, in the order of sending, and nothing called `sent` or `full` is lost
   * unless a newer message of its key arrives. A message without a key is treated as with `drop`.
   * A source that can pause should do so on `full` with any policy. @defaultValue 'close'
   */
  readonly policy: BackpressurePolicy
}

/** Detection of vanished peers (RFC 6455, section 5.5.2); one timer serves all connections. */
export interface KeepAlive {
  /** Milliseconds between two pings. @defaultValue 30000 */
  readonly intervalMs: number
  /**
   * A connection that received nothing for this many milliseconds is ended (1006). Rounded up to
   * whole intervals. @defaultValue 60000
   */
  readonly timeoutMs: number
}

/** permessage-deflate (RFC 7692). Costs memory and time; worth it for large, repetitive text. */
export interface Deflate {
  /** Largest LZ77 window of the server, as a power of two: 8 to 15. @defaultValue 15 */
  readonly serverMaxWindowBits: number
  /**
   * Largest window of the client: 8 to 15. A server requests it of clients that allow that.
   * @defaultValue 15
   */
  readonly clientMaxWindowBits: number
  /**
   * Whether later messages to a client may refer to earlier ones. With `false`, one compressed
   * message can be shared by all subscribers; `true` costs 32 KiB per connection.
   * @defaultValue false
   */
  readonly serverContextTakeover: boolean
  /** The same for messages from a client; costs 32 KiB per connection. @defaultValue false */
  readonly clientContextTakeover: boolean
  /** Messages with fewer bytes are sent uncompressed. @defaultValue 1024 */
  readonly thresholdBytes: number
  /**
   * Messages with more bytes are sent uncompressed: compression is synchronous, and 1 MiB takes
   * about 30 ms. @defaultValue 1048576
   */
  readonly maxBytes: number
  /** Compression level of zlib: 0 (none) to 9 (best). @defaultValue 6 */
  readonly level: number
  /** Memory used while compressing: 1 (least) to 9 (most). @defaultValue 8 */
  readonly memLevel: number
}

/** The settings of a connection, the same on a server and on a client. */
export interface WebSocketConnectionConfig {
  /** Largest message accepted, in bytes after inflating; more is 1009. @defaultValue 1048576 */
  readonly maxMessageBytes: number
  /** Most frames in one message; more is 1008. @defaultValue 1024 */
  readonly maxFragments: number
  /** Most control frames per second; more is 1008, `null` is no limit. @defaultValue 1000 */
  readonly maxControlFramesPerSecond: number | null
  /** Milliseconds for each step of closing; then the socket is destroyed. @defaultValue 5000 */
  readonly closeTimeoutMs: number
  /**
   * Bytes of messages queued for the program; beyond, reading pauses. After a second without room,
   * `maxMessageBytes` more are read, since Close and Pong may be behind. @defaultValue 65536
   */
  readonly receiveAheadBytes: number
  /** `null` sends no pings and never gives a peer up. */
  readonly keepAlive: KeepAlive | null
  /** How much may wait for a slow reader, and what happens beyond that. */
  readonly backpressure: Backpressure
  /** `null`, the default, is no compression. */
  readonly deflate: Deflate | null
}

/** All settings of a server, with defaults filled in. */
export interface WebSocketServerConfig extends WebSocketConnectionConfig {
  /** Supported subprotocols, preferred first (RFC 6455, section 1.9). @defaultValue [] */
  readonly protocols: readonly string[]
  /** Which pages may connect. @defaultValue 'same' */
  readonly origins: OriginPolicy
  /** Most connections, including handshakes in progress; more is 503. @defaultValue 16384 */
  readonly maxConnections: number
  /** Most header fields of an opening handshake; more is 431. @defaultValue 128 */
  readonly maxHeaders: number
  /** Milliseconds that `authorize` may take; then 503. @defaultValue 10000 */
  readonly handshakeTimeoutMs: number
}

/** The settings a caller may pass: any subset of `Config`. */
export type WebSocketSettings<Config extends WebSocketConnectionConfig> = {
  readonly [K in Exclude<keyof Config, 'keepAlive' | 'backpressure' | 'deflate'>]?:
    | Config[K]
    | undefined
} & {
  /** `null` sends no pings and never gives a peer up. */
  readonly keepAlive?:
    | { readonly [K in keyof KeepAlive]?: KeepAlive[K] | undefined }
    | null
    | undefined
  /** How much may wait for a slow reader, and what happens beyond that. */
  readonly backpressure?:
    | { readonly [K in keyof Backpressure]?: Backpressure[K] | undefined }
    | undefined
  /**
   * With `true` or an object, a server accepts permessage-deflate and a client offers it.
   * @defaultValue false
   */
  readonly deflate?:
    | { readonly [K in keyof Deflate]?: Deflate[K] | undefined }
    | boolean
    | null
    | undefined
}

/** The settings a caller may pass: any subset of {@link WebSocketServerConfig}. */
export type WebSocketServerSettings = WebSocketSettings<WebSocketServerConfig>

/** For `checkOptions()`. */
export const CONNECTION_SETTINGS: OptionKinds<WebSocketSettings<WebSocketConnectionConfig>> = {
  maxMessageBytes: 'number', maxFragments: 'number', maxControlFramesPerSecond: 'number|null',
  closeTimeoutMs: 'number', receiveAheadBytes: 'number', keepAlive: 'object|null',
  backpressure: 'object', deflate: 'any',
}
/** For `checkOptions()`. */
export const SETTINGS: OptionKinds<WebSocketServerSettings> = {
  ...CONNECTION_SETTINGS, protocols: 'array', origins: 'any', maxConnections: 'number',
  maxHeaders: 'number', handshakeTimeoutMs: 'number',
}
const KEEP_ALIVE: OptionKinds<Partial<KeepAlive>> = { intervalMs: 'number', timeoutMs: 'number' }
const BACKPRESSURE: OptionKinds<Partial<Backpressure>> = {
  highWaterBytes: 'number', limitBytes: 'number', policy: 'string',
}
const DEFLATE: OptionKinds<Partial<Deflate>> = {
  serverMaxWindowBits: 'number', clientMaxWindowBits: 'number', serverContextTakeover: 'boolean',
  clientContextTakeover: 'boolean', thresholdBytes: 'number', maxBytes: 'number', level: 'number',
  memLevel: 'number',
}

/** What servers and clients use for settings that are omitted. */
export const DEFAULT_CONNECTION_CONFIG: WebSocketConnectionConfig = {
  maxMessageBytes: 1_048_576,
  maxFragments: 1_024,
  maxControlFramesPerSecond: 1_000,
  closeTimeoutMs: 5_000,
  receiveAheadBytes: 65_536,
  keepAlive: { intervalMs: 30_000, timeoutMs: 60_000 },
  backpressure: { highWaterBytes: 65_536, limitBytes: 4_194_304, policy: 'close' },
  deflate: null,
}

/** What `new WebSocketServer()` uses for settings that are omitted. */
export const DEFAULT_CONFIG: WebSocketServerConfig = {
  ...DEFAULT_CONNECTION_CONFIG,
  protocols: [],
  origins: 'same',
  maxConnections: 16_384,
  maxHeaders: 128,
  handshakeTimeoutMs: 10_000,
}

/** The settings of `deflate: true`, and those that a `deflate` object omits. */
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

/** The longest delay of a Node timer, in milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * Fills in the defaults and checks every value.
 *
 * @throws TypeError naming the option, the expected and the actual value.
 */
export function resolveConfig(settings: WebSocketServerSettings): WebSocketServerConfig {
  const config = resolveSettings(DEFAULT_CONFIG, settings)
  checkCount('maxConnections', config.maxConnections, 1, Number.MAX_SAFE_INTEGER)
  checkCount('maxHeaders', config.maxHeaders, 1, Number.MAX_SAFE_INTEGER)
  checkDelay('handshakeTimeoutMs', config.handshakeTimeoutMs)
  return {
    ...config,
    protocols: checkProtocols(config.protocols),
    origins: checkOrigins(config.origins),
  }
}

/** Fills in all defaults, and checks the settings that servers and clients have in common. */
export function resolveSettings<Config extends WebSocketConnectionConfig>(
  defaults: Config,
  settings: WebSocketSettings<Config>,
): Config {
  const { keepAlive, backpressure, deflate, ...plain } = settings
  checkOptions(keepAlive ?? {}, KEEP_ALIVE, 'keepAlive')
  checkOptions(backpressure ?? {}, BACKPRESSURE, 'backpressure')
  const { keepAlive: defaultKeepAlive, backpressure: defaultBackpressure } =
    DEFAULT_CONNECTION_CONFIG
  const config: Config = {
    ...merge(defaults, plain as Optional<Config>),
    keepAlive: keepAlive === null ? null : merge(defaultKeepAlive!, keepAlive ?? {}),
    backpressure: merge(defaultBackpressure, backpressure ?? {}),
    deflate: resolveDeflate(deflate),
  }
  checkLimits(config)
  checkBackpressure(config.backpressure)
  checkDeflate(config.deflate)
  return config
}

type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined }

/** `defaults`, overridden by the fields of `given` that have the same name and are defined. */
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
  if (deflate === true) return DEFAULT_DEFLATE
  checkOptions(deflate, DEFLATE, 'deflate')
  return merge(DEFAULT_DEFLATE, deflate)
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

/** @throws TypeError unless `value` is the delay of a Node timer in ms. */
export function checkDelay(option: string, value: unknown): void {
  checkCount(option, value, 1, MAX_DELAY_MS)
}

function checkLimits(config: WebSocketConnectionConfig): void {
  const any = Number.MAX_SAFE_INTEGER
  checkCount('maxMessageBytes', config.maxMessageBytes, 1, constants.MAX_STRING_LENGTH)
  checkCount('maxFragments', config.maxFragments, 1, any)
  checkCount('receiveAheadBytes', config.receiveAheadBytes, 1, any)
  checkDelay('closeTimeoutMs', config.closeTimeoutMs)
  if (config.maxControlFramesPerSecond !== null) {
    checkCount('maxControlFramesPerSecond', config.maxControlFramesPerSecond, 1, any)
  }
  if (config.keepAlive !== null) {
    checkDelay('keepAlive.intervalMs', config.keepAlive.intervalMs)
    checkDelay('keepAlive.timeoutMs', config.keepAlive.timeoutMs)
  }
}

function checkBackpressure({ highWaterBytes, limitBytes, policy }: Backpressure): void {
  checkCount('backpressure.highWaterBytes', highWaterBytes, 1, Number.MAX_SAFE_INTEGER)
  checkCount('backpressure.limitBytes', limitBytes, highWaterBytes, Number.MAX_SAFE_INTEGER)
  const known = ['close', 'drop', 'coalesce'].includes(policy)
  expect(known, 'backpressure.policy', "'close', 'drop' or 'coalesce'", policy)
}

function checkDeflate(deflate: Deflate | null): void {
  if (deflate === null) return
  checkCount('deflate.serverMaxWindowBits', deflate.serverMaxWindowBits, 8, 15)
  checkCount('deflate.clientMaxWindowBits', deflate.clientMaxWindowBits, 8, 15)
  checkCount('deflate.thresholdBytes', deflate.thresholdBytes, 0, Number.MAX_SAFE_INTEGER)
  checkCount('deflate.maxBytes', deflate.maxBytes, 0, Number.MAX_SAFE_INTEGER)
  checkCount('deflate.level', deflate.level, 0, 9)
  checkCount('deflate.memLevel', deflate.memLevel, 1, 9)
}

/** @throws TypeError unless all names are tokens. */
export function checkProtocols(protocols: readonly string[]): readonly string[] {
  for (const name of protocols) {
    const ok = typeof name === 'string' && isToken(name)
    expect(ok, 'protocols', 'names of token characters (RFC 9110, section 5.6.2)', name)
  }
  return [...protocols]
}

function checkOrigins(origins: OriginPolicy): OriginPolicy {
  if (typeof origins === 'function' || origins === 'same' || origins === 'any') return origins
  const expected = "'same', 'any', a list of origins or a function"
  expect(Array.isArray(origins), 'origins', expected, origins)
  return origins.map((origin) => {
    const url = URL.canParse(origin) ? new URL(origin) : null
    const ok = url !== null && url.origin !== 'null'
    expect(ok, 'origins', 'a list of origins like https://app.example', origin)
    return url!.origin
  })
}
