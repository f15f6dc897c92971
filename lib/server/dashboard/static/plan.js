/** What the model of a run says that it is going to do. */
import { h, prose, refill } from './dom.js'
import { plural } from './format.js'

/** @typedef {NonNullable<import('../types.js').RunDetails['plan']>} Steps */

/** What a step is, for those who see no marks. */
const STATES = { pending: 'to do', in_progress: 'in progress', done: 'done' }

/** Hidden for a run without a plan. */
export class Plan {
  #steps = h('ol')
  #done = h('span.fact')
  element = h(
    'section.plan',
    { hidden: true, 'aria-labelledby': 'plan-title' },
    h('h2', { id: 'plan-title' }, 'Plan ', this.#done),
    this.#steps,
  )

  /** @param {Steps | null} steps */
  update(steps) {
    this.element.hidden = steps === null
    if (steps === null) return
    const done = steps.filter(({ status }) => status === 'done').length
    refill(this.#done, [`${done} of ${plural(steps.length, 'step')} done`])
    refill(this.#steps, steps.map(stepView))
  }
}

/** @param {Steps[number]} step */
function stepView({ text, status }) {
  return h(
    'li',
    { class: status, dir: 'auto' },
    h('span.mark', { 'aria-hidden': 'true' }),
    h('span.visually-hidden', `${STATES[status]}: `),
    h('span', prose(text)),
  )
}
