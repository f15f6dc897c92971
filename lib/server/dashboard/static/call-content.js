/** What a gated call would do, drawn as a person reads it: a diff, a command, or its arguments. */
import { runAddress } from './address.js'
import { DiffView } from './diff.js'
import { button, fill, h } from './dom.js'
import { duration, number, plural } from './format.js'
import { diffTexts } from './line-diff.js'
import { pathInFolder, resultOf } from './proposed-call.js'
import { clipped } from './visible.js'

/**
 * @typedef {import('./proposed-call.js').Present} Present
 * @typedef {import('./proposed-call.js').Proposed} Proposed
 * @typedef {{ readonly runId: string, readonly cwd: string, readonly isCopy: boolean }} Place
 */

/** Characters of one argument, and arguments, that are shown before the reader asks for more. */
const SHOWN_VALUE = 2_000
const SHOWN_ARGUMENTS = 30
/** What a run with a patch has, of a call that does not say. */
const TRIAL_TIME = 'three times what the run without a patch takes, and 2 s'

/**
 * The diff of a write or an edit, and what is to be known about it.
 *
 * @param {Proposed & { kind: 'write' | 'edit' }} proposed
 * @param {Present} present
 * @param {Place} place
 * @returns {{ words: readonly string[], counts: { added: number, removed: number } | null,
 *   parts: readonly Node[] }}
 */
export function fileChange(proposed, present, place) {
  const after = resultOf(proposed, present)
  const path = pathInFolder(proposed.path, place.cwd)
  const outside = path === null ? [note('This path leads out of the folder.')] : []
  if ('problem' in after || after.text === null) return piecesOf(proposed, after, outside)
  if ('problem' in present) {
    const { problem } = present
    return { words: [], counts: null, parts: [...outside, note(problem), whole(after.text)] }
  }
  const isNew = present.text === null
  const diff = diffTexts(present.text ?? '', after.text)
  const words = isNew ? ['new file'] : []
  if (diff === null)
    return { words, counts: null, parts: [note('Too many lines to compare.'), whole(after.text)] }
  if (diff.lines.length === 0)
    return { words: ['no change'], counts: null, parts: [note(isNew ? EMPTY : SAME)] }
  const address = runAddress(place.runId, 'files', { path, at: 'now' })
  const link = h('p.hint', h('a', { href: address }, 'The present file'))
  const parts = [...outside, ...(isNew ? [note(MISSING)] : []), diffView(diff.lines)]
  return { words, counts: diff, parts: isNew || path === null ? parts : [...parts, link] }
}

const SAME = 'The file has this content already.'
const EMPTY = 'The new file is empty.'
const MISSING = 'No checkpoint has this file. They leave out secrets and dependencies.'

/**
 * Of an edit whose file is not known, or does not have the text: both texts.
 *
 * @param {Proposed & { kind: 'write' | 'edit' }} proposed
 * @param {Present} after
 * @param {readonly Node[]} outside
 */
function piecesOf(proposed, after, outside) {
  const problem = 'problem' in after ? [note(after.problem)] : []
  const parts = proposed.kind === 'edit' ? [replacement(proposed)] : []
  return { words: [], counts: null, parts: [...outside, ...problem, ...parts] }
}

/**
 * What is replaced by what, wherever it is.
 *
 * @param {{ readonly old: string, readonly now: string }} texts
 */
export function replacement({ old, now }) {
  const diff = diffTexts(old, now)
  return diff === null ? whole(now) : diffView(diff.lines.filter((line) => !line.startsWith('@@')))
}

/** @param {readonly string[]} lines */
function diffView(lines) {
  const view = new DiffView()
  view.update(lines, false)
  return view.element
}

/** @param {string} text */
function whole(text) {
  return longText(text, 'The whole new content')
}

/** @param {string} text */
function note(text) {
  return h('p.hint', text)
}

/**
 * @param {Proposed & { kind: 'command' }} proposed
 * @param {Place} place
 * @returns {readonly Node[]}
 */
export function commandView({ command, timeoutMs, tried }, { cwd, isCopy }) {
  const lines = command.split('\n').length
  const isInCopy = isCopy || tried !== null
  const where = isInCopy ? [h('span.path', cwd), ' (a private copy of it)'] : [h('span.path', cwd)]
  const standard = tried === null ? "the tool's own" : TRIAL_TIME
  const facts = [
    ['Runs in', where],
    ['Time limit', [timeoutMs === null ? standard : duration(timeoutMs)]],
    ...(lines > 1 ? [['Lines', [number(lines)]]] : []),
  ].map(([name, value]) => h('div', h('dt', /** @type {string} */ (name)), h('dd', value ?? '')))
  return [longText(command, 'Command', 'command'), h('dl.call-facts', facts)]
}

/**
 * Arguments of a tool of which the page knows nothing.
 *
 * @param {object} args
 * @param {readonly string[]} [known] names of those that are shown already
 */
export function argumentsTable(args, known = []) {
  const all = Object.entries(args).filter(([name]) => !known.includes(name))
  if (all.length === 0) return known.length > 0 ? null : note('Without arguments.')
  const row = (/** @type {[string, unknown]} */ [name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
    return h('div', h('dt', clipped(name, 100)), h('dd', longText(text, `Argument ${name}`)))
  }
  const list = h('dl.arguments', all.slice(0, SHOWN_ARGUMENTS).map(row))
  const rest = all.slice(SHOWN_ARGUMENTS)
  const more = button(`Show ${plural(rest.length, 'more argument')}`, () => {
    list.append(...rest.slice(0, 1_000).map(row))
    more.remove()
  }, 'quiet')
  return h('div', list, rest.length > 0 && more)
}

/** The arguments as they were sent, drawn when they are asked for. @param {object} args */
export function rawArguments(args) {
  const details = h('details', {
    ontoggle: () => {
      if (details.childElementCount > 1) return
      details.append(longText(JSON.stringify(args, null, 2), 'Arguments, as JSON'))
    },
  }, h('summary', 'As JSON'))
  return details
}

/**
 * The beginning of a text, and the rest of it on demand.
 *
 * @param {string} text
 * @param {string} label
 * @param {string} [kind]
 */
function longText(text, label, kind = '') {
  const box = h(
    'pre',
    { class: `output ${kind}`, tabIndex: 0, role: 'group', 'aria-label': clipped(label, 120) },
    text.length <= SHOWN_VALUE ? text : clipped(text, SHOWN_VALUE),
  )
  if (text.length <= SHOWN_VALUE) return box
  const more = button(`Show all ${number(text.length)} characters`, () => {
    fill(box, text)
    more.remove()
    box.focus({ preventScroll: true })
  }, 'quiet small')
  return h('div', box, more)
}
