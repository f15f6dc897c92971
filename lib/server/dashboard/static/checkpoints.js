/** The checkpoints of a run, as its events report them, and the choice of one. */
import { h, select } from './dom.js'
import { clock } from './format.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').Checkpoint} Checkpoint
 */

/**
 * @param {AgentEvent & { kind: 'checkpoint' }} event
 * @returns {Checkpoint}
 */
export function checkpointOf({ payload, seq, iteration, ts }) {
  return { checkpoint_id: payload.checkpoint_id, reason: payload.reason, seq, iteration, ts }
}

/** @param {Checkpoint} checkpoint */
export function checkpointName({ reason, iteration, ts }) {
  if (reason === 'start') return 'Start'
  if (reason === 'iteration') return `After iteration ${iteration}`
  if (reason === 'end') return 'End'
  if (reason === 'delegate') return `For a delegate at ${clock(ts)}`
  if (reason === 'merge') return `At the merge at ${clock(ts)}`
  if (reason === 'attempt') return 'Chosen attempt'
  return `Before the ${reason} at ${clock(ts)}`
}

/** A labelled list of checkpoints; those that come later are added to it. */
export class CheckpointSelect {
  element
  #select
  #fixed
  /** @type {HTMLOptionElement | null} */
  #unknown = null
  #known = new Set()

  /**
   * @param {string} id
   * @param {string} label
   * @param {readonly [value: string, name: string][]} fixed choices besides checkpoints
   * @param {(value: string) => void} chosen
   */
  constructor(id, label, fixed, chosen) {
    this.#fixed = fixed.length
    this.#select = select({ id, onchange: () => chosen(this.#select.value) }, fixed)
    this.element = h('div.choice', h('label', { for: id }, label), this.#select)
  }

  /** @param {Checkpoint} checkpoint */
  add(checkpoint) {
    const { checkpoint_id: value } = checkpoint
    // An equal tree has an equal id: nothing had changed since.
    if (this.#known.has(value)) return
    this.#known.add(value)
    const { value: chosen } = this.#select
    this.#select.append(h('option', { value }, checkpointName(checkpoint)))
    if (this.#unknown?.value !== value) return
    this.#unknown.remove()
    this.#unknown = null
    this.#select.value = chosen
  }

  /** @param {string} value a checkpoint that is not in the list is added to it */
  show(value) {
    this.#select.value = value
    if (this.#select.value === value) return
    this.#unknown?.remove()
    this.#unknown = h('option', { value }, `Checkpoint ${value.slice(0, 12)}`)
    this.#select.insertBefore(this.#unknown, this.#select.options[this.#fixed] ?? null)
    this.#select.value = value
  }
}
