import { channel } from 'node:diagnostics_channel'
import type { Request } from './request.js'
import type { BaseResponse } from './response.js'

/** What the channel `runwright.http.request` tells before each exchange. */
export interface RequestEvent {
  readonly request: Request
}

/** What the channel `runwright.http.response` tells once a response's head has arrived. */
export interface ResponseEvent {
  readonly request: Request
  readonly response: BaseResponse
  /** From the request to the head, in ms. */
  readonly durationMs: number
}

/** What the channel `runwright.http.error` tells when an exchange has failed. */
export interface ErrorEvent {
  readonly request: Request
  readonly error: unknown
  readonly durationMs: number
}

/** What the channel `runwright.http.retry` and the hook `retry` tell before the wait for another try. */
export interface RetryEvent {
  readonly request: Request
  /** Tries so far. */
  readonly tries: number
  /** How long is waited now. */
  readonly delayMs: number
  /** What the last try ended with. */
  readonly error: unknown
  readonly statusCode: number | null
}

/** The channels of `node:diagnostics_channel`; redirects and authentication legs are exchanges too. */
export const requestChannel: ReturnType<typeof channel> = channel('runwright.http.request')
export const responseChannel: ReturnType<typeof channel> = channel('runwright.http.response')
export const errorChannel: ReturnType<typeof channel> = channel('runwright.http.error')
export const retryChannel: ReturnType<typeof channel> = channel('runwright.http.retry')
