/** Numbers, times and names as the page shows them. */

/** @typedef {import('../types.js').Status} Status */

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

/** @type {Record<string, string>} */
const END_REASONS = {
  goal_achieved: 'the goal was met',
  max_iterations: 'out of iterations',
  token_budget: 'the token budget is spent',
  cost_budget: 'the cost budget is spent',
  time_budget: 'the time budget is spent',
  tool_call_budget: 'the tool call budget is spent',
  holdout_exhausted: 'the held-out tests failed too often',
  stuck: 'it was repeating itself',
  content_filter: 'the provider’s content filter stopped it',
  context_exhausted: 'the conversation outgrew the model',
  provider_error: 'the model provider failed',
  goal_check_error: 'the goal could not be checked',
  internal_error: 'an internal error occurred',
  recovery_failed: 'it could not be resumed after a restart',
  human_abort: 'stopped by a human at a gate',
  cancelled: 'stopped before it was done',
  gate_timeout: 'the gate was not answered in time',
  attempts_failed: 'no attempt met the goal',
  result_invalid: 'no valid result was given',
}

/** @param {string} reason */
export function endReason(reason) {
  return END_REASONS[reason] ?? reason.replaceAll('_', ' ')
}

const numbers = new Intl.NumberFormat('en')

/** @param {number} value */
export function number(value) {
  return numbers.format(value)
}

/**
 * @param {number} usd
 * @param {boolean} known
 */
export function cost(usd, known) {
  const amount = `$${usd.toFixed(usd > 0 && usd < 0.995 ? 4 : 2)}`
  if (known) return amount
  return usd > 0 ? `${amount} + unknown` : 'not known'
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** @param {string} iso */
export function ago(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1_000)
  if (seconds < 10) return 'just now'
  if (seconds < 60) return `${Math.floor(seconds)} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return new Date(iso).toLocaleDateString()
}

/** @param {number} ts seconds since the epoch */
export function clock(ts) {
  return new Date(ts * 1_000).toLocaleTimeString([], { hour12: false })
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`
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
}

/** @param {string} reason */
export function leftOutReason(reason) {
  return LEFT_OUT[reason] ?? reason
}
