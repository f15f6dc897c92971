/** The diff of one changed file. */
import { button, h } from './dom.js'

/** @typedef {import('../types.js').FileChange} FileChange */

/** Lines shown before the user asks for more. */
const SHOWN_LINES = 200

/** Lines before the first hunk: `---` and `+++`. */
const HEAD_LINES = 2

/** @type {Record<FileChange['change'], string>} */
const WORDS = { created: 'new', modified: 'changed', deleted: 'deleted', renamed: 'renamed' }

/** @param {FileChange} change */
export function changeView(change) {
  const lines = change.diff === '' ? [] : change.diff.replace(/\n$/, '').split('\n')
  return h(
    'details',
    { class: 'change', open: lines.length > 0 && lines.length <= 40 },
    h(
      'summary',
      {},
      h('span', { class: 'path' }, pathOf(change)),
      h('span', { class: 'word' }, WORDS[change.change] ?? change.change),
      h('span', { class: 'added' }, `+${change.added_lines}`),
      h('span', { class: 'removed' }, `−${change.removed_lines}`),
    ),
    lines.length === 0 ? h('p', { class: 'hint' }, 'No text to show.') : diffLines(lines),
  )
}

/** @param {FileChange} change */
function pathOf({ from, path }) {
  return from === undefined ? path : `${from} → ${path}`
}

/** @param {readonly string[]} lines */
function diffLines(lines) {
  const code = h('pre', { class: 'diff', tabIndex: 0, 'aria-label': 'Changed lines' })
  const show = (/** @type {number} */ from, /** @type {number} */ to) => {
    const views = lines.slice(from, to).map((line, i) => {
      return h('span', { class: `line ${lineKind(line, from + i)}` }, `${line}\n`)
    })
    code.append(...views)
  }
  show(0, SHOWN_LINES)
  if (lines.length <= SHOWN_LINES) return code
  const showRest = () => {
    show(SHOWN_LINES, lines.length)
    more.remove()
  }
  const label = `Show ${lines.length - SHOWN_LINES} more lines`
  const more = button(label, showRest, { class: 'quiet' })
  return h('div', {}, code, more)
}

/**
 * @param {string} line
 * @param {number} index tells a removed line that begins with `--` from the head
 */
function lineKind(line, index) {
  if (index < HEAD_LINES) return 'file'
  if (line.startsWith('@@')) return 'hunk'
  if (line.startsWith('+')) return 'plus'
  if (line.startsWith('-')) return 'minus'
  return ''
}
