/** What the model of a run was told besides the goal. */
import { fill, h, prose } from './dom.js'
import { number } from './format.js'

/** Hidden for a run without any. None of it ever changes. */
export class Instructions {
  #isShown = false
  #body = h('div')
  element = h(
    'details.instructions',
    { hidden: true },
    h('summary', 'Instructions'),
    this.#body,
  )

  /** @param {import('../types.js').RunDetails} details */
  update({ instructions, project_instructions: project }) {
    if (this.#isShown || (instructions === null && project === null)) return
    this.#isShown = true
    this.element.hidden = false
    fill(
      this.#body,
      instructions !== null && [h('p.hint', 'Of the request'), textOf(instructions)],
      project !== null && [
        h('p.hint', `Of the project: ${project.path}, as it was when the run was created`),
        textOf(project.text),
      ],
      project?.truncated === true &&
        h('p.hint', `The rest was left out: the file has ${number(project.bytes)} bytes.`),
    )
  }
}

/** @param {string} text */
function textOf(text) {
  return h('pre.output', { tabIndex: 0, dir: 'auto' }, prose(text))
}
