/** The panel in which the user answers a gate. */
import { call, messageOf } from './api.js'
import { button, fill, h, problemLine, setText } from './dom.js'

/**
 * @typedef {import('../types.js').Gate} Gate
 * @typedef {import('../types.js').RunDetails} RunDetails
 */

/** Hidden while no gate is open. */
export class GatePanel {
  element = h('section.gate', { 'aria-labelledby': 'gate-title', hidden: true })
  /** @type {string | null} */
  #gateId = null
  #answered
  #runId

  /**
   * @param {string} runId
   * @param {() => void} answered
   */
  constructor(runId, answered) {
    this.#runId = runId
    this.#answered = answered
  }

  /**
   * Shows the gate of a run. Feedback being typed survives as long as the gate is the same.
   *
   * @param {RunDetails} details
   */
  update({ gate }) {
    if ((gate?.gate_id ?? null) === this.#gateId) return
    this.#gateId = gate?.gate_id ?? null
    this.element.hidden = gate === null
    if (gate === null) fill(this.element)
    else this.#draw(gate)
  }

  /** @param {Gate} gate */
  #draw(gate) {
    const feedback = h('textarea', { id: 'feedback', rows: 2, maxLength: 16_384 })
    const problem = problemLine()
    const buttons = h('div.actions')
    /**
     * @param {string} decision
     * @param {string} label
     * @param {string} style
     */
    const offer = (decision, label, style) =>
      buttons.append(button(label, () => void answer(decision), { class: style }))
    offer('abort', 'Abort run', 'danger')
    if (gate.kind === 'tool') offer('reject', 'Reject calls', '')
    offer('approve', gate.kind === 'tool' ? 'Approve calls' : 'Approve and continue', 'primary')

    /** @param {string} decision */
    const answer = async (decision) => {
      setText(problem, '')
      for (const one of buttons.querySelectorAll('button')) one.disabled = true
      const text = feedback.value.trim()
      try {
        const body = { decision, gate_id: gate.gate_id, ...(text === '' ? {} : { feedback: text }) }
        await call('POST', `api/runs/${this.#runId}/resume`, { body })
        this.#answered()
      } catch (error) {
        setText(problem, messageOf(error))
        for (const one of buttons.querySelectorAll('button')) one.disabled = false
      }
    }

    fill(
      this.element,
      h('h2', { id: 'gate-title' }, titleOf(gate)),
      h('p.prose', { dir: 'auto' }, gate.summary),
      gate.calls.length > 0 && h('ul.gated', gate.calls.map(callView)),
      gate.deadline !== null &&
        h(
          'p.hint',
          `Without an answer the run is aborted at ${new Date(gate.deadline).toLocaleString()}.`,
        ),
      h('label', { for: 'feedback' }, 'Feedback for the model (optional)'),
      feedback,
      problem,
      buttons,
    )
  }
}

/** @param {Gate} gate */
function titleOf({ kind, iteration }) {
  if (kind === 'tool') return 'May these tools run?'
  if (kind === 'recovery') return 'The service was interrupted. Continue?'
  return `Iteration ${iteration} is done. Continue?`
}

/** @param {import('../types.js').GatedCall} gated */
function callView({ tool, args }) {
  return h(
    'li',
    h('span.tool-name', tool),
    h(
      'pre.output',
      { tabIndex: 0, 'aria-label': `Arguments of ${tool}` },
      JSON.stringify(args, null, 2),
    ),
  )
}
