/** Lists of paths, and what was left out of a checkpoint. */
import { h } from './dom.js'
import { leftOutReason, plural } from './format.js'

/** @typedef {import('../types.js').LeftOut} LeftOut */

/** The most paths shown, and from how many on they may scroll. */
const SHOWN = 100
const SCROLLED = 3

/**
 * @param {readonly string[]} paths
 * @param {number} [count] of all, when `paths` has only the first of them
 */
export function pathList(paths, count = paths.length) {
  const rest = count - Math.min(paths.length, SHOWN)
  return h(
    'ul.paths',
    // A list that scrolls must be reachable by keyboard.
    { 'data-key': 'paths', tabIndex: paths.length > SCROLLED ? 0 : undefined },
    paths.slice(0, SHOWN).map((path) => h('li.path', path)),
    rest > 0 && h('li.hint', `and ${rest} more`),
  )
}

/**
 * @param {string} title
 * @param {readonly string[]} paths
 * @param {number} [count]
 * @param {string} [key] by which it is known when it is drawn again
 */
export function foldedPaths(title, paths, count, key = title) {
  const summary = h('summary', { 'data-key': 'summary' }, title)
  return h('details', { 'data-key': key }, summary, pathList(paths, count))
}

/**
 * Of a merge; null when there are none.
 *
 * @param {readonly string[]} paths
 */
export function conflictsView(paths) {
  if (paths.length === 0) return null
  return foldedPaths(`Left as they were: ${paths.length} (changed by both runs)`, paths)
}

/**
 * @param {string} what what it is missing in, such as `Not compared`
 * @param {readonly LeftOut[]} leftOut
 */
export function leftOutView(what, leftOut) {
  return leftOut.map(({ reason, count, paths }) => {
    const title = `${what}: ${plural(count, 'path')} (${leftOutReason(reason)})`
    return foldedPaths(title, paths, count, reason)
  })
}
