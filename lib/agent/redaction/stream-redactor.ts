/**
 * Keeps secrets out of text that comes in pieces. What could be the beginning of a secret is held
 * back until more of the text tells, so that what was let go never has to be taken back.
 *
 * 1. What is let go is, piece after piece, what the redactor makes of the whole text.
 * 2. What is held back is bounded: where a beginning grows beyond that, the mark stands for it and
 *    for everything after.
 *
 * @module
 */
import { REDACTED, type Redactor } from './redactor.js'

/** UTF-16 units that are held back at most; the largest private keys in use have some 13 000. */
const MAX_HELD = 16_384

/** Redacts one text as it comes. */
export class StreamRedactor {
  readonly #redactor: Redactor
  /** The last unit that was let go: it tells whether a word begins after it. */
  #before = ''
  #held = ''
  #silent = false

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** What can be shown now that `piece` has come. */
  push(piece: string): string {
    if (this.#silent || piece === '') return ''
    const text = this.#before + this.#held + piece
    const { shown, end } = this.#redactor.settled(text, this.#before.length)
    this.#before = text.slice(Math.max(0, end - 1), end)
    this.#held = text.slice(end)
    if (this.#held.length <= MAX_HELD) return shown
    this.#silent = true
    this.#held = ''
    return shown + REDACTED
  }

  /** What is left to show when the text is whole. */
  end(): string {
    const text = this.#before + this.#held
    this.#held = ''
    return this.#redactor.text(text).slice(this.#before.length)
  }
}
