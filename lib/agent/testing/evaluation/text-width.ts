/**
 * How many columns of a terminal a text takes.
 *
 * @module
 */

/** Characters that take two columns: East Asian Width W and F (Unicode Standard Annex #11). */
const WIDE = new RegExp(
  '^[\\u{1100}-\\u{115f}\\u{2329}\\u{232a}\\u{2e80}-\\u{303e}\\u{3041}-\\u{4dbf}' +
    '\\u{4e00}-\\u{a4cf}\\u{a960}-\\u{a97c}\\u{ac00}-\\u{d7a3}\\u{f900}-\\u{faff}' +
    '\\u{fe10}-\\u{fe19}\\u{fe30}-\\u{fe6f}\\u{ff01}-\\u{ff60}\\u{ffe0}-\\u{ffe6}' +
    '\\u{16fe0}-\\u{18dff}\\u{1aff0}-\\u{1b2ff}\\u{1f200}-\\u{1f2ff}\\u{20000}-\\u{3fffd}' +
    '\\p{Emoji_Presentation}]',
  'u',
)
const NONE = /^[\p{M}\p{Cf}\p{Cc}]/u

let segmenter: Intl.Segmenter | undefined

/** The characters as people see them, each with its columns: an accent belongs to its letter. */
function* characters(text: string): Generator<readonly [character: string, columns: number]> {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  for (const { segment } of segmenter.segment(text)) {
    const isWide = WIDE.test(segment) || segment.includes('\ufe0f')
    yield [segment, isWide ? 2 : NONE.test(segment) ? 0 : 1]
  }
}

export function textWidth(text: string): number {
  let width = 0
  for (const [, columns] of characters(text)) width += columns
  return width
}

/** The text in exactly `width` columns, at least one: filled with blanks, or cut to end in `…`. */
export function fitted(text: string, width: number): string {
  const own = textWidth(text)
  if (own <= width) return text + ' '.repeat(width - own)
  let kept = ''
  let used = 0
  for (const [character, columns] of characters(text)) {
    if (used + columns > width - 1) break
    kept += character
    used += columns
  }
  return `${kept}…${' '.repeat(width - 1 - used)}`
}
