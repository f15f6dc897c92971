/**
 * The output of a program, with its colours: short ones as they are, long ones line by line, of
 * which only those in sight have elements. What is copied is what can be seen; what is saved is
 * what the program has written.
 */
import { classesOf, linesOf, PLAIN, withoutStyles } from './ansi.js'
import { button, fill, h, prose, setText } from './dom.js'
import { number, plural } from './format.js'
import { copyButton, saveFile } from './save.js'
import { highlight } from './highlight.js'
import { countIn, folded, wordsOf } from './search.js'
import { readable } from './visible.js'
import { VirtualList } from './virtual-list.js'

/** @typedef {import('./ansi.js').Run} Run */

/** What is shown as it is, with lines that go on in the next one. */
const SHORT_LINES = 100
const SHORT_CHARACTERS = 8_000
/** Characters of a line of a long output; what is longer is several lines. */
const LINE = 1_000
/** Lines that are shown of an output. */
const MOST_LINES = 500_000
/** Elements of one line, and of a short output. */
const LINE_STYLES = 24
const SHORT_STYLES = 400
/** Height of a line in pixels, as the style sheet has it. */
const HEIGHT = 20

/**
 * @param {string} output
 * @param {string} name of the file in which it is saved
 * @returns {HTMLElement}
 */
export function outputView(output, name) {
  const tools = h(
    'span.output-tools',
    copyButton('Copy', () => readable(withoutStyles(output))),
    button('Download', () => saveFile([output], name), 'quiet small'),
  )
  const lines = linesOf(output)
  const isShort = lines.length <= SHORT_LINES && output.length <= SHORT_CHARACTERS
  if (isShort) return h('div.output-box-body', tools, shortOutput(lines))
  return h('div.output-box-body', new LongOutput(lines, tools).element)
}

/** @param {readonly Run[][]} lines */
function shortOutput(lines) {
  const all = lines.flatMap((line, i) => (i === 0 ? line : [NEW_LINE, ...line]))
  return h('pre.output', { tabIndex: 0, dir: 'auto' }, partsOf(all, SHORT_STYLES))
}

/** @type {Run} */
const NEW_LINE = { text: '\n', style: PLAIN }

/**
 * Text as it is, and an element for each piece with a style; from `most` on all in one.
 *
 * @param {readonly Run[]} runs
 * @param {number} most
 */
function partsOf(runs, most) {
  /** @type {Node[]} */
  const parts = []
  let plain = ''
  let styles = 0
  const flush = () => {
    if (plain !== '') parts.push(prose(plain))
    plain = ''
  }
  for (const { text, style } of runs) {
    const classes = styles < most ? classesOf(style) : ''
    if (classes === '') plain += text
    else {
      flush()
      styles += 1
      parts.push(h('span', { class: classes }, prose(text)))
    }
  }
  flush()
  return parts
}

