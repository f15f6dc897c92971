/** The diff of one changed file: line by line, or both sides beside each other. */
import { button, fill, h, refill, setText } from './dom.js'
import { number } from './format.js'

/** @typedef {import('../types.js').FileChange} FileChange */

/** Lines shown before the user asks for more, and shown more each time. */
const SHOWN_LINES = 200
const MORE_LINES = 2_000

/** Lines of a diff that is open from the start, at most. */
export const SHORT_DIFF = 40

/** @type {Record<FileChange['change'], string>} */
const WORDS = { created: 'new', modified: 'changed', deleted: 'deleted', renamed: 'renamed' }

/** @param {FileChange} change */
export function changeView(change) {
  const lines = diffLines(change.diff)
  const view = new DiffView()
  view.update(lines, false)
  return h(
    'details.change',
    { open: lines.length > 0 && lines.length <= SHORT_DIFF },
    h(
      'summary',
      h('span.path', pathOf(change)),
      h('span.word', WORDS[change.change] ?? change.change),
      h('span.added', `+${change.added_lines}`),
      h('span.removed', `−${change.removed_lines}`),
    ),
    lines.length === 0 ? h('p.hint', 'No text to show.') : view.element,
  )
}

/** @param {FileChange} change */
function pathOf({ from, path }) {
  return from === undefined ? path : `${from} → ${path}`
}

/** @param {string} diff */
export function diffLines(diff) {
  return diff === '' ? [] : diff.replace(/\n$/, '').split('\n')
}

/** The lines of a diff. What a reader has scrolled and asked for stays when they change. */
export class DiffView {
  element = h('div')
  /** @type {boolean | null} */
  #split = null
  /** @type {HTMLElement} */
  #box = h('div')
  /** @type {Element} */
  #into = this.#box
  #shown = SHOWN_LINES
  /** @type {readonly unknown[]} */
  #items = []
  /** @type {(item: any, index: number) => Element} */
  #view = splitRow
  #more = button('', () => this.#showMore(), 'quiet')

  /**
   * @param {readonly string[]} lines of a unified diff
   * @param {boolean} split both sides beside each other
   */
  update(lines, split) {
    if (split !== this.#split) {
      this.#split = split
      this.#box = split ? sidesBox() : linesBox()
      this.#into = this.#box.querySelector('tbody') ?? this.#box
      fill(this.element, this.#box, this.#more)
    }
    const head = headLines(lines)
    this.#items = split ? splitRows(lines) : lines
    this.#view = split ? splitRow : (line, i) => unifiedLine(line, i < head)
    const shown = this.#items.slice(0, this.#shown)
    refill(this.#into, shown.map(this.#view))
    this.#drawMore()
  }

  #drawMore() {
    const rest = this.#items.length - this.#shown
    this.#more.hidden = rest <= 0
    setText(this.#more, `Show ${number(Math.min(MORE_LINES, rest))} more lines`)
  }

  #showMore() {
    const from = this.#shown
    this.#shown += MORE_LINES
    const added = this.#items.slice(from, this.#shown)
    this.#into.append(...added.map((item, i) => this.#view(item, from + i)))
    this.#drawMore()
    // Keyboard users continue in the text.
    if (this.#more.hidden) this.#box.focus({ preventScroll: true })
  }
}

function linesBox() {
  return h('pre.diff', { tabIndex: 0, 'aria-label': 'Changed lines' })
}

/**
 * @param {string} line
 * @param {boolean} isHead
 */
function unifiedLine(line, isHead) {
  return h('span', { class: `line ${lineKind(line, isHead)}` }, `${line}\n`)
}

/**
 * The number of lines before the first hunk.
 *
 * @param {readonly string[]} lines
 */
function headLines(lines) {
  return Math.max(0, lines.findIndex((line) => line.startsWith('@@')))
}

/**
 * @param {string} line
 * @param {boolean} isHead tells a removed line that begins with `--` from the head
 */
function lineKind(line, isHead) {
  if (isHead) return 'file'
  if (line.startsWith('@@')) return 'hunk'
  if (line.startsWith('+')) return 'plus'
  if (line.startsWith('-')) return 'minus'
  return ''
}

/** One side of a row: number and text of the line; null for a gap. */
/** @typedef {{ number: number | null, text: string, kind: string } | null} Side */

function sidesBox() {
  const columns = ['numbers', '', 'numbers', '']
  const names = ['Line', 'Before', 'Line', 'After']
  const table = h(
    'table.split',
    h('colgroup', columns.map((name) => h('col', { class: name }))),
    h('thead.visually-hidden', h('tr', names.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody'),
  )
  return h('div.diff', { tabIndex: 0, role: 'group', 'aria-label': 'Both sides' }, table)
}

/** @param {string | readonly [Side, Side]} row a text is the head of a hunk */
function splitRow(row) {
  if (typeof row === 'string')
    return h('tr', h('td.line.hunk', { colSpan: 4 }, row))
  return h(
    'tr',
    row.map((side) => [
      h('td.line-number', side?.number ?? ''),
      h('td', { class: `line ${side?.kind ?? 'gap'}` }, side?.text ?? ''),
    ]).flat(),
  )
}

/**
 * Pairs removed lines with the added ones that follow them.
 *
 * @param {readonly string[]} lines
 */
export function splitRows(lines) {
  /** @type {(string | readonly [Side, Side])[]} */
  const rows = []
  /** @type {[Side[], Side[]]} */
  let sides = [[], []]
  let before = 0
  let after = 0
  const flush = () => {
    const [left, right] = sides
    for (let i = 0; i < Math.max(left.length, right.length); i++)
      rows.push([left[i] ?? null, right[i] ?? null])
    sides = [[], []]
  }
  let last = ' '
  for (const line of lines.slice(headLines(lines))) {
    const kind = line[0] ?? ' '
    const text = line.slice(1)
    if (kind === '@') {
      flush()
      const [, from, to] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line) ?? []
      before = Number(from)
      after = Number(to)
      rows.push(line)
    } else if (kind === '\\') {
      // It is about the line before: there is no newline at its end.
      const note = { number: null, text: line, kind: 'hunk' }
      if (last !== '+') sides[0].push(note)
      if (last !== '-') sides[1].push(note)
    } else if (kind === '-') {
      if (last === '+') flush()
      sides[0].push({ number: before++, text, kind: 'minus' })
    } else if (kind === '+') {
      sides[1].push({ number: after++, text, kind: 'plus' })
    } else {
      flush()
      rows.push([{ number: before++, text, kind: '' }, { number: after++, text, kind: '' }])
    }
    if (kind !== '\\') last = kind
  }
  flush()
  return rows
}
