/** The parts that entries of the timeline have in common. */
import { runAddress } from './address.js'
import { h, prose } from './dom.js'
import { EVENTS } from './event-kinds.js'
import { clock } from './format.js'
import { copyButton } from './save.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

/**
 * The name of an entry for screen readers; null for an event without an entry of its own.
 *
 * @param {AgentEvent} event
 */
export function labelOf({ kind }) {
  return EVENTS[kind]?.label ?? null
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
    { class: `entry ${kind}`, 'data-seq': event.seq, 'aria-label': labelOf(event) },
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
