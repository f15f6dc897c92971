/** The patches of one call of `try_patches`, each with its diff and what came of it. */
import { replacement } from './call-content.js'
import { h, programOutput } from './dom.js'
import { paragraph } from './entry.js'
import { plural } from './format.js'
import { clipped } from './visible.js'

/** @typedef {import('./tried-patches.js').TriedPatch} TriedPatch */

/** Patches that are seen without being asked for, and that are drawn at all. */
const FEW = 3
const MOST = 100
/** Edits that are drawn of one patch. */
const MOST_EDITS = 20
/** Characters of a note, and of an outcome. */
const SHOWN_TEXT = 2_000

/**
 * Folded when there are more than a few, and drawn when it is opened, as a long output is.
 *
 * @param {import('./tried-patches.js').Tried} tried
 * @param {boolean} isOver tells a list with outcomes from the one that it takes the place of
 */
export function patchList({ patches, summary }, isOver) {
  const isFew = patches.length <= FEW
  const show = () => {
    if (box.childElementCount > 1) return
    box.append(...patches.slice(0, MOST).map(patchView))
    const rest = patches.length - MOST
    const more = `${plural(rest, 'more patch', 'more patches')} in the log.`
    if (rest > 0) box.append(h('p.hint', more))
  }
  const ontoggle = () => box.open && show()
  const state = isOver ? 'over' : 'running'
  const props = { open: isFew, 'data-state': state, ontoggle, onshow: show }
  const box = h('details.tried', props, h('summary', summary))
  if (isFew) show()
  return box
}

/** @param {TriedPatch} patch @param {number} index */
function patchView({ edits, note, outcome, passed }, index) {
  const [first] = edits
  const what = first === undefined ? '' : `${oneLine(first.old)} → ${oneLine(first.now)}`
  const [word = ''] = outcome.split('\n', 1)
  const text = programOutput(clipped(outcome, SHOWN_TEXT))
  return h(
    'details.change',
    h(
      'summary',
      `${index + 1}`,
      h('span.path', clipped(first?.path ?? '', 200)),
      h('code.args', clipped(what, 200)),
      edits.length > 1 ? h('span.word', plural(edits.length, 'edit')) : null,
      word === '' ? null : h('span', { class: passed ? 'fact good' : 'fact' }, clipped(word, 200)),
    ),
    note === '' ? null : paragraph(clipped(note, SHOWN_TEXT)),
    edits.slice(0, MOST_EDITS).flatMap((edit) => [
      ...(edits.length > 1 ? [h('p.hint.path', clipped(edit.path, 300))] : []),
      replacement(edit),
    ]),
    outcome === '' ? null : h('pre.output', { tabIndex: 0 }, text),
  )
}

/** @param {string} text */
function oneLine(text) {
  const start = text.slice(0, 400).trim().replaceAll(/\s+/g, ' ')
  return start === '' ? '∅' : clipped(start, 80)
}
