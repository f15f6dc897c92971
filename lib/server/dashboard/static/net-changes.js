/** The net changes of a run, read when they are opened: to be compared with those of others. */
import { runAddress } from './address.js'
import { call, messageOf } from './api.js'
import { ChangeRow } from './change-row.js'
import { h, place, problemLine, refill, setText } from './dom.js'
import { lineCounts, plural } from './format.js'

/** The most files shown, and how many short diffs of them are open from the start. */
const SHOWN = 20
const OPEN = 3

export class NetChanges {
  #runId
  #query = ''
  /** The files are read again when this has changed. @type {unknown} */
  #version = null
  /** Counts readings: of two, the answer to the older one may come last. */
  #readings = 0
  /** @type {Map<string, ChangeRow>} */
  #rows = new Map()
  #problem = problemLine()
  #note = h('p.hint')
  #list = h('ul.changes')
  #more = h('p')
  #body = h('div.change-body', { 'aria-live': 'polite' }, [
    this.#problem, this.#note, this.#list, this.#more,
  ])
  element

  /**
   * @param {string} runId
   * @param {string} whose for readers who do not see beside what it stands
   * @param {string} [title]
   */
  constructor(runId, whose, title = 'Net changes') {
    this.#runId = runId
    this.element = h(
      'details.net-changes',
      { ontoggle: () => void this.#read() },
      h('summary', title, h('span.visually-hidden', ` of ${whose}`)),
      this.#body,
    )
  }

  /**
   * @param {unknown} version
   * @param {string} [query] which points are compared; the run from its start unless given
   */
  update(version, query = '') {
    if (version === this.#version && query === this.#query) return
    this.#version = version
    this.#query = query
    void this.#read()
  }

  /** @param {boolean} open */
  set open(open) {
    this.element.open = open
  }

  async #read() {
    if (!this.element.open) return
    const reading = (this.#readings += 1)
    const isOld = () => reading !== this.#readings
    this.#body.setAttribute('aria-busy', 'true')
    try {
      const answer = await call('GET', `api/runs/${this.#runId}/changes${this.#query}`)
      if (isOld()) return
      this.#draw(answer)
      setText(this.#problem, '')
    } catch (error) {
      if (isOld()) return
      setText(this.#problem, messageOf(error))
    }
    this.#body.removeAttribute('aria-busy')
  }

  /** @param {import('../types.js').NetChanges} answer */
  #draw({ changes, more, note }) {
    const first = this.#rows.size === 0
    const rows = new Map()
    for (const [i, change] of changes.slice(0, SHOWN).entries()) {
      const row = this.#rows.get(change.path) ?? new ChangeRow(this.#runId, () => {})
      const open = first && i < OPEN
      row.update(change, { split: false, from: 'start', to: 'newest', ticked: null, open })
      rows.set(change.path, row)
    }
    this.#rows = rows
    place(this.#list, [...rows.values()].map(({ element }) => element))
    const total = changes.reduce(
      (sum, { additions, deletions }) => ({
        additions: sum.additions + additions,
        deletions: sum.deletions + deletions,
      }),
      { additions: 0, deletions: 0 },
    )
    const count = changes.length + more
    const sum = count === 0 ? 'No net change.' : `${plural(count, 'file')} · ${lineCounts(total)}`
    setText(this.#note, note ?? sum)
    const rest = count - rows.size
    const link = h('a', { href: runAddress(this.#runId, 'changes') }, 'All changes of the run')
    refill(this.#more, link, rest > 0 && `: ${plural(rest, 'more file')}`)
  }
}
