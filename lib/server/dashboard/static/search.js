/**
 * Search in the entries of a run: over their data, so that it finds what is folded, cut or far from
 * the window. Pure.
 */
import { uncoloured, visible } from './visible.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('./entries.js').Progress} Progress
 */

/** Fields that the page does not show. */
const IDS = new Set(['call_id', 'gate_id', 'message_id', 'operation_id', 'args_hash', 'kind'])
/** Parts of one entry that are searched. */
const MOST_PARTS = 20_000

/**
 * The texts of an entry, and of what has become of it.
 *
 * @param {AgentEvent} event
 * @param {Progress} progress
 * @returns {string[]}
 */
export function textsOf(event, progress) {
  /** @type {string[]} */
  const texts = []
  /** @type {unknown[]} */
  const left = [progress.result?.payload, event.payload]
  for (let i = 0; left.length > 0 && i < MOST_PARTS; i++) {
    const value = left.pop()
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'number') texts.push(String(value))
    else if (typeof value === 'object' && value !== null) {
      const parts = Object.entries(value).filter(([name]) => !IDS.has(name))
      for (let k = parts.length - 1; k >= 0; k--) left.push(parts[k]?.[1])
    }
  }
  return texts
}

/**
 * A text as it is compared: as the page shows it, in lower case. Escapes stand only for characters
 * that nobody sees, so they are made only when somebody searches for one.
 *
 * @param {string} text
 * @param {boolean} [escapes]
 */
export function folded(text, escapes = text.includes('\\')) {
  const shown = text.includes('\x1b') ? uncoloured(text) : escapes ? visible(text) : text
  return shown.toLowerCase()
}

/**
 * What is searched for; empty for all.
 *
 * @param {string} typed
 */
export function wordsOf(typed) {
  return visible(typed.trim()).toLowerCase()
}

/**
 * How often `words` occur, without overlaps.
 *
 * @param {string} text as `folded()`
 * @param {string} words not empty
 */
export function countIn(text, words) {
  let count = 0
  for (let at = text.indexOf(words); at !== -1; at = text.indexOf(words, at + words.length))
    count += 1
  return count
}

/**
 * How often `words` occur in an entry.
 *
 * @param {AgentEvent} event
 * @param {Progress} progress
 * @param {string} words as `wordsOf()`, not empty
 */
export function matchesOf(event, progress, words) {
  const escapes = words.includes('\\')
  let count = 0
  for (const text of textsOf(event, progress)) {
    // Short of the words, it cannot hold them.
    if (text.length * 10 >= words.length) count += countIn(folded(text, escapes), words)
  }
  return count
}
