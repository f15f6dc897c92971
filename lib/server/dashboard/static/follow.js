/**
 * Follows the events of a run, over any number of connections.
 *
 * 1. Each connection begins behind the last event received, so no event is missed or repeated.
 * 2. Missed events are first read by REST. That tells why a socket cannot be opened (no key, run
 *    deleted), and keeps the page current where WebSockets do not work at all.
 */
import { ApiError, baseUrl, call, keyGiven, storedKey } from './api.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

/** @param {string} key */
function bearerProtocol(key) {
  const bytes = new TextEncoder().encode(key)
  const base64 = btoa(String.fromCharCode(...bytes))
  return `bearer.${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/**
 * @param {string} runId
 * @param {number} after
 */
function openSocket(runId, after) {
  const url = new URL(`api/ws/${runId}?after=${after}`, baseUrl)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const key = storedKey()
  return new WebSocket(url, key === null ? ['runwright.v1'] : ['runwright.v1', bearerProtocol(key)])
}

/** Close code for a deleted run. */
const DELETED = 4404
const PAGE = 1_000
/** Events of the first page: enough for the first screen, however long the log is. */
const FIRST_PAGE = 100

/**
 * Follows a run to its end.
 *
 * @param {string} runId
 * @param {{
 *   events(events: readonly AgentEvent[]): void,
 *   state(state: 'connecting' | 'live' | 'waiting' | 'ended' | 'gone' | 'locked'): void,
 * }} reader
 * @returns {{ stop(): void, again(): void }} `again` reads once what was added after the end
 */
export function follow(runId, reader) {
  const controller = new AbortController()
  const { signal } = controller
  let last = 0
  let ended = false

  /** @param {readonly AgentEvent[]} events */
  const take = (events) => {
    // What a socket still had when nobody reads any more.
    if (signal.aborted) return
    const fresh = events.filter(({ seq }) => seq > last)
    const newest = fresh.at(-1)
    if (newest === undefined) return
    last = newest.seq
    ended ||= newest.kind === 'run_end'
    reader.events(fresh)
  }

  const catchUp = async () => {
    for (;;) {
      const limit = last === 0 ? FIRST_PAGE : PAGE
      const path = `api/runs/${runId}/events?after=${last}&limit=${limit}`
      const before = last
      take(await call('GET', path, { signal, quiet: true }))
      // A page may hold fewer events than the limit; one without new events is the end.
      if (last === before) return
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
  return {
    stop: () => controller.abort(),
    again: () => void catchUp().catch(() => {}),
  }
}

/**
 * Reads one socket until it closes. Events are passed on in batches, at most one for each frame of
 * the screen, because a late reader gets thousands at once.
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
      if (!signal.aborted) state('live')
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
function pause(ms, signal) {
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
