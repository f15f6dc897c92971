/** One run: status, usage, timeline, open gate, and the actions of the user. */
import { ApiError, call, messageOf } from './api.js'
import { ChangedFiles } from './changed-files.js'
import { announce, button, fill, h, prose, setText, setTitle, toast } from './dom.js'
import { countsView } from './entries.js'
import { follow } from './follow.js'
import { cost, duration, endReason, isLive, number, plural, statusLabel } from './format.js'
import { GatePanel } from './gate-panel.js'
import { isNearEnd, Timeline } from './timeline.js'
import { clipped, visible } from './visible.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').Model} Model
 * @typedef {import('../types.js').RunDetails} RunDetails
 * @typedef {import('../types.js').Status} Status
 * @typedef {import('./dom.js').View} View
 */

/** Kinds after which the details have changed. */
const REFRESHING = new Set([
  'run_started',
  'run_recovered',
  'llm_usage',
  'goal_check',
  'iteration_complete',
  'error',
])

/** Kinds that the user is waiting for, shown without delay. */
const URGENT = new Set(['human_check_required', 'human_check_response', 'run_end'])

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

/**
 * @param {string} runId
 * @param {() => void} changed called when the list may have changed
 * @returns {View}
 */
export function runView(runId, changed) {
  const view = new RunView(runId, changed)
  return { element: view.element, title: 'Run', close: () => view.close() }
}

class RunView {
  element = h('article', { class: 'run-view', 'aria-labelledby': 'run-title' })
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
  #stop = () => {}
  #files = new ChangedFiles((path) => this.#showFile(path))
  #unfolded = false
  #counted = false

