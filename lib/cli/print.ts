/**
 * What goes to a terminal. Texts of models, commands, files and errors are hostile: everything that
 * a person reads passes `harmless()`, and styles are added around it.
 *
 * @module
 */
import { styleText } from 'node:util'
import { escapeInvisible } from '../internal/text.js'

/**
 * The text as one line in which nothing controls a terminal, hides, or changes the order of what
 * is beside it: such characters become escapes such as `\u001b`.
 */
export function harmless(text: string): string {
  return escapeInvisible(text.replaceAll(/\r?\n/g, ' '))
}

/** One line on standard output. */
export function printLine(text: string): void {
  process.stdout.write(`${harmless(text)}\n`)
}

/** One line on standard error. */
export function printError(message: string): void {
  process.stderr.write(escapeInvisible(`runwright: ${message.replaceAll(/\s+/g, ' ')}`) + '\n')
}

/** Characters that take two columns: most of East Asia, and pictures. */
const WIDE = new RegExp(
  String.raw`\p{Emoji_Presentation}|[\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}\u1100-\u115f` +
    String.raw`\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]`,
  'u',
)
const MARK = /\p{M}/u

/**
 * The beginning of a line that fits into so many columns, with `…` for the rest. Where terminals
 * differ, it is rather too short than too long.
 */
export function cut(line: string, columns: number): string {
  // Marks take no column, so characters are bounded as well.
  const most = 4 * columns
  let [width, end] = [0, 0]
  for (let at = 0, count = 0; at < line.length; count += 1) {
    const character = String.fromCodePoint(line.codePointAt(at)!)
    width += widthOf(character)
    if (width > columns || count >= most) return `${line.slice(0, end)}…`
    at += character.length
    if (width < columns) end = at
  }
  return line
}

function widthOf(character: string): number {
  if (character >= ' ' && character <= '~') return 1
  if (character === '\t') return 8
  if (MARK.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

/** What Node calls a style: `red`, `dim`, … */
export type Style = Parameters<typeof styleText>[0]

/** A text, with or without a style. */
export type Part = string | readonly [style: Style, text: string]

/** The text of a line, styled, and cut to so many columns; null cuts nothing. */
export function render(parts: readonly Part[], colour: boolean, columns: number | null): string {
  const styles = parts.map((part) => (typeof part === 'string' ? null : part[0]))
  let texts = parts.map((part) => harmless(typeof part === 'string' ? part : part[1]))
  if (columns !== null) {
    let left = cut(texts.join(''), columns)
    texts = texts.map((text, index) => {
      const isLast = index === texts.length - 1
      const taken = isLast ? left : left.slice(0, text.length)
      left = left.slice(taken.length)
      return taken
    })
  }
  return texts.map((text, index) => styled(styles[index] ?? null, text, colour)).join('')
}

function styled(style: Style | null, text: string, colour: boolean): string {
  if (!colour || style === null || text === '') return text
  return styleText(style, text, { validateStream: false })
}
