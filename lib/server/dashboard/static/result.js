/** What a run has answered: its result, and the last text of its model. */
import { h, prose, setText } from './dom.js'

/** Hidden before there is any. */
export class ResultView {
  #title = h('p.hint', 'Result')
  #result = h('pre.output', { tabIndex: 0, dir: 'auto' })
  #heading = h('p.hint', 'Last answer of the model')
  #answer = h('pre.output', { tabIndex: 0, dir: 'auto' })
  element = h(
    'section.result',
    { hidden: true, 'aria-label': 'Result' },
    this.#title,
    this.#result,
    this.#heading,
    this.#answer,
  )

  /** @param {import('../types.js').RunDetails} details */
  update({ answer, result, result_schema: schema }) {
    // The timeline of other runs has what their model says.
    const isShown = schema !== null && (result !== null || answer !== '')
    this.element.hidden = !isShown
    this.#title.hidden = this.#result.hidden = result === null
    this.#heading.hidden = this.#answer.hidden = answer === ''
    setText(this.#result, isShown ? prose(JSON.stringify(result, null, 2)) : '')
    setText(this.#answer, isShown ? prose(answer) : '')
  }
}
