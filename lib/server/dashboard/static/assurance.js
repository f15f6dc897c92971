/** What a verdict rests on, in words, and the list of files that belong to the check. */
import { call, messageOf } from './api.js'
import { fill, h, problemLine, setText } from './dom.js'
import { plural } from './format.js'

/**
 * @typedef {import('../types.js').Assurance} Assurance
 * @typedef {import('../types.js').CheckFile} CheckFile
 * @typedef {import('../types.js').TestCounts} TestCounts
 */

/** @type {Record<Assurance['by'], string>} */
const BY = {
  tests: 'tests',
  exit_code: 'exit code only',
  schema: 'the form of the result only',
  judge: 'the opinion of a model',
}

/**
 * For example `12 tests, in a sealed copy, assertions shown to fail`.
 *
 * @param {Assurance} assurance
 * @param {TestCounts | null} counts of the same check
 */
export function restsOn({ by, sealed, canaries, holdout }, counts) {
  const isCommand = by === 'tests' || by === 'exit_code'
  return [
    by === 'tests' && counts !== null ? plural(counts.total, 'test') : (BY[by] ?? by),
    sealed ? 'in a sealed copy' : isCommand ? 'not in a sealed copy' : '',
    canaries ? 'assertions shown to fail' : '',
    holdout ? 'held-out tests too' : '',
  ]
    .filter((part) => part !== '')
    .join(', ')
}

/** The most files shown. */
const SHOWN = 200

/** The files of the check, read when the list is opened. Hidden while their number is not known. */
export class CheckFileList {
  #runId
  #count = -1
  #summary = h('summary')
  #problem = problemLine()
  #note = h('p.hint')
  #list = h('ul.paths', { 'aria-label': 'Files that belong to the check', tabIndex: 0 })
  #body = h('div.check-file-list', { 'aria-live': 'polite' }, this.#problem, this.#note, this.#list)
  element = h(
    'details.check-files',
    { hidden: true, ontoggle: () => void this.#read() },
    this.#summary,
    this.#body,
  )

  /** @param {string} runId */
  constructor(runId) {
    this.#runId = runId
  }

  /** @param {number | null} count */
  update(count) {
    this.element.hidden = count === null
    if (count === null || count === this.#count) return
    this.#count = count
    setText(this.#summary, `Check files (${count})`)
    void this.#read()
  }

  async #read() {
    if (!this.element.open) return
    this.#body.setAttribute('aria-busy', 'true')
    try {
      const found = await call('GET', `api/runs/${this.#runId}/check-files`)
      setText(this.#problem, '')
      this.#show(found)
    } catch (error) {
      setText(this.#problem, messageOf(error))
    }
    this.#body.removeAttribute('aria-busy')
  }

  /** @param {import('../types.js').CheckFiles} found */
  #show({ files, observed }) {
    const how = observed ? 'by what a check was seen to read' : 'by their names alone'
    setText(this.#note, `No change of these counts towards the goal. They are known ${how}.`)
    const rest = files.length - SHOWN
    this.#list.hidden = files.length === 0
    fill(
      this.#list,
      files.slice(0, SHOWN).map(({ path, reason }) =>
        h('li', h('span.path', path), ' ', h('span.hint', reason)),
      ),
      rest > 0 && h('li.hint', `and ${plural(rest, 'more file')}`),
    )
  }
}
