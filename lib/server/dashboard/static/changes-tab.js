/** The net changes of a run between two checkpoints, and which of them to apply. */
import { runAddress } from './address.js'
import { applyDialog, discard } from './apply-dialog.js'
import { call, download, messageOf } from './api.js'
import { ChangeRow } from './change-row.js'
import { CheckpointSelect } from './checkpoints.js'
import { button, fill, h, setText, toast } from './dom.js'
import { isLive, lineCounts, number, plural } from './format.js'
import { Pager } from './pager.js'
import { leftOutView } from './path-list.js'

/**
 * @typedef {import('../types.js').ApplyResult} ApplyResult
 * @typedef {import('../types.js').Checkpoint} Checkpoint
 * @typedef {import('../types.js').NetChanges} NetChanges
 * @typedef {import('../types.js').RunDetails} RunDetails
 */

/** Files per page. */
const PAGE = 100
/** Files whose short diffs are open from the start. */
const OPEN_FILES = 10
/** Pause after a checkpoint, so that several of them cause one request. */
const RELOAD_MS = 400
/** Where both sides fit beside each other. */
const WIDE = matchMedia('(min-width: 760px)')
const SPLIT = 'runwright.split'

export class ChangesTab {
  element
  #runId
  #applied
  #discarded
  #query = { from: '', to: '' }
  #visible = false
  #stale = true
  #controller = new AbortController()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** @type {NetChanges | null} */
  #answer = null
  /** @type {Map<string, ChangeRow>} */
  #rows = new Map()
  /** @type {RunDetails | null} */
  #details = null
  /** Paths that are not to be applied. @type {Set<string>} */
  #unticked = new Set()

