/** Text files of a run's folder as they are now, each read once until they may have changed. */
import { filesPath } from './address.js'
import { ApiError, firstBytes, messageOf, send } from './api.js'
import { size } from './format.js'

/** @typedef {import('./proposed-call.js').Present} Present */

/** Bytes that are compared. */
const MOST = 1_048_576

export class PresentFiles {
  #runId
  /** @type {Map<string, Promise<Present>>} */
  #read = new Map()
  /** One at a time: a gate may have a hundred calls. @type {Promise<unknown>} */
  #last = Promise.resolve()

  /** @param {string} runId */
  constructor(runId) {
    this.#runId = runId
  }

  /** Forgets what was read. */
  forget() {
    this.#read.clear()
  }

  /**
   * The text of a file; null when the folder has none.
   *
   * @param {string} path within the folder
   * @returns {Promise<Present>}
   */
  text(path) {
    const known = this.#read.get(path)
    if (known !== undefined) return known
    const reading = this.#last.then(() => this.#fetch(path))
    this.#last = reading
    this.#read.set(path, reading)
    return reading
  }

  /** @param {string} path @returns {Promise<Present>} */
  async #fetch(path) {
    try {
      const Accept = 'application/octet-stream, application/json'
      const address = filesPath(this.#runId, path, 'now')
      const response = await send('GET', address, { headers: { Accept }, quiet: true })
      if (response.headers.get('Content-Type') !== 'application/octet-stream') {
        void response.body?.cancel()
        return { problem: 'A folder is there, not a file.' }
      }
      const { bytes, whole } = await firstBytes(response, MOST)
      if (!whole) return { problem: `The present file has more than ${size(MOST)}.` }
      const text = textOf(bytes)
      return text === null ? { problem: 'The present file is not text.' } : { text }
    } catch (error) {
      if (error instanceof ApiError && error.problem.code === 'file_not_found')
        return { text: null }
      // The next look at it tries again.
      this.#read.delete(path)
      return { problem: `The present file cannot be shown: ${messageOf(error)}` }
    }
  }
}

/** Null for what is no text. @param {Uint8Array} bytes */
function textOf(bytes) {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}
