/** The form that starts a run. What it offers comes from the service. */
import { ApiError, call, idempotencyKey } from './api.js'
import { fill, h, setText } from './dom.js'

/**
 * @typedef {import('../types.js').Goal} Goal
 * @typedef {import('../types.js').Model} Model
 * @typedef {import('./dom.js').View} View
 */

/**
 * @param {string} id name of the field in the request
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
function field(id, label, control, hint) {
  control.id = id
  control.setAttribute('aria-describedby', `${id}-hint ${id}-error`)
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, label),
    control,
    h('p', { class: 'hint', id: `${id}-hint` }, hint ?? ''),
    h('p', { class: 'error-text', id: `${id}-error` }),
  )
}

/** @returns {View} */
export function startForm() {
  const goal = h('textarea', {
    name: 'goal',
    rows: 2,
    required: true,
    maxLength: 32_768,
    placeholder: 'node-test',
  })
  const model = h('select', { name: 'model_name' })
  const goals = h('div', {
    class: 'suggestions',
    role: 'group',
    'aria-label': 'Goals of this host',
  })
  const other = h('input', {
    name: 'other_model',
    spellcheck: false,
    autocomplete: 'off',
    placeholder: 'provider:model',
    'aria-label': 'Name of another model',
    hidden: true,
  })
  const kind = h('p', { class: 'notice', hidden: true, id: 'model-kind' })
  const problem = h('p', { class: 'error-text', role: 'alert' })
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Start run')
  const key = idempotencyKey()

  const form = h(
    'form',
    {
      class: 'stack',
      noValidate: true,
      onsubmit: (/** @type {Event} */ event) => void start(event),
    },
    field(
      'goal',
      'Goal',
      goal,
      'A named goal, shell: <command>, or free text with a check command below.',
    ),
    goals,
    field(
      'cwd',
      'Working directory',
      h('input', { name: 'cwd', spellcheck: false, autocomplete: 'off' }),
      "A folder on the server. Empty: the host's default.",
    ),
    field('model_name', 'Model', model),
    other,
    kind,
    h(
      'div',
      { class: 'row' },
      field(
        'max_iterations',
        'Most iterations',
        h('input', { name: 'max_iterations', type: 'number', min: '1', max: '1000', value: '20' }),
      ),
      h(
        'div',
        { class: 'field check' },
        h('input', {
          type: 'checkbox',
          id: 'hitl_enabled',
          name: 'hitl_enabled',
          'aria-describedby': 'hitl_enabled-hint',
        }),
        h('label', { for: 'hitl_enabled' }, 'Ask me after each iteration'),
        h(
          'p',
          { class: 'hint', id: 'hitl_enabled-hint' },
          'The run waits at a gate until somebody approves.',
        ),
        h('p', { class: 'error-text', id: 'hitl_enabled-error' }),
      ),
    ),
    h(
      'details',
      { class: 'more' },
      h('summary', {}, 'Checks, approvals and budgets'),
      h(
        'div',
        { class: 'stack' },
        field(
          'check',
          'Check command',
          h('input', { name: 'check', spellcheck: false, autocomplete: 'off' }),
          'Verifies a goal in free text by its exit code.',
        ),
        field(
          'approval',
          'Approve single tool calls',
          h(
            'select',
            { name: 'approval' },
            h('option', { value: 'never' }, 'Never'),
            h('option', { value: 'writes' }, 'Those that change something'),
            h('option', { value: 'all' }, 'All'),
          ),
        ),
        h(
          'div',
          { class: 'row' },
          field(
            'max_total_tokens',
            'Most tokens',
            h('input', { name: 'max_total_tokens', type: 'number', min: '1' }),
          ),
          field(
            'max_cost_usd',
            'Most US dollars',
            h('input', { name: 'max_cost_usd', type: 'number', min: '0', step: 'any' }),
          ),
          field(
            'max_seconds',
            'Most seconds',
            h('input', { name: 'max_seconds', type: 'number', min: '1' }),
          ),
          field(
            'max_tool_calls',
            'Most tool calls',
            h('input', { name: 'max_tool_calls', type: 'number', min: '1' }),
          ),
        ),
      ),
    ),
    problem,
    h('div', { class: 'actions' }, submit),
  )

  /** @param {Event} event */
  async function start(event) {
    event.preventDefault()
    showErrors(form, problem, null)
    submit.disabled = true
    try {
      const run = await call('POST', 'api/runs', {
        body: readForm(form),
        headers: { 'Idempotency-Key': key },
      })
      location.hash = `#/runs/${run.run_id}`
    } catch (error) {
      showErrors(form, problem, error)
    } finally {
      submit.disabled = false
    }
  }

  /** @type {readonly Model[]} */
  let models = []
  model.addEventListener('change', () => {
    other.hidden = model.value !== ''
    if (!other.hidden) other.focus()
    describeModel(
      kind,
      models.find(({ name }) => name === model.value),
    )
  })

  async function offer() {
    const [offeredModels, offeredGoals] = await Promise.all([
      call('GET', 'api/models'),
      call('GET', 'api/goals'),
    ])
    models = offeredModels
    fill(
      model,
      models.map((one) => h('option', { value: one.name, selected: one.default }, modelLabel(one))),
      h('option', { value: '' }, 'Another model…'),
    )
    describeModel(
      kind,
      models.find((one) => one.default),
    )
    fill(
      goals,
      /** @type {readonly Goal[]} */ (offeredGoals).map((one) =>
        h(
          'button',
          {
            type: 'button',
            class: 'suggestion',
            title: one.description,
            onclick: () => {
              goal.value = one.usage
              goal.focus()
            },
          },
          one.name,
        ),
      ),
    )
  }
  offer().catch((error) => showErrors(form, problem, error))

  return {
    element: h(
      'section',
      { class: 'panel narrow', 'aria-labelledby': 'form-title' },
      h('h1', { id: 'form-title' }, 'Start a run'),
      form,
    ),
    title: 'New run',
    close() {},
  }
}

