/** What a goal would run: asked of the service, which runs nothing for it. */
import { call } from './api.js'
import { button, fill, h, setText } from './dom.js'
import { plural } from './format.js'

/** @typedef {import('../types.js').ResolvedRequest} ResolvedRequest */

/** The most patterns shown. */
const SHOWN = 12

export class RunPreview {
  element
  #read
  #failed
  /** Counts what makes an answer void: a change of the form, and another question. */
  #turns = 0
  #facts = h('dl.preview-facts')
  #status = h('p.hint', { role: 'status' })
  #ask = button('Show what it will run', () => void this.ask(), 'small')

  /**
   * @param {() => object} read the request as the form has it
   * @param {(error: unknown) => void} failed
   */
  constructor(read, failed) {
    this.#read = read
    this.#failed = failed
    this.element = h('div.preview', this.#ask, this.#status, this.#facts)
  }

  /** The form has changed: what was shown is no longer true. */
  forget() {
    this.#turns += 1
    if (this.#facts.childElementCount === 0) return
    fill(this.#facts)
    setText(this.#status, '')
  }

  async ask() {
    const turn = (this.#turns += 1)
    try {
      const resolved = await call('POST', 'api/resolve', { body: this.#read() })
      if (turn === this.#turns) this.#draw(resolved)
    } catch (error) {
      if (turn !== this.#turns) return
      this.forget()
      this.#failed(error)
    }
  }

  /** @param {ResolvedRequest} resolved */
  #draw({ cwd, goal, model_name }) {
    const { command, judge_model, by_result, reporter } = goal
    const check =
      judge_model !== null
        ? `the model ${judge_model} judges`
        : by_result ? 'a result that matches the schema' : command
    /** @type {readonly (readonly [string, string])[]} */
    const rows = [
      ['Folder', cwd === '' ? 'none' : cwd],
      ['Model', model_name],
      ['Check', check],
      ['Test runner', reporter ?? 'none: the exit code counts'],
      ['Protected files', protectedFiles(goal)],
    ]
    fill(
      this.#facts,
      rows.map(([name, value]) => [h('dt', name), h('dd.path', value)]).flat(),
    )
    setText(this.#status, 'Nothing was run.')
  }
}

/** @param {ResolvedRequest['goal']} goal */
function protectedFiles({ protected: globs, allow_test_changes }) {
  if (allow_test_changes) return 'none: this host lets runs change tests'
  if (globs.length === 0) return 'none'
  const more = globs.length - SHOWN
  const shown = globs.slice(0, SHOWN).join(', ')
  return more > 0 ? `${shown} and ${plural(more, 'pattern')} more` : shown
}
