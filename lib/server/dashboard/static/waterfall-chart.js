/** The chart above the rows of the waterfall: what went on when, with tokens and cost so far. */
import { isWait } from './time-scale.js'
import { BINS, rangesOf, sumsOf } from './waterfall-rows.js'

/**
 * @typedef {import('./spans.js').Span} Span
 * @typedef {import('./spans.js').SpanKind} SpanKind
 */

const SVG = 'http://www.w3.org/2000/svg'

/** Lanes from top to bottom. @type {readonly (readonly SpanKind[])[]} */
const LANES = [['plan', 'model'], ['tool', 'child', 'files'], ['check'], ['gate', 'wait']]
const LANE = 12
const BAR = 8
const HEIGHT = LANES.length * LANE

/** For those who see it: the rows below say the same in words. */
export class WaterfallChart {
  element = document.createElementNS(SVG, 'svg')
  #bars = LANES.map(() => this.#path())
  #waits = this.#path()
  #tokens = this.#path()
  #cost = this.#path()

  constructor() {
    this.element.setAttribute('viewBox', `0 0 ${BINS} ${HEIGHT}`)
    this.element.setAttribute('preserveAspectRatio', 'none')
    this.element.setAttribute('class', 'wf-chart')
    this.element.setAttribute('aria-hidden', 'true')
    this.#bars.forEach((path, i) => path.setAttribute('class', `wf-bar wf-${LANES[i]?.[0]}`))
    this.#waits.setAttribute('class', 'wf-bar wf-wait')
    this.#tokens.setAttribute('class', 'wf-tokens')
    this.#cost.setAttribute('class', 'wf-cost')
    // The areas are below the bars.
    this.element.append(this.#tokens, ...this.#bars, this.#waits, this.#cost)
  }

  #path() {
    return document.createElementNS(SVG, 'path')
  }

  /**
   * @param {readonly Span[]} spans
   * @param {(time: number) => number} at where a time is, from 0 to 1
   * @param {number} now
   */
  update(spans, at, now) {
    for (const [i, kinds] of LANES.entries()) {
      const own = spans.filter(({ kind }) => kinds.includes(kind))
      const isWaiting = kinds.includes('wait')
      const bars = isWaiting ? own.filter(({ kind }) => kind === 'gate') : own
      this.#bars[i]?.setAttribute('d', barsOf(rangesOf(bars, at, now), i))
      if (!isWaiting) continue
      const waits = own.filter((span) => isWait(span) && span.kind === 'wait')
      this.#waits.setAttribute('d', barsOf(rangesOf(waits, at, now), i))
    }
    const { tokens, cost } = sumsOf(spans, at)
    this.#tokens.setAttribute('d', `M0 ${HEIGHT} L${stepsOf(tokens)} L${BINS} ${HEIGHT} Z`)
    this.#cost.setAttribute('d', cost.at(-1) === 0 ? '' : `M0 ${HEIGHT} L${stepsOf(cost)}`)
  }
}

/**
 * @param {readonly (readonly [from: number, to: number])[]} ranges
 * @param {number} lane
 */
function barsOf(ranges, lane) {
  const top = lane * LANE + (LANE - BAR) / 2
  return ranges.map(([a, b]) => `M${a} ${top}H${b}V${top + BAR}H${a}Z`).join('')
}

/** @param {readonly number[]} parts */
function stepsOf(parts) {
  return parts.map((part, i) => `${i} ${(HEIGHT * (1 - part)).toFixed(2)}`).join(' ')
}