  #title = h('h1', { id: 'run-title', dir: 'auto', tabIndex: -1 })
  #chip = h('span', { class: 'chip' })
  #stream = h('span', { class: 'stream', role: 'status' })
  #abort = button('Abort', () => void this.#act('abort'), { class: 'danger', hidden: true })
  #retry = button('Run again', () => void this.#act('retry'), { hidden: true })
  #remove = button('Delete', () => void this.#delete(), { class: 'quiet', hidden: true })
  #facts = h('dl', { class: 'facts' })
  #kind = h('p', { class: 'notice program', hidden: true })
  #failure = h('p', { class: 'notice bad', dir: 'auto', hidden: true })
  #queued = h(
    'p',
    { class: 'notice', hidden: true },
    'Queued: waiting for a free slot, or for another run in the same folder to end.',
  )
  #meters = h('div', { class: 'meters' })
  #tests = h('div', { class: 'meter-tests' })
  #gate
  #find = h('input', {
    type: 'search',
    id: 'find',
    placeholder: 'Find in this run',
    'aria-label': 'Find in this run',
    oninput: () => this.#timeline.find(this.#find.value),
  })
  #fold = button('Unfold all', () => this.#foldAll(), { class: 'quiet small' })
  #count = h('p', { class: 'hint', role: 'status' })
  #timeline = new Timeline((shown) => this.#showCount(shown))
  #latest = button('Latest ↓', () => this.#scrollToEnd(), { class: 'latest', hidden: true })

  /**
   * @param {string} runId
   * @param {() => void} changed
   */
  constructor(runId, changed) {
    this.#runId = runId
    this.#changed = changed
    this.#gate = new GatePanel(runId, () => {
      // The pressed button is gone: keyboard users continue from here, not from the top.
      this.#title.focus({ preventScroll: true })
      this.#refreshSoon()
    })
    fill(
      this.element,
      h('a', { class: 'back', href: '#/' }, '← All runs'),
      h(
        'header',
        { class: 'run-head' },
        h(
          'div',
          { class: 'run-head-title' },
          this.#title,
          h('p', { class: 'run-head-state' }, this.#chip, this.#stream),
        ),
        h('div', { class: 'actions' }, this.#remove, this.#retry, this.#abort),
      ),
      this.#failure,
      this.#queued,
      this.#gate.element,
      this.#meters,
      h(
        'div',
        { class: 'run-body' },
        h(
          'section',
          { class: 'about', 'aria-label': 'About this run' },
          this.#kind,
          this.#facts,
          this.#files.element,
        ),
        h(
          'section',
          { class: 'story', 'aria-labelledby': 'timeline-title' },
          h(
            'div',
            { class: 'story-head' },
            h('h2', { id: 'timeline-title' }, 'Timeline'),
            this.#count,
            this.#fold,
            this.#find,
          ),
          this.#timeline.element,
          this.#latest,
        ),
      ),
    )
    window.addEventListener('scroll', this.#onScroll, { passive: true })
    void this.#open()
  }

  async #open() {
    try {
      const [details, models] = await Promise.all([
        call('GET', `api/runs/${this.#runId}`),
        call('GET', 'api/models'),
      ])
      this.#models = models
      this.#show(details)
    } catch (error) {
      return this.#showMissing(error)
    }
    if (this.#closed) return
    this.#stop = follow(this.#runId, {
      events: (events) => this.#add(events),
      state: (state) => {
        setText(this.#stream, STREAM_TEXT[state] ?? '')
        this.#stream.className = `stream ${state}`
        this.#timeline.busy = state === 'connecting'
      },
    })
  }

  close() {
    this.#closed = true
    clearTimeout(this.#refreshing)
    window.removeEventListener('scroll', this.#onScroll)
    this.#stop()
    this.#timeline.close()
  }

  /** @param {unknown} error */
  #showMissing(error) {
    const isMissing = error instanceof ApiError && error.status === 404
    const text = isMissing ? 'There is no such run.' : messageOf(error)
    fill(
      this.element,
      h('p', { class: 'empty', role: 'alert' }, text),
      h('p', { class: 'empty' }, h('a', { href: '#/' }, 'All runs')),
    )
  }

  /** @param {readonly AgentEvent[]} events */
  #add(events) {
    const following = window.scrollY > 0 && isNearEnd()
    this.#timeline.add(events)
    this.#files.add(events)
    for (const event of events)
      if (event.kind === 'goal_check') this.#showTests(event.payload.counts)
    if (events.some(({ kind }) => URGENT.has(kind))) this.#refreshNow()
    else if (events.some(({ kind }) => REFRESHING.has(kind))) this.#refreshSoon()
    // The page follows new entries only when it was scrolled to the end.
    if (following && this.#status !== null && isLive(this.#status)) this.#scrollToEnd()
    else this.#onScroll()
  }

  /** @param {import('../types.js').TestCounts | null} counts */
  #showTests(counts) {
    this.#counted = counts !== null
    fill(this.#tests, counts !== null && countsView(counts))
  }

  /** Finds a file in the timeline. @param {string} path */
  #showFile(path) {
    this.#find.value = visible(path)
    this.#timeline.find(path)
    this.#find.focus()
  }

  /** @param {number} shown */
  #showCount(shown) {
    const found = this.#find.value.trim() !== ''
    setText(this.#count, found ? `${plural(shown, 'entry', 'entries')} found` : '')
    this.#fold.hidden = found
  }

  #foldAll() {
    this.#unfolded = !this.#unfolded
    this.#timeline.foldAll(!this.#unfolded)
    setText(this.#fold, this.#unfolded ? 'Fold all' : 'Unfold all')
  }

  #refreshSoon() {
    this.#refreshing ??= setTimeout(() => this.#refreshNow(), REFRESH_MS)
  }

  #refreshNow() {
    clearTimeout(this.#refreshing)
    this.#refreshing = undefined
    call('GET', `api/runs/${this.#runId}`).then(
      (details) => {
        // Of two concurrent responses the older one may arrive last.
        if (this.#closed || details.last_seq < this.#lastSeq) return
        this.#lastSeq = details.last_seq
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
    this.#gate.update(details)
    this.#showModel(details)
    this.#showMeters(details)
    this.#showFacts(details)
    this.#onScroll()
  }

  /** @param {RunDetails} details */
  #showModel({ model_name }) {
    const model = this.#models.find(({ name }) => name === model_name)
    const program =
      model === undefined
        ? /^(builtin|scripted|replay):/.test(model_name)
        : !model.is_language_model
    this.#kind.hidden = !program
    setText(
      this.#kind,
      `${model_name} is a program, not a language model. ${model?.description ?? ''}`,
    )
  }

  /** @param {RunDetails} details */
  #showMeters(details) {
    const {
      iteration,
      max_iterations,
      usage,
      final_state,
      cost_known,
      max_total_tokens,
      max_cost_usd,
    } = details
    const spent = final_state.estimated_cost_usd
    const budget = max_cost_usd === null ? '' : ` · budget $${max_cost_usd}`
    const tokens = `${number(usage.input_tokens)} in · ${number(usage.output_tokens)} out`
    fill(
      this.#meters,
      meter('Iterations', `${iteration} of ${max_iterations}`, iteration, max_iterations),
      meter(
        'Tokens',
        number(final_state.total_tokens),
        final_state.total_tokens,
        max_total_tokens,
        max_total_tokens === null ? tokens : `of ${number(max_total_tokens)} · ${tokens}`,
      ),
      meter(
        'Cost',
        cost(spent, cost_known),
        spent,
        max_cost_usd,
        plural(usage.model_calls, 'model call') + budget,
      ),
      h(
        'div',
        { class: 'meter' },
        h('p', { class: 'meter-name' }, 'Goal check'),
        h('p', { class: 'meter-value' }, final_state.goal_achieved ? 'Met' : 'Not met'),
        this.#tests,
        h(
          'p',
          { class: 'meter-more', dir: 'auto' },
          prose(this.#counted ? '' : final_state.goal_reason),
        ),
      ),
    )
  }

  /** @param {RunDetails} details */
  #showFacts(details) {
    const { started_at, ended_at, created_at } = details
    /** @type {[string, string | Node][]} */
    const facts = [
      ['Model', details.model_name],
      ['Folder', details.cwd],
      ['Created', new Date(created_at).toLocaleString()],
    ]
    if (started_at !== null && ended_at !== null)
      facts.push(['Took', duration(Date.parse(ended_at) - Date.parse(started_at))])
    if (details.end_reason !== null) facts.push(['Ended', endReason(details.end_reason)])
    if (details.check !== null) facts.push(['Check', details.check])
    if (details.hitl_enabled) facts.push(['Gates', 'after each iteration'])
    if (details.approval !== 'never') facts.push(['Approval', details.approval])
    if (details.parent_run_id !== null) {
      facts.push([
        'Retry of',
        h('a', { href: `#/runs/${details.parent_run_id}` }, 'an earlier run'),
      ])
    }
    facts.push(['Run', details.run_id])
    fill(
      this.#facts,
      facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
    )
  }

  /** @param {'abort' | 'retry'} action */
  async #act(action) {
    const buttons = [this.#abort, this.#retry]
    for (const each of buttons) each.disabled = true
    try {
      const run = await call('POST', `api/runs/${this.#runId}/${action}`)
      this.#changed()
      if (action === 'retry') location.hash = `#/runs/${run.run_id}`
      else this.#refreshSoon()
    } catch (error) {
      toast(messageOf(error), 'bad')
    } finally {
      for (const each of buttons) each.disabled = false
    }
  }

  async #delete() {
    if (!confirm('Delete this run and its log for good?')) return
    try {
      await call('DELETE', `api/runs/${this.#runId}`)
      this.#changed()
      location.hash = '#/'
    } catch (error) {
      toast(messageOf(error), 'bad')
    }
  }

  #onScroll = () => {
    // At a gate nothing new comes before it is answered.
    this.#latest.hidden = isNearEnd() || (this.#status !== 'running' && this.#status !== 'pending')
  }

  #scrollToEnd() {
    this.#timeline.scrollToEnd()
    this.#latest.hidden = true
  }
}

/**
 * @param {string} name
 * @param {string} value
 * @param {number} used
 * @param {number | null} most null draws no bar
 * @param {string} [more]
 */
function meter(name, value, used, most, more = '') {
  const bar =
    most === null
      ? null
      : h('progress', { max: most, value: Math.min(used, most), 'aria-label': `${name} used` })
  return h(
    'div',
    { class: 'meter' },
    h('p', { class: 'meter-name' }, name),
    h('p', { class: 'meter-value' }, value),
    bar,
    h('p', { class: 'meter-more' }, more),
  )
}
