/**
 * Addresses of the page: a run, the tab of it, and what the tab shows.
 *
 * A byte of a file's name that is not UTF-8 is a lone surrogate in JSON. Addresses cannot hold it:
 * there it is a NUL, which no name contains, and two hexadecimal digits.
 */

/** @typedef {'timeline' | 'waterfall' | 'attempts' | 'changes' | 'files'} TabName */
/** @typedef {{ runId: string, tab: TabName, query: URLSearchParams }} RunAddress */

const RUN = /^#\/runs\/([0-9a-f-]{36})(?:\/(waterfall|attempts|changes|files))?(?:\?(.*))?$/s

/**
 * @param {string} runId
 * @param {TabName} [tab]
 * @param {Record<string, string | null>} [query] empty values are left out
 */
export function runAddress(runId, tab = 'timeline', query = {}) {
  const parts = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    const escape = (/** @type {string} */ byte) =>
      `\0${(byte.charCodeAt(0) & 0xff).toString(16).padStart(2, '0')}`
    if (value) parts.set(name, value.replace(/[\udc80-\udcff]/gu, escape))
  }
  const shown = tab === 'timeline' ? '' : `/${tab}`
  return `#/runs/${runId}${shown}${parts.size === 0 ? '' : `?${parts}`}`
}

/**
 * @param {string} hash
 * @returns {RunAddress | null} null for an address of no run
 */
export function readAddress(hash) {
  const [, runId, tab = 'timeline', query = ''] = RUN.exec(hash) ?? []
  if (runId === undefined) return null
  return { runId, tab: /** @type {TabName} */ (tab), query: new URLSearchParams(query) }
}

/**
 * A path from an address.
 *
 * @param {URLSearchParams} query
 */
export function pathFrom(query) {
  return (query.get('path') ?? '').replace(/\0([89a-f][\da-f])/g, (_, byte) =>
    String.fromCharCode(0xdc00 + Number.parseInt(byte, 16)),
  )
}

/**
 * The files of a run by REST: those of a folder, or the content of one.
 *
 * @param {string} runId
 * @param {string} path
 * @param {string} at a checkpoint, or empty for the newest
 */
export function filesPath(runId, path, at) {
  const names = path
    .split(/([\udc80-\udcff])/u)
    .map((part, i) =>
      i % 2 === 0
        ? part.split('/').map(encodeURIComponent).join('/')
        : `%${(part.charCodeAt(0) & 0xff).toString(16)}`,
    )
  const query = at === '' ? '' : `?at=${encodeURIComponent(at)}`
  return `api/runs/${runId}/files${path === '' ? '' : '/'}${names.join('')}${query}`
}
