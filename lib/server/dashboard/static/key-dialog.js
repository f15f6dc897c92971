/** The dialog that asks the user for a key. */
import { storeKey, storedKey } from './api.js'
import { button, byId, h } from './dom.js'

/** @returns {Promise<boolean>} false when the user declined */
export function askForKey() {
  const refused = storedKey() !== null
  storeKey(null)
  const input = h('input', {
    id: 'key',
    type: 'password',
    autocomplete: 'off',
    spellcheck: false,
    required: true,
    'aria-describedby': 'key-help',
  })
  const dialog = h(
    'dialog.dialog',
    { 'aria-labelledby': 'key-title' },
    h(
      'form',
      { method: 'dialog', class: 'stack' },
      h('h2', { id: 'key-title' }, 'This service requires a key'),
      refused && h('p.error-text', { role: 'alert' }, 'The key was not accepted.'),
      h('label', { for: 'key' }, 'API key'),
      input,
      h('p', { id: 'key-help', class: 'hint' }, 'Kept in this tab only, until it is closed.'),
      h(
        'div.actions',
        button('Cancel', () => dialog.close(''), 'quiet'),
        h('button', { type: 'submit', class: 'primary', value: 'use' }, 'Use key'),
      ),
    ),
  )
  document.body.append(dialog)
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      const key = input.value.trim()
      const given = dialog.returnValue === 'use' && key !== ''
      if (given) storeKey(key)
      byId('forget').hidden = !given
      dialog.remove()
      resolve(given)
    })
  })
}