  #from = new CheckpointSelect('from', 'From', [['', 'Start of the run']], (from) =>
    this.#go({ from }),
  )
  #to = new CheckpointSelect(
    'to',
    'To',
    [['', 'Newest checkpoint'], ['now', 'The folder now']],
    (to) => this.#go({ to }),
  )
  #split = h('input', {
    type: 'checkbox',
    checked: localStorage.getItem(SPLIT) === '1',
    onchange: () => {
      localStorage.setItem(SPLIT, this.#split.checked ? '1' : '0')
      this.#draw()
    },
  })
  #splitChoice = h('label.choice.tick', this.#split, 'Side by side')
  #find = h('input', {
    type: 'search',
    placeholder: 'Find a file',
    'aria-label': 'Find a changed file',
    oninput: () => this.#draw(),
  })
  #patch = button('Download patch', () => void this.#download(), 'small')
  #summary = h('p.change-summary', { role: 'status' })
  #notes = h('div.notes')
  /** What the notes say. */
  #told = 'null'
  #ticked = h('span')
  #all = h('input', { type: 'checkbox', onchange: () => this.#tickAll(this.#all.checked) })
  #apply = button('Apply…', () => this.#openApply(), { class: 'primary', id: 'apply-changes' })
  #discard = button('Discard…', () => void this.#discardAll(), 'danger')
  #bar = h(
    'div.apply-bar',
    { role: 'group', 'aria-label': 'Apply these changes', hidden: true },
    h('label.choice.tick', this.#all, this.#ticked),
    this.#discard,
    this.#apply,
  )
  #list = h('ul.changes')
  #pager = new Pager(PAGE, () => {
    this.#draw()
    this.#summary.scrollIntoView({ block: 'center' })
  })
  #onWidth = () => this.#draw()

  /**
   * @param {string} runId
   * @param {(result: ApplyResult) => void} applied
   * @param {() => void} discarded
   */
  constructor(runId, applied, discarded) {
    this.#runId = runId
    this.#applied = applied
    this.#discarded = discarded
    this.element = h(
      'section.tab-panel',
      h(
        'div.tools',
        this.#from.element,
        this.#to.element,
        this.#splitChoice,
        this.#find,
        this.#patch,
      ),
      this.#bar,
      this.#summary,
      this.#notes,
      this.#list,
      this.#pager.element,
    )
    WIDE.addEventListener('change', this.#onWidth)
  }

  close() {
    this.#controller.abort()
    clearTimeout(this.#timer)
    WIDE.removeEventListener('change', this.#onWidth)
  }

  /** @param {URLSearchParams | null} query null while another tab is shown */
  show(query) {
    this.#visible = query !== null
    if (query === null) return
    const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
    if (from !== this.#query.from || to !== this.#query.to) {
      this.#stale = true
      this.#pager.start = 0
    }
    this.#query = { from, to }
    this.#from.show(from)
    this.#to.show(to)
    if (this.#stale) void this.#load()
  }

  /** @param {Checkpoint} checkpoint */
  add(checkpoint) {
    if (checkpoint.reason !== 'start') this.#from.add(checkpoint)
    this.#to.add(checkpoint)
    if (this.#query.to === '' || this.#query.to === 'now') this.refresh()
  }

  /** Reads the changes again, as soon as they are shown. */
  refresh() {
    this.#stale = true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#visible) void this.#load()
    }, RELOAD_MS)
  }

  /** @param {RunDetails} details */
  update(details) {
    this.#details = details
    this.#drawBar()
  }

  /** @param {{ from?: string, to?: string }} range */
  #go(range) {
    location.hash = runAddress(this.#runId, 'changes', { ...this.#query, ...range })
  }

  #path() {
    const { from, to } = this.#query
    const query = new URLSearchParams()
    if (from !== '') query.set('from', from)
    if (to !== '') query.set('to', to)
    return `api/runs/${this.#runId}/changes${query.size === 0 ? '' : `?${query}`}`
  }

  async #load() {
    this.#stale = false
    this.#controller.abort()
    const { signal } = (this.#controller = new AbortController())
    this.element.setAttribute('aria-busy', 'true')
    try {
      const answer = await call('GET', this.#path(), { signal })
      this.#answer = answer
      this.#draw()
    } catch (error) {
      if (signal.aborted) return
      this.#answer = null
      this.#draw()
      setText(this.#summary, messageOf(error))
    }
    this.element.removeAttribute('aria-busy')
  }

  #draw() {
    const answer = this.#answer
    const changes = answer?.changes ?? []
    const words = this.#find.value.trim().toLowerCase()
    const found = changes.filter(({ path, old_path }) =>
      `${path}\n${old_path ?? ''}`.toLowerCase().includes(words),
    )
    this.#splitChoice.hidden = !WIDE.matches
    this.#drawBar()
    const first = this.#rows.size === 0
    const shown = this.#pager.page(found)
    const rows = new Map(shown.map((change, i) => {
      const row = this.#rows.get(change.path) ?? new ChangeRow(this.#runId, this.#tick)
      const { from, to } = this.#query
      row.update(change, {
        split: this.#split.checked && WIDE.matches,
        from: from || 'start',
        to: to || 'newest',
        ticked: this.#bar.hidden ? null : !this.#unticked.has(change.path),
        open: first && i < OPEN_FILES,
      })
      return [change.path, row]
    }))
    for (const [path, row] of this.#rows) if (!rows.has(path)) row.element.remove()
    this.#rows = rows
    // Elements in their places are not touched, so that focus and selection survive.
    let at = this.#list.firstElementChild
    for (const { element } of rows.values()) {
      if (at === element) at = at.nextElementSibling
      else this.#list.insertBefore(element, at)
    }
    if (answer === null) return this.#drawNotes(null)
    const total = found.reduce(
      (sum, { additions, deletions }) => ({
        additions: sum.additions + additions,
        deletions: sum.deletions + deletions,
      }),
      { additions: 0, deletions: 0 },
    )
    const nothing = answer.note === null ? 'No net change.' : ''
    setText(
      this.#summary,
      found.length === 0
        ? words === '' ? nothing : 'No file matches.'
        : `${plural(found.length, 'file')} changed · ${lineCounts(total)}`,
    )
    this.#drawNotes(answer)
    this.#patch.disabled = changes.length === 0
  }

  /** @param {NetChanges | null} answer */
  #drawNotes(answer) {
    const told = JSON.stringify(answer && [answer.note, answer.more, answer.left_out])
    // What the reader has unfolded stays so.
    if (told === this.#told) return
    this.#told = told
    if (answer === null) return fill(this.#notes)
    fill(
      this.#notes,
      answer.note !== null && h('p.notice', answer.note),
      answer.more > 0 &&
        h(
          'p.notice',
          `${number(answer.more)} more changed files are not listed: choose a shorter range, or ` +
            'download the patch.',
        ),
      leftOutView('Not compared', answer.left_out),
    )
  }

  /** @param {string} path @param {boolean} ticked */
  #tick = (path, ticked) => {
    if (ticked) this.#unticked.delete(path)
    else this.#unticked.add(path)
    this.#drawBar()
  }

  /** @param {boolean} ticked */
  #tickAll(ticked) {
    this.#unticked = new Set(ticked ? [] : this.#answer?.changes.map(({ path }) => path))
    this.#draw()
  }

  #drawBar() {
    const details = this.#details
    const changes = this.#answer?.changes ?? []
    const { from, to } = this.#query
    const open =
      details !== null &&
      details.workspace === 'isolated' &&
      !isLive(details.status) &&
      (details.changes === 'pending' || details.changes === null)
    const wasHidden = this.#bar.hidden
    this.#bar.hidden = !open || changes.length === 0 || from !== '' || to !== ''
    const count = changes.filter(({ path }) => !this.#unticked.has(path)).length
    this.#all.checked = count === changes.length
    this.#all.indeterminate = count > 0 && count < changes.length
    const unlisted = count < changes.length && (this.#answer?.more ?? 0) > 0
    setText(
      this.#ticked,
      `${number(count)} of ${plural(changes.length, 'file')}` +
        (unlisted ? ', and none that is not listed' : ''),
    )
    this.#apply.disabled = count === 0
    // The boxes of the rows come and go with the bar.
    if (wasHidden !== this.#bar.hidden && this.#rows.size > 0) this.#draw()
  }

  #openApply() {
    const { changes } = /** @type {NetChanges} */ (this.#answer)
    const ticked = changes.filter(({ path }) => !this.#unticked.has(path))
    const all = ticked.length === changes.length
    const paths = all ? null : ticked.map(({ path }) => path)
    applyDialog(this.#runId, { folder: this.#details?.cwd ?? '', paths, done: this.#applied })
  }

  async #discardAll() {
    try {
      if (await discard(this.#runId)) this.#discarded()
    } catch (error) {
      toast(messageOf(error), 'bad')
    }
  }

  async #download() {
    try {
      const name = `run-${this.#runId.slice(-8)}.patch`
      await download(this.#path(), name, 'text/x-diff')
    } catch (error) {
      toast(messageOf(error), 'bad')
    }
  }
}
