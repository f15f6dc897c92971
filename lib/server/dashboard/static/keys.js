/**
 * Keys that do what a control of the page does, and the dialog that lists those bound now.
 *
 * 1. A key acts only while nobody types, no dialog is open, and no other key is held with it.
 * 2. A key that is held down acts once, whatever its action puts in place of what was there.
 * 3. Of two bindings of one key, the later one acts and is listed.
 * 4. They can be switched off (WCAG 2.1.4): people who speak to their computer, or touch keys by
 *    accident, would press them without meaning to.
 */
import { button, h } from './dom.js'
import { local } from './storage.js'

/**
 * `key` as `KeyboardEvent.key` has it. Without `run` it is only listed: an element handles it.
 *
 * @typedef {{
 *   readonly key: string,
 *   readonly label: string,
 *   readonly run?: (event: KeyboardEvent) => void,
 * }} KeyBinding
 */

const OFF = 'runwright.keys-off'

/** @type {Record<string, string>} */
const NAMES = {
  ' ': 'Space',
  ArrowDown: '↓',
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  Escape: 'Esc',
  PageDown: 'Page Down',
  PageUp: 'Page Up',
}

/** Inputs in which letters are not typed. */
const PRESSED = new Set(['button', 'checkbox', 'file', 'radio', 'range', 'reset', 'submit'])

/** Those that many keyboards have only together with Shift. */
const SHIFTED = /^[\p{P}\p{S}]$/u

/** @typedef {{ readonly scope: string, readonly bindings: readonly KeyBinding[] }} Group */

/** In the order of their binding. @type {Set<Group>} */
const bound = new Set()

/**
 * Binds keys until the function that is returned is called.
 *
 * @param {string} scope heading of the keys in the dialog, such as `Gate`
 * @param {readonly KeyBinding[]} bindings
 * @returns {() => void} unbinds them; calling it again does nothing
 */
export function bindKeys(scope, bindings) {
  const group = { scope, bindings }
  if (bound.size === 0) document.addEventListener('keydown', onKey)
  bound.add(group)
  return () => {
    bound.delete(group)
    if (bound.size === 0) document.removeEventListener('keydown', onKey)
  }
}

/** False when the reader has switched the keys off. */
export function areKeysOn() {
  return local.get(OFF) === null
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const { key, ctrlKey, altKey, metaKey, repeat, isComposing, shiftKey } = event
  if (event.defaultPrevented || repeat || isComposing || ctrlKey || altKey || metaKey) return
  if (shiftKey && !SHIFTED.test(key)) return
  if (!areKeysOn() || isTyping(event.target) || document.querySelector('dialog[open]')) return
  const run = actingBinding(key)?.run
  if (run === undefined) return
  event.preventDefault()
  run(event)
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) return !PRESSED.has(target.type)
  return target.isContentEditable || target.matches('textarea, select')
}

/** @param {string} key */
function actingBinding(key) {
  return [...bound]
    .flatMap(({ bindings }) => bindings)
    .findLast((binding) => binding.key === key)
}

/** The keys that act now, by scope, the newest scope first. */
function shownKeys() {
  /** @type {Map<string, KeyBinding[]>} */
  const scopes = new Map()
  for (const { scope, bindings } of [...bound].reverse()) {
    const shown = bindings.filter((binding) => actingBinding(binding.key) === binding)
    scopes.set(scope, [...(scopes.get(scope) ?? []), ...shown])
  }
  return [...scopes].filter(([, bindings]) => bindings.length > 0)
}

/** Opens the dialog that lists the keys. */
export function showKeys() {
  const tick = h('input', {
    id: 'keys-on',
    type: 'checkbox',
    checked: areKeysOn(),
    onchange: () => local.set(OFF, tick.checked ? null : '1'),
  })
  const lists = shownKeys().map(([scope, bindings]) => [
    h('h3', scope),
    h('dl.keys', bindings.map(({ key, label }) =>
      h('div', h('dt', h('kbd', NAMES[key] ?? key)), h('dd', label)),
    )),
  ])
  const dialog = h(
    'dialog.dialog',
    { 'aria-labelledby': 'keys-title' },
    h('div.stack', [
      h('h2', { id: 'keys-title' }, 'Keys'),
      ...lists.flat(),
      h('div.keys-switch', tick, h('label', { for: 'keys-on' }, 'Use these keys')),
      h('p.hint', 'They do nothing while you type, or together with Ctrl, Alt or ⌘.'),
      h('div.actions', button('Close', () => dialog.close(), 'primary')),
    ]),
  )
  document.body.append(dialog)
  dialog.addEventListener('close', () => dialog.remove())
  dialog.showModal()
}
