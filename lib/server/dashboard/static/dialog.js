/** Modal dialogs. The browser keeps the focus inside, closes on Escape, and returns the focus. */
import { h } from './dom.js'

/**
 * Opens a dialog that removes itself when it is closed.
 *
 * @param {string} title
 * @param {...(import('./dom.js').Child | readonly import('./dom.js').Child[])} content
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, ...content) {
  const dialog = h(
    'dialog.dialog',
    { 'aria-labelledby': 'dialog-title' },
    h('div.stack', h('h2', { id: 'dialog-title' }, title), ...content),
  )
  document.body.append(dialog)
  dialog.addEventListener('close', () => dialog.remove())
  dialog.showModal()
  return dialog
}
