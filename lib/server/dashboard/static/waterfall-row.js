/** One row of the waterfall: its elements, and what it says in words. */
import { h } from './dom.js'
import { cost, duration, number, plural } from './format.js'

/**
 * @typedef {import('./spans.js').Span} Span
 * @typedef {import('./waterfall-rows.js').WaterfallRow} WaterfallRow
 */

/** @type {Record<Span['state'], string>} */
const STATES = { '': '', good: '', bad: 'failed', lost: 'never finished' }

/**
 * Do both show the same thing, whatever comes before it?
 *
 * @param {WaterfallRow} a
 * @param {WaterfallRow} b
 */
export function isSameRow(a, b) {
  return a.span === b.span && (a.span !== null || a.group.iteration === b.group.iteration)
}

/**
 * A row without content: the head of an iteration folds it, a span leads to its event.
 *
 * @param {boolean} isHead
 */
export function skeleton(isHead) {
  const content = [
    h('span.wf-label', h('span.wf-name'), h('span.wf-detail', { dir: 'auto' })),
    h('span.wf-track', h('span.wf-bar', { 'aria-hidden': 'true' }), h('span.wf-fact')),
  ]
  return h(
    'li.wf-row',
    { 'data-head': isHead },
    isHead ? h('button.wf-link.fold', { type: 'button' }, content) : h('a.wf-link', content),
  )
}

/** @param {number} iteration */
export function iterationName(iteration) {
  return iteration === 0 ? 'Before the first iteration' : `Iteration ${iteration}`
}

/**
 * @param {import('./waterfall-rows.js').Group} group
 * @param {number} now
 */
export function groupFacts({ start, end, spans, bad, tokens, cost: usd, costKnown }, now) {
  const facts = [duration(((end ?? now) - start) * 1_000)]
  if (tokens > 0) facts.push(plural(tokens, 'token'), cost(usd, costKnown))
  if (bad > 0) facts.push(`${number(bad)} of ${number(spans.length)} failed`)
  return facts.join(' · ')
}

/**
 * @param {Span} span
 * @param {number} now
 */
export function spanFacts({ kind, start, end, state, tokens, cost: usd }, now) {
  const facts = [duration(((end ?? now) - start) * 1_000)]
  if (end === null) facts.push('now')
  else if (kind === 'check' && state !== 'lost') facts.push(state === 'good' ? 'met' : 'not met')
  else if (STATES[state] !== '') facts.push(STATES[state])
  const price = usd === null ? 'price not known' : cost(usd, true)
  if (tokens > 0) facts.push(plural(tokens, 'token'), price)
  return facts.join(' · ')
}
