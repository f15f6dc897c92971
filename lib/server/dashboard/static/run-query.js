/**
 * Which runs the list shows: what the address says, and what the service is asked for. The names
 * in the address are those of the REST API, so a filter can be kept as a link.
 */

/**
 * @typedef {import('../types.js').Status} Status
 * @typedef {{ readonly limit: number, readonly statuses: readonly Status[] }} Part
 */

/** @type {readonly Status[]} */
export const LIVE = ['awaiting_human', 'running', 'pending']
/** @type {readonly Status[]} */
export const ENDED = ['achieved', 'failed', 'aborted']

/** Names of the address that the service knows, in the order in which they are written. */
const NAMES = [
  'status', 'search', 'cwd', 'end_reason', 'model_name', 'goal', 'created_after', 'created_before',
  'sort',
]
const METADATA = 'metadata.'
const HOME = /^#\/(?:\?(.*))?$/s

/**
 * The filter of an address; null for an address of something else.
 *
 * @param {string} hash
 * @returns {URLSearchParams | null}
 */
export function filterFrom(hash) {
  if (hash === '' || hash === '#') return new URLSearchParams()
  const match = HOME.exec(hash)
  return match === null ? null : known(new URLSearchParams(match[1] ?? ''))
}

/**
 * The known names of a filter, always in the same order; an empty text is kept where it means
 * something: runs without a folder.
 *
 * @param {URLSearchParams} given
 */
function known(given) {
  const filter = new URLSearchParams()
  for (const name of NAMES)
    for (const value of given.getAll(name))
      if (value.trim() !== '' || name === 'cwd') filter.append(name, value)
  for (const [name, value] of given) if (name.startsWith(METADATA)) filter.append(name, value)
  return filter
}

/**
 * The address of a filter.
 *
 * @param {URLSearchParams} filter
 */
export function listAddress(filter) {
  const shown = known(filter)
  return shown.size === 0 ? '#/' : `#/?${shown}`
}

/**
 * Does it leave runs out? An order does not.
 *
 * @param {URLSearchParams} filter
 */
export function isNarrowed(filter) {
  return [...filter.keys()].some((name) => name !== 'sort')
}

/**
 * The path of a part of the list; null when the filter has no run of that part.
 *
 * @param {URLSearchParams} filter
 * @param {Part} part
 */
export function listPath(filter, { limit, statuses }) {
  const wanted = filter.getAll('status')
  // An unknown status goes to the service, which says what is wrong with it.
  const isKnown = wanted.every((one) => [...LIVE, ...ENDED].some((status) => status === one))
  const asked = wanted.length === 0
    ? statuses
    : isKnown ? statuses.filter((status) => wanted.includes(status)) : wanted
  if (asked.length === 0) return null
  // Only runs that have ended have a reason.
  if (filter.has('end_reason') && !asked.some((status) => !LIVE.some((one) => one === status)))
    return null
  const query = new URLSearchParams([
    ['limit', String(limit)],
    ...asked.map((status) => ['status', status]),
    ...[...known(filter)].filter(([name]) => name !== 'status'),
  ])
  // What another run started is folded under that, unless the user looks for it.
  if (!isNarrowed(filter)) query.set('role', 'root')
  return `api/runs?${query}`
}

/**
 * The last two names of a path, which tell folders apart where there is little room.
 *
 * @param {string} path
 */
export function shortFolder(path) {
  const names = path.split('/')
  return names.length <= 3 ? path : `…/${names.slice(-2).join('/')}`
}
