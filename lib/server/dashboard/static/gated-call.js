/** One call that waits at a gate: what it would do, whether it may, and with which arguments. */
import {
  argumentsTable, commandView, fileChange, rawArguments, replacement,
} from './call-content.js'
import { CallEditor, MOST_EDITED } from './call-editor.js'
import { button, fill, h, place } from './dom.js'
import { number } from './format.js'
import { patchList } from './patch-list.js'
import { pathInFolder, proposedBy, resultOf, VERBS } from './proposed-call.js'
import { clipped } from './visible.js'

/**
 * @typedef {import('../types.js').GatedCall} Gated
 * @typedef {import('./call-content.js').Place} Place
 * @typedef {import('./proposed-call.js').Present} Present
 */

/**
 * `before` gives the file as the calls before this one leave it, and `changed` is told when the
 * reader has decided otherwise.
 *
 * @typedef {{
 *   readonly place: Place,
 *   readonly isOnly: boolean,
 *   before(path: string): Promise<Present>,
 *   changed(): void,
 *   drawn(): void,
 * }} Surroundings
 */

let calls = 0

export class GatedCall {
  #id = `call-${(calls += 1)}`
  #call
  #around
  /** @type {object | null} */
  #edited = null
  /** @type {CallEditor | null} */
  #editor = null
  /** Only the newest drawing counts. */
  #drawing = 0
  #run = h('input', {
    id: `${this.#id}-run`,
    type: 'checkbox',
    checked: true,
    onchange: () => this.#ticked(),
  })
  #words = h('span.call-words')
  #title = h('span.call-title')
  #summary = h('summary', { id: `${this.#id}-name` }, this.#title, this.#words)
  #content = h('div.call-content')
  #details = h('details.call-details', { ontoggle: () => void this.draw() },
    this.#summary, this.#content)
  #why = h('input', { id: `${this.#id}-why`, maxLength: 16_384, autocomplete: 'off' })
  #whyLine = h('div.field.call-why', { hidden: true },
    h('label', { for: `${this.#id}-why` }, 'Why not (told to the model, optional)'), this.#why)
  #edit
  element

  /**
   * @param {Gated} call
   * @param {number} number
   * @param {Surroundings} around
   */
  constructor(call, number, around) {
    this.#call = call
    this.#around = around
    const isTooLarge = JSON.stringify(call.args).length > MOST_EDITED
    this.#edit = button('Edit', () => this.edit(), {
      class: 'quiet small',
      'aria-label': `Edit call ${number}`,
      disabled: isTooLarge,
      title: isTooLarge ? 'Too large to be edited here' : '',
    })
    const tick = h('label.call-run', { for: this.#run.id },
      this.#run, h('span', 'Run', h('span.visually-hidden', ` call ${number}`)))
    tick.hidden = around.isOnly
    const tools = h('div.call-tools', tick, this.#edit)
    this.element = h('li.gated-call', tools, this.#details, this.#whyLine)
    this.#drawTitle(null)
  }

  get #args() {
    return this.#edited ?? this.#call.args
  }

  get #proposed() {
    return proposedBy({ tool: this.#call.tool, args: { ...this.#args } })
  }

  /** @returns {import('./gate-words.js').CallChoice} */
  get choice() {
    const { call_id } = this.#call
    const feedback = this.#why.value.trim()
    return { call_id, runs: this.#run.checked, args: this.#edited, feedback }
  }

  /** The file that it changes, if it runs; null for none. */
  get path() {
    const proposed = this.#proposed
    if (!this.#run.checked || (proposed.kind !== 'write' && proposed.kind !== 'edit')) return null
    return pathInFolder(proposed.path, this.#around.place.cwd)
  }

  /** What it makes of a file. @param {Present} present @returns {Present} */
  result(present) {
    const proposed = this.#proposed
    const isFile = proposed.kind === 'write' || proposed.kind === 'edit'
    const after = isFile ? resultOf(proposed, present) : present
    // An edit that fails leaves the file as it was.
    return 'problem' in after && !('problem' in present) ? present : after
  }

  /** What the reader has typed. @returns {readonly string[]} */
  get typed() {
    const edited = this.#edited === null ? '' : JSON.stringify(this.#edited, null, 2)
    const draft = this.#editor === null ? edited : this.#editor.draft
    return [this.#why.value.trim(), draft].filter((text) => text !== '')
  }

  /** Takes over what is in the editor. False, with the reason shown, when that is not possible. */
  commit() {
    if (this.#editor === null) return true
    const args = this.#editor.read()
    if (args === undefined) return false
    this.#edited = isSame(args, this.#call.args) ? null : args
    return true
  }

  open() {
    this.#details.open = true
  }

  edit() {
    if (this.#edit.disabled || this.#editor !== null) return this.#editor?.focus()
    const close = () => {
      this.#editor = null
      this.#edit.hidden = false
      this.#around.changed()
      this.#summary.focus()
    }
    this.#editor = new CallEditor(
      this.#args,
      () => this.commit() && close(),
      () => {
        this.#edited = null
        close()
      },
    )
    this.#edit.hidden = true
    this.open()
    fill(this.#content, this.#editor.element)
    this.#editor.focus()
  }

  #ticked() {
    const runs = this.#run.checked
    this.#whyLine.hidden = runs
    this.element.classList.toggle('rejected', !runs)
    this.#around.changed()
  }

  /** Draws what it does, if that is to be seen. */
  async draw() {
    if (!this.#details.open || this.#editor !== null) return
    const drawing = (this.#drawing += 1)
    const args = this.#args
    const proposed = this.#proposed
    const { place: where } = this.#around
    const raw = rawArguments(args)
    if (proposed.kind !== 'write' && proposed.kind !== 'edit') {
      this.#drawTitle(null)
      place(this.#content, [...simpleParts(proposed, args, where), raw])
      return
    }
    const path = pathInFolder(proposed.path, where.cwd)
    const isFirst = this.#content.childElementCount === 0
    if (isFirst) fill(this.#content, h('p.hint', 'Reading the file…'))
    const present = path === null ? { text: null } : await this.#around.before(path)
    if (drawing !== this.#drawing || this.#editor !== null) return
    const { words, counts, parts } = fileChange(proposed, present, where)
    const more = argumentsTable(args, [...proposed.shown, 'occurrence'])
    this.#drawTitle(counts, words)
    place(this.#content, [...parts, ...(more === null ? [] : [more]), raw])
    // What the reader's own decisions change needs no time to be noticed.
    if (isFirst) this.#around.drawn()
  }

  /**
   * @param {{ added: number, removed: number } | null} counts
   * @param {readonly string[]} [words]
   */
  #drawTitle(counts, words = []) {
    const proposed = this.#proposed
    const { tool } = this.#call
    const name = h('span.tool-name', clipped(tool, 80))
    const verb = VERBS[proposed.kind]
    if ('path' in proposed)
      fill(this.#title, `${verb} `, h('span.path', clipped(proposed.path, 300)))
    else if (proposed.kind === 'command')
      fill(this.#title, commandVerb(proposed), firstLine(proposed.command))
    else fill(this.#title, `${verb} `, name)
    const more = [
      ...(this.#edited === null ? [] : ['edited by you']),
      ...words,
    ].map((word) => h('span.word', word))
    const lines = counts === null ? [] : [
      h('span.added', `+${number(counts.added)}`), h('span.removed', `−${number(counts.removed)}`),
    ]
    const isNamed = !('path' in proposed) && proposed.kind !== 'command'
    fill(this.#words, ...more, ...lines, isNamed ? null : name)
  }
}

/** @param {import('./proposed-call.js').Proposed & { kind: 'command' }} proposed */
function commandVerb({ tried }) {
  if (tried === null) return VERBS.command
  return `${tried.what.charAt(0).toUpperCase()}${tried.what.slice(1)}`
}

/** @param {string} command */
function firstLine(command) {
  return h('code.call-command', clipped(command.split('\n', 1)[0] ?? '', 120))
}

/**
 * @param {import('./proposed-call.js').Proposed} proposed
 * @param {object} args
 * @param {Place} where
 * @returns {readonly Node[]}
 */
function simpleParts(proposed, args, where) {
  const more = argumentsTable(args, proposed.shown)
  const rest = more === null ? [] : [more]
  if (proposed.kind === 'command') {
    const { tried } = proposed
    const patches = tried === null || tried.patches.length === 0 ? [] : [patchList(tried, false)]
    return [...commandView(proposed, where), ...patches, ...rest]
  }
  if (proposed.kind === 'replace') return [replacement(proposed), ...rest]
  return rest
}

/** @param {object} a @param {object} b */
function isSame(a, b) {
  return JSON.stringify(a) === JSON.stringify(b)
}
