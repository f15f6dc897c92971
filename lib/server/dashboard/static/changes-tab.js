/** The net changes of a run between two checkpoints, and which of them to apply. */
import { runAddress } from './address.js'
import { applyDialog } from './apply-dialog.js'
import { attempt, call, download, messageOf, send } from './api.js'
import { ChangeRow } from './change-row.js'
import { CheckpointSelect } from './checkpoints.js'
import { button, h, place, refill, setText } from './dom.js'
import { fileFacts } from './entries.js'
import { isLive, lineCounts, number, plural } from './format.js'
import { Pager } from './pager.js'
import { leftOutView } from './path-list.js'
import { copyButton } from './save.js'
import { local } from './storage.js'

/**
 * @typedef {import('./apply-dialog.js').ApplyChoice} ApplyChoice
 * @typedef {import('../types.js').ApplyResult} ApplyResult
 * @typedef {import('../types.js').Checkpoint} Checkpoint
 * @typedef {import('../types.js').NetChange} NetChange
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
  /** The path of the answer. */
  #answered = ''
  /** Rows of all changes that were shown. @type {Map<string, ChangeRow>} */
  #rows = new Map()
  /** @type {RunDetails | null} */
  #details = null
  /** Paths that are not to be applied. @type {Set<string>} */
  #unticked = new Set()
  /** What was held back when it was read first. @type {Set<string>} */
  #heldBack = new Set()

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
    checked: local.get(SPLIT) === '1',
    onchange: () => {
      local.set(SPLIT, this.#split.checked ? '1' : '0')
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
  #patch = button(
    'Download patch',
    () => {
      const name = `run-${this.#runId.slice(-8)}.patch`
      void attempt(() => download(this.#path(), name, 'text/x-diff'))
    },
    'small',
  )
  #copyPatch = copyButton('Copy patch', async () => {
    const headers = { Accept: 'text/x-diff' }
    return await (await send('GET', this.#path(), { headers })).text()
  }, { class: 'small' })
  #summary = h('p.change-summary', { role: 'status' })
  #notes = h('div.notes')
  #ticked = h('span')
  #all = h('input', { type: 'checkbox', onchange: () => this.#tickAll(this.#all.checked) })
  #apply = button('Apply…', () => this.#openApply(), { class: 'primary', id: 'apply-changes' })
  #discard = button('Discard…', () => void attempt(() => this.#discardAll()), 'danger')
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
        this.#copyPatch,
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
  }

  /** The files have changed: the changes are read again, as soon as they are shown. */
  refresh() {
    if (this.#query.to !== '' && this.#query.to !== 'now') return
    this.#stale = true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#visible) void this.#load()
    }, RELOAD_MS)
  }

  /** @param {RunDetails} details */
  update(details) {
    this.#details = details
    this.#drawNotes()
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
    const path = this.#path()
    this.element.setAttribute('aria-busy', 'true')
    try {
      this.#answer = await call('GET', path, { signal })
      this.#answered = path
      this.#untickHeldBack()
      this.#draw()
    } catch (error) {
      if (signal.aborted) return
      // What was read of the same range stays.
      if (path !== this.#answered) this.#answer = null
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
    const [from, to] = [this.#query.from || 'start', this.#query.to || 'newest']
    const split = this.#split.checked && WIDE.matches
    const shown = this.#pager.page(found).map((change, i) => {
      const row = this.#rows.get(change.path) ?? new ChangeRow(this.#runId, this.#tick)
      const ticked = this.#bar.hidden ? null : !this.#unticked.has(change.path)
      row.update(change, { split, from, to, ticked, open: first && i < OPEN_FILES })
      this.#rows.set(change.path, row)
      return row.element
    })
    // Rows of other pages are kept as their readers left them.
    const paths = new Set(changes.map(({ path }) => path))
    for (const path of this.#rows.keys()) if (!paths.has(path)) this.#rows.delete(path)
    place(this.#list, shown)
    this.#drawNotes()
    if (answer === null) return
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
    this.#patch.disabled = this.#copyPatch.disabled = changes.length === 0
  }

  #drawNotes() {
    const answer = this.#answer
    if (answer === null) return refill(this.#notes)
    const { changed_tests = null, allowed = null } = this.#details ?? {}
    const { note, more, left_out } = answer
    const unlisted =
      `${number(more)} more changed files are not listed: choose a shorter range, or ` +
      'download the patch.'
    refill(
      this.#notes,
      note !== null && h('p.notice', note),
      more > 0 && h('p.notice', unlisted),
      ...fileFacts({ changed_tests, allowed }).map(([name, paths]) =>
        h('p.notice', { dir: 'auto' }, `${name}: ${paths}`),
      ),
      ...leftOutView('Not compared', left_out),
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

  /** What is held back is applied only if somebody ticks it. */
  #untickHeldBack() {
    for (const { path, group } of this.#answer?.changes ?? []) {
      if (group !== 'held_back' || this.#heldBack.has(path)) continue
      this.#heldBack.add(path)
      this.#unticked.add(path)
    }
  }

  #openApply() {
    const { changes } = /** @type {NetChanges} */ (this.#answer)
    const isTicked = (/** @type {NetChange} */ { path }) => !this.#unticked.has(path)
    const ticked = changes.filter(isTicked)
    const isDefault = changes.every((change) => isTicked(change) === (change.group !== 'held_back'))
    /** @type {ApplyChoice} */
    let request = {}
    if (!isDefault && ticked.length === changes.length) request = { include_held_back: true }
    else if (!isDefault) request = { paths: ticked.map(({ path }) => path) }
    applyDialog(this.#runId, { folder: this.#details?.cwd ?? '', request, done: this.#applied })
  }

  async #discardAll() {
    if (!confirm('Remove the private copy and discard its changes for good?')) return
    await call('POST', `api/runs/${this.#runId}/discard`)
    this.#discarded()
  }
}
