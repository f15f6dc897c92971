/** Numbers, times and names as the page shows them. */

import { serviceNow } from './clock.js'
import { number, plural } from './numbers.js'

/** @typedef {import('../types.js').Status} Status */

export { endReason } from './end-reasons.js'
export { cost, duration, number, plural } from './numbers.js'

/** @type {Record<Status, string>} */
const STATUS_LABELS = {
  pending: 'Pending',
  running: 'Running',
  awaiting_human: 'Waiting for you',
  achieved: 'Achieved',
  failed: 'Failed',
  aborted: 'Aborted',
}

/** @param {Status} status */
export function statusLabel(status) {
  return STATUS_LABELS[status] ?? status
}

/** @param {Status} status */
export function isLive(status) {
  return status === 'pending' || status === 'running' || status === 'awaiting_human'
}

const days = new Intl.DateTimeFormat(undefined, { dateStyle: 'short' })

/** @param {string} iso */
export function ago(iso) {
  const seconds = Math.max(0, (serviceNow() - Date.parse(iso)) / 1_000)
  if (seconds < 10) return 'just now'
  if (seconds < 60) return `${Math.floor(seconds)} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return days.format(new Date(iso))
}

/** @param {number} ts seconds since the epoch */
export function clock(ts) {
  return new Date(ts * 1_000).toLocaleTimeString([], { hour12: false })
}

/** @param {{ readonly additions: number, readonly deletions: number }} counts of lines */
export function lineCounts({ additions, deletions }) {
  return `+${number(additions)} −${number(deletions)}`
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1_024) return plural(bytes, 'byte')
  const [unit, of] = bytes < 1_048_576 ? ['KiB', 1_024] : ['MiB', 1_048_576]
  return `${(bytes / Number(of)).toFixed(1)} ${unit}`
}

/** @type {Record<string, string>} */
const LEFT_OUT = {
  secret: 'secret by name',
  size: 'too large',
  count: 'beyond the number of files',
  kind: 'neither file nor link',
  unreadable: 'unreadable',
  budget: 'compared only, content not kept',
  passed_over: 'version control, dependencies, caches',
  hard_link: 'files with several names, restored as separate files',
}

/** @param {string} reason */
export function leftOutReason(reason) {
  return LEFT_OUT[reason] ?? reason
}
