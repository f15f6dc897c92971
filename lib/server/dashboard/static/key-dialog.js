/** The dialog that asks the user for a key. */
import { storeKey, storedKey } from './api.js'
import { openDialog } from './dialog.js'
import { byId, h } from './dom.js'

/** @returns {Promise<boolean>} false when the user declined */
export function askForKey() {
  const refused = storedKey() !== null
  storeKey(null)
  const input = h('input', {
    id: 'key',
    type: 'password',
    autocomplete: 'off',
    spellcheck: false,
    'aria-describedby': 'key-help',
  })
  const dialog = openDialog(
    'This service requires a key',
    h('button.primary', { type: 'submit' }, 'Use key'),
    [
      refused && h('p.error-text', { role: 'alert' }, 'The key was not accepted.'),
      h('label', { for: 'key' }, 'API key'),
      input,
      h('p.hint', { id: 'key-help' }, 'Kept in this tab only, until it is closed.'),
    ],
    () => input.value.trim() !== '' && dialog.close('use'),
  )
  dialog.classList.add('stays')
  input.focus()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      const given = dialog.returnValue === 'use'
      if (given) storeKey(input.value.trim())
      byId('forget').hidden = !given
      resolve(given)
    })
  })
}
