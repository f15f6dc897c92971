/** One changed file: what became of it, and its diff, which is drawn when it is opened. */
import { runAddress } from './address.js'
import { diffLines, SHORT_DIFF, sideBySide, unified } from './diff.js'
import { fill, h } from './dom.js'
import { number } from './format.js'

/** @typedef {import('../types.js').NetChange} NetChange */

/**
 * @typedef {{
 *   readonly split: boolean,
 *   readonly from: string,
 *   readonly to: string,
 *   readonly ticked: boolean | null,
 *   readonly open: boolean,
 * }} Shown `ticked` null: without a box; `open`: when the diff is short
 */

/** @type {Record<NetChange['status'], string>} */
const WORDS = { added: 'new', modified: 'changed', deleted: 'deleted', renamed: 'renamed' }

let rows = 0

export class ChangeRow {
  #box
  #summary = h('summary')
  #body = h('div.change-body')
  #details = h('details.change', { ontoggle: () => this.#drawBody() }, this.#summary, this.#body)
  element
  #runId
  #id = `changed-path-${(rows += 1)}`
  /** @type {NetChange | null} */
  #change = null
  /** @type {Shown | null} */
  #shown = null
  /** What the row was drawn from, as JSON. */
  #drawn = ''
  #drawnBody = ''

  /**
   * @param {string} runId
   * @param {(path: string, ticked: boolean) => void} tick
   */
  constructor(runId, tick) {
    this.#runId = runId
    this.#box = h('input', {
      type: 'checkbox',
      'aria-labelledby': `apply-changes ${this.#id}`,
      onchange: () => this.#change !== null && tick(this.#change.path, this.#box.checked),
    })
    this.element = h('li.change-row', this.#box, this.#details)
  }

  /** @param {NetChange} change @param {Shown} shown */
  update(change, shown) {
    const first = this.#change === null
    this.#change = change
    this.#shown = shown
    this.#box.hidden = shown.ticked === null
    this.#box.checked = shown.ticked === true
    const { diff, ...facts } = change
    const drawn = JSON.stringify(facts)
    if (drawn !== this.#drawn) {
      this.#drawn = drawn
      this.#drawSummary(change)
    }
    const count = diffLines(diff ?? '').length
    if (first && shown.open && count > 0 && count <= SHORT_DIFF) this.#details.open = true
    this.#drawBody()
  }

  /** @param {NetChange} change */
  #drawSummary({ path, old_path, status, additions, deletions, binary, mode, redacted }) {
    const modes = mode.before !== null && mode.after !== null && mode.before !== mode.after
    const word = (/** @type {string} */ text) => h('span.word', text)
    fill(
      this.#summary,
      h('span.path', { id: this.#id }, old_path === null ? path : `${old_path} → ${path}`),
      word(WORDS[status] ?? status),
      modes && word(`mode ${mode.before} → ${mode.after}`),
      mode.after === '120000' && word('link'),
      binary && word('binary'),
      redacted && h('span.word.warn', 'secrets not shown'),
      !binary && h('span.added', `+${number(additions)}`),
      !binary && h('span.removed', `−${number(deletions)}`),
    )
  }

  #drawBody() {
    if (!this.#details.open || this.#change === null || this.#shown === null) return
    const { split, from, to } = this.#shown
    const drawn = JSON.stringify([this.#change, split, from, to])
    if (drawn === this.#drawnBody) return
    this.#drawnBody = drawn
    const focused = this.#body.contains(document.activeElement)
    fill(this.#body, ...bodyOf(this.#change, split), this.#link(this.#change, from, to))
    if (focused) this.#summary.focus({ preventScroll: true })
  }

  /**
   * @param {NetChange} change
   * @param {string} from
   * @param {string} to
   */
  #link({ path, status }, from, to) {
    const deleted = status === 'deleted'
    const href = runAddress(this.#runId, 'files', { path, at: deleted ? from : to })
    return h('p', h('a', { href }, deleted ? 'The file before' : 'The whole file'))
  }
}

/**
 * @param {NetChange} change
 * @param {boolean} split
 */
function bodyOf({ binary, diff, redacted }, split) {
  const hint = (/** @type {string} */ text) => h('p.hint', text)
  const notes = redacted ? [hint('Secrets in this file are replaced.')] : []
  if (binary) return [...notes, hint('Binary content: there are no lines to show.')]
  if (diff === null)
    return [...notes, hint('Not shown: it is too large, or its content was not kept.')]
  const lines = diffLines(diff)
  if (lines.length === 0) return [...notes, hint('No line differs.')]
  return [...notes, split ? sideBySide(lines) : unified(lines)]
}
