/** The form that starts a run. The service names the folders, models and goals that it offers. */
import { ApiError, call, idempotencyKey, messageOf, page } from './api.js'
import { DemoStart } from './demo.js'
import { button, fill, form, h, problemLine, prose, select, setText } from './dom.js'
import { FolderField } from './folder-field.js'
import { checkbox, control, field, numberField, textInput } from './form-fields.js'
import { ModelChoice } from './model-choice.js'
import { againAddress, againFrom, fieldsOf, fillFields } from './run-again.js'
import { RunPreview } from './run-preview.js'
import { shortFolder } from './run-query.js'
import { nameOf } from './run-row.js'
import { readTreeFields, treeFields } from './tree-fields.js'

/**
 * @typedef {import('../types.js').Goal} Goal
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('./dom.js').View} View
 */

/** Fields of the request, by type. An empty one is left out, so that the default applies. */
const TEXT_FIELDS = [
  'goal',
  'cwd',
  'model_name',
  'check',
  'setup',
  'approval',
  'workspace',
  'instructions',
  'compaction',
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

/** Earlier runs offered as a start, of the newest that are looked at. */
const RECENT = 5
const LOOKED_AT = 40

/** @implements {View} */
export class StartForm {
  title = 'New run'
  element
  #goal = h('textarea', { rows: 2, required: true, maxLength: 32_768, placeholder: 'node-test' })
  #goals = h('div.suggestions', { role: 'group', 'aria-label': 'Goals of this host' })
  #model = new ModelChoice()
  #recent = h('ul.recent', { 'aria-label': 'Recent runs, to edit and run again' })
  #again = h('p.notice', { role: 'status', hidden: true })
  #folder = new FolderField(() => this.#preview.forget())
  #preview = new RunPreview(
    () => this.#request(),
    (error) => this.#showError(error),
  )
  #demo = new DemoStart()
  #problem = problemLine()
  #submit = h('button', { type: 'submit', class: 'primary' }, 'Start run')
  /** One key for all attempts: pressing the button twice starts one run. */
  #key = idempotencyKey()
  #form
  /** Fields that the user has filled in: nothing that comes later changes them. */
  #touched = new Set()

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
      this.#folder.element,
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
      resultFields(),
      this.#preview.element,
      this.#problem,
      h('div.actions', this.#submit),
    )
    this.element = h(
      'section.panel.narrow',
      { 'aria-labelledby': 'form-title' },
      h('h1', { id: 'form-title' }, 'Start a run'),
      this.#demo.element,
      this.#again,
      this.#recent,
      this.#form,
    )
    this.#form.addEventListener('input', ({ target }) => {
      this.#touched.add(/** @type {HTMLInputElement} */ (target).name)
      this.#preview.forget()
    })
    this.#loadOffers().catch((error) => this.#showError(error))
    void this.#offerDemo()
  }

  close() {}

  async #loadOffers() {
    const [models, goals] = await Promise.all([call('GET', 'api/models'), call('GET', 'api/goals')])
    this.#model.offer(models)
    fill(this.#goals, goals.map((/** @type {Goal} */ goal) => this.#suggestion(goal)))
    await Promise.all([this.#prefill(), this.#offerRecent()])
  }

  async #offerDemo() {
    try {
      this.#demo.offer(await call('GET', 'api/health', { quiet: true }))
    } catch {
      // What fails for the offers as well is shown there.
    }
  }

  /** From the run that the address names, if it does. */
  async #prefill() {
    const runId = againFrom(location.hash)
    if (runId === null) return
    const details = await call('GET', `api/runs/${runId}`)
    const isFree = (/** @type {string} */ name) => !this.#touched.has(name)
    const fields = Object.entries(fieldsOf(details)).filter(([name]) => isFree(name))
    fillFields(this.#form, Object.fromEntries(fields))
    if (isFree('model_name') && isFree('other_model')) this.#model.choose(details.model_name)
    this.#preview.forget()
    this.#again.hidden = false
    const link = h('a', { href: `#/runs/${runId}` }, 'an earlier run')
    fill(
      this.#again,
      'The request of ',
      link,
      '. Change what you like, and start it as a new run. ',
      'Held-out tests, images, tools and metadata are not taken over.',
    )
  }

  /** Goals that were run of late, each once for its folder. */
  async #offerRecent() {
    const { items } = await page(`api/runs?limit=${LOOKED_AT}&role=root`)
    /** @type {Map<string, RunSummary>} */
    const recent = new Map()
    for (const run of items) {
      const key = JSON.stringify([run.goal, run.cwd])
      if (run.problem === null && !recent.has(key)) recent.set(key, run)
    }
    const shown = [...recent.values()].slice(0, RECENT)
    fill(
      this.#recent,
      shown.length > 0 && h('li.hint', 'Edit and run again:'),
      shown.map((run) => {
        const folder = run.cwd === '' ? '' : ` in ${shortFolder(run.cwd)}`
        const name = h('span.run-goal', { dir: 'auto' }, prose(nameOf(run)))
        const href = againAddress(run.run_id)
        return h('li', h('a.suggestion', { href }, name, h('span.hint', folder)))
      }),
    )
  }

  /** @param {Goal} goal */
  #suggestion({ name, description, usage }) {
    const choose = () => {
      this.#goal.value = usage
      this.#goal.focus()
      // As if it was typed.
      this.#goal.dispatchEvent(new Event('input', { bubbles: true }))
    }
    return button(name, choose, { class: 'suggestion', title: description })
  }

  #request() {
    this.#clearErrors()
    return readRequest(this.#form)
  }

  async #start() {
    this.#submit.disabled = true
    try {
      const run = await call('POST', 'api/runs', {
        body: this.#request(),
        headers: { 'Idempotency-Key': this.#key },
      })
      // A user who has gone elsewhere meanwhile stays there; the list shows the run.
      if (this.element.isConnected) location.hash = `#/runs/${run.run_id}`
    } catch (error) {
      this.#submit.disabled = false
      this.#showError(error)
      // Who works by keyboard can try again.
      if (this.element.isConnected && document.activeElement === document.body) this.#submit.focus()
    }
  }

  #clearErrors() {
    setText(this.#problem, '')
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
    const errors = error instanceof FieldError
      ? error.errors
      : error instanceof ApiError ? (error.problem.errors ?? []) : []
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

function folderFields() {
  const place = select({ onchange: () => update() }, [
    ['', "The host's default"],
    ['in_place', 'In the folder'],
    ['isolated', 'In a private copy'],
    ['none', 'Without a folder'],
  ])
  const apply = checkbox(
    'apply',
    'Apply the changes at once',
    'When the goal is achieved, without asking.',
  )
  const update = () => {
    const isCopy = place.value === '' || place.value === 'isolated'
    for (const box of apply.querySelectorAll('input')) box.disabled = !isCopy
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
      field('setup', 'Setup command', textInput(), 'Runs once before the first check: npm ci.'),
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

function resultFields() {
  const compaction = select({}, [
    ['', "The host's default"],
    ['summary', 'A summary of what does not fit'],
    ['drop', 'Nothing: it is left out'],
  ])
  const models = h('textarea', { rows: 2, spellcheck: false, autocomplete: 'off' })
  const schema = h('textarea', { rows: 4, spellcheck: false, placeholder: '{ "type": "object" }' })
  return h(
    'details.more',
    h('summary', 'Result and other models'),
    h(
      'div.stack',
      field('result_schema', 'Result schema', schema, 'JSON Schema of the result that it gives.'),
      field(
        'fallback_models',
        'Models that take over',
        models,
        'One per line, in turn, when the model does not answer.',
      ),
      field('compaction', 'What takes the place of a long conversation', compaction),
    ),
  )
}

/** What is wrong with a field before the service has seen it. */
class FieldError extends Error {
  /** @param {string} pointer @param {string} detail */
  constructor(pointer, detail) {
    super(detail)
    this.errors = [{ pointer, detail }]
  }
}

/** @param {string} text */
function readSchema(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new FieldError('/result_schema', 'is not JSON')
  }
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
  const schema = control(form, 'result_schema').value
  if (schema.trim() !== '') request['result_schema'] = readSchema(schema)
  const others = control(form, 'fallback_models').value.split('\n').map((name) => name.trim())
  const fallbacks = others.filter((name) => name !== '')
  if (fallbacks.length > 0) request['fallback_models'] = fallbacks
  return { ...request, ...readTreeFields(form) }
}
