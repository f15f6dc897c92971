/** What the log of a run tells about its gates: what was there before each, and how it closed. */
import { by } from './entry.js'
import { endReason } from './format.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

export class GateHistory {
  /** The newest checkpoint, and the one at the last gate. @type {string | null} */
  #newest = null
  /** @type {string | null} */
  #atGate = null
  /** @type {{ gateId: string, query: string } | null} */
  #open = null
  /**
   * The gate that was closed last: why, and the feedback that counts; null for none.
   *
   * @type {{ gateId: string, why: string, said: string | null } | null}
   */
  closed = null

  /** @param {AgentEvent} event */
  add({ kind, payload }) {
    if (kind === 'checkpoint' && payload.reason !== 'apply') this.#newest = payload.checkpoint_id
    else if (kind === 'human_check_required') {
      const query = this.#atGate === null ? '' : `?from=${encodeURIComponent(this.#atGate)}`
      this.#open = { gateId: payload.gate_id, query }
      this.#atGate = this.#newest
    } else if (kind === 'human_check_response') {
      const { gate_id: gateId, decision, decided_by, feedback = '' } = payload
      this.#close(gateId, `The gate was answered${by(decided_by)}: ${decision}.`, feedback)
    } else if (kind === 'run_end' && this.#open !== null)
      this.#close(this.#open.gateId, `The run ended: ${endReason(payload.end_reason)}.`, null)
  }

  /**
   * What to compare at a gate: the query of the changes since the gate before it.
   *
   * @param {string} gateId
   */
  opened(gateId) {
    return this.#open?.gateId === gateId ? this.#open : null
  }

  /** @param {string} gateId @param {string} why @param {string | null} said */
  #close(gateId, why, said) {
    this.#open = null
    this.closed = { gateId, why, said }
  }
}
