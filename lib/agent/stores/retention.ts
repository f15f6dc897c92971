import { checkOptions, type OptionKinds } from '../../internal/options.js'

/**
 * Which ended runs are kept. An omitted or undefined field sets no bound. Runs that others started
 * are kept and dropped with the root of their tree, which is kept as long as one of them lives.
 */
export interface Retention {
  /** The number of ended roots to keep; the oldest by creation are dropped first. */
  readonly runs?: number | undefined
  /** Roots that ended more days ago are dropped. */
  readonly days?: number | undefined
}

const RETENTION: OptionKinds<Retention> = { runs: 'number', days: 'number' }

/** @throws TypeError that names an invalid part of `retain`. */
export function checkRetention(retain: Retention): Retention {
  checkOptions(retain, RETENTION, 'retain')
  const { runs, days } = retain
  if (runs !== undefined && !(Number.isInteger(runs) && runs >= 0)) {
    throw new TypeError(`retain.runs must be an integer of 0 or more, got ${runs}`)
  }
  if (days !== undefined && !(days >= 0)) {
    throw new TypeError(`retain.days must be 0 or more, got ${days}`)
  }
  return { ...retain }
}
