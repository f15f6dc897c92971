/** Messages to a live run; to one that has ended, a message starts a fork of it. */
import { ApiError, call, idempotencyKey, messageOf } from './api.js'
import { button, form, h, select, setText } from './dom.js'
import { isLive, number, plural } from './format.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').RunDetails} RunDetails
 */

/** Bytes of a message. */
const MOST = 32_768

export class MessageBox {
  element
  #forked
  #options
  /** @type {RunDetails | null} */
  #details = null
  /** Ids of messages that the model has not heard. @type {Set<string>} */
  #unheard = new Set()
  #sending = false
  /** Shown when nothing else is to be said. */
  #said = ''
  /** Of this message: sending it again sends it once. */
  #key = idempotencyKey()
  #text = h('textarea', {
    id: 'message',
    rows: 1,
    'aria-describedby': 'message-state message-problem',
    oninput: () => {
      this.#key = idempotencyKey()
      this.#said = ''
      this.#update()
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      void this.#send()
    },
  })
  #label = h('label', { for: 'message' })
  #deliver = select({ 'aria-label': 'When it is heard' }, [
    ['next_turn', 'Now'],
    ['next_iteration', 'At the next iteration'],
  ])
  #more = button('Options…', () => this.#options(this.#text.value), 'quiet')
  #submit = h('button', { type: 'submit', class: 'primary' })
  #state = h('p.hint', { id: 'message-state', role: 'status' })
  #problem = h('p.error-text', { id: 'message-problem', role: 'alert' })

  /**
   * @param {(fork: RunDetails) => void} forked
   * @param {(message: string) => void} options opens the dialog of a fork
   */
  constructor(forked, options) {
    this.#forked = forked
    this.#options = options
    this.element = form(
      'message-box',
      () => void this.#send(),
      this.#label,
      h('div.message-row', this.#text, this.#deliver, this.#more, this.#submit),
      this.#problem,
      this.#state,
    )
    this.element.hidden = true
  }

  /** @param {RunDetails} details */
  update(details) {
    this.#details = details
    const live = isLive(details.status)
    // A run with attempts has no model that would hear it.
    this.element.hidden = live && details.attempts !== null
    this.#deliver.hidden = !live
    this.#more.hidden = live
    const ended = details.changes === 'pending' ? 'Request changes' : 'Go on with…'
    setText(this.#label, live ? 'Message to the run' : ended)
    setText(this.#submit, live ? 'Send' : 'Start a fork')
    this.#update()
  }

  /** @param {AgentEvent} event */
  add(event) {
    const { kind, payload } = event
    const heard = kind === 'model_turn' ? (payload.heard ?? []) : []
    if (kind === 'user_message') this.#unheard.add(payload.message_id)
    else if (kind === 'run_end') this.#unheard = new Set(payload.unheard)
    else if (heard.length === 0) return
    for (const id of heard) this.#unheard.delete(id)
    if (heard.length > 0) this.#said = 'Heard.'
    this.#update()
  }

  #update() {
    const { value } = this.#text
    const bytes = value.length > MOST / 4 ? new TextEncoder().encode(value).length : 0
    this.#submit.disabled = this.#sending || value.trim() === '' || bytes > MOST
    const live = this.#details === null || isLive(this.#details.status)
    const waiting = plural(this.#unheard.size, 'message')
    const about = live
      ? `${waiting} not heard yet.`
      : `${waiting} came too late: a fork hears them first.`
    setText(
      this.#state,
      bytes > MOST / 2
        ? `${number(bytes)} of ${number(MOST)} bytes`
        : this.#unheard.size > 0
          ? about
          : this.#said,
    )
  }

  async #send() {
    const details = this.#details
    if (this.#submit.disabled || details === null) return
    // Of a run without checkpoints no copy can be made: the user decides on the folder.
    if (!isLive(details.status) && details.checkpoint_id === null)
      return this.#options(this.#text.value)
    this.#sending = true
    this.#update()
    setText(this.#problem, '')
    const live = isLive(details.status)
    const text = this.#text.value
    const path = `api/runs/${details.run_id}`
    const headers = { 'Idempotency-Key': this.#key }
    try {
      if (live) {
        const body = { text, deliver: this.#deliver.value }
        await call('POST', `${path}/messages`, { body, headers })
      } else {
        this.#forked(await call('POST', `${path}/fork`, { body: { message: text }, headers }))
      }
      this.#key = idempotencyKey()
      // What was typed meanwhile is another message.
      if (this.#text.value === text) this.#text.value = ''
      this.#said = live ? 'Sent.' : ''
      this.#sending = false
      this.#update()
    } catch (error) {
      this.#sending = false
      this.#update()
      setText(this.#problem, messageOf(error))
      // It ended meanwhile: the same text can start a fork.
      if (error instanceof ApiError && error.problem.code === 'run_ended')
        this.#key = idempotencyKey()
    }
  }
}
