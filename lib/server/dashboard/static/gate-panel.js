/**
 * The panel in which the user answers a gate.
 *
 * 1. The question comes first, the buttons are always in view, and what is between them scrolls.
 * 2. Nothing is approved that was not seen: for a moment after a gate has appeared or changed, keys
 *    and buttons do nothing, so what was meant for another gate, or pressed by chance, is ignored.
 * 3. What was typed stays until it was sent, whatever becomes of the gate.
 */
import { ApiError, call, messageOf } from './api.js'
import { Countdown } from './countdown.js'
import { button, fill, h, problemLine, prose, setText } from './dom.js'
import { candidateList } from './gate-candidates.js'
import { GateHistory } from './gate-history.js'
import { answerOf, approveLabel, questionOf, reasonOf, titleOf } from './gate-words.js'
import { GatedCalls } from './gated-calls.js'
import { bindKeys } from './keys.js'
import { KeptText } from './kept-text.js'
import { NetChanges } from './net-changes.js'
import { clipped } from './visible.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').Gate} Gate
 * @typedef {import('../types.js').RunDetails} RunDetails
 *
 * The feedback of an answer, and all that had been typed when it was sent.
 * @typedef {{ readonly feedback: string, readonly typed: string }} Sent
 */

/** Milliseconds in which a gate that has appeared takes no answer. */
const MOMENT_MS = 700
/** Characters of the model's last text that are shown. */
const LAST_WORDS = 600
/** The least height of the panel in pixels, and its distance from the end of the window. */
const LEAST_HEIGHT = 340
const MARGIN = 12

