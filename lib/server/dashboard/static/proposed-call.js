/** Pure: what a tool call would do, as far as the page knows the tool, and in which words. */
import { triedBy } from './tried-patches.js'

/**
 * @typedef {import('./tried-patches.js').Tried} Tried
 * @typedef {{ readonly tool: string, readonly args: Readonly<Record<string, unknown>> }} Call
 *
 * `replace` is an edit by a tool that the page does not know: it shows the two texts, and does not
 * claim what becomes of the file. `shown` names the arguments that the others have.
 *
 * @typedef {{ readonly shown: readonly string[] } & (
 *   | { kind: 'write', path: string, content: string }
 *   | { kind: 'edit', path: string, old: string, now: string, occurrence: unknown }
 *   | { kind: 'replace', path: string, old: string, now: string }
 *   | { kind: 'command', command: string, timeoutMs: number | null, tried: Tried | null }
 *   | { kind: 'read' | 'other' }
 * )} Proposed
 *
 * The text of a file; null when there is none, or why it is not known.
 * @typedef {{ text: string | null } | { problem: string }} Present
 */

const READS = new Set(['list_files', 'read_file', 'search_files'])
/** Milliseconds that the shipped `bash` gives a command which does not say. */
const BASH_MS = 120_000

/** @param {Call} call @returns {Proposed} */
export function proposedBy({ tool, args }) {
  /** @type {string[]} */
  const shown = []
  const text = (/** @type {readonly string[]} */ ...names) => {
    const name = names.find((one) => typeof own(args, one) === 'string')
    if (name === undefined) return null
    shown.push(name)
    return /** @type {string} */ (own(args, name))
  }
  const path = text('path', 'file_path')
  const content = tool === 'write_file' ? text('content') : null
  if (path !== null && content !== null) return { kind: 'write', path, content, shown }
  const old = text('old_text', 'old_str', 'old_string')
  const now = text('new_text', 'new_str', 'new_string')
  if (path !== null && old !== null && now !== null) {
    if (tool !== 'edit_file') return { kind: 'replace', path, old, now, shown }
    const occurrence = own(args, 'occurrence')
    return { kind: 'edit', path, old, now, occurrence, shown }
  }
  shown.length = 0
  const command = text('command', 'cmd')
  if (command === null) return { kind: READS.has(tool) ? 'read' : 'other', shown: [] }
  const asked = own(args, 'timeout_ms')
  if (typeof asked === 'number') shown.push('timeout_ms')
  const standard = tool === 'bash' && asked === undefined ? BASH_MS : null
  const timeoutMs = typeof asked === 'number' ? asked : standard
  const tried = triedBy({ tool, args }, null)
  if (tried !== null) shown.push('patches')
  return { kind: 'command', command, timeoutMs, tried, shown }
}

/** @param {object} args @param {string} name */
function own(args, name) {
  return Object.hasOwn(args, name) ? Reflect.get(args, name) : undefined
}

/**
 * What becomes of a file; for `edit`, as the shipped `edit_file` does it.
 *
 * @param {Proposed & { kind: 'write' | 'edit' }} proposed
 * @param {Present} present
 * @returns {Present}
 */
export function resultOf(proposed, present) {
  if (proposed.kind === 'write') return { text: proposed.content }
  if ('problem' in present) return present
  if (present.text === null) return { problem: 'There is no such file: the edit will fail.' }
  const { text } = present
  if (proposed.old === proposed.now)
    return { problem: 'Both texts are the same: the edit will fail.' }
  const { old, now } = withLineEndsOf(text, proposed)
  const places = placesOf(text, old)
  const { occurrence } = proposed
  const wanted = typeof occurrence === 'number' ? occurrence : 1
  if (places.length === 0)
    return { problem: 'The file does not contain the text to replace: the edit will fail.' }
  if (occurrence === undefined && places.length > 1)
    return { problem: `The text to replace occurs ${places.length} times: the edit will fail.` }
  if (wanted > places.length)
    return { problem: `The text to replace occurs less than ${wanted} times: the edit will fail.` }
  const chosen = wanted === 0 ? places : [places[wanted - 1] ?? 0]
  let [after, at] = ['', 0]
  for (const place of chosen) {
    after += text.slice(at, place) + now
    at = place + old.length
  }
  return { text: after + text.slice(at) }
}

/** @param {string} text @param {{ old: string, now: string }} edit */
function withLineEndsOf(text, { old, now }) {
  const onlyCrLf = text.includes('\r\n') && !/(^|[^\r])\n/.test(text)
  if (!onlyCrLf || old.includes('\r')) return { old, now }
  const convert = (/** @type {string} */ part) => part.replaceAll(/\r?\n/g, '\r\n')
  return { old: convert(old), now: convert(now) }
}

/** @param {string} text @param {string} part */
function placesOf(text, part) {
  const places = []
  if (part === '') return []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length))
    places.push(at)
  return places
}

/**
 * A path as the files of the run have it; null for one that leads out of the folder.
 *
 * @param {string} path
 * @param {string} cwd
 */
export function pathInFolder(path, cwd) {
  const inside = path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path
  if (inside.startsWith('/')) return null
  /** @type {string[]} */
  const names = []
  for (const name of inside.split('/')) {
    if (name === '..' && names.pop() === undefined) return null
    if (name !== '' && name !== '.' && name !== '..') names.push(name)
  }
  return names.length === 0 ? null : names.join('/')
}

/** What a call does, before its path or tool. */
export const VERBS = /** @type {const} */ ({
  write: 'Writes',
  edit: 'Edits',
  replace: 'Edits',
  command: 'Runs a command',
  read: 'Reads',
  other: 'Calls',
})
