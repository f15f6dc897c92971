import type { MessagePort } from 'node:worker_threads'
import { asError } from '../../../internal/errors.js'
import type { Timeouts } from '../../config.js'
import type { Coding } from '../../content/decoders.js'
import * as errors from '../../errors.js'
import type { WireTimings } from '../../timings.js'

/** Indices of the shared control array. */
export const CONTROL = {
  /** Counts messages and mail for the caller, which sleeps on it. */
  posted: 0,
  /** Counts replies to pings: the worker is not stuck while it grows. */
  heartbeat: 1,
  /** One of {@link WORKER}. */
  state: 2,
  /** Counts messages that were posted to the caller's port. */
  queued: 3,
  /** Bytes of the head in the mailbox; 0 while that is empty. */
  mail: 4,
  /** Bytes of head and content in the mailbox. */
  mailLength: 5,
  /** Bytes of the reason in {@link WorkerStart.report}; 0 without one. */
  reported: 6,
  /** Counts messages that were posted to the worker's port. */
  sent: 11,
  /** Counts those that the worker has taken. */
  handled: 7,
  /** Whether the request slot is closed, open or full. */
  slot: 8,
  /** Bytes of the message in the request slot, without the body. */
  slotText: 9,
  /** Bytes of message and body in the request slot. */
  slotLength: 10,
  /** No index, but the length of the array. */
  length: 12,
} as const

/** Values of {@link CONTROL.state}. */
export const WORKER = { starting: 0, ready: 1, dead: 2 } as const

/** Passed to the worker as `workerData`. Both sides share all but the ports. */
export interface WorkerStart {
  readonly port: MessagePort
  readonly control: Int32Array
  readonly mailbox: SharedArrayBuffer
  readonly slot: SharedArrayBuffer
  /** Closes when the worker ends. */
  readonly lifeline: MessagePort
  /** Where the worker leaves the reason of its end. */
  readonly report: SharedArrayBuffer
}

/** A request as data for the worker. */
export interface WireRequest {
  readonly method: string
  readonly url: string
  /** Name, value, name, value, … */
  readonly headers: string[]
  readonly target: string | undefined
  readonly sniHostname: string | undefined
  readonly timeouts: Timeouts
  /** The whole body, null for none, or "stream" for one that the worker pulls. */
  readonly body: Uint8Array | 'stream' | null
  readonly bodyLength: number | null
  readonly bodyReplayable: boolean
  readonly wantsInformation: boolean
}

/** From the caller to the worker. A request without bytes is sent as JSON: text clones faster. */
export type ToWorker =
  | { readonly t: 'open'; readonly transport: number; readonly options: object }
  | { readonly t: 'shut'; readonly transport: number }
  | {
      readonly t: 'request'
      readonly id: number
      readonly transport: number
      readonly request: WireRequest
    }
  | {
      readonly t: 'chunk'
      readonly id: number
      readonly attempt: number
      readonly chunk: Uint8Array | null
    }
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
      /** Content that arrived together with the head. */
      readonly chunks: Uint8Array[]
      /** Trailers if the content is complete, else null. */
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
  /** Asks for the next chunk of the body; each attempt to send the request begins it anew. */
  | { readonly t: 'pull'; readonly id: number; readonly attempt: number }
  | {
      readonly t: 'inflated'
      readonly id: number
      readonly chunks: Uint8Array[]
      readonly more: boolean
    }
  | { readonly t: 'error'; readonly id: number; readonly error: WireError }

/** An error as data: structured cloning would lose its class and code. */
export interface WireError {
  readonly name: string
  readonly message: string
  readonly code: string | undefined
  readonly timeoutMs: number | undefined
  readonly statusCode: number | undefined
  readonly maxBytes: number | undefined
  readonly cause: WireError | undefined
}

/** Accepts anything thrown. Keeps at most three causes, so that a cycle ends. */
export function encodeError(error: unknown, depth = 0): WireError {
  const known = asError(error)
  const fields = known as Partial<WireError>
  return {
    name: known.name,
    message: known.message,
    code: fields.code,
    timeoutMs: fields.timeoutMs,
    statusCode: fields.statusCode,
    maxBytes: fields.maxBytes,
    cause: known.cause === undefined || depth > 2 ? undefined : encodeError(known.cause, depth + 1),
  }
}

type Rebuilt = new (message: string, options?: ErrorOptions) => Error
type RebuiltTimeout = new (message: string, timeoutMs: number, options?: ErrorOptions) => Error

/** The classes that an error of the worker may have, by name. */
const CLASSES: Readonly<Record<string, unknown>> = { ...errors, TypeError, RangeError }

/** Rebuilds an error with its class. `hint` is added to messages of timeouts. */
export function decodeError(wire: WireError, hint = ''): Error {
  const cause = wire.cause === undefined ? {} : { cause: decodeError(wire.cause) }
  const known = Object.hasOwn(CLASSES, wire.name) ? CLASSES[wire.name] : undefined
  if (wire.timeoutMs !== undefined && known !== undefined) {
    // A wait for the pool depends on other calls, not on the server.
    const suffix = wire.name === 'PoolTimeoutError' ? '' : hint
    return new (known as RebuiltTimeout)(wire.message + suffix, wire.timeoutMs, cause)
  }
  if (wire.name === 'ResponseTooLargeError')
    return new errors.ResponseTooLargeError(wire.maxBytes ?? 0)
  if (known !== undefined) {
    const { statusCode } = wire
    const fields = wire.name === 'ProxyError' && statusCode !== undefined ? { statusCode } : {}
    return new (known as Rebuilt)(wire.message, { ...cause, ...fields })
  }
  const error = new Error(wire.message, cause)
  if (wire.code !== undefined) Object.assign(error, { code: wire.code })
  return error
}
