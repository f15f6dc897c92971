/** The controls of the list's filter, and the conditions that have no control of their own. */
import { button, fill, h, place, select } from './dom.js'
import { END_REASONS, endReason } from './end-reasons.js'
import { statusLabel } from './format.js'
import { ENDED, LIVE, shortFolder } from './run-query.js'
import { visible } from './visible.js'

/** Pause in typing after which the search begins. */
const TYPING_MS = 200
/** Folders offered. */
const OFFERED = 50

/** @type {readonly (readonly [import('../types.js').RunSort | '', string])[]} */
const SORTS = [
  ['', 'Newest first'],
  ['created_at', 'Oldest first'],
  ['cwd', 'By folder'],
  ['-end_reason', 'By reason'],
]

export class RunFilters {
  element
  /** @type {URLSearchParams} */
  filter = new URLSearchParams()
  #changed
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** What the user has chosen since the filter was changed last. @type {Map<string, string>} */
  #chosen = new Map()
  #search = h('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Search all runs',
    maxLength: 200,
    'aria-label': 'Search all runs by goal, model or id',
    oninput: () => this.#set('search', this.#search.value.trim(), TYPING_MS),
  })
  #status = this.#choice('status', 'Show runs with status', [
    ['', 'All'],
    ...[...LIVE, ...ENDED].map((status) => /** @type {const} */ ([status, statusLabel(status)])),
  ])
  #folders = h('datalist', { id: 'run-folders' })
  #cwd = h('input', {
    id: 'filter-cwd',
    list: 'run-folders',
    placeholder: 'Any folder',
    spellcheck: false,
    autocomplete: 'off',
    'aria-label': 'Show runs in this folder',
    onchange: () => this.#set('cwd', this.#cwd.value.trim(), 0),
  })
  #reason = this.#choice('end_reason', 'Show runs that ended because', [
    ['', 'Any end'],
    ...Object.keys(END_REASONS).map((one) => /** @type {const} */ ([one, endReason(one)])),
  ])
  #sort = this.#choice('sort', 'Order', SORTS)
  #conditions = h('ul.conditions', { 'aria-label': 'Conditions', hidden: true })

  /** @param {(delayMs: number) => void} changed called after the user has changed the filter */
  constructor(changed) {
    this.#changed = changed
    this.element = h(
      'div.filters',
      this.#search,
      this.#status,
      h('div.more-filters', this.#cwd, this.#folders, this.#reason, this.#sort),
      this.#conditions,
    )
  }

  /** Shows a filter that the address has. @param {URLSearchParams} filter */
  show(filter) {
    this.filter = filter
    this.#draw()
  }

  /** @param {readonly { readonly cwd: string }[]} runs whose folders are offered */
  offer(runs) {
    // A name of which a character is invisible could be taken for another one.
    const isOffered = (/** @type {string} */ cwd) => cwd !== '' && visible(cwd) === cwd
    const folders = new Set(runs.map(({ cwd }) => cwd).filter(isOffered))
    const offered = [...folders].sort().slice(0, OFFERED)
    const known = [...this.#folders.children].map((one) => one.getAttribute('value'))
    if (offered.join('\n') === known.join('\n')) return
    fill(this.#folders, offered.map((value) => h('option', { value })))
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {readonly (readonly [string, string])[]} choices
   */
  #choice(name, label, choices) {
    const onchange = () => this.#set(name, element.value, 0)
    const element = select({ id: `filter-${name}`, 'aria-label': label, onchange }, choices)
    return element
  }

  /**
   * @param {string} name
   * @param {string} value empty to take the condition away
   * @param {number} delayMs
   */
  #set(name, value, delayMs) {
    clearTimeout(this.#timer)
    this.#chosen.set(name, value)
    this.#timer = setTimeout(() => {
      const filter = new URLSearchParams(this.filter)
      for (const [each, of] of this.#chosen) {
        if (of === '') filter.delete(each)
        else filter.set(each, of)
      }
      this.#chosen.clear()
      this.filter = filter
      this.#draw()
      this.#changed(0)
    }, delayMs)
  }

  #draw() {
    const { filter } = this
    if (document.activeElement !== this.#search) this.#search.value = filter.get('search') ?? ''
    this.#cwd.value = filter.get('cwd') ?? ''
    for (const [element, name] of /** @type {const} */ ([
      [this.#status, 'status'],
      [this.#reason, 'end_reason'],
      [this.#sort, 'sort'],
    ])) {
      const values = filter.getAll(name)
      element.value = values.length === 1 ? (values[0] ?? '') : ''
    }
    const shown = [...filter].filter(([name]) => name !== 'search' && name !== 'sort')
    this.#conditions.hidden = shown.length === 0
    place(this.#conditions, shown.map(([name, value]) => this.#condition(name, value)))
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  #condition(name, value) {
    const remove = () => {
      const rest = [...this.filter].filter(([one, of]) => one !== name || of !== value)
      this.filter = new URLSearchParams(rest)
      this.#draw()
      this.#search.focus()
      this.#changed(0)
    }
    const label = h('span', wordsOf(name, value))
    const props = { class: 'condition', title: `${name} = ${value}` }
    const more = h('span.visually-hidden', ': remove this condition')
    return h('li', button([label, more], remove, props))
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
function wordsOf(name, value) {
  if (name === 'status') return statusLabel(/** @type {any} */ (value))
  if (name === 'end_reason') return endReason(value)
  if (name === 'cwd') return value === '' ? 'without a folder' : shortFolder(value)
  const label = name.startsWith('metadata.') ? name.slice('metadata.'.length) : name
  return `${label.replaceAll('_', ' ')}: ${value}`
}
