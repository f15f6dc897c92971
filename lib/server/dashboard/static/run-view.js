/** One run: status, usage, timeline, open gate, and the actions of the user. */
import { readAddress, runAddress } from './address.js'
import { ApiError, attempt, call, messageOf } from './api.js'
import { CheckFileList } from './assurance.js'
import { AttemptsTab } from './attempts-tab.js'
import { ChangedFiles } from './changed-files.js'
import { ChangesTab } from './changes-tab.js'
import { checkpointName, checkpointOf } from './checkpoints.js'
import { announce, button, fill, h, prose, refill, setText, setTitle } from './dom.js'
import { EVENTS } from './event-kinds.js'
import { FilesTab } from './files-tab.js'
import { follow } from './follow.js'
import { endReason, isLive, plural, statusLabel } from './format.js'
import { GatePanel } from './gate-panel.js'
import { RequestImages } from './images.js'
import { Instructions } from './instructions.js'
import { Plan } from './plan.js'
import { MessageBox } from './message-box.js'
import { leftOutView } from './path-list.js'
import { ResultView } from './result.js'
import { forkDialog, restoreDialog } from './run-dialogs.js'
import { aboutProgram, badgesOf, factsOf, metersOf } from './run-facts.js'
import { Story } from './story.js'
import { Tabs } from './tabs.js'
import { isNearEnd } from './timeline.js'
import { clipped } from './visible.js'
import { Waterfall } from './waterfall.js'

/**
 * @typedef {import('./address.js').RunAddress} RunAddress
 * @typedef {import('./address.js').TabName} TabName
 * @typedef {import('./folder-entries.js').Action} Action
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').Model} Model
 * @typedef {import('../types.js').RunDetails} RunDetails
 * @typedef {import('../types.js').Status} Status
 * @typedef {import('./dom.js').View} View
 */

/** Between two requests for the details, at least. */
const REFRESH_MS = 400
/** Until a failed request for the details is repeated. */
const RETRY_MS = 3_000

/** @type {Record<string, string>} */
const STREAM_TEXT = {
  connecting: 'Connecting…',
  live: 'Live',
  waiting: 'Connection lost, reconnecting…',
  locked: 'Not connected: the service requires a key.',
  ended: '',
  gone: 'This run was deleted.',
}

export class RunView {
  title = 'Run'
  element = h('article.run-view', { 'aria-labelledby': 'run-title' })
  #runId
  #changed
  /** @type {Status | null} */
  #status = null
  /** @type {readonly Model[]} */
  #models = []
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #refreshing
  #closed = false
  #lastSeq = 0
  /** The last event that was received. */
  #seen = 0
  #ended = false
  /** @type {ReturnType<typeof follow> | null} */
  #following = null
  /** @type {RunDetails | null} */
  #details = null
  /** The address of each tab, as it was left. @type {Partial<Record<TabName, string>>} */
  #addresses = {}
  /** @type {TabName} */
  #tab = 'timeline'
  #files = new ChangedFiles((path) => this.#story.showFile(path))
  /** Of the last goal check. @type {import('../types.js').TestCounts | null} */
  #counts = null
  /** Why the run has no sealed checks. @type {string | null} */
  #unsealed = null

