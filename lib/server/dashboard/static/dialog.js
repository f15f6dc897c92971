/** Modal dialogs. The browser keeps the focus inside, closes on Escape, and returns the focus. */
import { button, form, h } from './dom.js'

/** A view that is left takes its dialogs along; the one that asks for a key stays. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll('dialog[open]:not(.stays)'))
    /** @type {HTMLDialogElement} */ (dialog).close()
}

/**
 * Opens a dialog that removes itself when it is closed.
 *
 * @param {string} title
 * @param {HTMLButtonElement} act what the dialog is for
 * @param {readonly import('./dom.js').Child[]} content
 * @param {() => void} [submitted] with it, the content is a form that `act` submits
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, act, content, submitted) {
  const cancel = button('Cancel', () => dialog.close(), 'quiet')
  const parts = [h('h2', { id: 'dialog-title' }, title), ...content, h('div.actions', cancel, act)]
  const dialog = h(
    'dialog.dialog',
    { 'aria-labelledby': 'dialog-title' },
    submitted === undefined ? h('div.stack', parts) : form('stack', submitted, parts),
  )
  document.body.append(dialog)
  dialog.addEventListener('close', () => dialog.remove())
  dialog.showModal()
  return dialog
}
