import { ProblemError } from '../errors.js'

/**
 * Chooses the media type of a response by the Accept header (RFC 9110, section 12.5.1): the one of
 * `offered` with the greatest weight, the first on a tie. A missing header accepts anything.
 *
 * @throws {@link ProblemError} 406 when the client accepts none of them.
 */
export function chooseType(accept: string | undefined, offered: readonly string[]): string {
  // What most API clients send, which need not be parsed.
  if (accept === undefined || accept === '*/*' || accept === offered[0]) return offered[0]!
  const ranges = accept.split(',').map(parseRange)
  let best: string | undefined
  let bestWeight = 0
  for (const type of offered) {
    const weight = weightOf(type, ranges)
    if (weight > bestWeight) [best, bestWeight] = [type, weight]
  }
  if (best !== undefined) return best
  const detail = `the response is available as ${offered.join(' or ')} only`
  throw new ProblemError(406, 'not_acceptable', detail)
}

interface Range {
  readonly type: string
  readonly weight: number
}

function parseRange(text: string): Range {
  const [type = '', ...parameters] = text
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const quality = parameters.find((parameter) => parameter.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice('q='.length))
  return { type, weight: weight >= 0 && weight <= 1 ? weight : 0 }
}

/** The weight of the most specific range that covers `type`. */
function weightOf(type: string, ranges: readonly Range[]): number {
  const family = `${type.slice(0, type.indexOf('/'))}/*`
  for (const name of [type, family, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === name)
    if (range !== undefined) return range.weight
  }
  return 0
}
