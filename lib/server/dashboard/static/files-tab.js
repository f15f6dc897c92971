/** The files of a run at a checkpoint, or as they are: folder by folder, with a preview of text. */
import { filesPath, pathFrom, runAddress } from './address.js'
import { ApiError, attempt, download, firstBytes, messageOf, send } from './api.js'
import { CheckpointSelect } from './checkpoints.js'
import { button, fill, h, refill, setText } from './dom.js'
import { number, size } from './format.js'
import { Pager } from './pager.js'

/**
 * @typedef {import('../types.js').Checkpoint} Checkpoint
 * @typedef {import('../types.js').FileEntry} FileEntry
 * @typedef {import('../types.js').FileList} FileList
 */

/** Entries per page. */
const PAGE = 200
/** Bytes of a file that are read for its preview. */
const PREVIEW_BYTES = 262_144

const BYTES = 'application/octet-stream'

export class FilesTab {
  element
  #runId
  #visible = false
  #hasCheckpoints = true
  /** The address that was read last; null to read again. @type {string | null} */
  #shown = null
  /** The address of what is drawn. @type {string | null} */
  #drawn = null
  #query = { at: '', path: '' }
  #controller = new AbortController()
  /** @type {FileList | null} */
  #list = null
  #choice = new CheckpointSelect(
    'at',
    'At',
    [['', 'Newest checkpoint'], ['start', 'Start of the run'], ['now', 'The folder now']],
    (at) => {
      location.hash = this.#address({ at })
    },
  )
  #crumbs = h('nav.crumbs', { 'aria-label': 'Folder' })
  #content = h('div.file-content')
  #about = h('p.hint')
  #tools = h('div.tools', this.#about, button('Download', () => this.#download(), 'small'))
  #pager = new Pager(PAGE, () => this.#drawFolder())

  /** @param {string} runId */
  constructor(runId) {
    this.#runId = runId
    const again = button('Read again', () => void this.#load(), 'small')
    this.element = h(
      'section.tab-panel',
      h('div.tools', this.#choice.element, again),
      this.#crumbs,
      this.#content,
      this.#pager.element,
    )
  }

  close() {
    this.#controller.abort()
  }

  /** @param {Checkpoint} checkpoint */
  add(checkpoint) {
    if (checkpoint.reason !== 'start') this.#choice.add(checkpoint)
  }

  /** @param {boolean} hasCheckpoints without any, the folder is shown as it is */
  update(hasCheckpoints) {
    if (this.#hasCheckpoints === hasCheckpoints) return
    this.#hasCheckpoints = hasCheckpoints
    this.#choice.show(this.#at)
    this.refresh()
  }

  /** The files have changed: those of a checkpoint never do. */
  refresh() {
    if (this.#at !== '' && this.#at !== 'now') return
    this.#shown = null
    if (this.#visible) void this.#load()
  }

  /** @param {URLSearchParams | null} query null while another tab is shown */
  show(query) {
    this.#visible = query !== null
    if (query === null) return
    const at = query.get('at') ?? ''
    this.#query = { at: at === 'newest' ? '' : at, path: pathFrom(query) }
    this.#choice.show(this.#at)
    if (this.#address() === this.#shown) return
    if (this.#address() !== this.#drawn) this.#pager.start = 0
    const focused = this.#hasFocus()
    this.#drawCrumbs()
    // The link that was followed goes away.
    if (focused) this.#focusCrumb()
    void this.#load()
  }

  #hasFocus() {
    const { activeElement } = document
    return this.#content.contains(activeElement) || this.#crumbs.contains(activeElement)
  }

  #focusCrumb() {
    /** @type {HTMLElement} */ (this.#crumbs.lastElementChild).focus({ preventScroll: true })
  }

  /** @param {{ at?: string, path?: string }} [change] */
  #address(change = {}) {
    return runAddress(this.#runId, 'files', { ...this.#query, ...change })
  }

  #drawCrumbs() {
    const { path } = this.#query
    const names = path === '' ? [] : path.split('/')
    const last = names.pop()
    const link = (/** @type {string} */ name, /** @type {string} */ to) => [
      h('a.path', { href: this.#address({ path: to }) }, name),
      h('span', { 'aria-hidden': 'true' }, '/'),
    ]
    fill(
      this.#crumbs,
      last !== undefined && link('Files', ''),
      names.flatMap((name, i) => link(name, names.slice(0, i + 1).join('/'))),
      h('span.path', { tabIndex: -1, 'aria-current': 'page' }, last ?? 'Files'),
    )
  }

  /** Without checkpoints the folder is shown as it is. */
  get #at() {
    return this.#query.at || (this.#hasCheckpoints ? '' : 'now')
  }

  #download() {
    const name = nameOf(this.#query.path)
    void attempt(() => download(this.#source(), name, BYTES))
  }

  /** The path of what is shown, by REST. */
  #source() {
    const { path } = this.#query
    return filesPath(this.#runId, path, this.#at)
  }

  async #load() {
    const again = this.#drawn === this.#address()
    this.#shown = this.#address()
    this.#controller.abort()
    const { signal } = (this.#controller = new AbortController())
    this.element.setAttribute('aria-busy', 'true')
    const focused = this.#hasFocus()
    try {
      const headers = { Accept: `${BYTES}, application/json` }
      const response = await send('GET', this.#source(), { headers, signal })
      if (response.headers.get('Content-Type')?.startsWith('application/json')) {
        this.#list = await response.json()
        this.#drawFolder()
      } else {
        const { bytes, whole } = await firstBytes(response, PREVIEW_BYTES)
        if (signal.aborted) return
        this.#drawFile(bytes, whole)
      }
      this.#drawn = this.#shown
    } catch (error) {
      // Without an answer, what was read before stays.
      if (signal.aborted || (again && !(error instanceof ApiError))) return
      this.#drawn = null
      this.#pager.element.hidden = true
      fill(this.#content, h('p.notice', { role: 'alert' }, messageOf(error)))
    }
    this.element.removeAttribute('aria-busy')
    if (focused && !this.#hasFocus() && document.activeElement === document.body) this.#focusCrumb()
  }

  #drawFolder() {
    const { entries = [], more = 0 } = this.#list ?? {}
    refill(
      this.#content,
      entries.length === 0 && h('p.hint', 'There are no files here.'),
      h(
        'ul.entries',
        { 'data-key': 'entries' },
        this.#pager.page(entries).map((entry) => this.#entry(entry)),
      ),
      more > 0 && h('p.notice', `${number(more)} more entries are not listed.`),
    )
  }

  /** @param {FileEntry} entry */
  #entry({ path, type, size: bytes, mode }) {
    const name = nameOf(path)
    const isFolder = type === 'folder'
    return h(
      'li',
      // Links are not followed.
      type === 'link'
        ? h('span.path', name)
        : h(
            'a',
            { class: `path ${type}`, href: this.#address({ path }) },
            isFolder ? `${name}/` : name,
          ),
      h(
        'span.word',
        type === 'file' ? size(bytes) : type,
        type === 'file' && mode.endsWith('755') && ' · executable',
      ),
    )
  }

  /**
   * @param {Uint8Array} bytes
   * @param {boolean} whole
   */
  #drawFile(bytes, whole) {
    const text = textOf(bytes)
    const read = whole ? size(bytes.length) : `The first ${size(bytes.length)}`
    this.#pager.element.hidden = true
    setText(this.#about, text === null ? 'Not text, or not in UTF-8.' : read)
    refill(
      this.#content,
      this.#tools,
      text !== null &&
        h(
          'pre.output.whole',
          { tabIndex: 0, 'data-key': 'content', 'aria-label': 'Content of the file' },
          text,
        ),
    )
  }
}

/** @param {string} path */
function nameOf(path) {
  return path.slice(path.lastIndexOf('/') + 1)
}

/**
 * The text of a file, whose last character may be cut; null for other content.
 *
 * @param {Uint8Array} bytes
 */
function textOf(bytes) {
  if (bytes.includes(0)) return null
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return decoder.decode(bytes, { stream: true }).replaceAll('\r\n', '\n')
  } catch {
    return null
  }
}
