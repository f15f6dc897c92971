import { channel } from 'node:diagnostics_channel'
import type { Request } from './request.js'
import type { BaseResponse } from './response.js'

/** Message of the channel `runwright.http.request`, before each exchange. */
export interface RequestEvent {
  readonly request: Request
}

/** Message of the channel `runwright.http.response`, when a response head has arrived. */
export interface ResponseEvent {
  readonly request: Request
  readonly response: BaseResponse
  /** From sending the request to receiving the head, in ms. */
  readonly durationMs: number
}

/** Message of the channel `runwright.http.error`, when an exchange has failed. */
export interface ErrorEvent {
  readonly request: Request
  readonly error: unknown
  readonly durationMs: number
}

/** Message of the channel `runwright.http.retry` and the hook `retry`, before the delay. */
export interface RetryEvent {
  readonly request: Request
  /** Attempts so far, at least 1. */
  readonly tries: number
  /** Delay before the next attempt, in ms. */
  readonly delayMs: number
  /** What the last attempt threw; undefined if it returned a response. */
  readonly error: unknown
  /** Status of the last response; null if the attempt threw. */
  readonly statusCode: number | null
}

/** Message of the channel `runwright.http.cache`, when a cache could not do its work. */
export interface CacheErrorEvent {
  readonly request: Request
  /** A method of the store, or a request in the background (stale-while-revalidate). */
  readonly operation: 'get' | 'set' | 'delete' | 'revalidate'
  readonly error: unknown
}

// Redirects and authentication requests are exchanges too, and published like any other.
export const requestChannel: ReturnType<typeof channel> = channel('runwright.http.request')
export const responseChannel: ReturnType<typeof channel> = channel('runwright.http.response')
export const errorChannel: ReturnType<typeof channel> = channel('runwright.http.error')
export const retryChannel: ReturnType<typeof channel> = channel('runwright.http.retry')
export const cacheErrorChannel: ReturnType<typeof channel> = channel('runwright.http.cache')
