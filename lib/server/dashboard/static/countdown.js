/** The time left to answer a gate: said aloud only at a few marks, and never with the focus. */
import { serviceNow } from './clock.js'
import { announce, fill, h, setText } from './dom.js'
import { plural } from './format.js'

/** Seconds before the end at which users of screen readers are told. */
const MARKS = [300, 60, 10]
const END = ', or the run is aborted.'

export class Countdown {
  #time = h('time')
  element = h('p.countdown', { hidden: true })
  /** Milliseconds since the epoch. */
  #deadline = 0
  #left = 0
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer

  /** @param {string | null} deadline ISO 8601; null stops it */
  show(deadline) {
    this.stop()
    this.element.hidden = deadline === null
    if (deadline === null) return
    fill(this.element, 'Answer within ', this.#time, END)
    this.#deadline = Date.parse(deadline)
    this.#left = this.#seconds()
    this.#time.dateTime = deadline
    this.#tick()
    this.#timer = setInterval(() => this.#tick(), 1_000)
  }

  stop() {
    clearInterval(this.#timer)
  }

  #seconds() {
    return Math.ceil((this.#deadline - serviceNow()) / 1_000)
  }

  #tick() {
    const left = this.#seconds()
    const passed = MARKS.find((mark) => this.#left > mark && left <= mark && left > 0)
    this.#left = left
    this.element.classList.toggle('soon', left <= 60)
    if (left <= 0) {
      this.stop()
      return setText(this.element, 'The time to answer is over: the run is being aborted.')
    }
    setText(this.#time, timeLeft(left))
    if (passed !== undefined) announce(`${timeLeft(left)} left to answer the gate`)
  }
}

/** @param {number} seconds */
export function timeLeft(seconds) {
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(seconds / unit))
  if (days) return `${plural(days, 'day')} ${(hours ?? 0) % 24} h`
  if (hours) return `${hours} h ${(minutes ?? 0) % 60} min`
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}
