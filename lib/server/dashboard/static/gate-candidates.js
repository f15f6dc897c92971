/** The attempts among which one is chosen, beside each other. */
import { AttemptCard } from './attempt-card.js'
import { h } from './dom.js'
import { fileFacts } from './entries.js'

/**
 * Those that achieved the goal can be chosen.
 *
 * @param {import('../types.js').Gate} gate
 * @param {(label: string, more: { attempt: number }) => HTMLElement} offer
 */
export function candidateList({ candidates = [] }, offer) {
  const cards = candidates.map((candidate) => {
    const { attempt, status, reason, assurance, changes } = candidate
    const choose = status === 'achieved' ? offer(`Choose attempt ${attempt}`, { attempt }) : null
    const card = new AttemptCard(candidate, choose)
    card.update({
      status,
      reason,
      assurance,
      changes,
      files: fileFacts(candidate),
      tokens: candidate.total_tokens,
      usd: candidate.cost_usd,
      costKnown: candidate.cost_known,
      chosen: false,
      details: null,
    })
    return card.element
  })
  return h('ul.attempts', cards)
}
