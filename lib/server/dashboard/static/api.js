/** Speaking to the service: REST, and the event stream that outlives its socket. */

/**
 * @typedef {import('../types.js').Problem} Problem
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 */

const KEY = 'runwright.key'

/** The address of this page without what stands behind its last slash. */
const base = new URL('.', document.baseURI)

/** An answer that is not the wished-for one. */
export class ApiError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail)
    this.name = 'ApiError'
    this.problem = problem
    this.status = problem.status
  }
}

/** Asks the user for a key; set by the page. Resolves true when there is a new one. */
let askForKey = async () => false

/** @param {() => Promise<boolean>} ask */
export function onKeyNeeded(ask) {
  askForKey = ask
}

/** @returns {string | null} */
export function storedKey() {
  return sessionStorage.getItem(KEY)
}

/** Told about every key that is given. */
const keys = new EventTarget()

/** @param {string | null} key */
export function storeKey(key) {
  if (key === null) return sessionStorage.removeItem(KEY)
  sessionStorage.setItem(KEY, key)
  keys.dispatchEvent(new Event('given'))
}

/** @param {() => void} listener called for every key that is given from now on */
export function onKeyGiven(listener) {
  keys.addEventListener('given', listener)
}

/**
 * Resolves when somebody gives a key, or `signal` is aborted.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function keyGiven(signal) {
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
 * One call. A 401 asks the user for a key and tries again.
 *
 * @param {string} method
 * @param {string} path relative to the mount
 * @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<any>} the JSON of the answer; null when it has none
 * @throws {ApiError} for an answer other than success; TypeError when there is none
 */
export async function call(method, path, options = {}) {
  const response = await send(method, path, options)
  return response.status === 204 ? null : await response.json()
}

/**
 * One page of a list, and the path of the next one; null when it is the last.
 *
 * @param {string} path relative to the mount
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<{ items: any[], next: string | null }>}
 * @throws {ApiError}
 */
export async function page(path, options = {}) {
  const response = await send('GET', path, options)
  const link = /<([^>]*)>; *rel="next"/.exec(response.headers.get('Link') ?? '')?.[1]
  const next = link === undefined ? null : `${path.split('?', 1)[0]}?${link.split('?')[1] ?? ''}`
  return { items: await response.json(), next }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} options
 * @returns {Promise<Response>} a success
 */
async function send(method, path, options) {
  for (;;) {
    const key = storedKey()
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
    const response = await fetch(new URL(path, base), init)
    if (response.ok) return response
    const problem = await readProblem(response)
    if (problem.status !== 401) throw new ApiError(problem)
    // Another call may have asked meanwhile: a key that was just given is tried before it is doubted.
    if (storedKey() !== null && storedKey() !== key) continue
    if (!(await askForKey())) throw new ApiError(problem)
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
    // A proxy's answer, not the service's.
  }
  const { status, statusText } = response
  return { status, title: statusText, detail: `the service answered ${status}`, code: 'unknown' }
}

/** @param {string} key */
function bearerProtocol(key) {
  const octets = new TextEncoder().encode(key)
  const base64 = btoa(String.fromCharCode(...octets))
  return `bearer.${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/**
 * @param {string} runId
 * @param {number} after
 */
function openSocket(runId, after) {
  const url = new URL(`api/ws/${runId}?after=${after}`, base)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const key = storedKey()
  return new WebSocket(url, key === null ? ['runwright.v1'] : ['runwright.v1', bearerProtocol(key)])
}

/** Close code of a run that was deleted. */
const DELETED = 4404
const PAGE = 1_000

/**
 * Follows the events of a run to its end. Each connection begins behind the last event that was
 * seen, so that nothing is missed or told twice. What was missed is fetched by REST first: that
 * tells why a socket cannot be had (no key, run deleted), and goes on without sockets if need be.
 *
 * @param {string} runId
 * @param {{
 *   events(events: readonly AgentEvent[]): void,
 *   state(state: 'connecting' | 'live' | 'waiting' | 'ended' | 'gone' | 'locked'): void,
 * }} reader
 * @returns {() => void} stops it
 */
export function follow(runId, reader) {
  const controller = new AbortController()
  const { signal } = controller
  let last = 0
  let ended = false

  /** @param {readonly AgentEvent[]} events */
  const take = (events) => {
    const fresh = events.filter(({ seq }) => seq > last)
    const newest = fresh.at(-1)
    if (newest === undefined) return
    last = newest.seq
    ended ||= newest.kind === 'run_end'
    reader.events(fresh)
  }

  const catchUp = async () => {
    for (;;) {
      const page = await call('GET', `api/runs/${runId}/events?after=${last}&limit=${PAGE}`, {
        signal,
      })
      take(page)
      // A page may hold less than was asked for; an empty one is the end.
      if (page.length === 0 || ended) return
    }
  }

  const run = async () => {
    for (let failures = 0; !signal.aborted;) {
      reader.state(failures === 0 ? 'connecting' : 'waiting')
      try {
        await catchUp()
        if (!ended) {
          const { code, opened } = await readSocket(
            openSocket(runId, last),
            take,
            reader.state,
            signal,
          )
          if (opened) failures = 0
          if (code === DELETED) return reader.state('gone')
        }
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return reader.state('gone')
        if (error instanceof ApiError && error.status === 401) {
          reader.state('locked')
          await keyGiven(signal)
          continue
        }
      }
      if (ended) return reader.state('ended')
      failures += 1
      await pause(Math.min(500 * 2 ** (failures - 1), 10_000) * (0.75 + Math.random() / 2), signal)
    }
  }

  void run()
  return () => controller.abort()
}

/**
 * Events of one socket until it closes. They are handed over in batches, one for each frame of the
 * screen at most: a late reader gets thousands at once.
 *
 * @param {WebSocket} socket
 * @param {(events: readonly AgentEvent[]) => void} take
 * @param {(state: 'live') => void} state
 * @param {AbortSignal} signal
 * @returns {Promise<{ code: number, opened: boolean }>}
 */
function readSocket(socket, take, state, signal) {
  return new Promise((resolve) => {
    /** @type {AgentEvent[]} */
    let waiting = []
    let opened = false
    let scheduled = false
    const flush = () => {
      scheduled = false
      const events = waiting
      waiting = []
      take(events)
    }
    const stop = () => socket.close()
    signal.addEventListener('abort', stop, { once: true })
    socket.onopen = () => {
      opened = true
      state('live')
    }
    socket.onmessage = ({ data }) => {
      waiting.push(JSON.parse(data))
      if (scheduled) return
      scheduled = true
      // Hidden pages draw no frames.
      if (document.hidden) setTimeout(flush, 50)
      else requestAnimationFrame(flush)
    }
    socket.onclose = ({ code }) => {
      signal.removeEventListener('abort', stop)
      flush()
      resolve({ code, opened })
    }
  })
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}

/** A key that makes a repeated start request harmless. */
export function idempotencyKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((octet) => octet.toString(16).padStart(2, '0'))
    .join('')
}
