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
