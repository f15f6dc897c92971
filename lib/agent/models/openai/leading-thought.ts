import { THOUGHT_TAGS } from './chat-answer.js'

/**
 * Removes the tagged reasoning at the beginning of streamed text. Text is held back while it may be
 * the beginning of a tag, so never more than the length of a tag.
 */
export class LeadingThought {
  /** White space before the first other character. */
  #blanks = ''
  #held = ''
  #state: 'start' | 'thought' | 'gap' | 'text' = 'start'

  /** Takes the next piece and returns the text that is now known to be visible. */
  pass(piece: string): string {
    if (this.#state === 'text' || piece === '') return piece
    const [open, close] = THOUGHT_TAGS
    this.#held += piece
    if (this.#state === 'start') {
      const text = this.#held.trimStart()
      this.#blanks += this.#held.slice(0, this.#held.length - text.length)
      this.#held = text
      if (text.length < open.length && open.startsWith(text)) return ''
      if (!text.startsWith(open)) return this.#release()
      this.#held = text.slice(open.length)
      this.#blanks = ''
      this.#state = 'thought'
    }
    if (this.#state === 'thought') {
      const end = this.#held.indexOf(close)
      this.#held =
        end === -1 ? this.#held.slice(1 - close.length) : this.#held.slice(end + close.length)
      if (end === -1) return ''
      this.#state = 'gap'
    }
    this.#held = this.#held.trimStart()
    return this.#held === '' ? '' : this.#release()
  }

  #release(): string {
    const text = this.#blanks + this.#held
    this.#held = this.#blanks = ''
    this.#state = 'text'
    return text
  }
}
