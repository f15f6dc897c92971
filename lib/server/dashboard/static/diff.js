/** Changed files, as they were before and after. */
import { h } from './dom.js'

/** @typedef {import('../types.js').FileChange} FileChange */

/** Lines shown before somebody asks for more. */
const SHOWN_LINES = 200

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
      h('span', { class: 'path' }, change.from === undefined ? change.path : `${change.from} → ${change.path}`),
      h('span', { class: 'word' }, WORDS[change.change] ?? change.change),
      h('span', { class: 'added' }, `+${change.added_lines}`),
      h('span', { class: 'removed' }, `−${change.removed_lines}`),
    ),
    lines.length === 0 ? h('p', { class: 'hint' }, 'No text to show.') : diffLines(lines),
  )
}

/** @param {readonly string[]} lines */
function diffLines(lines) {
  const code = h('pre', { class: 'diff', tabIndex: 0, 'aria-label': 'Changed lines' })
  const show = (/** @type {readonly string[]} */ part) => {
    code.append(...part.map((line) => h('span', { class: `line ${lineKind(line)}` }, `${line}\n`)))
  }
  show(lines.slice(0, SHOWN_LINES))
  if (lines.length <= SHOWN_LINES) return code
  const more = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: () => {
        show(lines.slice(SHOWN_LINES))
        more.remove()
      },
    },
    `Show ${lines.length - SHOWN_LINES} more lines`,
  )
  return h('div', {}, code, more)
}

/** @param {string} line */
function lineKind(line) {
  if (line.startsWith('+++') || line.startsWith('---')) return 'file'
  if (line.startsWith('@@')) return 'hunk'
  if (line.startsWith('+')) return 'plus'
  if (line.startsWith('-')) return 'minus'
  return ''
}
