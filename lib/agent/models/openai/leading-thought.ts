import { THOUGHT_TAGS } from './chat-answer.js'

/**
 * Passes streamed text on, but for reasoning that stands before it in tags. Until the first
 * characters tell which of both it is, and while the end of the reasoning may be in the making,
 * nothing is passed on; what is held back is never longer than a tag.
 */
export class LeadingThought {
  #held = ''
  #state: 'start' | 'thought' | 'gap' | 'text' = 'start'

  /** The visible part of the next piece. */
  pass(piece: string): string {
    if (this.#state === 'text' || piece === '') return piece
    this.#held += piece
    const [open, close] = THOUGHT_TAGS
    if (this.#state === 'start') {
      const text = this.#held.trimStart()
      if (text.length < open.length && open.startsWith(text)) return ''
      if (!text.startsWith(open)) return this.#release()
      this.#held = text.slice(open.length)
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
    const text = this.#held
    this.#held = ''
    this.#state = 'text'
    return text
  }
}
