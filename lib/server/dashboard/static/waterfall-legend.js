/** What the colours of the waterfall stand for, and how much there is of each. */
import { h } from './dom.js'
import { cost, duration, plural } from './format.js'

/**
 * @typedef {import('./spans.js').Span} Span
 * @typedef {import('./spans.js').SpanKind} SpanKind
 */

/** @type {readonly (readonly [name: string, kinds: readonly SpanKind[]])[]} */
const LEGEND = [
  ['Model', ['plan', 'model']],
  ['Tools', ['tool']],
  ['Checks', ['check']],
  ['Gates', ['gate']],
  ['Waits', ['wait']],
  ['Other runs', ['child']],
]

/**
 * @param {readonly Span[]} all
 * @param {number} now the end of what lasts
 * @returns {readonly HTMLElement[]}
 */
export function legendOf(all, now) {
  const items = LEGEND.map(([name, kinds]) => {
    const own = all.filter(({ kind }) => kinds.includes(kind))
    const seconds = own.reduce((sum, { start, end }) => sum + (end ?? now) - start, 0)
    const tokens = own.reduce((sum, span) => sum + span.tokens, 0)
    const usd = own.reduce((sum, span) => sum + (span.cost ?? 0), 0)
    const known = own.every((span) => span.cost !== null)
    const facts = [duration(seconds * 1_000)]
    if (tokens > 0) facts.push(plural(tokens, 'token'), cost(usd, known))
    return own.length === 0
      ? null
      : h('li', h(`span.wf-swatch.wf-${kinds[0]}`), `${name} `, h('span.fact', facts.join(' · ')))
  }).filter((item) => item !== null)
  return [h('li', 'In all ', h('span.fact', duration(now * 1_000))), ...items]
}
