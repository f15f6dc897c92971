/** Text of which a reader sees every character. The page shows no other: see `dom.js`. */
import { withoutStyles } from './ansi.js'

/** As in `escapeInvisible()` of the library. */
const INVISIBLE =
  /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu

/** Blanks of prose, and number signs that are visible although they are format characters. */
const PROSE = /[\p{Zs}\u0600-\u0605\u06dd\u070f\u08e2]/u
/** What a joiner joins, and a variation selector varies: emoji, and letters that change shape. */
const EMOJI_BEFORE = /\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?$/u
const EMOJI_AFTER = /^\p{Extended_Pictographic}/u
const VARIED = /[\p{Extended_Pictographic}\d#*]$/u
const SCRIPTS = [
  'Arabic Syriac Nko Mongolian Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada',
  'Malayalam Sinhala Myanmar Khmer Tibetan',
].flatMap((names) => names.split(' '))
const LETTERS = `[${SCRIPTS.map((name) => `\\p{Script=${name}}`).join('')}]`
const LETTER_BEFORE = new RegExp(`${LETTERS}$`, 'u')
const LETTER_AFTER = new RegExp(`^${LETTERS}`, 'u')

/** @param {string} character */
function escaped(character) {
  const code = character.codePointAt(0) ?? 0
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
}

/**
 * For all but prose: names, paths, commands, arguments, diffs.
 *
 * @param {string} text
 */
export function visible(text) {
  return text.replace(INVISIBLE, escaped)
}

/**
 * For prose in any language: joiners and variation selectors stay where they shape what is seen,
 * within emoji and between letters of joining scripts.
 *
 * @param {string} text
 */
export function readable(text) {
  return text.replaceAll('\r\n', '\n').replace(INVISIBLE, (character, at, whole) => {
    const before = whole.slice(Math.max(0, at - 4), at)
    const after = whole.slice(at + 1, at + 3)
    return belongs(character, before, after) ? character : escaped(character)
  })
}

/**
 * @param {string} character
 * @param {string} before
 * @param {string} after
 */
function belongs(character, before, after) {
  if (character === '\u200d' && EMOJI_BEFORE.test(before)) return EMOJI_AFTER.test(after)
  if (character === '\u200c' || character === '\u200d')
    return LETTER_BEFORE.test(before) && LETTER_AFTER.test(after)
  if (character === '\ufe0e' || character === '\ufe0f') return VARIED.test(before)
  return PROSE.test(character)
}

/**
 * For the output of programs, without its colours.
 *
 * @param {string} text
 */
export function uncoloured(text) {
  return readable(withoutStyles(text))
}

/**
 * At most `length` characters of `text`, and `…` in place of the rest.
 *
 * @param {string} text
 * @param {number} length
 */
export function clipped(text, length) {
  if (text.length <= length) return text
  return `${text.slice(0, length).replace(/[\ud800-\udbff]$/, '')}…`
}
