/**
 * Text that every store, protocol and program takes: without NUL and without halves of characters
 * (lone surrogates). PostgreSQL, for one, fails on either in each of its JSON operators.
 *
 * Names of files are exact text: in these, a half may stand for a byte (see `file-names.ts`).
 *
 * @module
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
