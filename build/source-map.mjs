/**
 * Source maps of low resolution. A full map of the package takes more than its code. A stack trace
 * asks for the positions of calls alone, and a reader for the line: so one entry is kept where the
 * calls of another line of the source begin. Within a statement that goes on over several lines, a
 * call may be told a line too early; what is thrown, and what is awaited, never is.
 */
import { marksIn } from './names.mjs'

/** @typedef {{ version: 3, sources: string[], mappings: string }} SourceMap */
/**
 * @typedef {{ line: number, column: number, source: number, sourceLine: number,
 *   sourceColumn: number }} Segment
 */


const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const VALUES = new Map([...DIGITS].map((digit, value) => [digit, value]))

/** What a trace can point to: a call, of a template's tag as well, `new`, `throw`, `await`. */
const CALL = /[\w$)\]}]\(|\?\.\(|[\w$)\]]`|\b(?:new|throw|await|yield)\b/

/** Told by its own line. */
const EXACT = /\b(?:new|throw|await|yield)\b/

/** What looks like a call and is none, and what calls nobody back and does not throw. */
const NO_CALL = new RegExp(
  [
    String.raw`\b(?:if|for|while|switch|catch|function(?: [\w$]+)?)\(`,
    String.raw`\b(?:Math\.\w+|Number(?:\.\w+)?|String|Boolean|Array\.isArray)\(`,
    String.raw`\bnew (?:Map|Set|WeakMap)\(`,
    String.raw`\bObject\.(?:keys|values|entries|hasOwn|fromEntries|freeze)\(`,
    String.raw`\b(?:push|pop|shift|unshift|slice|concat|includes|(?:lastI|i)ndexOf|join|at|flat)\(`,
    String.raw`\b(?:startsWith|endsWith|trim(?:End|Start)?|split|char(?:Code)?At|codePointAt)\(`,
    String.raw`\b(?:padStart|padEnd|toLowerCase|toUpperCase|toFixed|test|subarray|now)\(`,
  ].join('|'),
  'g',
)

/** The characters of a line after which it may end. */
const LINE_LENGTH = 180

/**
 * The code as it is shipped, and its map.
 *
 * @param {string} code
 * @param {SourceMap} map
 * @param {{ sourceRoot: string, nameOf: (source: string) => string }} paths
 */
export function thin(code, map, { sourceRoot, nameOf }) {
  const { lines, segments } = inShortLines(
    without(marksIn(code), {
      lines: code.trimEnd().split('\n'),
      segments: segmentsOf(map.mappings),
    }),
  )
  const kept = segments
    .filter(differsFromLast(lines, segments))
    // Of what the build itself adds there is no source.
    .filter(({ source }) => !map.sources[source]?.includes('packed:'))
  const used = [...new Set(kept.map(({ source }) => source))]
  const numbers = new Map(used.map((source, index) => [source, index]))
  const sources = used.map((source) => nameOf(map.sources[source] ?? ''))
  const mappings = encode(kept.map((one) => ({ ...one, source: numbers.get(one.source) ?? 0 })))
  // An empty text for each source: the sources are not shipped, and nobody should look for them.
  const sourcesContent = sources.map(() => '')
  const thinned = { version: 3, sourceRoot, sources, sourcesContent, names: [], mappings }
  return { code: `${lines.join('\n')}\n`, map: JSON.stringify(thinned) }
}

/**
 * @param {readonly string[]} lines
 * @param {readonly Segment[]} segments
 */
function differsFromLast(lines, segments) {
  /** @type {Segment | undefined} */
  let last
  return (/** @type {Segment} */ one, /** @type {number} */ index) => {
    const code = lines[one.line] ?? ''
    const next = segments[index + 1]
    const end = next?.line === one.line ? next.column : undefined
    // One character more: what is called may end where the next segment begins.
    const text = code.slice(one.column, end === undefined ? undefined : end + 1)
    if (!CALL.test(text.replaceAll(NO_CALL, ''))) return false
    if (last?.source === one.source) {
      const lines = Math.abs(one.sourceLine - last.sourceLine)
      if (lines === 0) return false
      const begins = one.column === 0 || /[;{}]/.test(code.charAt(one.column - 1))
      if (lines === 1 && !begins && !EXACT.test(text)) return false
    }
    last = one
    return true
  }
}

/** @typedef {{ lines: readonly string[], segments: readonly Segment[] }} Mapped */

/** @param {RegExp} marks @param {Mapped} code @returns {Mapped} */
function without(marks, { lines, segments }) {
  const removed = lines.map((text) =>
    [...text.matchAll(marks)].map(({ index, 0: { length } }) => ({ index, length })),
  )
  const moved = segments.map((one) => {
    const before = (removed[one.line] ?? []).filter(({ index }) => index < one.column)
    return { ...one, column: before.reduce((column, { length }) => column - length, one.column) }
  })
  return { lines: lines.map((text) => text.replaceAll(marks, '')), segments: moved }
}

/**
 * Ends lines where a token begins after punctuation that no text can be part of.
 *
 * @param {Mapped} code
 * @returns {Mapped}
 */
function inShortLines({ lines, segments }) {
  /** @type {string[]} */
  const short = []
  /** @type {Segment[]} */
  const moved = []
  let next = 0
  for (const [line, text] of lines.entries()) {
    let start = 0
    for (; segments[next]?.line === line; next++) {
      const one = /** @type {Segment} */ (segments[next])
      const isEnd = /(?:[;,]|(?<!\$)\{)$/.test(text.slice(Math.max(0, one.column - 2), one.column))
      if (isEnd && one.column - start >= LINE_LENGTH) {
        short.push(text.slice(start, one.column))
        start = one.column
      }
      moved.push({ ...one, line: short.length, column: one.column - start })
    }
    short.push(text.slice(start))
  }
  return { lines: short, segments: moved }
}

/** @param {string} mappings @returns {Segment[]} */
function segmentsOf(mappings) {
  const found = []
  let [source, sourceLine, sourceColumn] = [0, 0, 0]
  for (const [line, text] of mappings.split(';').entries()) {
    let column = 0
    for (const segment of text.split(',').filter((part) => part !== '')) {
      const [a = 0, b, c = 0, d = 0] = numbersOf(segment)
      column += a
      if (b === undefined) continue
      source += b
      sourceLine += c
      sourceColumn += d
      found.push({ line, column, source, sourceLine, sourceColumn })
    }
  }
  return found
}

/** @param {string} text */
function numbersOf(text) {
  const numbers = []
  let [value, shift] = [0, 0]
  for (const digit of text) {
    const bits = VALUES.get(digit) ?? 0
    value |= (bits & 31) << shift
    shift += 5
    if ((bits & 32) !== 0) continue
    numbers.push((value & 1) === 0 ? value >> 1 : -(value >> 1))
    value = shift = 0
  }
  return numbers
}

/** @param {readonly Segment[]} segments */
function encode(segments) {
  let mappings = ''
  let last = { line: 0, column: 0, source: 0, sourceLine: 0, sourceColumn: 0 }
  for (const [index, one] of segments.entries()) {
    const isNewLine = one.line > last.line
    if (isNewLine) mappings += ';'.repeat(one.line - last.line)
    else if (index > 0) mappings += ','
    mappings += digitsOf(one.column - (isNewLine ? 0 : last.column))
    mappings += digitsOf(one.source - last.source)
    mappings += digitsOf(one.sourceLine - last.sourceLine)
    mappings += digitsOf(one.sourceColumn - last.sourceColumn)
    last = one
  }
  return mappings
}

/** @param {number} number */
function digitsOf(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1
  let digits = ''
  do {
    digits += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)]
    rest >>>= 5
  } while (rest > 0)
  return digits
}