  #title = h('h1', { id: 'run-title', dir: 'auto', tabIndex: -1 })
  #chip = h('span.chip')
  #stream = h('span.stream', { role: 'status' })
  #abort = button('Abort', () => void this.#act('abort'), { class: 'danger', hidden: true })
  #retry = button('Run again', () => void this.#act('retry'), { hidden: true })
  #remove = button('Delete', () => void attempt(() => this.#delete()), {
    class: 'quiet',
    hidden: true,
  })
  #facts = h('dl.facts')
  #instructions = new Instructions()
  #images = new RequestImages()
  #plan = new Plan()
  #result = new ResultView()
  #kind = h('p.notice.program', { hidden: true })
  #failure = h('p.notice.bad', { dir: 'auto', hidden: true })
  #queued = h(
    'p.notice',
    { hidden: true },
    'Queued: waiting for a free slot, or for another run in the same folder to end.',
  )
  #meters = h('div.meters')
  #gate
  #badges = h('span.badges')
  #undo = h('div.notice.undo', { role: 'status', hidden: true })
  #attemptsTab
  #filesTab
  #changesTab
  #messages
  #checkFiles
  #tabs
  #story
  #waterfall

  /**
   * @param {RunAddress} address
   * @param {() => void} changed called when the list may have changed
   */
  constructor(address, changed) {
    const { runId } = address
    this.#runId = runId
    this.#story = new Story(runId)
    this.#waterfall = new Waterfall(runId)
    this.#attemptsTab = new AttemptsTab(runId)
    this.#filesTab = new FilesTab(runId)
    this.#checkFiles = new CheckFileList(runId)
    this.#changesTab = new ChangesTab(
      runId,
      ({ applied, checkpoint_id }) =>
        this.#offerUndo(`Applied ${plural(applied.length, 'file')}.`, checkpoint_id),
      () => this.#refreshNow(),
    )
    this.#messages = new MessageBox(this.#openRun, (message) =>
      this.#fork('end', 'End', message),
    )
    this.#changed = changed
    this.#gate = new GatePanel(runId, (isOver) => {
      // The pressed button is gone: keyboard users continue from here, not from the top.
      if (isOver) this.#title.focus({ preventScroll: true })
      this.#refreshSoon()
    })
    const body = h(
      'section.run-body',
      h(
        'section.about',
        { 'aria-label': 'About this run' },
        this.#kind,
        this.#plan.element,
        this.#result.element,
        this.#facts,
        this.#instructions.element,
        this.#images.element,
        this.#checkFiles.element,
        this.#files.element,
      ),
      this.#story.element,
    )
    this.#tabs = new Tabs(
      [
        { name: 'timeline', label: 'Timeline', panel: body },
        { name: 'waterfall', label: 'Waterfall', panel: this.#waterfall.element },
        { name: 'attempts', label: 'Attempts', panel: this.#attemptsTab.element },
        { name: 'changes', label: 'Changes', panel: this.#changesTab.element },
        { name: 'files', label: 'Files', panel: this.#filesTab.element },
      ],
      (name) => this.#choose(name),
    )
    fill(
      this.element,
      h('a.back', { href: '#/' }, '← All runs'),
      h(
        'header.run-head',
        h(
          'div.run-head-title',
          this.#title,
          h('p.run-head-state', this.#chip, this.#stream, this.#badges),
        ),
        h('div.actions', this.#remove, this.#retry, this.#abort),
      ),
      this.#failure,
      this.#queued,
      this.#gate.element,
      this.#gate.kept.element,
      this.#undo,
      this.#meters,
      this.#tabs.element,
      body,
      this.#waterfall.element,
      this.#attemptsTab.element,
      this.#changesTab.element,
      this.#filesTab.element,
      this.#messages.element,
    )
    this.element.addEventListener('action', (event) => {
      const action = /** @type {CustomEvent<Action>} */ (event).detail
      if (action.name === 'fork') return this.#fork(action.at, action.from)
      const { checkpoint_id, reason } = action.checkpoint
      const name = checkpointName(action.checkpoint)
      this.#restore(checkpoint_id, name, reason === 'apply' ? 'original' : 'preview')
    })
    this.navigate(address)
    void this.#open()
  }

  async #open() {
    try {
      const [details, models] = await Promise.all([
        call('GET', `api/runs/${this.#runId}`),
        call('GET', 'api/models'),
      ])
      if (this.#closed) return
      this.#models = models
      this.#show(details)
    } catch (error) {
      return this.#showMissing(error)
    }
    this.#following = follow(this.#runId, {
      events: (events) => this.#add(events),
      state: (state) => {
        this.#ended = state === 'ended'
        if (this.#ended) this.#catchUp()
        setText(this.#stream, STREAM_TEXT[state] ?? '')
        this.#stream.className = `stream ${state}`
        this.#story.stream = state
        this.#gate.disconnected = state === 'waiting' || state === 'locked'
      },
    })
  }

  close() {
    this.#closed = true
    clearTimeout(this.#refreshing)
    this.#following?.stop()
    this.#story.close()
    this.#waterfall.close()
    this.#gate.close()
    this.#attemptsTab.close()
    this.#changesTab.close()
    this.#filesTab.close()
  }

  /**
   * Shows what an address of this run names.
   *
   * @param {RunAddress} address
   * @param {boolean} [followed] false for a tab that was chosen: its event was gone to before
   */
  navigate({ tab, query }, followed = true) {
    this.#addresses[tab] = location.hash
    this.#tab = tab
    this.#tabs.show(tab)
    this.#waterfall.show(tab === 'waterfall')
    this.#attemptsTab.show(tab === 'attempts')
    this.#offerAttempts()
    this.#changesTab.show(tab === 'changes' ? query : null)
    this.#filesTab.show(tab === 'files' ? query : null)
    // The link that was followed may be in another tab.
    if (document.activeElement?.closest('[hidden]')) this.#tabs.focus(tab)
    const seq = Number(query.get('event'))
    if (tab === 'timeline' && followed && Number.isSafeInteger(seq) && seq > 0)
      this.#story.goTo(seq)
  }

  #offerAttempts() {
    this.#tabs.offer('attempts', this.#details !== null && this.#details.attempts !== null)
  }

  /** @param {TabName} tab */
  #choose(tab) {
    const hash = this.#addresses[tab] ?? runAddress(this.#runId, tab)
    history.replaceState(null, '', hash)
    const address = readAddress(hash)
    if (address !== null) this.navigate(address, false)
  }

  /** What was refused without a key is read again. */
  keyGiven() {
    this.#refreshSoon()
  }

  /** The list of runs has seen so many events of this one. @param {number} lastSeq */
  noticed(lastSeq) {
    if (this.#ended && lastSeq > this.#seen) this.#refreshSoon()
  }

  /** Reads what follows the end of the run: restores, applied changes. */
  #catchUp() {
    if (this.#ended && this.#lastSeq > this.#seen) this.#following?.again()
  }

  /** @param {unknown} error */
  #showMissing(error) {
    const isMissing = error instanceof ApiError && error.status === 404
    const text = isMissing ? 'There is no such run.' : messageOf(error)
    fill(
      this.element,
      h('p.empty', { role: 'alert' }, text),
      h('p.empty', h('a', { href: '#/' }, 'All runs')),
    )
  }

  /** @param {readonly AgentEvent[]} events */
  #add(events) {
    const following = this.#tab === 'timeline' && window.scrollY > 0 && isNearEnd()
    this.#story.add(events)
    this.#waterfall.add(events)
    this.#files.add(events)
    this.#gate.add(events)
    this.#seen = events.at(-1)?.seq ?? this.#seen
    for (const event of events) {
      this.#messages.add(event)
      if (event.kind === 'plan_updated') this.#plan.update(event.payload.steps)
      if (event.kind === 'goal_check') {
        this.#counts = event.payload.counts
        this.#unsealed = event.payload.sealed_unavailable ?? this.#unsealed
      }
      if (event.kind !== 'checkpoint') continue
      this.#changesTab.add(checkpointOf(event))
      this.#filesTab.add(checkpointOf(event))
    }
    if (events.some(({ kind }) => kind === 'checkpoint' || kind === 'files_changed'))
      this.#filesChanged()
    const refreshes = new Set(events.map(({ kind }) => EVENTS[kind]?.refresh))
    if (refreshes.has('now')) this.#refreshNow()
    else if (refreshes.has('soon')) this.#refreshSoon()
    // The page follows new entries only when it was scrolled to the end.
    if (following && this.#status !== null && isLive(this.#status)) this.#story.scrollToEnd()
  }

  #refreshSoon() {
    this.#refreshing ??= setTimeout(() => this.#refreshNow(), REFRESH_MS)
  }

  #refreshNow() {
    clearTimeout(this.#refreshing)
    this.#refreshing = undefined
    call('GET', `api/runs/${this.#runId}`, { quiet: true }).then(
      (details) => {
        // Of two concurrent responses the older one may arrive last.
        if (this.#closed || details.last_seq < this.#lastSeq) return
        this.#show(details)
      },
      (error) => {
        if (this.#closed || (error instanceof ApiError && error.status < 429)) return
        // The details shown are stale, and there may be no further event to refresh them.
        this.#refreshing ??= setTimeout(() => this.#refreshNow(), RETRY_MS)
      },
    )
  }

  /** @param {RunDetails} details */
  #show(details) {
    const { status, end_reason, error } = details
    const focused = document.activeElement
    this.#details = details
    this.#lastSeq = details.last_seq
    setText(this.#title, prose(details.goal))
    setTitle(`${statusLabel(status)} · ${clipped(details.goal, 60)} · runwright`)
    setText(this.#chip, statusLabel(status))
    this.#chip.className = `chip large ${status}`
    if (this.#status !== null && this.#status !== status) {
      announce(
        `Run: ${statusLabel(status)}${end_reason === null ? '' : `, ${endReason(end_reason)}`}`,
      )
      this.#changed()
    }
    this.#status = status
    this.#abort.hidden = !isLive(status)
    this.#retry.hidden = isLive(status)
    this.#remove.hidden = isLive(status)
    this.#failure.hidden = error === null
    this.#queued.hidden = status !== 'pending'
    if (error !== null) setText(this.#failure, prose(error.message))
    // A run that works cannot be restored: the style sheet hides the buttons.
    this.element.dataset['status'] = status
    this.#gate.update(details)
    this.#messages.update(details)
    this.#attemptsTab.update(details)
    this.#offerAttempts()
    this.#changesTab.update(details)
    this.#filesTab.update(details.checkpoint_id !== null)
    const program = aboutProgram(details.model_name, this.#models)
    this.#kind.hidden = program === null
    setText(this.#kind, program ?? '')
    refill(this.#meters, metersOf(details, this.#counts))
    refill(this.#facts, factsOf(details, { counts: this.#counts, unsealed: this.#unsealed }))
    this.#instructions.update(details)
    this.#images.update(details)
    // A newer one may have come with the events.
    if (details.last_seq >= this.#seen) this.#plan.update(details.plan)
    this.#result.update(details)
    this.#checkFiles.update(details.check_files)
    refill(this.#badges, badgesOf(details))
    // What had the focus may be gone, such as the button that aborts.
    if (focused?.isConnected === false || focused?.closest('[hidden]'))
      this.#title.focus({ preventScroll: true })
    this.#catchUp()
    this.#story.status = status
  }

  /** @param {'abort' | 'retry'} action */
  async #act(action) {
    const buttons = [this.#abort, this.#retry]
    for (const each of buttons) each.disabled = true
    await attempt(async () => {
      const run = await call('POST', `api/runs/${this.#runId}/${action}`)
      if (action === 'retry') return this.#openRun(run)
      this.#changed()
      this.#refreshSoon()
    })
    for (const each of buttons) each.disabled = false
  }

  async #delete() {
    if (!confirm('Delete this run and its log for good?')) return
    await call('DELETE', `api/runs/${this.#runId}`)
    this.#changed()
    if (!this.#closed) location.hash = '#/'
  }

  #filesChanged() {
    this.#gate.filesChanged()
    this.#changesTab.refresh()
    this.#filesTab.refresh()
  }

  #openRun = (/** @type {RunDetails} */ run) => {
    this.#changed()
    // A user who has gone elsewhere meanwhile stays there; the list shows the run.
    if (!this.#closed) location.hash = runAddress(run.run_id)
  }

  /**
   * @param {import('./folder-entries.js').ForkPoint} at
   * @param {string} from
   * @param {string} [message]
   */
  #fork(at, from, message = '') {
    if (this.#details === null) return
    const what = { at, from, message, models: this.#models, done: this.#openRun }
    forkDialog(this.#details, what)
  }

  /**
   * @param {string} checkpointId
   * @param {string} name
   * @param {'preview' | 'original' | 'confirmed'} how as `restoreDialog()`
   */
  #restore(checkpointId, name, how) {
    const done = (/** @type {import('../types.js').RestoreResult} */ result) => {
      const { checkpoint_id, paths, left_out } = result
      const text = `Restored ${plural(paths.length, 'file')}: ${name.toLowerCase()}.`
      this.#offerUndo(text, checkpoint_id, left_out)
    }
    restoreDialog(this.#runId, { checkpointId, name, how, folder: this.#details?.cwd ?? '', done })
  }

  /**
   * @param {string} text what was done
   * @param {string | null} checkpointId of the files before
   * @param {readonly import('../types.js').LeftOut[]} [leftOut]
   */
  #offerUndo(text, checkpointId, leftOut = []) {
    this.#filesChanged()
    this.#refreshNow()
    const take = () => this.#restore(checkpointId ?? '', 'as before', 'confirmed')
    const undo = button('Undo', take, { hidden: checkpointId === null })
    const hide = button('Hide', () => this.#hideUndo(), 'quiet')
    this.#undo.hidden = false
    fill(this.#undo, h('p', text), undo, hide, ...leftOutView('Left as it is', leftOut))
    undo.focus()
  }

  #hideUndo() {
    this.#undo.hidden = true
    this.#tabs.focus(this.#tab)
  }
}