/** An output of many lines, with a search of its own. */
class LongOutput {
  element
  /** With the number of their line; null for one that goes on. @type {[number | null, Run[]][]} */
  #lines
  #words = ''
  /** Lines that hold what is searched for. @type {number[]} */
  #found = []
  #at = -1
  #find = h('input', {
    type: 'search',
    placeholder: 'Find in this output',
    'aria-label': 'Find in this output',
    oninput: () => this.#search(),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Enter') return
      event.preventDefault()
      this.#go(event.shiftKey ? -1 : 1)
    },
  })
  #before = button('↑', () => this.#go(-1), { class: 'small', 'aria-label': 'Match before' })
  #after = button('↓', () => this.#go(1), { class: 'small', 'aria-label': 'Next match' })
  #moves = h('span.find-moves', { hidden: true }, this.#before, this.#after)
  #count = h('span.hint', { role: 'status' })
  #rows = h('div.output-lines')
  #scroller = h('div.output.output-long', {
    tabIndex: 0, role: 'region', 'aria-label': 'Output',
  }, this.#rows)
  #list

  /**
   * @param {readonly Run[][]} lines
   * @param {Node} tools
   */
  constructor(lines, tools) {
    this.#lines = lines.slice(0, MOST_LINES).flatMap((line, i) => pieces(line, i + 1))
    const more = lines.length - MOST_LINES
    const widest = this.#lines.reduce((most, [, line]) => Math.max(most, lengthOf(line)), 0)
    this.#rows.style.setProperty('width', `calc(${widest + 8}ch + 24px)`)
    this.#list = new VirtualList(this.#scroller, this.#rows, HEIGHT, (index) => this.#draw(index))
    this.element = h(
      'div.output-view',
      h('div.output-head', this.#count, this.#moves, this.#find, tools),
      this.#scroller,
      more > 0 && h('p.hint', `${plural(more, 'more line')}: download the output.`),
    )
    this.element.addEventListener('find', (event) => {
      const { detail } = /** @type {CustomEvent<string>} */ (event)
      this.#find.value = detail
      this.#search()
      if (this.#found.length > 0) event.preventDefault()
    })
    this.#list.update(this.#lines.length)
    const onscroll = () => {
      if (this.#words !== '') this.#mark()
    }
    this.#scroller.addEventListener('scroll', onscroll, { passive: true })
  }

  /** @param {number} index */
  #draw(index) {
    const [at, runs] = this.#lines[index] ?? [null, []]
    const line = h('div.output-line', { 'data-line': at === null ? '' : number(at) })
    fill(line, h('span.output-text', { dir: 'auto' }, partsOf(runs, LINE_STYLES)))
    line.classList.toggle('here', index === this.#found[this.#at])
    return line
  }

  #search() {
    const words = wordsOf(this.#find.value)
    this.#words = words
    this.#found = []
    let matches = 0
    if (words !== '') {
      for (const [index, [, runs]] of this.#lines.entries()) {
        const count = countIn(folded(runs.map(({ text }) => text).join('')), words)
        matches += count
        if (count > 0) this.#found.push(index)
      }
    }
    this.#at = -1
    this.#moves.hidden = words === ''
    this.#before.disabled = this.#after.disabled = this.#found.length === 0
    setText(this.#count, words === '' ? '' : plural(matches, 'match', 'matches'))
    this.#list.update(this.#lines.length)
    if (this.#found.length > 0) this.#go(1)
    else this.#mark()
  }

  #mark() {
    highlight(this.#rows, this.#words, 'found-in-output')
  }

  /** @param {1 | -1} by */
  #go(by) {
    const count = this.#found.length
    if (count === 0) return
    this.#at = this.#at === -1 ? (by === 1 ? 0 : count - 1) : (this.#at + by + count) % count
    this.#list.reveal(this.#found[this.#at] ?? 0)
    this.#list.update(this.#lines.length)
    const where = `${number(this.#at + 1)} of ${plural(count, 'line')}`
    setText(this.#count, where)
    this.#mark()
  }
}

/** @param {readonly Run[]} line */
function lengthOf(line) {
  return line.reduce((sum, { text }) => sum + text.length, 0)
}

/**
 * A line, in parts that are short enough to be drawn.
 *
 * @param {Run[]} line
 * @param {number} at
 * @returns {[number | null, Run[]][]}
 */
function pieces(line, at) {
  if (lengthOf(line) <= LINE) return [[at, line]]
  /** @type {[number | null, Run[]][]} */
  const parts = [[at, []]]
  let room = LINE
  for (const { text, style } of line) {
    for (let from = 0; from < text.length; ) {
      let to = Math.min(from + room, text.length)
      // Not between the halves of a character.
      if (to < text.length && /[\ud800-\udbff]/.test(text[to - 1] ?? '') && to - from > 1) to -= 1
      parts.at(-1)?.[1].push({ text: text.slice(from, to), style })
      room -= to - from
      from = to
      if (room > 1) continue
      parts.push([null, []])
      room = LINE
    }
  }
  return parts
}
