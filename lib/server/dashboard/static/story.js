/** The timeline of a run with what finds something in it: search, links to events, folding. */
import { button, h, setText, toast } from './dom.js'
import { plural } from './format.js'
import { LogButtons } from './log-buttons.js'
import { isNearEnd, Timeline } from './timeline.js'
import { visible } from './visible.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */
/** @typedef {import('../types.js').Status} Status */

export class Story {
  #unfolded = false
  /** The event of the address, until the log is read. @type {number | null} */
  #target = null
  #isRead = false
  #stream = ''
  /** The last event so far. */
  #last = 0
  /** @type {Status | null} */
  #status = null
  #find = h('input', {
    type: 'search',
    id: 'find',
    placeholder: 'Find in this run',
    'aria-label': 'Find in this run',
    oninput: () => void this.#search(),
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event),
  })
  #before = button('↑', () => this.#go(-1), {
    class: 'small', 'aria-label': 'Match before', title: 'Match before (Shift+Enter)',
  })
  #after = button('↓', () => this.#go(1), {
    class: 'small', 'aria-label': 'Next match', title: 'Next match (Enter)',
  })
  #others = button('Show others', () => this.#showOthers(), {
    class: 'quiet small', 'aria-pressed': false,
  })
  #moves = h('span.find-moves', { hidden: true }, this.#before, this.#after, this.#others)
  #fold = button('Unfold all', () => this.#foldAll(), 'quiet small')
  #count = h('p.hint', { role: 'status' })
  #none = h('p.empty', { hidden: true }, 'No entry matches.')
  #timeline = new Timeline(() => this.#showCount())
  #latest = button('Latest ↓', () => this.scrollToEnd(), { class: 'latest', hidden: true })
  #log
  element

  /** @param {string} runId */
  constructor(runId) {
    this.#log = new LogButtons(runId)
    this.element = h(
      'section.story',
      { 'aria-labelledby': 'timeline-title' },
      h(
        'div.story-head',
        h('h2', { id: 'timeline-title', class: 'visually-hidden' }, 'Timeline'),
        this.#log.element,
        this.#count,
        this.#fold,
        this.#moves,
        this.#find,
      ),
      this.#timeline.element,
      this.#none,
      this.#latest,
    )
    window.addEventListener('scroll', this.#onScroll, { passive: true })
  }

  close() {
    window.removeEventListener('scroll', this.#onScroll)
    this.#timeline.close()
  }

  /** @param {string} state as `follow()` tells it */
  set stream(state) {
    this.#stream = state
    this.#timeline.busy = state === 'connecting'
    this.#isRead ||= state === 'live' || state === 'ended'
    if (this.#target !== null) this.goTo(this.#target)
  }

  /** Has the log been read up to an event? Where no socket opens, nothing says that it was. */
  #hasRead(/** @type {number} */ seq) {
    return this.#isRead || (this.#stream === 'waiting' && seq <= this.#last)
  }

  /** @param {Status} status */
  set status(status) {
    this.#status = status
    this.#onScroll()
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    this.#last = events.at(-1)?.seq ?? this.#last
    this.#log.add(events)
    this.#timeline.add(events)
    this.#onScroll()
  }

  /** Goes to an event, once the log is read. @param {number} seq */
  goTo(seq) {
    this.#target = this.#hasRead(seq) ? null : seq
    if (this.#target !== null) return
    if (this.#find.value !== '') {
      this.#find.value = ''
      void this.#search().then(() => this.#arrive(seq))
    } else this.#arrive(seq)
  }

  /** @param {number} seq */
  #arrive(seq) {
    if (!this.#timeline.goTo(seq) || seq > this.#last) toast(`This run has no event ${seq}.`)
    this.#onScroll()
  }

  /** Finds a file. @param {string} path */
  showFile(path) {
    this.#find.value = visible(path)
    void this.#search()
    this.#find.focus()
  }

  async #search() {
    const isOn = this.#others.getAttribute('aria-pressed') === 'true'
    this.#moves.hidden = this.#find.value.trim() === ''
    await this.#timeline.find(this.#find.value, !isOn)
  }

  #showOthers() {
    const isOn = this.#others.getAttribute('aria-pressed') === 'true'
    this.#others.setAttribute('aria-pressed', String(!isOn))
    void this.#search()
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    this.#go(event.shiftKey ? -1 : 1)
  }

  /** @param {1 | -1} by */
  #go(by) {
    this.#timeline.goToMatch(by)
  }

  #showCount() {
    const { found } = this.#timeline
    this.#fold.hidden = found !== null
    this.#none.hidden = found === null || this.#timeline.shown > 0
    this.#before.disabled = this.#after.disabled = found === null || found.entries === 0
    if (found === null) return setText(this.#count, '')
    const { matches, entries, at } = found
    const where = at === 0 ? '' : `${at} of `
    const more = matches > entries ? ` · ${plural(matches, 'match', 'matches')}` : ''
    setText(this.#count, `${where}${plural(entries, 'entry', 'entries')} found${more}`)
  }

  #foldAll() {
    this.#unfolded = !this.#unfolded
    this.#timeline.foldAll(!this.#unfolded)
    setText(this.#fold, this.#unfolded ? 'Fold all' : 'Unfold all')
  }

  #onScroll = () => {
    // At a gate nothing new comes before it is answered.
    this.#latest.hidden = isNearEnd() || (this.#status !== 'running' && this.#status !== 'pending')
  }

  scrollToEnd() {
    this.#timeline.scrollToEnd()
    this.#latest.hidden = true
  }
}
