/** Fields of a new run that make a tree of it: attempts, and delegates. */
import { h, select } from './dom.js'
import { checkbox, control, field, numberField } from './form-fields.js'

export function treeFields() {
  const choose = select({}, [
    ['', 'The first that meets the goal'],
    ['smallest', 'The smallest change that meets it'],
    ['human', 'I choose among those that meet it'],
  ])
  const models = h('textarea', { rows: 2, spellcheck: false, autocomplete: 'off' })
  return h(
    'details.more',
    h('summary', 'Attempts and delegates'),
    h(
      'div.stack',
      h(
        'div.row',
        numberField('attempts-count', 'Attempts', { min: '1', max: '16' }),
        field('attempts-choose', 'Which one counts', choose),
      ),
      field(
        'attempts-models',
        'Models of the attempts',
        models,
        'One per line, taken in turn. Empty: the model above.',
      ),
      checkbox(
        'attempts-manual',
        'Let me apply the changes',
        'Otherwise those of the attempt that counts are applied at once.',
      ),
      h(
        'div.row',
        numberField('delegation-children', 'Runs that each may start', { min: '1', max: '16' }),
        numberField('delegation-depth', 'Levels of such runs', { min: '1', max: '3' }),
      ),
    ),
  )
}

/**
 * Each part is left out with all its fields empty; the service says which of them it needs.
 *
 * @param {HTMLFormElement} form
 */
export function readTreeFields(form) {
  const valueOf = (/** @type {string} */ name) => control(form, name).value.trim()
  const numberOf = (/** @type {string} */ name) =>
    valueOf(name) === '' ? undefined : Number(valueOf(name))
  const models = valueOf('attempts-models').split('\n').map((name) => name.trim())
  const named = models.filter((name) => name !== '')
  const attempts = {
    count: numberOf('attempts-count'),
    models: named.length === 0 ? undefined : named,
    choose: valueOf('attempts-choose') || undefined,
  }
  const delegation = {
    depth: numberOf('delegation-depth'),
    children: numberOf('delegation-children'),
  }
  const isGiven = (/** @type {object} */ part) =>
    Object.values(part).some((value) => value !== undefined)
  return {
    ...(isGiven(attempts) ? { attempts } : {}),
    ...(isGiven(attempts) && control(form, 'attempts-manual').checked ? { apply: 'manual' } : {}),
    ...(isGiven(delegation) ? { delegation } : {}),
  }
}
