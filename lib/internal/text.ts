/**
 * Texts: made visible, storable, comparable and unique.
 *
 * @module
 */
/** The text without its last characters, as long as they are among `chars`. */
export function trimEndOf(text: string, chars: string): string {
  let end = text.length
  while (end > 0 && chars.includes(text.charAt(end - 1))) end -= 1
  return text.slice(0, end)
}

/**
 * Text that every store, protocol and program takes: without NUL and without halves of characters
 * (lone surrogates). PostgreSQL, for one, fails on either in each of its JSON operators.
 *
 * Names of files are exact text: in these, a half may stand for a byte, see `bytes.ts`.
 */

const UNSTORABLE = /[\0\p{Surrogate}]/u
const EACH_UNSTORABLE = /[\0\p{Surrogate}]/gu
/** The same, but for what stands for a byte in the name of a file. */
const NO_NAME = /[\0\ud800-\udc7f\udd00-\udfff]/u
const EACH_NO_NAME = /[\0\ud800-\udc7f\udd00-\udfff]/gu

/** What is said of a text that is not storable, as a predicate. */
export const MUST_BE_STORABLE = 'must not contain NUL or half of a character (a lone surrogate)'

export function isStorable(text: string): boolean {
  return !UNSTORABLE.test(text)
}

/** The same for the name of a file, or a text with such names. */
export function isStorableName(text: string): boolean {
  return !NO_NAME.test(text)
}

/** The text with U+FFFD in place of NUL and of each half of a character. */
export function storableText(text: string): string {
  return UNSTORABLE.test(text) ? text.replace(EACH_UNSTORABLE, '\ufffd') : text
}

/** The same for the name of a file, or a text with such names, which stay exact. */
export function storableName(text: string): string {
  return NO_NAME.test(text) ? text.replace(EACH_NO_NAME, '\ufffd') : text
}

/**
 * Characters that a reader cannot see, or that change how others are read: controls (but tab and
 * line feed), formatting and bidirectional controls, zero-width and ignorable characters, tags,
 * variation selectors, fillers, lone surrogates, and blanks other than the space.
 */
const INVISIBLE =
  /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu

/**
 * The text with every character visible: those that a reader cannot see, or that change the order
 * of others, become escapes such as `\u202e`. For whatever a person reads: a file name or command
 * is then not displayed as another one, and a terminal obeys no escape sequence.
 *
 * @throws TypeError when it is not a string.
 */
export function escapeInvisible(text: string): string {
  if (typeof text !== 'string') throw new TypeError('escapeInvisible() takes a string')
  return text.replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0)!
    return code > 0xffff ? `\\u{${code.toString(16)}}` : unitEscape(code)
  })
}

/** The same for JSON text, which parses to the same value. */
export function escapeInvisibleJson(json: string): string {
  return json.replace(INVISIBLE, (character) => {
    return Array.from({ length: character.length }, (_, i) =>
      unitEscape(character.charCodeAt(i)),
    ).join('')
  })
}

function unitEscape(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`
}

/** A path on one line: a path with control characters is quoted. */
export function showPath(path: string): string {
  return /[\u0000-\u001f\u007f\u2028\u2029]/.test(path) ? JSON.stringify(path) : path
}

/** Names longer than this are not compared; of a longer list, only the beginning is. */
const MAX_LENGTH = 64
const MAX_NAMES = 200

const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_ ]/g, '')

/** The known name that is closest to `name`, if it is close enough to be meant. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined
  const wanted = plain(name)
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known.slice(0, MAX_NAMES)) {
    if (candidate.length > MAX_LENGTH) continue
    const distance = editDistance(wanted, plain(candidate), bestDistance)
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** Insertions, deletions, replacements and transpositions from `a` to `b`; at most `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, before[j - 2]! + 1)
      }
      next.push(least)
    }
    before = row
    row = next
  }
  return Math.min(row[b.length]!, limit)
}

/** The number that each name has reached, so that a name given a thousand times is counted once. */
const reached = new WeakMap<ReadonlyMap<string, unknown>, Map<string, number>>()

/** The name, or if it is taken its first numbered form that is not: the second, the third, … */
export function untakenName(
  name: string,
  taken: ReadonlyMap<string, unknown>,
  numbered: (name: string, number: number) => string,
): string {
  let numbers = reached.get(taken)
  if (numbers === undefined) reached.set(taken, (numbers = new Map()))
  let number = numbers.get(name) ?? 1
  let untaken = number === 1 ? name : numbered(name, number)
  while (taken.has(untaken)) {
    number += 1
    untaken = numbered(name, number)
  }
  numbers.set(name, number)
  return untaken
}

/** The text as one word for a shell: in single quotes, only a single quote has a meaning. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
