/**
 * The clock of the service, by which its times are counted: the clock of a reader may be wrong by
 * minutes, or by the hours of another zone.
 */

/** Milliseconds within which the clocks agree: the service tells its own in whole seconds. */
const AGREED = 2_000

/** What is to be added to the clock of this machine, in milliseconds. */
let offset = 0

/**
 * The service has told its time.
 *
 * @param {string | null} date header of an answer
 * @param {number} asked when the call was made, by the clock of this machine
 */
export function answered(date, asked) {
  const told = Date.parse(date ?? '')
  if (Number.isNaN(told)) return
  // It was told somewhere in between, and is cut to its second.
  const found = told + 500 - (asked + Date.now()) / 2
  const isAgreed = Math.abs(found) <= AGREED
  // What is only the time that an answer took would make a countdown jump.
  if (isAgreed || Math.abs(found - offset) > AGREED) offset = isAgreed ? 0 : found
}

/** Milliseconds since the epoch. */
export function serviceNow() {
  return Date.now() + offset
}