/** Hidden while no gate is open. */
export class GatePanel {
  element = h('section.gate', { 'aria-labelledby': 'gate-title', hidden: true })
  /** Shown when a gate has closed before its answer was sent. */
  kept = new KeptText()
  #history = new GateHistory()
  #countdown = new Countdown()
  #answered
  #runId
  /** @type {Gate | null} */
  #gate = null
  /** @type {GatedCalls | null} */
  #calls = null
  /** @type {NetChanges | null} */
  #changes = null
  /** The answer that was sent; null while none was. @type {Sent | null} */
  #sent = null
  /**
   * The gate that was left last, while it is not known whether what was typed has counted.
   *
   * @type {{ gateId: string, text: string, sent: Sent | null } | null}
   */
  #left = null
  #sending = false
  #isReady = false
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settling
  #unbind = () => {}
  #head = h('header.gate-head')
  #feedback = h('textarea', { id: 'feedback', rows: 2, maxLength: 16_384 })
  #problem = problemLine()
  #state = h('p.hint', { role: 'status' })
  #lost = h('p.notice.bad.gate-lost', { role: 'status', hidden: true })
  /** @type {HTMLButtonElement[]} */
  #buttons = []
  /** @type {HTMLButtonElement | null} */
  #approve = null
  #fold = button('Fold', () => this.#toggle(), {
    class: 'quiet small', 'aria-expanded': 'true', 'aria-controls': 'gate-body',
  })

  /**
   * @param {string} runId
   * @param {(isOver: boolean) => void} answered false: not by this page, as far as it knows
   */
  constructor(runId, answered) {
    this.#runId = runId
    this.#answered = answered
    document.addEventListener('visibilitychange', this.#settle)
    window.addEventListener('focus', this.#settle)
    window.addEventListener('resize', this.#measure)
  }

  close() {
    this.#unbind()
    this.#countdown.stop()
    clearTimeout(this.#settling)
    document.removeEventListener('visibilitychange', this.#settle)
    window.removeEventListener('focus', this.#settle)
    window.removeEventListener('resize', this.#measure)
  }

  /**
   * Shows the gate of a run. What is being typed survives as long as the gate is the same.
   *
   * @param {RunDetails} details
   */
  update(details) {
    const { gate } = details
    if (gate?.gate_id === this.#gate?.gate_id) return this.#measure()
    this.#leave()
    this.#gate = gate
    this.element.hidden = gate === null
    if (gate === null) fill(this.element)
    else this.#draw(gate, details)
  }

  /** @param {readonly AgentEvent[]} events in the order of the log */
  add(events) {
    for (const event of events) this.#history.add(event)
    this.#keepUnsent()
    this.#compareFiles()
  }

  /** The folder may have changed while the gate is open. */
  filesChanged() {
    this.#calls?.filesChanged()
    if (this.#calls !== null) this.#settle()
    this.#compareFiles(true)
  }

  /** @param {boolean} isLost */
  set disconnected(isLost) {
    this.#lost.hidden = !isLost
    setText(this.#lost, isLost ? 'The connection is lost: this may be out of date.' : '')
  }

  /** Frees what belongs to the gate that has closed. */
  #leave() {
    this.#unbind()
    this.#countdown.stop()
    clearTimeout(this.#settling)
    const text = this.#typed
    if (this.#gate !== null && text !== '')
      this.#left = { gateId: this.#gate.gate_id, text, sent: this.#sent }
    this.#keepUnsent()
    this.#feedback.value = ''
    this.#calls = this.#changes = this.#approve = this.#sent = null
    this.#buttons = []
  }

  /** All that the reader has typed. */
  get #typed() {
    const typed = [this.#feedback.value.trim(), ...(this.#calls?.typed ?? [])]
    return typed.filter((part) => part !== '').join('\n\n')
  }

  /** Shows what was typed at a gate that was closed by something else than this answer. */
  #keepUnsent() {
    const left = this.#left
    if (left === null) return
    const { closed } = this.#history
    const isKnown = closed?.gateId === left.gateId
    if (!isKnown && left.sent !== null) return
    // Another person's answer with the same decision counts, but not what this one says.
    const { sent } = left
    const isOther =
      sent === null || sent.typed !== left.text || (isKnown && !hasSaid(closed.said, sent.feedback))
    if (isOther) this.kept.show(isKnown ? closed.why : 'The gate is closed.', left.text)
    this.#left = null
  }

  /** @param {Gate} gate @param {RunDetails} details */
  #draw(gate, details) {
    const isTool = gate.kind === 'tool'
    const isChoice = gate.kind === 'choice'
    const reason = reasonOf(gate, details)
    setText(this.#problem, '')
    setText(this.#state, '')
    this.element.classList.toggle('choice', isChoice)
    if (isTool)
      this.#calls = new GatedCalls(gate.calls, details, () => this.#chosen(), this.#settle)
    this.#countdown.show(gate.deadline)
    fill(
      this.#head,
      h('div.gate-title', h('h2', { id: 'gate-title' }, titleOf(gate)), this.#fold),
      h('p.gate-question', questionOf(gate, details)),
      reason === '' ? null : h('p.hint', reason),
    )
    fill(this.element, this.#head, this.#body(gate, details), this.#bar(gate))
    this.#toggle(true)
    this.#compareFiles()
    this.#bindKeys(gate)
    this.#chosen()
    this.#calls?.open()
    for (const one of this.#buttons) one.disabled = true
    this.#settle()
    this.#measure()
  }

  /** @param {Gate} gate @param {RunDetails} details */
  #body(gate, details) {
    const isTool = gate.kind === 'tool'
    const isChoice = gate.kind === 'choice'
    const { answer } = details
    this.#changes = isChoice
      ? null
      : new NetChanges(this.#runId, 'the run', 'Net changes since the last gate')
    const said = isTool && answer.trim() !== ''
    const choose = (/** @type {string} */ label, /** @type {{ attempt: number }} */ more) =>
      this.#offer('approve', label, 'primary', more)
    const props = { id: 'gate-body', tabIndex: 0, role: 'group', 'aria-label': 'What is asked' }
    return h('div.gate-body', props, [
      said && h(
        'blockquote.gate-said',
        h('p.hint', 'The model said last'),
        h('p.prose', { dir: 'auto' }, prose(clipped(answer.trim(), LAST_WORDS))),
      ),
      this.#calls?.element,
      isChoice && candidateList(gate, choose),
      this.#changes?.element,
      h(
        'details.gate-summary',
        { open: !isTool && !isChoice },
        h('summary', 'The run so far'),
        h('p.prose', { dir: 'auto' }, gate.summary),
      ),
      // No model goes on from a choice.
      !isChoice && h(
        'div.field',
        h('label', { for: 'feedback' }, 'Feedback for the model (optional)'),
        this.#feedback,
      ),
    ])
  }

  /** @param {Gate} gate */
  #bar({ kind }) {
    const isTool = kind === 'tool'
    const many = (this.#calls?.count ?? 0) > 1
    if (kind !== 'choice')
      this.#approve = this.#offer('approve', isTool ? '' : 'Approve and continue', 'primary')
    return h(
      'footer.gate-bar',
      this.#lost,
      this.#problem,
      this.#state,
      this.#countdown.element,
      h(
        'div.actions',
        this.#offer('abort', 'Abort run', 'danger quiet'),
        isTool && this.#offer('reject', many ? 'Reject all calls' : 'Reject calls', ''),
        this.#approve,
      ),
    )
  }

  /**
   * @param {string} decision
   * @param {string} label
   * @param {string} style
   * @param {{ attempt?: number }} [more]
   */
  #offer(decision, label, style, more = {}) {
    const shortcut = { approve: 'a', reject: 'r' }[decision]
    const one = button(label, () => void this.#answer(one, decision, more), {
      class: style,
      ...(shortcut !== undefined && more.attempt === undefined && {
        'aria-keyshortcuts': shortcut, 'data-shortcut': shortcut,
      }),
    })
    this.#buttons.push(one)
    return one
  }

  /** @param {Gate} gate */
  #bindKeys({ kind }) {
    if (kind === 'choice') return
    const press = (/** @type {string} */ shortcut) => () => {
      if (!this.#mayAct()) return
      this.#buttons.find((one) => one.dataset['shortcut'] === shortcut)?.click()
    }
    const isTool = kind === 'tool'
    this.#unbind = bindKeys('Gate', [
      { key: 'a', label: isTool ? 'Approve the calls' : 'Approve and continue', run: press('a') },
      ...(isTool ? [{ key: 'r', label: 'Reject all calls', run: press('r') }] : []),
      {
        key: 'e',
        label: isTool ? 'Edit the call in focus, or the first' : 'Write feedback',
        run: () => {
          this.#toggle(true)
          if (isTool) this.#calls?.edit()
          else this.#feedback.focus()
        },
      },
    ])
  }

  /** Has the reader had time to see what a key would answer? */
  #mayAct() {
    const { top, bottom } = this.#head.getBoundingClientRect()
    const isInView = bottom > 0 && top < window.innerHeight - 80
    if (this.#isReady && isInView) return true
    if (!isInView) {
      this.element.scrollIntoView({ block: 'start' })
      this.#settle()
    }
    setText(this.#state, 'Nothing was answered: press the key again once you have read this.')
    return false
  }

  /** From now on a moment passes before keys act. */
  #settle = () => {
    this.#isReady = false
    delete this.element.dataset['ready']
    clearTimeout(this.#settling)
    if (this.#gate === null || document.hidden) return
    this.#settling = setTimeout(() => {
      this.#isReady = true
      this.element.dataset['ready'] = ''
      this.#enable()
    }, MOMENT_MS)
  }

  #enable() {
    const nothing = this.#calls !== null && this.#calls.choices.every(({ runs }) => !runs)
    for (const one of this.#buttons) one.disabled = this.#sending
    if (this.#approve !== null) this.#approve.disabled ||= nothing
  }

  /** The reader has chosen other calls, or other arguments. */
  #chosen() {
    if (this.#calls === null || this.#approve === null) return
    setText(this.#approve, approveLabel(this.#calls.choices))
    if (this.#isReady) this.#enable()
  }

  /**
   * @param {HTMLButtonElement} pressed
   * @param {string} decision
   * @param {{ attempt?: number }} more
   */
  async #answer(pressed, decision, more) {
    const gate = this.#gate
    if (gate === null || this.#sending) return
    if (decision === 'approve' && this.#calls?.commit() === false) return
    setText(this.#problem, '')
    setText(this.#state, '')
    this.#sending = true
    this.#enable()
    const typed = this.#typed
    const text = this.#feedback.value.trim()
    const body = {
      ...this.#decided(decision),
      gate_id: gate.gate_id,
      ...(text === '' ? {} : { feedback: text }),
      ...more,
    }
    try {
      await call('POST', `api/runs/${this.#runId}/resume`, { body })
      this.#sent = { feedback: text, typed }
      this.#sending = false
      this.#answered(true)
    } catch (error) {
      this.#sending = false
      if (gate !== this.#gate) return
      setText(this.#problem, this.#problemOf(error))
      this.#enable()
      // Who works by keyboard can try again.
      pressed.focus()
      // Somebody else was first, or the run has ended: what follows shows it.
      if (error instanceof ApiError && error.status === 409) this.#answered(false)
    }
  }

  /** Why it was refused; of an argument, with the number of its call. @param {unknown} error */
  #problemOf(error) {
    const wrong = error instanceof ApiError ? error.problem.errors?.[0] : undefined
    const [, id = ''] = /^\/edits\/([^/]+)/.exec(wrong?.pointer ?? '') ?? []
    const call_id = id.replaceAll('~1', '/').replaceAll('~0', '~')
    const at = this.#calls?.choices.findIndex((choice) => choice.call_id === call_id) ?? -1
    return wrong === undefined || at === -1 ? messageOf(error) : `Call ${at + 1}: ${wrong.detail}`
  }

  /** @param {string} decision */
  #decided(decision) {
    if (this.#calls === null || decision === 'abort') return { decision }
    const { choices } = this.#calls
    if (decision === 'approve') return answerOf(choices)
    return answerOf(choices.map((choice) => ({ ...choice, runs: false })))
  }

  /** @param {boolean} [open] */
  #toggle(open = this.element.classList.contains('folded')) {
    this.element.classList.toggle('folded', !open)
    this.#fold.setAttribute('aria-expanded', String(open))
    setText(this.#fold, open ? 'Fold' : 'Unfold')
  }

  #compareFiles(again = false) {
    const gate = this.#gate
    const seen = gate === null ? null : this.#history.opened(gate.gate_id)
    if (this.#changes === null || seen === null) return
    this.#changes.update(again ? {} : seen.gateId, seen.query)
    if (gate?.kind === 'iteration') this.#changes.open = true
  }

  /** The panel is as high as the window has room for below what stands above it. */
  #measure = () => {
    if (this.#gate === null) return
    let above = this.element.previousElementSibling
    while (above !== null && above.getClientRects().length === 0)
      above = above.previousElementSibling
    const top = (above?.getBoundingClientRect().bottom ?? 0) + window.scrollY
    const room = Math.max(LEAST_HEIGHT, window.innerHeight - top - 18 - MARGIN)
    this.element.style.setProperty('--gate-room', `${Math.floor(room)}px`)
  }
}

/**
 * Does the log have the feedback that was sent? In it, secrets are replaced.
 *
 * @param {string | null} logged
 * @param {string} sent
 */
function hasSaid(logged, sent) {
  return logged === sent || (logged !== null && sent !== '' && logged.includes('[secret removed]'))
}
