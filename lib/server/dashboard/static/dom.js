/**
 * Creates elements. Text is always set as text: no function here turns a string into markup,
 * whatever a model, a file name or a goal contains. All text of the page is set here, and every
 * character of it is visible; prose is passed through `prose()`, to be shown as its language needs.
 */
import { readable, uncoloured, visible } from './visible.js'

/** @typedef {string | number | Node | null | undefined | false} Child */

/**
 * What the main part of the page shows. `title` is for the document; `close()` stops its timers,
 * listeners and streams.
 *
 * @typedef {{ readonly element: HTMLElement, readonly title: string, close(): void }} View
 */

/** @typedef {{ readonly [name: string]: unknown }} Props */

/**
 * Creates an element of a tag such as `p`, or `p.hint.small` with classes.
 *
 * Of its properties `class`, `for` and names with a dash are set as attributes, functions named
 * `on…` as listeners, everything else as a property of the element. A `value` is not text but data,
 * and left as it is.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K | `${K}.${string}`} tag
 * @param {...(Props | Child | readonly Child[])} content children, after properties if any
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, ...content) {
  const [name = '', ...classes] = tag.split('.')
  const element = /** @type {HTMLElementTagNameMap[K]} */ (document.createElement(name))
  if (classes.length > 0) element.className = classes.join(' ')
  if (isProps(content[0])) setProps(element, /** @type {Props} */ (content.shift()))
  append(element, /** @type {(Child | readonly Child[])[]} */ (content))
  return element
}

/** @param {unknown} first */
function isProps(first) {
  return first?.constructor === Object
}

/**
 * @param {HTMLElement} element
 * @param {Props} props
 */
function setProps(element, props) {
  for (const [name, given] of Object.entries(props)) {
    if (given === undefined || given === null) continue
    const value = typeof given === 'string' && name !== 'value' ? visible(given) : given
    if (typeof value === 'function' && name.startsWith('on'))
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value))
    else if (/^(class|for|role|list)$|-/.test(name)) element.setAttribute(name, String(value))
    else Reflect.set(element, name, value)
  }
}

/**
 * A form that calls `submitted`; the page checks nothing that the service checks.
 *
 * @param {string} classes
 * @param {() => void} submitted
 * @param {...(Child | readonly Child[])} content
 */
export function form(classes, submitted, ...content) {
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault()
    submitted()
  }
  return h('form', { class: classes, noValidate: true, onsubmit }, ...content)
}

/**
 * A list of choices.
 *
 * @param {Props} props
 * @param {readonly (readonly [value: string, name: string])[]} choices
 */
export function select(props, choices) {
  return h('select', props, choices.map(([value, name]) => h('option', { value }, name)))
}

/** Room for what went wrong. */
export function problemLine() {
  return h('p.error-text', { role: 'alert' })
}

/**
 * A button that does not submit a form.
 *
 * @param {Child | readonly Child[]} label
 * @param {() => void} onclick
 * @param {string | Props} [props] or its classes
 */
export function button(label, onclick, props = {}) {
  const more = typeof props === 'string' ? { class: props } : props
  return h('button', { type: 'button', onclick, ...more }, label)
}

/**
 * @param {Element} element
 * @param {readonly (Child | readonly Child[])[]} children
 */
function append(element, children) {
  for (const child of shownOf(children))
    element.append(child instanceof Node ? child : visible(String(child)))
}

/** @param {readonly (Child | readonly Child[])[]} children */
function shownOf(children) {
  return children.flat().filter((child) => child !== null && child !== undefined && child !== false)
}

/**
 * Replaces all children.
 *
 * @param {Element} element
 * @param {...(Child | readonly Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren()
  append(element, children)
}

/**
 * Makes `nodes` the children. Those that are children already are not moved, so that focus,
 * selection and scrolling survive.
 *
 * @param {Element} element
 * @param {readonly Node[]} nodes
 */
export function place(element, nodes) {
  const kept = new Set(nodes)
  for (const node of [...element.childNodes]) if (!kept.has(node)) node.remove()
  let at = element.firstChild
  for (const node of nodes) {
    if (node === at) at = /** @type {ChildNode} */ (at).nextSibling
    else element.insertBefore(node, at)
  }
}

/** How many of the former children are compared with a new one. */
const COMPARED = 64

/**
 * As `fill()`, but keeps what a reader has done: equal nodes stay, and those with an equal
 * `data-key` are changed in place. Not for elements with listeners that depend on the content.
 *
 * @param {Element} element
 * @param {...(Child | readonly Child[])} children
 */
export function refill(element, ...children) {
  const given = new Set(children.flat())
  const former = [...element.childNodes].filter((node) => !given.has(node))
  const nodes = shownOf(children).map((child) => {
    const node = child instanceof Node ? child : document.createTextNode(visible(String(child)))
    if (node.parentNode === element) return node
    const key = keyOf(node)
    const at = former
      .slice(0, COMPARED)
      .findIndex((old) => (key === undefined ? old.isEqualNode(node) : keyOf(old) === key))
    const [old] = at === -1 ? [] : former.splice(at, 1)
    if (old instanceof Element && node instanceof Element && key !== undefined) update(old, node)
    return old ?? node
  })
  place(element, nodes)
}

/** @param {Node} node */
function keyOf(node) {
  return node instanceof HTMLElement ? node.dataset['key'] : undefined
}

/**
 * Gives an element the attributes and the content of another one, as `refill()`.
 *
 * @param {Element} element
 * @param {Element} other
 */
export function update(element, other) {
  for (const { name, value } of other.attributes) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
  refill(element, ...other.childNodes)
}

/**
 * Sets text only when it differs, so that live regions stay quiet and selections survive.
 *
 * @param {Element} element
 * @param {string | Text} text
 */
export function setText(element, text) {
  const shown = typeof text === 'string' ? visible(text) : text.data
  if (element.textContent !== shown) element.textContent = shown
}

let title = ''
let badge = 0

/**
 * The text of an element, hidden parts included.
 *
 * @param {Element} element
 */
export function textIn(element) {
  return element.textContent ?? ''
}

/**
 * Sets the title of the document.
 *
 * @param {string} text
 */
export function setTitle(text) {
  title = readable(text)
  drawTitle()
}

/** Shows a number before the title, unless it is 0. @param {number} count */
export function setBadge(count) {
  badge = count
  drawTitle()
}

function drawTitle() {
  const shown = badge === 0 ? title : `(${badge}) ${title}`
  if (document.title !== shown) document.title = shown
}

/**
 * Prose: a goal, what a model or a person wrote. Its element needs `dir: 'auto'`.
 *
 * @param {string} text
 */
export function prose(text) {
  return document.createTextNode(readable(text))
}

/**
 * The output of a program.
 *
 * @param {string} text
 */
export function programOutput(text) {
  return document.createTextNode(uncoloured(text))
}

/**
 * The element with this id, which must exist.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element
}

/**
 * Announces a change to users of screen readers.
 *
 * @param {string} text
 */
export function announce(text) {
  setText(byId('announce'), text)
}

/**
 * Shows a short message for eight seconds.
 *
 * @param {string} text
 * @param {'info' | 'bad'} [tone]
 */
export function toast(text, tone = 'info') {
  const element = h('p', { class: `toast ${tone}` }, text)
  byId('toasts').append(element)
  setTimeout(() => element.remove(), 8_000)
}
