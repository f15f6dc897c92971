/** In the list of runs: the runs that a run has started, read when they are unfolded. */
import { call, messageOf } from './api.js'
import { Children } from './children.js'
import { button, fill, h, place, prose, refill, setText } from './dom.js'
import { cost, isLive, plural, statusLabel } from './format.js'

/**
 * @typedef {import('../types.js').RunDetails} RunDetails
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('./children.js').Child} Child
 */

/**
 * @param {Element} link
 * @param {boolean} current whether its run is shown
 */
export function markCurrent(link, current) {
  if (current) link.setAttribute('aria-current', 'page')
  else link.removeAttribute('aria-current')
}

/** Hidden for a run that has started none. */
export class RunBranch {
  #run
  #children
  /** @type {string | null} */
  #current = null
  /** The last event of the run as of which its children were read, once they have all ended. */
  #readSeq = -1
  /** @type {RunDetails | null} */
  #details = null
  /** @type {Map<string, ChildItem>} */
  #items = new Map()
  #fold
  #problem = h('p.error-text', { role: 'status' })
  #list
  element

  /** @param {RunSummary} run */
  constructor(run) {
    this.#run = run
    this.#children = new Children(run.run_id)
    const id = `children-${run.run_id}`
    this.#list = h('ul.children', { id, hidden: true })
    this.#fold = button('', () => this.#toggle(), {
      class: 'fold',
      'aria-controls': id,
      'aria-expanded': false,
    })
    this.element = h('div.branch', { hidden: true }, this.#fold, this.#problem, this.#list)
  }

  /**
   * @param {RunSummary} run
   * @param {string | null} current the id of the run that is shown
   */
  update(run, current) {
    this.#run = run
    this.#current = current
    const parts = [
      run.attempts > 0 && plural(run.attempts, 'attempt'),
      run.delegates > 0 && plural(run.delegates, 'delegate'),
    ].filter(Boolean)
    this.element.hidden = parts.length === 0
    const whose = h('span.visually-hidden', ` of ${run.goal || run.run_id}`)
    refill(this.#fold, parts.join(', '), whose)
    this.mark(current)
  }

  /** @param {string | null} current the id of the run that is shown */
  mark(current) {
    this.#current = current
    for (const [runId, { link }] of this.#items) markCurrent(link, runId === current)
  }

  get #isOpen() {
    return !this.#list.hidden
  }

  #toggle() {
    this.#list.hidden = this.#isOpen
    this.#fold.setAttribute('aria-expanded', String(this.#isOpen))
    if (this.#isOpen) return void this.refresh()
    fill(this.#list)
    this.#items.clear()
    this.#readSeq = -1
  }

  /** Reads what is unfolded, unless it cannot have changed. */
  async refresh() {
    const { last_seq, run_id, attempts } = this.#run
    if (!this.#isOpen || this.#readSeq === last_seq) return
    try {
      if (attempts > 0 && this.#details?.last_seq !== last_seq)
        this.#details = await call('GET', `api/runs/${run_id}`, { quiet: true })
      const children = await this.#children.read(this.#details?.attempts ?? null)
      if (!this.#isOpen) return
      setText(this.#problem, '')
      this.#draw(children)
      if (!children.some(({ run }) => isLive(run.status))) this.#readSeq = last_seq
    } catch (error) {
      setText(this.#problem, messageOf(error))
    }
    for (const { branch } of this.#items.values()) await branch.refresh()
  }

  /** @param {readonly Child[]} children */
  #draw(children) {
    const chosen = this.#details?.attempts?.chosen ?? null
    const winner = this.#details?.attempts?.runs.find(({ attempt }) => attempt === chosen)
    const former = this.#items
    this.#items = new Map()
    for (const child of children) {
      const { run_id } = child.run
      const item = former.get(run_id) ?? new ChildItem(child)
      item.update(child, run_id === winner?.run_id, this.#current)
      this.#items.set(run_id, item)
    }
    place(this.#list, [...this.#items.values()].map(({ element }) => element))
  }
}

class ChildItem {
  #name = h('span.run-goal', { dir: 'auto' })
  #chip = h('span.chip')
  #cost = h('span.when')
  branch
  link
  element

  /** @param {Child} child */
  constructor({ run }) {
    this.branch = new RunBranch(run)
    this.link = h(
      'a.run',
      { href: `#/runs/${run.run_id}` },
      this.#name,
      h('span.run-meta', this.#chip, this.#cost),
      h('span.run-model', run.model_name),
    )
    this.element = h('li', this.link, this.branch.element)
  }

  /**
   * @param {Child} child
   * @param {boolean} chosen
   * @param {string | null} current
   */
  update({ name, run, details }, chosen, current) {
    const { problem, status, role, goal } = run
    const more = role === 'delegate' ? `: ${goal}` : chosen ? ' · chosen' : ''
    setText(this.#name, prose(name + more))
    setText(this.#chip, problem === null ? statusLabel(status) : 'Damaged')
    this.#chip.className = `chip ${problem === null ? status : 'failed'}`
    const spent = details?.final_state.estimated_cost_usd ?? 0
    setText(this.#cost, details === null ? '' : cost(spent, details.cost_known))
    markCurrent(this.link, run.run_id === current)
    this.branch.update(run, current)
  }
}
