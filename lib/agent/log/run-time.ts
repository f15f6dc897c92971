/**
 * The time of one run, in the process that writes its log.
 *
 * 1. Work and waits at gates are measured by the steady clock: setting the time of day changes
 *    neither.
 * 2. `ts` of records is the time of day, and advances at least as much as the steady clock: while
 *    the time of day is behind, after it was set back, `ts` continues without it.
 * 3. What `ts` advances more than the work took is idle time: the run waited, no process drove it,
 *    the machine was suspended, or the time of day was set forward. Each record has its idle time
 *    (`idle_ms`), so the log alone tells how long earlier processes worked.
 *
 * @module
 */
import { steadyNow, type Clock } from '../../internal/time.js'
import type { Gate } from '../run-details.js'

/** When a record is written. */
export interface Moment {
  /** Float seconds since the epoch. */
  readonly ts: number
  /** Milliseconds by the steady clock. */
  readonly steadyMs: number
  /** As `steadyMs`, but stands still while the run waits. */
  readonly workMs: number
}

/** A gate that this process knows. */
export interface OpenGate {
  readonly gateId: string
  /** When it expires, in milliseconds by the steady clock. */
  readonly expiresAt: number
}

/** See the comment of this file. */
export class RunTime {
  readonly #clock: Clock
  /** Of the last record, or when this process began to work on the run. */
  #last: Moment
  /** Waits under way, and since when (by the steady clock) there is one. */
  #waits = 0
  #waitingSince = 0
  /** Milliseconds of waits that are over. */
  #waitedMs = 0
  #gate: OpenGate | null

  /**
   * Continues a log whose last record has `lastTs` (float seconds). `gate`: when its open gate
   * expires by the steady clock, where this process knows.
   */
  constructor(clock: Clock, lastTs: number, gate: OpenGate | null) {
    this.#clock = clock
    this.#gate = gate
    const steadyMs = steadyNow(clock)
    this.#last = { ts: lastTs, steadyMs, workMs: steadyMs }
  }

  /** The moment of a record that is written now. */
  read(): Moment {
    const steadyMs = steadyNow(this.#clock)
    const waitedMs = this.#waitedMs + (this.#waits > 0 ? steadyMs - this.#waitingSince : 0)
    const least = this.#last.ts + (steadyMs - this.#last.steadyMs) / 1000
    const ts = Math.max(this.#clock.now() / 1000, least)
    return { ts, steadyMs, workMs: steadyMs - waitedMs }
  }

  /** The time by which budgets are measured (epoch ms): that of the last record, and work since. */
  get budgetNow(): number {
    return this.#last.ts * 1000 + this.read().workMs - this.#last.workMs
  }

  /** Idle milliseconds between the last record and `moment`. */
  idleMs({ ts, workMs }: Moment): number {
    return Math.max(0, (ts - this.#last.ts) * 1000 - (workMs - this.#last.workMs))
  }

  /** Called with the moment of each record. */
  advance(moment: Moment): void {
    this.#last = moment
  }

  beginWait(): void {
    if (this.#waits === 0) this.#waitingSince = steadyNow(this.#clock)
    this.#waits += 1
  }

  /** Returns whether no other wait is under way. */
  endWait(): boolean {
    this.#waits -= 1
    if (this.#waits > 0) return false
    this.#waitedMs += steadyNow(this.#clock) - this.#waitingSince
    return true
  }

  /**
   * Milliseconds until a gate expires; null if it never does. The first call for a gate compares
   * its deadline with the time of day; from then on, the steady clock counts.
   */
  untilExpiry({ gate_id: gateId, deadline }: Pick<Gate, 'gate_id' | 'deadline'>): number | null {
    if (deadline === null) return null
    if (this.#gate?.gateId !== gateId)
      this.#gate = { gateId, expiresAt: expiryOf(deadline, this.#clock) }
    return this.#gate.expiresAt - steadyNow(this.#clock)
  }
}

/** When a deadline (ISO 8601) is reached, by the steady clock, as long as nobody sets the time. */
export function expiryOf(deadline: string, clock: Clock): number {
  return steadyNow(clock) + Date.parse(deadline) - clock.now()
}
