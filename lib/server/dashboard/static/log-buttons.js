/** Copies and saves the log of a run: an event a line, as the API gives it. */
import { button, h } from './dom.js'
import { copyButton, saveFile } from './save.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

export class LogButtons {
  /** All events so far. @type {AgentEvent[]} */
  #events = []
  element

  /** @param {string} runId */
  constructor(runId) {
    this.element = h(
      'span.log-buttons',
      copyButton('Copy log', () => this.#lines().join('')),
      button('Download log', () => saveFile(this.#lines(), `${runId}.jsonl`), 'quiet small'),
    )
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    for (const event of events) this.#events.push(event)
  }

  #lines() {
    return this.#events.map((event) => `${JSON.stringify(event)}\n`)
  }
}
