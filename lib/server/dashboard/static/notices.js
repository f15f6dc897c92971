/**
 * Tells the user when a run needs an answer or has ended: in the title of the page, and where the
 * user wants it, by notifications of the browser.
 *
 * 1. Of all tabs, the one that holds a lock tells, so each event is told once.
 * 2. A tab that shows a run visibly holds a lock with its name: of that run nothing is told.
 */
import { page } from './api.js'
import { button, h, setBadge, setText } from './dom.js'
import { whyEnded } from './end-reasons.js'
import { statusLabel } from './format.js'
import { noticesOf } from './notice-rules.js'
import { nameOf } from './run-row.js'
import { local } from './storage.js'
import { readable } from './visible.js'

/** @typedef {import('../types.js').RunSummary} RunSummary */

const WANTED = 'runwright.notices'
const TELLER = 'runwright.teller'
const SEEN = 'runwright.seen.'
/** Between looks at the runs. */
const LOOK_MS = 5_000
/** Newest runs that are looked at, beside those that need the user. */
const LOOKED_AT = 100

/** On which the tab that tells lets the others know how many runs need the user. */
const COUNTS = openChannel('runwright.counts')

const isPossible = 'Notification' in globalThis && 'locks' in navigator

export class Notices {
  element = h('div.notices', { hidden: !isPossible })
  #state = h('p.hint', { role: 'status' })
  #toggle = button('', () => void this.#switch(), { class: 'small', 'aria-pressed': false })
  #controller = new AbortController()
  /** Lets go of the lock of the run that is shown. @type {() => void} */
  #unsee = () => {}
  /** @type {string | null} */
  #shown = null

  constructor() {
    this.element.append(this.#toggle, this.#state)
    document.addEventListener('visibilitychange', () => this.see(this.#shown))
    globalThis.addEventListener('storage', ({ key }) => {
      if (key === WANTED) this.#follow()
    })
    if (COUNTS !== null) COUNTS.onmessage = ({ data }) => this.#count(Number(data))
    this.#follow()
  }

  /** @param {number} count */
  #count(count) {
    setBadge(this.#isOn ? count : 0)
  }

  get #isOn() {
    return isPossible && local.get(WANTED) === 'on' && Notification.permission === 'granted'
  }

  /** The run that this tab shows; null for none. @param {string | null} runId */
  see(runId) {
    this.#shown = runId
    this.#unsee()
    this.#unsee = () => {}
    if (!isPossible || runId === null || document.hidden) return
    const held = new Promise((resolve) => (this.#unsee = () => resolve(undefined)))
    // A browser that refuses storage refuses locks as well.
    navigator.locks.request(SEEN + runId, { mode: 'shared' }, () => held).catch(() => {})
  }

  async #switch() {
    const wasOn = this.#isOn
    const isAllowed = !wasOn && (await Notification.requestPermission()) === 'granted'
    local.set(WANTED, isAllowed ? 'on' : 'off')
    this.#follow()
    // A question that was closed without an answer leaves everything as it was.
    if (!wasOn && !isAllowed && !this.#toggle.disabled)
      setText(this.#state, 'The browser has not allowed it.')
  }

  #follow() {
    if (!isPossible) return
    const on = this.#isOn
    setText(this.#toggle, on ? 'Do not notify me' : 'Notify me')
    this.#toggle.setAttribute('aria-pressed', String(on))
    const isBlocked = Notification.permission === 'denied'
    this.#toggle.disabled = isBlocked
    const words = isBlocked
      ? 'Notifications are blocked: allow them for this site in the settings of the browser.'
      : on ? 'You are told when a run needs you or ends.' : ''
    setText(this.#state, words)
    this.#controller.abort()
    this.#controller = new AbortController()
    const { signal } = this.#controller
    if (!on) return this.#count(0)
    const counted = (/** @type {number} */ count) => this.#count(count)
    navigator.locks.request(TELLER, { signal }, () => tell(signal, counted)).catch(() => {})
  }
}

/**
 * Looks at the runs as long as this tab is the one that tells.
 *
 * @param {AbortSignal} signal
 * @param {(count: number) => void} counted called with the number of runs that need the user
 */
async function tell(signal, counted) {
  /** @type {ReturnType<typeof noticesOf>['known'] | null} */
  let known = null
  while (!signal.aborted) {
    try {
      const runs = await look()
      const found = noticesOf(known, runs)
      known = found.known
      const waits = runs.filter(({ status }) => status === 'awaiting_human')
      const count = new Set(waits.map(({ run_id }) => run_id)).size
      COUNTS?.postMessage(count)
      counted(count)
      const seen = await seenRuns()
      for (const { run, needsUser } of found.notices)
        if (!seen.has(run.run_id)) show(run, needsUser)
    } catch {
      // The list of runs shows the error; the next look may succeed.
    }
    await pause(signal)
  }
}

/** Null where the browser refuses what tabs share. @param {string} name */
function openChannel(name) {
  try {
    return new BroadcastChannel(name)
  } catch {
    return null
  }
}

/** @returns {Promise<readonly RunSummary[]>} */
async function look() {
  const [newest, waiting] = await Promise.all([
    page(`api/runs?limit=${LOOKED_AT}`, { quiet: true }),
    page(`api/runs?limit=${LOOKED_AT}&status=awaiting_human`, { quiet: true }),
  ])
  return [...newest.items, ...waiting.items]
}

async function seenRuns() {
  const { held = [] } = await navigator.locks.query()
  const names = held.map(({ name = '' }) => name)
  const seen = names.filter((name) => name.startsWith(SEEN))
  return new Set(seen.map((name) => name.slice(SEEN.length)))
}

/**
 * @param {RunSummary} run
 * @param {boolean} needsUser
 */
function show(run, needsUser) {
  const { run_id, last_seq } = run
  const title = needsUser ? 'A run needs you' : `A run has ended: ${statusLabel(run.status)}`
  const why = needsUser ? '' : `\n${whyEnded(run)}`
  const body = readable(`${nameOf(run).slice(0, 200)}${why}`)
  const notice = new Notification(title, { body, tag: `${run_id}-${last_seq}` })
  notice.onclick = () => {
    window.focus()
    location.hash = `#/runs/${run_id}`
    notice.close()
  }
}

/** @param {AbortSignal} signal @returns {Promise<void>} */
function pause(signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LOOK_MS)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
