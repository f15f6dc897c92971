import type { MessagePort } from 'node:worker_threads'
import type { Timeouts } from '../../config.js'
import type { Coding } from '../../content/decoders.js'
import * as errors from '../../errors.js'
import type { WireTimings } from '../../timings.js'

/** Words of the shared control array. */
export const CONTROL = {
  /** Counts all that is sent to the caller; the caller sleeps on it. */
  posted: 0,
  /** Answers to pings. */
  heartbeat: 1,
  /** 0 while starting, 1 when ready, 2 when dead. */
  state: 2,
  /** Counts messages to the caller that are in its port. */
  queued: 3,
  /** Octets of the head in the mailbox; 0 while that is empty. */
  mail: 4,
  /** Octets of all that is in the mailbox. */
  mailLength: 5,
  /** How many words there are. */
  length: 6,
} as const

/** States of {@link CONTROL.state}. */
export const WORKER = { starting: 0, ready: 1, dead: 2 } as const

/** What a worker is started with. */
export interface WorkerStart {
  readonly port: MessagePort
  readonly control: Int32Array
  readonly mailbox: SharedArrayBuffer
}

/** A request as it crosses to the worker. */
export interface WireRequest {
  readonly method: string
  readonly url: string
  /** Name, value, name, value, … */
  readonly headers: string[]
  readonly target: string | undefined
  readonly sniHostname: string | undefined
  readonly timeouts: Timeouts
  /** Whole body, null for none, or "stream" for one that is pulled. */
  readonly body: Uint8Array | 'stream' | null
  readonly bodyLength: number | null
  readonly bodyReplayable: boolean
  readonly wantsInformation: boolean
}

/** From the caller to the worker. A request without octets goes as JSON: a text is cheaper to clone. */
export type ToWorker =
  | { readonly t: 'open'; readonly transport: number; readonly options: object }
  | { readonly t: 'shut'; readonly transport: number }
  | {
      readonly t: 'request'
      readonly id: number
      readonly transport: number
      readonly request: WireRequest
    }
  | { readonly t: 'chunk'; readonly id: number; readonly chunk: Uint8Array | null }
  | { readonly t: 'more'; readonly id: number }
  | { readonly t: 'close'; readonly id: number }
  | {
      readonly t: 'inflate'
      readonly id: number
      readonly coding: Coding
      readonly chunk: Uint8Array | null
    }
  | {
      readonly t: 'blob'
      readonly id: number
      readonly blob: Blob
      readonly start: number
      readonly end: number
    }
  | { readonly t: 'ping' }

/** From the worker to the caller. */
export type FromWorker =
  | {
      readonly t: 'head'
      readonly id: number
      readonly statusCode: number
      readonly reasonPhrase: string
      readonly httpVersion: string
      readonly headers: string[]
      readonly info: Record<string, unknown>
      readonly timings: WireTimings | null
      /** What has arrived of the content already. */
      readonly chunks: Uint8Array[]
      /** Trailers, when the content is complete. */
      readonly end: string[] | null
    }
  | {
      readonly t: 'information'
      readonly id: number
      readonly statusCode: number
      readonly headers: string[]
    }
  | { readonly t: 'data'; readonly id: number; readonly chunk: Uint8Array }
  | { readonly t: 'end'; readonly id: number; readonly trailers: string[] }
  | { readonly t: 'pull'; readonly id: number; readonly restart: boolean }
  | {
      readonly t: 'inflated'
      readonly id: number
      readonly chunks: Uint8Array[]
      readonly more: boolean
    }
  | { readonly t: 'error'; readonly id: number; readonly error: WireError }

/** An error as data. */
export interface WireError {
  readonly name: string
  readonly message: string
  readonly code: string | undefined
  readonly timeoutMs: number | undefined
  readonly statusCode: number | undefined
  readonly maxBytes: number | undefined
  readonly stack: string | undefined
  readonly cause: WireError | undefined
}

/** Turns any error into data. */
export function encodeError(error: unknown, depth = 0): WireError {
  const known = error instanceof Error ? error : new Error(String(error))
  const fields = known as Partial<WireError>
  return {
    name: known.name,
    message: known.message,
    code: fields.code,
    timeoutMs: fields.timeoutMs,
    statusCode: fields.statusCode,
    maxBytes: fields.maxBytes,
    stack: known.stack,
    cause: known.cause === undefined || depth > 2 ? undefined : encodeError(known.cause, depth + 1),
  }
}

const TIMEOUTS: Readonly<Record<string, typeof errors.TimeoutError>> = {
  ConnectTimeoutError: errors.ConnectTimeoutError,
  PoolTimeoutError: errors.PoolTimeoutError,
  ReadTimeoutError: errors.ReadTimeoutError,
  TotalTimeoutError: errors.TotalTimeoutError,
  WriteTimeoutError: errors.WriteTimeoutError,
}

const PLAIN: Readonly<Record<string, new (message: string, options?: ErrorOptions) => Error>> = {
  CloseError: errors.CloseError,
  ConnectError: errors.ConnectError,
  DecodingError: errors.DecodingError,
  InvalidBodyError: errors.InvalidBodyError,
  InvalidUrlError: errors.InvalidUrlError,
  LocalProtocolError: errors.LocalProtocolError,
  ReadError: errors.ReadError,
  RemoteProtocolError: errors.RemoteProtocolError,
  StreamClosedError: errors.StreamClosedError,
  StreamConsumedError: errors.StreamConsumedError,
  UnsupportedProtocolError: errors.UnsupportedProtocolError,
  WriteError: errors.WriteError,
  TypeError,
  RangeError,
}

/** Rebuilds an error by its class. `hint` is added to the message of time limits. */
export function decodeError(wire: WireError, hint = ''): Error {
  const cause = wire.cause === undefined ? {} : { cause: decodeError(wire.cause) }
  if (wire.name in TIMEOUTS) {
    // Who waits for a connection of the pool waits for other calls, not for the server.
    const why = wire.name === 'PoolTimeoutError' ? '' : hint
    return new TIMEOUTS[wire.name]!(wire.message + why, wire.timeoutMs ?? 0, cause)
  }
  if (wire.name === 'ProxyError') {
    const { statusCode } = wire
    return new errors.ProxyError(wire.message, {
      ...cause,
      ...(statusCode === undefined ? {} : { statusCode }),
    })
  }
  if (wire.name === 'ResponseTooLargeError')
    return new errors.ResponseTooLargeError(wire.maxBytes ?? 0)
  const known = PLAIN[wire.name]
  if (known !== undefined) return new known(wire.message, cause)
  const error = new Error(wire.message, cause)
  if (wire.code !== undefined) Object.assign(error, { code: wire.code })
  return error
}
