/** One changed file: what became of it, and its diff, which is drawn when it is opened. */
import { runAddress } from './address.js'
import { diffLines, DiffView, SHORT_DIFF } from './diff.js'
import { h, place, refill, setText } from './dom.js'
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

/** @type {Record<NonNullable<NetChange['group']>, string>} */
const GROUPS = {
  verified: 'verified',
  not_read: 'not read by the check',
  added: 'the check passes with and without it',
  held_back: 'held back: the check passes with it as at the start',
}

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
  /** What the body was drawn from. @type {readonly unknown[]} */
  #drawn = []
  #diff = new DiffView()
  #link = h('a')
  #linkLine = h('p', this.#link)

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
    const former = this.#change
    this.#change = change
    this.#shown = shown
    this.#box.hidden = shown.ticked === null
    this.#box.checked = shown.ticked === true
    if (change !== former) this.#drawSummary(change)
    const count = former === null && shown.open ? diffLines(change.diff ?? '').length : 0
    if (count > 0 && count <= SHORT_DIFF) this.#details.open = true
    this.#drawBody()
  }

  /** @param {NetChange} change */
  #drawSummary({ path, old_path, status, additions, deletions, binary, mode, redacted, group }) {
    const modes = mode.before !== null && mode.after !== null && mode.before !== mode.after
    const word = (/** @type {string} */ text) => h('span.word', text)
    refill(
      this.#summary,
      h('span.path', { id: this.#id }, old_path === null ? path : `${old_path} → ${path}`),
      word(WORDS[status] ?? status),
      modes && word(`mode ${mode.before} → ${mode.after}`),
      mode.after === '120000' && word('link'),
      binary && word('binary'),
      redacted && h('span.word.warn', 'secrets not shown'),
      group !== null &&
        h('span.word', { class: group === 'held_back' ? 'warn' : '' }, GROUPS[group] ?? group),
      !binary && h('span.added', `+${number(additions)}`),
      !binary && h('span.removed', `−${number(deletions)}`),
    )
  }

  #drawBody() {
    if (!this.#details.open || this.#change === null || this.#shown === null) return
    const { split, from, to } = this.#shown
    const drawn = [this.#change, split, from, to]
    if (drawn.every((part, i) => part === this.#drawn[i])) return
    this.#drawn = drawn
    const { path, status, binary, diff, redacted } = this.#change
    const lines = diffLines(diff ?? '')
    const why = binary
      ? 'Binary content: there are no lines to show.'
      : diff === null
        ? 'Not shown: it is too large, or its content was not kept.'
        : lines.length === 0 && 'No line differs.'
    this.#diff.update(lines, split)
    const deleted = status === 'deleted'
    this.#link.href = runAddress(this.#runId, 'files', { path, at: deleted ? from : to })
    setText(this.#link, deleted ? 'The file before' : 'The whole file')
    place(this.#body, [
      ...(redacted ? [h('p.hint', 'Secrets in this file are replaced.')] : []),
      why === false ? this.#diff.element : h('p.hint', why),
      this.#linkLine,
    ])
  }
}
