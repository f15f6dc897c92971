/** What a person had typed at a gate that closed before it was sent: it is theirs, and stays. */
import { button, fill, h, setText, toast } from './dom.js'

export class KeptText {
  #why = h('p')
  #text = h('textarea', { id: 'kept-text', rows: 4, readOnly: true })
  element = h('section.kept-text', { 'aria-labelledby': 'kept-title', hidden: true })

  /**
   * @param {string} why the gate closed
   * @param {string} text
   */
  show(why, text) {
    const kept = this.element.hidden ? '' : `${this.#text.value}\n\n`
    this.#text.value = kept + text
    this.element.hidden = false
    setText(this.#why, why)
    const copy = async () => {
      this.#text.select()
      await navigator.clipboard.writeText(this.#text.value)
      toast('Copied.')
    }
    const failed = () => toast('The browser does not allow that: the text is selected.', 'bad')
    fill(
      this.element,
      h('h2', { id: 'kept-title' }, 'Your answer did not count'),
      this.#why,
      h('label', { for: 'kept-text' }, 'What you had written'),
      this.#text,
      h(
        'div.actions',
        button('Discard', () => this.#hide(), 'quiet'),
        button('Copy', () => void copy().catch(failed)),
      ),
    )
  }

  /** The reason was found out later. @param {string} why */
  explain(why) {
    if (!this.element.hidden) setText(this.#why, why)
  }

  #hide() {
    this.element.hidden = true
    this.element.parentElement?.querySelector('h1')?.focus({ preventScroll: true })
  }
}
