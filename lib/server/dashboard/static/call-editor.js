/** Editing the arguments of a call: text as text, everything else as JSON. */
import { button, fill, h, problemLine, setText } from './dom.js'
import { visible } from './visible.js'

/** Characters of JSON that are edited in the page; a request has at most 1 MiB. */
export const MOST_EDITED = 262_144
/** Fields that are shown one by one. */
const MOST_FIELDS = 40

/** @typedef {{ readonly text: HTMLTextAreaElement, read(): unknown }} Field */

let editors = 0

export class CallEditor {
  #id = `edit-${(editors += 1)}`
  #body = h('div.stack')
  #problem = problemLine()
  #mode = button('', () => this.#switch(), 'quiet small')
  element = h('div.call-editor', this.#body, this.#problem)
  /** @type {Map<string, Field>} */
  #fields = new Map()
  /** Of all arguments at once. @type {Field | null} */
  #whole = null
  #first

  /**
   * @param {object} args
   * @param {() => void} done closes the editor with what was typed
   * @param {() => void} undo closes it, with the arguments of the model
   */
  constructor(args, done, undo) {
    this.element.append(
      h(
        'div.actions',
        this.#mode,
        button('Undo my changes', undo, 'quiet small'),
        button('Show what it does', done, 'small'),
      ),
    )
    if (Object.keys(args).length > MOST_FIELDS) this.#drawWhole(args)
    else this.#drawFields(args)
    this.#first = this.#text()
  }

  /** What was typed, as it is, whether it is valid or not; empty for nothing. */
  get draft() {
    const draft = this.#text()
    return draft === this.#first ? '' : draft
  }

  #text() {
    if (this.#whole !== null) return this.#whole.text.value
    return [...this.#fields].map(([name, { text }]) => `${name}:\n${text.value}`).join('\n\n')
  }

  focus() {
    const [first] = this.#fields.values()
    ;(this.#whole ?? first)?.text.focus()
  }

  /**
   * The arguments as typed; undefined, with the reason shown, when they are no JSON.
   *
   * @returns {object | undefined}
   */
  read() {
    setText(this.#problem, '')
    for (const [name, field] of [...this.#fields, ['', this.#whole]].values()) {
      if (typeof field !== 'object' || field === null) continue
      field.text.removeAttribute('aria-invalid')
      try {
        const value = field.read()
        if (field === this.#whole && !isObject(value)) throw new Error('not an object')
      } catch (error) {
        const where = name === '' ? 'The arguments' : String(name)
        const what = error instanceof SyntaxError ? `no JSON: ${error.message}` : 'not an object'
        setText(this.#problem, `${where}: ${what}`)
        field.text.setAttribute('aria-invalid', 'true')
        field.text.focus()
        return undefined
      }
    }
    if (this.#whole !== null) return /** @type {object} */ (this.#whole.read())
    return Object.fromEntries([...this.#fields].map(([name, field]) => [name, field.read()]))
  }

  #switch() {
    const args = this.read()
    if (args === undefined) return
    if (this.#whole === null) this.#drawWhole(args)
    else this.#drawFields(args)
    this.focus()
  }

  /** @param {object} args */
  #drawWhole(args) {
    this.#fields = new Map()
    this.#whole = jsonField(this.#id, args)
    setText(this.#mode, 'Edit field by field')
    this.#mode.hidden = Object.keys(args).length > MOST_FIELDS
    fill(this.#body, labelled(this.#id, 'Arguments, as JSON', this.#whole))
  }

  /** @param {object} args */
  #drawFields(args) {
    this.#whole = null
    setText(this.#mode, 'Edit as JSON')
    const fields = Object.entries(args).map(([name, value], i) => {
      const id = `${this.#id}-${i}`
      const isPlain = typeof value === 'string' && isTyped(value)
      const field = isPlain ? textField(id, value) : jsonField(id, value)
      this.#fields.set(name, field)
      return labelled(id, isPlain ? name : `${name}, as JSON`, field)
    })
    fill(this.#body, fields.length === 0 ? h('p.hint', 'The call has no arguments.') : fields)
  }
}

/** Can a text field show and keep it? CRLF alone is put back. @param {string} value */
function isTyped(value) {
  const lines = value.replaceAll('\r\n', '\n')
  return visible(lines) === lines && (lines === value || !/(^|[^\r])\n/.test(value))
}

/** @param {string} id @param {string} value @returns {Field} */
function textField(id, value) {
  const text = area(id, value)
  const hasCrLf = value.includes('\r\n')
  return { text, read: () => (hasCrLf ? text.value.replaceAll('\n', '\r\n') : text.value) }
}

/** @param {string} id @param {unknown} value @returns {Field} */
function jsonField(id, value) {
  const text = area(id, visibleJson(value))
  return { text, read: () => /** @type {unknown} */ (JSON.parse(text.value)) }
}

/** @param {string} id @param {string} value */
function area(id, value) {
  const rows = Math.min(16, value.split('\n', 16).length + 1)
  return h('textarea', { id, rows, value, spellcheck: false, autocapitalize: 'off' })
}

/** @param {string} id @param {string} label @param {Field} field */
function labelled(id, label, { text }) {
  return h('div.field', h('label', { for: id }, label), text)
}

/** JSON of which every character is seen. @param {unknown} value */
function visibleJson(value) {
  return [...JSON.stringify(value, null, 2)]
    .map((character) =>
      visible(character) === character
        ? character
        : Array.from(
            { length: character.length },
            (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
          ).join(''),
    )
    .join('')
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
