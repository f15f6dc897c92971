/** The parts that entries of the timeline have in common. */
import { runAddress } from './address.js'
import { h, prose } from './dom.js'
import { clock } from './format.js'
import { copyButton } from './save.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

/** The name of an entry for screen readers, by kind. @type {Record<string, string>} */
export const LABELS = {
  run_created: 'Run created',
  run_recovered: 'Resumed',
  abort_requested: 'Abort requested',
  llm_usage: 'Tokens',
  model_switched: 'Model changed',
  model_turn: 'Model',
  reasoning: 'Reasoning',
  tool_call: 'Tool',
  conversation_compacted: 'Summary',
  holdout_evaluation: 'Held-out tests',
  result: 'Result',
  goal_check: 'Goal check',
  human_check_required: 'Gate',
  human_check_response: 'Answer',
  run_end: 'End of the run',
  checkpoint: 'Checkpoint',
  user_message: 'Message',
  files_changing: 'Change of files',
  files_changed: 'Files changed',
  changes_decided: 'Changes',
  attempt_started: 'Attempt',
  attempt_ended: 'Attempt',
  attempt_chosen: 'Choice',
  delegate_started: 'Delegate',
  delegate_ended: 'Delegate',
  error: 'Error',
  log: 'Note',
}

/** @param {string | null} who */
export function by(who) {
  return who === null ? '' : ` by ${who}`
}

/**
 * @param {AgentEvent} event
 * @param {string} kind
 * @param {...(Node | false | null)} content
 */
export function entry(event, kind, ...content) {
  const address = runAddress(event.run_id, 'timeline', { event: String(event.seq) })
  const time = h('time', { dateTime: new Date(event.ts * 1_000).toISOString() }, clock(event.ts))
  return h(
    'article',
    { class: `entry ${kind}`, 'data-seq': event.seq, 'aria-label': LABELS[event.kind] },
    h('a.at', { href: address, 'data-key': 'at' }, time),
    copyButton('Copy link', () => new URL(address, location.href).href, {
      class: 'copy-link quiet', 'data-key': 'link',
    }),
    h('div.body', { 'data-key': 'body' }, content),
  )
}

/** @param {string} text */
export function paragraph(text) {
  return h('p.prose', { dir: 'auto' }, prose(text))
}

/**
 * @param {AgentEvent} event
 * @param {string} kind
 * @param {string} text
 * @param {string} [more]
 */
export function line(event, kind, text, more) {
  const extra =
    more === undefined || more === '' ? null : paragraph(more)
  return entry(event, kind, h('p.what', text), extra)
}
