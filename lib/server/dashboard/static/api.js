/** Calls of the REST API, and the key that they send. */
import { answered } from './clock.js'
import { toast } from './dom.js'
import { session } from './storage.js'

/** @typedef {import('../types.js').Problem} Problem */

const KEY = 'runwright.key'

/** Where the service is mounted. */
export const baseUrl = new URL('.', document.baseURI)

/** A response other than success. */
export class ApiError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail)
    this.name = 'ApiError'
    this.problem = problem
    this.status = problem.status
  }
}

/** Asks the user for a key, and resolves true when there is a new one. Set by the page. */
let ask = async () => false
/** The open question, however many calls wait for its answer. @type {Promise<boolean> | null} */
let asking = null
/** How often the user has declined since there was a key. */
let declined = 0

/** @param {() => Promise<boolean>} askUser */
export function onKeyNeeded(askUser) {
  ask = askUser
}

function askForKey() {
  asking ??= ask().then((given) => {
    asking = null
    declined = given ? 0 : declined + 1
    return given
  })
  return asking
}

/** @returns {string | null} */
export function storedKey() {
  return session.get(KEY)
}

/** Dispatches `given` whenever the user enters a key. */
const keys = new EventTarget()

/** @param {string | null} key */
export function storeKey(key) {
  session.set(KEY, key)
  if (key !== null) keys.dispatchEvent(new Event('given'))
}

/** @param {() => void} listener called for every key that the user enters from now on */
export function onKeyGiven(listener) {
  keys.addEventListener('given', listener)
}

/**
 * Resolves when the user enters a key, or `signal` is aborted.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function keyGiven(signal) {
  return new Promise((resolve) => {
    const done = () => {
      keys.removeEventListener('given', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    keys.addEventListener('given', done)
    signal.addEventListener('abort', done)
  })
}

/**
 * @typedef {{
 *   body?: unknown,
 *   headers?: Record<string, string>,
 *   signal?: AbortSignal,
 *   quiet?: boolean,
 * }} CallOptions `quiet`: nobody waits for it, so it does not ask for a key that the user declined
 */

/**
 * One call. On a 401 the user is asked for a key, and the call is repeated with it.
 *
 * @param {string} method
 * @param {string} path relative to the mount
 * @param {CallOptions} [options]
 * @returns {Promise<any>} the JSON of the response; null for 204
 * @throws {ApiError} for a response other than success; TypeError when there is none
 */
export async function call(method, path, options = {}) {
  const response = await send(method, path, options)
  return response.status === 204 ? null : await response.json()
}

/**
 * One page of a list, and the path of the next page; null on the last.
 *
 * @param {string} path relative to the mount
 * @param {CallOptions} [options]
 * @returns {Promise<{ items: any[], next: string | null }>}
 * @throws {ApiError}
 */
export async function page(path, options = {}) {
  const response = await send('GET', path, options)
  const link = /<([^<>]*)>; *rel="next"/.exec(response.headers.get('Link') ?? '')?.[1]
  const next = link === undefined ? null : `${path.split('?', 1)[0]}?${link.split('?')[1] ?? ''}`
  return { items: await response.json(), next }
}

/**
 * The first bytes of a body, and whether they are all.
 *
 * @param {Response} response
 * @param {number} limit
 * @returns {Promise<{ bytes: Uint8Array, whole: boolean }>}
 */
export async function firstBytes(response, limit) {
  const bytes = new Uint8Array(limit)
  let length = 0
  const reader = response.body?.getReader()
  for (;;) {
    const { value } = (await reader?.read()) ?? {}
    if (value === undefined) return { bytes: bytes.subarray(0, length), whole: true }
    bytes.set(value.subarray(0, limit - length), length)
    length += value.length
    if (length <= limit) continue
    void reader?.cancel()
    return { bytes, whole: false }
  }
}

/**
 * Saves a file through the browser: a link would not send the key.
 *
 * @param {string} path relative to the mount
 * @param {string} name
 * @param {string} accept
 * @throws {ApiError}
 */
export async function download(path, name, accept) {
  const response = await send('GET', path, { headers: { Accept: accept } })
  // Whatever the file contains, the browser only saves it.
  const blob = new Blob([await response.arrayBuffer()], { type: 'application/octet-stream' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/**
 * @param {string} method
 * @param {string} path
 * @param {CallOptions} options
 * @returns {Promise<Response>} always a success
 */
export async function send(method, path, options) {
  for (;;) {
    const key = storedKey()
    // A user who declined was asked about all calls under way.
    const known = options.quiet ? 0 : declined
    /** @type {RequestInit} */
    const init = {
      method,
      cache: 'no-store',
      headers: {
        Accept: 'application/json',
        ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
        ...(method === 'POST' ? { 'Content-Type': 'application/json' } : {}),
        ...options.headers,
      },
    }
    if (options.body !== undefined) init.body = JSON.stringify(options.body)
    if (options.signal !== undefined) init.signal = options.signal
    const asked = Date.now()
    const response = await fetch(new URL(path, baseUrl), init)
    answered(response.headers.get('Date'), asked)
    if (response.ok) return response
    const problem = await readProblem(response)
    if (problem.status !== 401) throw new ApiError(problem)
    // Another call may have asked meanwhile: its key is tried before the user is asked again.
    if (storedKey() !== null && storedKey() !== key) continue
    if (declined > known || !(await askForKey())) throw new ApiError(problem)
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Problem>}
 */
async function readProblem(response) {
  try {
    const problem = await response.json()
    if (typeof problem.detail === 'string') return problem
  } catch {
    // From a proxy, not from the service.
  }
  const { status, statusText } = response
  return { status, title: statusText, detail: `the service answered ${status}`, code: 'unknown' }
}

/**
 * Does what the user has asked for, and says why it failed.
 *
 * @param {() => Promise<void>} action
 */
export async function attempt(action) {
  try {
    await action()
  } catch (error) {
    toast(messageOf(error), 'bad')
  }
}

/**
 * What to show for a failed call.
 *
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof ApiError ? error.message : 'The service is not responding.'
}

/** A key that makes a repeated start request harmless. */
export function idempotencyKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
