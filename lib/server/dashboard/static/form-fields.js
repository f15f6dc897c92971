/** Labelled fields of a form, each with a hint and room for an error. */
import { h } from './dom.js'

/**
 * A labelled control with a hint and room for an error.
 *
 * @param {string} name name of the field in the request
 * @param {string} label
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} control
 * @param {string} [hint]
 */
export function field(name, label, control, hint) {
  control.id = name
  control.name = name
  control.setAttribute('aria-describedby', `${name}-hint ${name}-error`)
  return h(
    'div.field',
    h('label', { for: name }, label),
    control,
    h('p.hint', { id: `${name}-hint` }, hint ?? ''),
    h('p.error-text', { id: `${name}-error` }),
  )
}

export function textInput() {
  return h('input', { spellcheck: false, autocomplete: 'off' })
}

/**
 * @param {string} name
 * @param {string} label
 * @param {Record<string, string>} limits
 */
export function numberField(name, label, limits) {
  return field(name, label, h('input', { type: 'number', ...limits }))
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} hint
 */
export function checkbox(name, label, hint) {
  return h(
    'div.field.check',
    h('input', { type: 'checkbox', id: name, name, 'aria-describedby': `${name}-hint` }),
    h('label', { for: name }, label),
    h('p.hint', { id: `${name}-hint` }, hint),
    h('p.error-text', { id: `${name}-error` }),
  )
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
export function control(form, name) {
  return /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
}
