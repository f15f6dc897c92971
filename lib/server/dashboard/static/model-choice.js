/** The model of a new run, with its price and context window, as far as they are known. */
import { fill, h, setText } from './dom.js'
import { number } from './format.js'
import { field } from './form-fields.js'

/** @typedef {import('../types.js').Model} Model */

/** A list of the offered models, and an input for the name of another one. */
export class ModelChoice {
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
    const first = models.find((model) => model.default) ?? models[0]
    if (first !== undefined) this.#select.value = first.name
    this.#other.hidden = first !== undefined
    this.#describe(first)
    if (first !== undefined) return
    this.#about.hidden = false
    setText(this.#about, 'No model is set up here: the host of this service has to provide one.')
  }

  /** Chooses a model that may be one of those offered. @param {string} name */
  choose(name) {
    const isOffered = this.#models.some((model) => model.name === name)
    this.#select.value = isOffered ? name : ''
    this.#other.hidden = isOffered
    if (!isOffered) this.#other.value = name
    this.#describe(this.#models.find((model) => model.name === name))
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
    setText(this.#about, `${prefix}${[model.description, ...knownOf(model)].join(' · ')}`)
    this.#about.classList.toggle('program', !model.is_language_model)
  }
}

/** @param {Model} model */
function modelLabel(model) {
  const { name, is_language_model } = model
  return is_language_model ? [name, ...knownOf(model)].join(' · ') : `${name} (no language model)`
}

/**
 * Price and context window, as far as they are known.
 *
 * @param {Model} model
 */
function knownOf({ prices, context_window }) {
  const known = []
  if (prices !== null) known.push(`$${prices.input} in, $${prices.output} out per million tokens`)
  if (context_window !== null) known.push(`${number(Math.round(context_window / 1_000))}k context`)
  return known
}
