/**
 * The attempts of a run beside each other. While one of them works and the tab is shown, what they
 * have come to is read every few seconds: their events are not followed.
 */
import { messageOf } from './api.js'
import { AttemptCard } from './attempt-card.js'
import { Children } from './children.js'
import { button, h, place, problemLine, setText } from './dom.js'
import { fileFacts } from './entries.js'
import { plural } from './format.js'
import { chosenBy } from './tree-entries.js'

/**
 * @typedef {import('../types.js').AttemptsInfo} AttemptsInfo
 * @typedef {import('../types.js').RunDetails} RunDetails
 */

/** Between two readings. */
const POLL_MS = 2_000

export class AttemptsTab {
  #children
  /** @type {RunDetails | null} */
  #details = null
  /** Details of the attempts, by run. @type {Map<string, RunDetails>} */
  #read = new Map()
  /** @type {Map<string, AttemptCard>} */
  #cards = new Map()
  #visible = false
  #reading = false
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  #allOpen = false
  #summary = h('p.change-summary', { role: 'status' })
  #all = button('Show all changes', () => this.#showAll(), { class: 'small' })
  #problem = problemLine()
  #list = h('ul.attempts')
  element = h(
    'section.tab-panel',
    h('h2.visually-hidden', 'Attempts'),
    h('div.tools.attempts-tools', this.#summary, this.#all),
    this.#problem,
    this.#list,
  )

  /** @param {string} runId */
  constructor(runId) {
    this.#children = new Children(runId)
  }

  close() {
    this.show(false)
  }

  /** @param {boolean} visible */
  show(visible) {
    const wasVisible = this.#visible
    this.#visible = visible
    if (!visible) clearTimeout(this.#timer)
    else if (!wasVisible) void this.#poll()
  }

  /** @param {RunDetails} details */
  update(details) {
    this.#details = details
    this.#draw()
    if (this.#visible) void this.#poll()
  }

  async #poll() {
    clearTimeout(this.#timer)
    const attempts = this.#details?.attempts ?? null
    if (attempts === null || this.#reading) return
    this.#reading = true
    try {
      if (!document.hidden) {
        const children = await this.#children.read(attempts)
        this.#read = new Map()
        for (const { run, details } of children)
          if (details !== null) this.#read.set(run.run_id, details)
        setText(this.#problem, '')
      }
    } catch (error) {
      setText(this.#problem, messageOf(error))
    }
    this.#reading = false
    this.#draw()
    if (this.#visible && this.#isStale()) this.#timer = setTimeout(() => this.#poll(), POLL_MS)
  }

  /** Whether the next reading can bring anything new. */
  #isStale() {
    const runs = this.#details?.attempts?.runs ?? []
    return runs.some(({ run_id, status }) => {
      const read = this.#read.get(run_id)
      return status === null || (read !== undefined && read.ended_at === null)
    })
  }

  #draw() {
    const attempts = this.#details?.attempts ?? null
    this.#all.hidden = attempts === null || attempts.runs.length === 0
    setText(this.#summary, attempts === null ? 'This run makes no attempts.' : summaryOf(attempts))
    const cards = (attempts?.runs ?? []).map((info) => {
      const { run_id, attempt } = info
      const card = this.#cards.get(run_id) ?? new AttemptCard(info)
      this.#cards.set(run_id, card)
      const details = this.#read.get(run_id) ?? null
      card.update({
        status: info.status ?? details?.status ?? null,
        reason: info.reason || (details?.final_state.goal_reason ?? ''),
        assurance: info.assurance ?? details?.assurance ?? null,
        changes: info.changes,
        files: details === null ? [] : fileFacts(details),
        tokens: details?.final_state.total_tokens ?? null,
        usd: details?.final_state.estimated_cost_usd ?? null,
        costKnown: details?.cost_known ?? true,
        chosen: attempt === attempts?.chosen,
        details,
      })
      return card.element
    })
    place(this.#list, cards)
  }

  #showAll() {
    this.#allOpen = !this.#allOpen
    for (const card of this.#cards.values()) card.open = this.#allOpen
    setText(this.#all, this.#allOpen ? 'Hide all changes' : 'Show all changes')
  }
}

/** @param {AttemptsInfo} attempts */
function summaryOf({ count, choose, chosen, runs }) {
  const ended = runs.filter(({ status }) => status !== null).length
  const parts = [plural(count, 'attempt'), `${runs.length} started`, `${ended} ended`]
  const winner = chosen === null ? chosenBy(choose) : `attempt ${chosen} was chosen`
  return [...parts, winner].join(' · ')
}
