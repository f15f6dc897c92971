/** The panel in which the user answers a gate. */
import { call, messageOf } from './api.js'
import { AttemptCard } from './attempt-card.js'
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
    const isChoice = gate.kind === 'choice'
    /** @type {HTMLButtonElement[]} */
    const buttons = []
    /**
     * @param {string} decision
     * @param {string} label
     * @param {string} style
     * @param {{ attempt?: number }} [more]
     */
    const offer = (decision, label, style, more = {}) => {
      const one = button(label, () => void answer(one, decision, more), { class: style })
      buttons.push(one)
      return one
    }

    /**
     * @param {HTMLButtonElement} pressed
     * @param {string} decision
     * @param {{ attempt?: number }} more
     */
    const answer = async (pressed, decision, more) => {
      setText(problem, '')
      for (const one of buttons) one.disabled = true
      const text = feedback.value.trim()
      const said = text === '' ? {} : { feedback: text }
      try {
        const body = { decision, gate_id: gate.gate_id, ...said, ...more }
        await call('POST', `api/runs/${this.#runId}/resume`, { body })
        this.#answered()
      } catch (error) {
        setText(problem, messageOf(error))
        for (const one of buttons) one.disabled = false
        // Who works by keyboard can try again.
        pressed.focus()
      }
    }

    this.element.classList.toggle('choice', isChoice)
    const deadline = gate.deadline === null ? '' : new Date(gate.deadline).toLocaleString()
    fill(
      this.element,
      h('h2', { id: 'gate-title' }, titleOf(gate)),
      h('p.prose', { dir: 'auto' }, gate.summary),
      gate.calls.length > 0 && h('ul.gated', gate.calls.map(callView)),
      isChoice && h('ul.attempts', candidatesOf(gate, offer)),
      deadline !== '' && h('p.hint', `Without an answer the run is aborted at ${deadline}.`),
      // No model goes on from here.
      !isChoice && [h('label', { for: 'feedback' }, 'Feedback for the model (optional)'), feedback],
      problem,
      h(
        'div.actions',
        offer('abort', 'Abort run', 'danger'),
        gate.kind === 'tool' && offer('reject', 'Reject calls', ''),
        !isChoice &&
          offer(
            'approve',
            gate.kind === 'tool' ? 'Approve calls' : 'Approve and continue',
            'primary',
          ),
      ),
    )
  }
}

/**
 * Those that achieved the goal can be chosen.
 *
 * @param {Gate} gate
 * @param {(
 *   decision: string, label: string, style: string, more: { attempt: number },
 * ) => HTMLElement} offer
 */
function candidatesOf({ candidates = [] }, offer) {
  return candidates.map((candidate) => {
    const { attempt, status, reason, assurance, changes } = candidate
    const choose =
      status === 'achieved'
        ? offer('approve', `Choose attempt ${attempt}`, 'primary', { attempt })
        : null
    const card = new AttemptCard(candidate, choose)
    card.update({
      status,
      reason,
      assurance,
      changes,
      tokens: candidate.total_tokens,
      usd: candidate.cost_usd,
      costKnown: candidate.cost_known,
      chosen: false,
      details: null,
    })
    return card.element
  })
}

/** @param {Gate} gate */
function titleOf({ kind, iteration }) {
  if (kind === 'tool') return 'May these tools run?'
  if (kind === 'choice') return 'Which attempt is to count?'
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
