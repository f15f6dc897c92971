/** Pure: what a gate asks and why, in words, and the answer to it as the service takes it. */
import { number, plural } from './format.js'
import { proposedBy } from './proposed-call.js'
import { clipped } from './visible.js'

/**
 * @typedef {import('../types.js').Gate} Gate
 * @typedef {import('../types.js').GatedCall} GatedCall
 * @typedef {import('../types.js').RunDetails} RunDetails
 */

/**
 * What a reader decided about one call.
 *
 * @typedef {{
 *   readonly call_id: string,
 *   readonly runs: boolean,
 *   readonly args: object | null,
 *   readonly feedback: string,
 * }} CallChoice `args` null: those of the model
 */

/** @param {Gate} gate */
export function titleOf({ kind, iteration }) {
  if (kind === 'tool') return 'May these tools run?'
  if (kind === 'choice') return 'Which attempt is to count?'
  if (kind === 'recovery') return 'The service was interrupted. Continue?'
  return `Iteration ${iteration} is done. Continue?`
}

/** What is asked. @param {Gate} gate @param {RunDetails} details */
export function questionOf(gate, { final_state, max_iterations }) {
  if (gate.kind === 'tool') return `The model wants to make ${callsOf(gate.calls)}.`
  if (gate.kind === 'choice') {
    const { candidates = [] } = gate
    const achieved = candidates.filter(({ status }) => status === 'achieved').length
    const which = achieved === 1 ? 'it' : 'one of them'
    return `${achieved} of ${plural(candidates.length, 'attempt')} achieved the goal. If you ` +
      `choose ${which}, its changes are the result of the run.`
  }
  if (gate.kind === 'recovery')
    return 'A command was running then, and what it did is not known. If you approve, the run ' +
      'goes on, and the command is not run again.'
  const goal = final_state.goal_achieved ? 'is met' : 'is not met yet'
  return `The goal ${goal}. If you approve, iteration ${number(gate.iteration + 1)} of ` +
    `${number(max_iterations)} begins.`
}

/** @param {readonly GatedCall[]} calls */
function callsOf(calls) {
  /** @type {Record<string, number>} */
  const counts = {}
  for (const call of calls) {
    const proposed = proposedBy(call)
    const { kind } = proposed
    const tries = kind === 'command' && (proposed.tried?.patches.length ?? 0) > 0
    const word = kind === 'replace' ? 'edit' : tries ? 'trial' : kind
    counts[word] = (counts[word] ?? 0) + 1
  }
  const others = calls.filter((call) => proposedBy(call).kind === 'other')
  const other = clipped(others[0]?.tool ?? '', 60)
  const words = [
    ['write', 'writes a file', 'write files'],
    ['edit', 'edits a file', 'edit files'],
    ['command', 'runs a command', 'run commands'],
    ['trial', 'tries patches', 'try patches'],
    ['read', 'reads', 'read'],
    ['other', `calls ${other}`, 'call other tools'],
  ].flatMap(([word = '', one = '', many = '']) => {
    const count = counts[word] ?? 0
    if (calls.length === 1 && count === 1) return [one]
    return count === 0 ? [] : [plural(count, one, many)]
  })
  if (calls.length === 1) return `a call that ${words.join('')}`
  return `${plural(calls.length, 'call')}: ${words.join(', ')}`
}

/**
 * Why the run asks; empty when the question says it.
 *
 * @param {Gate} gate
 * @param {RunDetails} details
 */
export function reasonOf(gate, { approval, plan }) {
  if (gate.kind !== 'tool') return ''
  const rule = typeof approval === 'string' ? approval : approval.default
  const asks =
    rule === 'all'
      ? 'This run asks before every call.'
      : rule === 'writes'
        ? 'This run asks before calls that may change something.'
        : 'This run, or the host, asks before these calls.'
  const at = (plan ?? []).findIndex(({ status }) => status === 'in_progress')
  const step = plan?.[at]
  return step === undefined
    ? asks
    : `${asks} Step ${at + 1} of ${plan?.length} of its plan: ${step.text}`
}

/**
 * The answer that lets the chosen calls run. Whatever is not named follows `decision`, so that is
 * a rejection only where no call runs.
 *
 * @param {readonly CallChoice[]} choices
 */
export function answerOf(choices) {
  const decision = choices.length > 0 && choices.every(({ runs }) => !runs) ? 'reject' : 'approve'
  const edits = choices.flatMap(({ call_id, runs, args, feedback }) => {
    const edit = {
      ...(!runs && decision === 'approve' && { decision: 'reject' }),
      ...(runs && args !== null && { args }),
      ...(!runs && feedback !== '' && { feedback }),
    }
    return Object.keys(edit).length === 0 ? [] : [/** @type {const} */ ([call_id, edit])]
  })
  return edits.length === 0 ? { decision } : { decision, edits: Object.fromEntries(edits) }
}

/** @param {readonly CallChoice[]} choices */
export function approveLabel(choices) {
  const { length } = choices
  const running = choices.filter(({ runs }) => runs)
  const edited = running.some(({ args }) => args !== null) ? ', edited' : ''
  if (running.length === length) return `Approve calls${edited}`
  return `Approve ${number(running.length)} of ${plural(length, 'call')}${edited}`
}
