/** What starts the demo and shows it, where the host offers one. */
import { call, messageOf } from './api.js'
import { button, h, problemLine, setText } from './dom.js'

export class DemoStart {
  #button = button('Watch the demo', () => void this.#start(), { class: 'demo-button' })
  #problem = problemLine()
  element = h(
    'div.demo-start',
    { hidden: true },
    this.#button,
    h('p.hint', 'It starts a run that this server has prepared, and shows it live.'),
    this.#problem,
  )

  /** @param {{ readonly demo?: true }} health of the service */
  offer({ demo }) {
    this.element.hidden = demo !== true
  }

  async #start() {
    // Not disabled, which would take the focus away from it.
    if (this.#button.getAttribute('aria-disabled') === 'true') return
    this.#button.setAttribute('aria-disabled', 'true')
    setText(this.#problem, '')
    try {
      const { run_id } = await call('POST', 'api/demo')
      // A user who has gone elsewhere meanwhile stays there; the list shows the run.
      if (this.element.isConnected) await leadTo(`#/runs/${run_id}`)
    } catch (error) {
      setText(this.#problem, messageOf(error))
    } finally {
      this.#button.removeAttribute('aria-disabled')
    }
  }
}

/** Resolves when the view of this address has taken the place of the one that led there. */
function leadTo(/** @type {string} */ address) {
  return new Promise((resolve) => {
    addEventListener('hashchange', resolve, { once: true })
    location.hash = address
  })
}
