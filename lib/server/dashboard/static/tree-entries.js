/** Entries of the timeline about the runs that a run has started, each with a link to its run. */
import { runAddress } from './address.js'
import { restsOn } from './assurance.js'
import { h } from './dom.js'
import { entry, paragraph } from './entry.js'
import { cost, endReason, lineCounts, plural, statusLabel } from './format.js'
import { conflictsView } from './path-list.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').AttemptsInfo} AttemptsInfo
 * @typedef {import('../types.js').ChildRole} ChildRole
 */

/**
 * @template {AgentEvent['kind']} K
 * @typedef {import('../types.js').EventOf<K>} EventOf
 */

/** @type {Record<ChildRole, string>} */
export const ROLE_WORDS = { attempt: 'an attempt', delegate: 'a delegate' }

/**
 * How the winner is chosen.
 *
 * @param {AttemptsInfo['choose']} choose
 */
export function chosenBy(choose) {
  if (choose === 'human') return 'of which a human chooses one'
  return choose === 'smallest' ? 'the smallest change counts' : 'the first that succeeds counts'
}

/** @param {number} changed of files */
export function filesChanged(changed) {
  return changed === 0 ? 'no net change' : `${plural(changed, 'file')} changed`
}

/**
 * @param {EventOf<'attempt_started' | 'attempt_ended' | 'attempt_chosen' | 'delegate_started'
 *   | 'delegate_ended'>} event
 */
export function treeEntry(event) {
  switch (event.kind) {
    case 'attempt_started': {
      const { attempt, run_id, model_name } = event.payload
      return entry(event, 'child', what(`Attempt ${attempt} started`, run_id, model_name))
    }
    case 'attempt_chosen': {
      const { attempt, run_id, why } = event.payload
      return entry(event, 'child good', what(`Attempt ${attempt} was chosen`, run_id), said(why))
    }
    case 'delegate_started': {
      const { number, run_id, goal } = event.payload
      return entry(event, 'child', what(`Delegate ${number} started`, run_id), said(goal))
    }
    case 'attempt_ended':
      return endEntry(event, `Attempt ${event.payload.attempt}`)
    case 'delegate_ended':
      return endEntry(event, 'Delegate', event.payload.conflicts)
  }
}

/**
 * @param {EventOf<'attempt_ended' | 'delegate_ended'>} event
 * @param {string} name
 * @param {readonly string[]} [conflicts]
 */
function endEntry(event, name, conflicts = []) {
  const { run_id, status, end_reason, reason, changes, assurance, counts, usage } = event.payload
  const why = end_reason === null ? '' : `, ${endReason(end_reason)}`
  const facts = [
    changes !== null && filesChanged(changes.files),
    changes !== null && changes.files > 0 && lineCounts(changes),
    plural(usage.input_tokens + usage.output_tokens, 'token'),
    cost(usage.cost_usd, usage.cost_known),
  ]
  return entry(
    event,
    `child ${status}`,
    what(`${name}: ${statusLabel(status)}${why}`, run_id, facts.filter(Boolean).join(' · ')),
    said(reason),
    assurance !== null && h('p.hint', `Checked by: ${restsOn(assurance, counts)}`),
    conflictsView(conflicts),
  )
}

/**
 * @param {string} text
 * @param {string} runId
 * @param {string} [fact]
 */
function what(text, runId, fact) {
  return h(
    'p.what',
    text,
    h('a', { href: runAddress(runId), 'aria-label': `Its run: ${text}` }, 'Its run'),
    fact !== undefined && h('span.fact', fact),
  )
}

/** @param {string} text */
function said(text) {
  return text === '' ? null : paragraph(text)
}
