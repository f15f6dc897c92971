/** The form that starts a run. The service names the models and goals that it offers. */
import { ApiError, call, idempotencyKey, messageOf } from './api.js'
import { button, fill, form, h, problemLine, select, setText } from './dom.js'
import { checkbox, control, field, numberField, textInput } from './form-fields.js'
import { readTreeFields, treeFields } from './tree-fields.js'

/**
 * @typedef {import('../types.js').Goal} Goal
 * @typedef {import('../types.js').Model} Model
 * @typedef {import('./dom.js').View} View
 */

/** Fields of the request, by type. An empty one is left out, so that the default applies. */
const TEXT_FIELDS = [
  'goal',
  'cwd',
  'model_name',
  'check',
  'approval',
  'workspace',
  'instructions',
]
const NUMBER_FIELDS = [
  'max_iterations',
  'max_total_tokens',
  'max_cost_usd',
  'max_seconds',
  'max_tool_calls',
]

/** Boxes that set a field to the only value that it has. */
const CHOICES = /** @type {const} */ ({
  apply: 'on_achieved',
  checkpoints: 'off',
  project_instructions: false,
})

/** @implements {View} */
export class StartForm {
  title = 'New run'
  element
  #goal = h('textarea', { rows: 2, required: true, maxLength: 32_768, placeholder: 'node-test' })
  #goals = h('div.suggestions', { role: 'group', 'aria-label': 'Goals of this host' })
  #model = new ModelChoice()
  #problem = problemLine()
  #submit = h('button', { type: 'submit', class: 'primary' }, 'Start run')
  /** One key for all attempts: pressing the button twice starts one run. */
  #key = idempotencyKey()
  #form

  constructor() {
    this.#form = form(
      'stack',
      () => void this.#start(),
      field(
        'goal',
        'Goal',
        this.#goal,
        'A named goal, shell: <command>, or free text with a check command below.',
      ),
      this.#goals,
      field(
        'cwd',
        'Working directory',
        textInput(),
        "A folder on the server. Empty: the host's default.",
      ),
      this.#model.elements,
      h(
        'div.row',
        numberField('max_iterations', 'Max iterations', { min: '1', max: '1000', value: '20' }),
        checkbox(
          'hitl_enabled',
          'Ask me after each iteration',
          'The run waits at a gate until you approve.',
        ),
      ),
      moreFields(),
      instructionFields(),
      folderFields(),
      treeFields(),
      this.#problem,
      h('div.actions', this.#submit),
    )
    this.element = h(
      'section.panel.narrow',
      { 'aria-labelledby': 'form-title' },
      h('h1', { id: 'form-title' }, 'Start a run'),
      this.#form,
    )
    this.#loadOffers().catch((error) => this.#showError(error))
  }

  close() {}

  async #loadOffers() {
    const [models, goals] = await Promise.all([call('GET', 'api/models'), call('GET', 'api/goals')])
    this.#model.offer(models)
    fill(this.#goals, goals.map((/** @type {Goal} */ goal) => this.#suggestion(goal)))
  }

