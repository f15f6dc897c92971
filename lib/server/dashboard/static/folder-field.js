/** The folder of a new run: typed, or chosen among those that the service lists, level by level. */
import { call, messageOf } from './api.js'
import { button, fill, h, setText } from './dom.js'
import { field, textInput } from './form-fields.js'
import { plural } from './format.js'

/** @typedef {import('../types.js').FolderOffer} FolderOffer */

export class FolderField {
  element
  #input = textInput()
  #chosen
  #where = h('p.hint.folder-where', { role: 'status' })
  #list = h('ul.folder-list')
  #up = button('Up', () => void this.#open(this.#parent), { class: 'small', disabled: true })
  #use = button('Use this folder', () => this.#choose(), { class: 'small', disabled: true })
  #browser
  /** The folder that is listed; null for the roots. @type {string | null} */
  #path = null
  /** Where "Up" leads; null for the roots. @type {string | null} */
  #parent = null
  /** Folders that were opened on the way here. @type {(string | null)[]} */
  #trail = []
  /** Only the answer for the folder that was asked for last counts. */
  #asked = 0

  /** @param {() => void} chosen called after the user has chosen a folder */
  constructor(chosen) {
    this.#chosen = chosen
    this.#browser = h(
      'details.more.folder-browser',
      h('summary', 'Choose a folder'),
      h('div.stack', h('div.actions', this.#up, this.#use), this.#where, this.#list),
    )
    this.#browser.addEventListener('toggle', () => {
      if (this.#browser.open && this.#list.childElementCount === 0) void this.#open(null)
    })
    const hint = "A folder on the server. Empty: the host's default."
    this.element = h('div', field('cwd', 'Working directory', this.#input, hint), this.#browser)
  }

  /** @param {string | null} path */
  async #open(path) {
    const asked = (this.#asked += 1)
    const query = path === null ? '' : `?path=${encodeURIComponent(path)}`
    try {
      const offer = await call('GET', `api/folders${query}`)
      if (asked !== this.#asked) return
      const back = this.#trail.lastIndexOf(path)
      if (back >= 0) this.#trail.length = back
      this.#parent = this.#trail.at(-1) ?? null
      this.#draw(offer)
      this.#trail.push(path)
    } catch (error) {
      if (asked === this.#asked) setText(this.#where, messageOf(error))
    }
  }

  /** @param {FolderOffer} offer */
  #draw({ path, folders, more, left_out }) {
    // A user who has gone on to another field types there.
    const isHere = this.#browser.contains(document.activeElement)
    this.#path = path
    this.#up.disabled = path === null
    this.#use.disabled = path === null
    const rest = [
      folders.length === 0 && 'no folders here',
      more > 0 && `${plural(more, 'folder')} more`,
      left_out > 0 && `${plural(left_out, 'folder')} left out: hidden, links, or not for you`,
    ].filter((part) => part !== false)
    setText(this.#where, [path ?? 'Folders that you may use', ...rest].join(' · '))
    fill(
      this.#list,
      folders.map((folder) => {
        const open = () => void this.#open(folder.path)
        return h('li', button(folder.name, open, { class: 'folder', title: folder.path }))
      }),
    )
    if (isHere) (this.#list.querySelector('button') ?? this.#use).focus()
  }

  #choose() {
    this.#input.value = this.#path ?? ''
    this.#browser.open = false
    this.#input.focus()
    this.#chosen()
  }
}
