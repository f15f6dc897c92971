/**
 * Redacts text that arrives in pieces. Text that may be the beginning of a secret is held back
 * until its continuation decides.
 *
 * 1. The released pieces add up to what the redactor returns for the whole text.
 * 2. The held text is bounded: beyond the bound, the mark replaces it and everything after it.
 *
 * @module
 */
import { REDACTED } from '../../internal/errors.js'
import type { Redactor } from './redactor.js'

/** UTF-16 units held back at most; the largest private keys in use have about 13 000. */
const MAX_HELD = 16_384

/** Beyond this many, what is held is read again only once it has grown by an eighth. */
const LONG_HELD = 1_024

/** Characters of the released text that are kept: a name, and what is between it and its value. */
const BEFORE = 128

/** Redacts one text, piece by piece. */
export class StreamRedactor {
  readonly #redactor: Redactor
  /** The end of what was released, which decides what follows it. */
  #before = ''
  #held = ''
  /** How much of it is new since it was read. */
  #unread = 0
  #silent = false

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Takes the next piece and returns the text that it releases. */
  push(piece: string): string {
    if (this.#silent || piece === '') return ''
    this.#held += piece
    this.#unread += piece.length
    if (this.#held.length > LONG_HELD && this.#unread * 8 < this.#held.length) return ''
    this.#unread = 0
    const text = this.#before + this.#held
    const { shown, end } = this.#redactor.settled(text, this.#before.length)
    this.#before = text.slice(Math.max(0, end - BEFORE), end)
    this.#held = text.slice(end)
    if (this.#held.length <= MAX_HELD) return shown
    this.#silent = true
    this.#held = ''
    return shown + REDACTED
  }

  /** Returns the rest once the text is complete. */
  end(): string {
    const text = this.#before + this.#held
    this.#held = ''
    return this.#redactor.part(text, this.#before.length, text.length)
  }
}
