/** Gives the reader text and files to keep. */
import { attempt } from './api.js'
import { button, h, setText, toast } from './dom.js'

/** How long a button says that it has copied. */
const SAID_MS = 2_000

/**
 * Copies a text. Pages of plain HTTP have no clipboard but that of a selection.
 *
 * @param {string} text
 * @returns {Promise<boolean>}
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const focused = document.activeElement
    const area = h('textarea.visually-hidden', { value: text, readOnly: true, tabIndex: -1 })
    const within = focused?.closest('dialog') ?? document.body
    within.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
    return copied
  }
}

/**
 * A button that copies a text, and says so.
 *
 * @param {string} label
 * @param {() => string | Promise<string>} textOf
 * @param {import('./dom.js').Props} [props]
 */
export function copyButton(label, textOf, props = {}) {
  const copy = () =>
    void attempt(async () => {
      if (!(await copyText(await textOf()))) return toast('The browser did not let it copy.', 'bad')
      setText(element, 'Copied')
      setTimeout(() => setText(element, label), SAID_MS)
    })
  const element = button(label, copy, { class: 'quiet small', ...props })
  return element
}

/**
 * Saves a file. Whatever it contains, the browser only saves it.
 *
 * @param {readonly BlobPart[]} parts
 * @param {string} name
 */
export function saveFile(parts, name) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([...parts], { type: 'application/octet-stream' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
