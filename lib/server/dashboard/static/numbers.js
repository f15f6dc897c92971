/** Numbers, costs and times as the page shows them: pure, without the page. */

const numbers = new Intl.NumberFormat('en')

/** @param {number} value */
export function number(value) {
  return numbers.format(value)
}

/**
 * @param {number} usd
 * @param {boolean} known
 */
export function cost(usd, known) {
  const amount = `$${usd.toFixed(usd > 0 && usd < 0.995 ? 4 : 2)}`
  if (known) return amount
  return usd > 0 ? `${amount} + unknown` : 'not known'
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`
}