  /** @param {Goal} goal */
  #suggestion({ name, description, usage }) {
    const choose = () => {
      this.#goal.value = usage
      this.#goal.focus()
    }
    return button(name, choose, { class: 'suggestion', title: description })
  }

  async #start() {
    this.#clearErrors()
    this.#submit.disabled = true
    try {
      const run = await call('POST', 'api/runs', {
        body: readRequest(this.#form),
        headers: { 'Idempotency-Key': this.#key },
      })
      location.hash = `#/runs/${run.run_id}`
    } catch (error) {
      this.#showError(error)
    } finally {
      this.#submit.disabled = false
    }
  }

  #clearErrors() {
    for (const text of this.#form.querySelectorAll('.error-text')) setText(text, '')
    for (const element of this.#form.querySelectorAll('[aria-invalid]'))
      element.removeAttribute('aria-invalid')
  }

  /** The field of `/attempts/models/0` is `attempts-models`. @param {string} pointer */
  #fieldOf(pointer) {
    const names = pointer.split('/').slice(1, 3)
    const inner = names.join('-')
    return this.#form.elements.namedItem(inner) === null ? (names[0] ?? '') : inner
  }

  /** Puts each error beside its field, and errors without a field below the form. */
  #showError(/** @type {unknown} */ error) {
    this.#clearErrors()
    const errors = error instanceof ApiError ? (error.problem.errors ?? []) : []
    let placed = 0
    for (const { pointer, detail } of errors) {
      const name = this.#fieldOf(pointer)
      const text = this.#form.querySelector(`#${CSS.escape(name)}-error`)
      if (name === '' || text === null) continue
      setText(text, detail)
      const input = control(this.#form, name)
      input.setAttribute('aria-invalid', 'true')
      input.closest('details')?.setAttribute('open', '')
      if (placed === 0) input.focus()
      placed += 1
    }
    if (placed < errors.length || placed === 0) setText(this.#problem, messageOf(error))
  }
}

/** A list of the offered models, and an input for the name of another one. */
class ModelChoice {
  /** @type {readonly Model[]} */
  #models = []
  #select = h('select', { onchange: () => this.#changed() })
  #other = h('input', {
    name: 'other_model',
    spellcheck: false,
    autocomplete: 'off',
    placeholder: 'provider:model',
    'aria-label': 'Name of another model',
    hidden: true,
  })
  #about = h('p.notice', { hidden: true, id: 'model-kind' })
  elements = [field('model_name', 'Model', this.#select), this.#other, this.#about]

  /** @param {readonly Model[]} models */
  offer(models) {
    this.#models = models
    fill(
      this.#select,
      models.map((model) =>
        h('option', { value: model.name, selected: model.default }, modelLabel(model)),
      ),
      h('option', { value: '' }, 'Another model…'),
    )
    this.#describe(models.find((model) => model.default))
  }

  #changed() {
    const name = this.#select.value
    this.#other.hidden = name !== ''
    if (!this.#other.hidden) this.#other.focus()
    this.#describe(this.#models.find((model) => model.name === name))
  }

  /** @param {Model | undefined} model */
  #describe(model) {
    this.#about.hidden = model === undefined
    if (model === undefined) return
    const prefix = model.is_language_model ? '' : 'This is a program, not a language model. '
    setText(this.#about, `${prefix}${model.description}`)
    this.#about.classList.toggle('program', !model.is_language_model)
  }
}

/** @param {Model} model */
function modelLabel({ name, is_language_model }) {
  return is_language_model ? name : `${name} (no language model)`
}

function folderFields() {
  const place = select({ onchange: () => update() }, [
    ['', "The host's default"],
    ['in_place', 'In the folder'],
    ['isolated', 'In a private copy'],
  ])
  const apply = checkbox(
    'apply',
    'Apply the changes at once',
    'When the goal is achieved, without asking.',
  )
  const update = () => {
    for (const box of apply.querySelectorAll('input')) box.disabled = place.value === 'in_place'
  }
  return h(
    'details.more',
    h('summary', 'Private copy and checkpoints'),
    h(
      'div.stack',
      field(
        'workspace',
        'Where it works',
        place,
        'A private copy leaves the folder as it is until you apply the changes.',
      ),
      h(
        'div.row',
        apply,
        checkbox('checkpoints', 'Keep no checkpoints', 'Nothing can be compared or restored then.'),
      ),
    ),
  )
}

function instructionFields() {
  const text = h('textarea', { rows: 4, maxLength: 32_768 })
  return h(
    'details.more',
    h('summary', 'Instructions'),
    h(
      'div.stack',
      field('instructions', 'Instructions', text, 'What the model is told besides the goal.'),
      checkbox(
        'project_instructions',
        'Without AGENTS.md',
        "The model does not get the project's instructions.",
      ),
    ),
  )
}

function moreFields() {
  const approval = select({}, [
    ['never', 'Never'],
    ['writes', 'Calls that change something'],
    ['all', 'All calls'],
  ])
  return h(
    'details.more',
    h('summary', 'Checks, approvals and budgets'),
    h(
      'div.stack',
      field('check', 'Check command', textInput(), 'Verifies a free-text goal by its exit code.'),
      field('approval', 'Approve individual tool calls', approval),
      h(
        'div.row',
        numberField('max_total_tokens', 'Max tokens', { min: '1' }),
        numberField('max_cost_usd', 'Max cost in US dollars', { min: '0', step: 'any' }),
        numberField('max_seconds', 'Max seconds', { min: '1' }),
        numberField('max_tool_calls', 'Max tool calls', { min: '1' }),
      ),
    ),
  )
}

/** @param {HTMLFormElement} form */
function readRequest(form) {
  /** @type {Record<string, unknown>} */
  const request = { hitl_enabled: control(form, 'hitl_enabled').checked }
  for (const name of TEXT_FIELDS) {
    const value = control(form, name).value
    if (value.trim() !== '') request[name] = value
  }
  for (const [name, value] of Object.entries(CHOICES)) {
    const { checked, disabled } = control(form, name)
    if (checked && !disabled) request[name] = value
  }
  const other = control(form, 'other_model')
  if (!other.hidden && other.value.trim() !== '') request['model_name'] = other.value.trim()
  for (const name of NUMBER_FIELDS) {
    const value = control(form, name).value
    if (value !== '') request[name] = Number(value)
  }
  return { ...request, ...readTreeFields(form) }
}