/** @param {Model} model */
function modelLabel({ name, is_language_model }) {
  return is_language_model ? name : `${name} (no language model)`
}

/**
 * @param {HTMLElement} kind
 * @param {Model | undefined} model
 */
function describeModel(kind, model) {
  kind.hidden = model === undefined
  if (model === undefined) return
  const prefix = model.is_language_model ? '' : 'This is a program, not a language model. '
  setText(kind, `${prefix}${model.description}`)
  kind.classList.toggle('program', !model.is_language_model)
}

/** @param {HTMLFormElement} form */
function readForm(form) {
  /** @type {Record<string, unknown>} */
  const request = { hitl_enabled: control(form, 'hitl_enabled').checked }
  for (const name of ['goal', 'cwd', 'model_name', 'check', 'approval']) {
    const value = control(form, name).value
    if (value.trim() !== '') request[name] = value
  }
  const other = control(form, 'other_model')
  if (!other.hidden && other.value.trim() !== '') request['model_name'] = other.value.trim()
  for (const name of [
    'max_iterations',
    'max_total_tokens',
    'max_cost_usd',
    'max_seconds',
    'max_tool_calls',
  ]) {
    const value = control(form, name).value
    if (value !== '') request[name] = Number(value)
  }
  return request
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
function control(form, name) {
  return /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
}

/**
 * Puts each error beside its field, and what belongs to none below the form.
 *
 * @param {HTMLFormElement} form
 * @param {HTMLElement} problem
 * @param {unknown} error null takes all errors away
 */
function showErrors(form, problem, error) {
  for (const text of form.querySelectorAll('.error-text')) text.textContent = ''
  for (const element of form.querySelectorAll('[aria-invalid]'))
    element.removeAttribute('aria-invalid')
  if (error === null) return
  const fields = error instanceof ApiError ? (error.problem.errors ?? []) : []
  let placed = 0
  for (const { pointer, detail } of fields) {
    const name = pointer.split('/')[1] ?? ''
    const text = name === '' ? null : form.querySelector(`#${CSS.escape(name)}-error`)
    if (text === null) continue
    text.textContent = detail
    const input = control(form, name)
    input.setAttribute('aria-invalid', 'true')
    input.closest('details')?.setAttribute('open', '')
    if (placed === 0) input.focus()
    placed += 1
  }
  if (placed < fields.length || placed === 0) {
    problem.textContent = error instanceof ApiError ? error.message : 'The service does not answer.'
  }
}
