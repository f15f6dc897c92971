/**
 * The clock of every deadline in this module: one timer wheel, and one timer of Node behind it.
 *
 * @module
 */

/** Time as a {@link TimerWheel} sees it; tests pass a manual one. */
export interface WheelClock {
  /** Milliseconds that only grow; `performance.now()`. */
  now(): number
  setTimeout(callback: () => void, ms: number): WheelTimeout
  /** Calls `callback` once the event loop has looked for I/O, without waiting for any. */
  afterPoll(callback: () => void): void
}

/** What {@link WheelClock.setTimeout} returns, as Node's own timers have it. */
export interface WheelTimeout {
  ref(): unknown
  unref(): unknown
  close(): unknown
}

/** Width of a slot in ms. */
const TICK_MS = 10
/** A power of two. A timer that is due beyond the last slot waits there, and is moved on. */
const SLOTS = 512
/** A timer that is seen later than this after it was due was delayed by a blocked thread. */
const BLOCKED_MS = 3 * TICK_MS
/** Turns of the event loop for which a due timer waits while each of them brings bytes. */
const MAX_LOOKS = 16

const systemClock: WheelClock = {
  now: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  afterPoll: (callback) => void setImmediate(callback),
}

/**
 * Timers that are started and stopped far more often than they fire.
 *
 * 1. A timer never fires early. It fires at most 10 ms and one turn of the event loop late, or as
 *    late as the thread was blocked.
 * 2. A timer that is due fires only if it is still due after the event loop has looked for I/O: the
 *    bytes that it waits for may have arrived unread. While such turns of the loop bring bytes, it
 *    waits for up to 16 of them.
 * 3. When the thread was blocked as a limit passed, a *patient* timer is due again after as much
 *    time as it is late, at most its limit, once: nobody could answer who was not listened to.
 * 4. Stopping a timer leaves it in its slot, so that starting it again is two field writes. It
 *    leaves the wheel when its slot comes, or by `clear()`.
 */
export class TimerWheel {
  /** Counts reads of sockets. Whatever feeds bytes to a connection increments it. */
  arrivals = 0
  readonly #clock: WheelClock
  /** Heads of the lists of timers, by tick modulo {@link SLOTS}. */
  readonly #slots: (Timer | null)[] = Array.from({ length: SLOTS }, () => null)
  /** The last tick whose slot was emptied. */
  #tick = 0
  #size = 0
  /** How many of the timers keep the process running. */
  #holding = 0
  #due: Timer[] = []
  /** {@link TimerWheel.arrivals} when the due timers were last looked at. */
  #arrivalsSeen = 0
  #looking = false
  #timeout: WheelTimeout | null = null
  /** The tick for which {@link #timeout} is set; Infinity without one. */
  #nextTick = Infinity

  constructor(clock: WheelClock = systemClock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  /** Puts `timer` into the slot in which it is due, or into the last one. @internal */
  link(timer: Timer, now: number): void {
    this.unlink(timer)
    if (this.#size === 0) this.#tick = Math.floor(now / TICK_MS)
    const wanted = Math.ceil(timer.dueAt / TICK_MS)
    const tick = Math.max(this.#tick + 1, Math.min(wanted, this.#tick + SLOTS - 1))
    const slot = tick & (SLOTS - 1)
    const head = this.#slots[slot]!
    timer.tick = tick
    timer.next = head
    if (head !== null) head.previous = timer
    this.#slots[slot] = timer
    this.#size++
    if (timer.keepsAlive && ++this.#holding === 1) this.#timeout?.ref()
    if (tick < this.#nextTick) this.#arm(tick, now)
  }

  /** Takes `timer` out of its slot, if it is in one. @internal */
  unlink(timer: Timer): void {
    if (timer.tick === 0) return
    const { previous, next } = timer
    if (previous !== null) previous.next = next
    else this.#slots[timer.tick & (SLOTS - 1)] = next
    if (next !== null) next.previous = previous
    timer.tick = 0
    timer.previous = null
    timer.next = null
    this.#size--
    if (timer.keepsAlive && --this.#holding === 0) this.#timeout?.unref()
  }

  #arm(tick: number, now: number): void {
    this.#timeout?.close()
    this.#nextTick = tick
    const ms = Math.max(1, Math.ceil(tick * TICK_MS - now))
    this.#timeout = this.#clock.setTimeout(this.#onTick, ms)
    if (this.#holding === 0) this.#timeout.unref()
  }

  /** Empties the slots up to the present: timers in them are stopped, due, or moved on. */
  readonly #onTick = (): void => {
    const now = this.now()
    this.#timeout = null
    // Timers that are moved on set no timeout: slots that they do not know of may come first.
    this.#nextTick = 0
    const present = Math.floor(now / TICK_MS)
    const first = Math.max(this.#tick + 1, present - SLOTS + 1)
    this.#tick = Math.max(this.#tick, present)
    for (let tick = first; tick <= present; tick++) {
      let timer = this.#slots[tick & (SLOTS - 1)]!
      while (timer !== null) {
        const { next } = timer
        this.#visit(timer, now)
        timer = next!
      }
    }
    if (this.#due.length > 0 && !this.#looking) this.#lookAgain()
    this.#armNext(now)
  }

  #visit(timer: Timer, now: number): void {
    this.unlink(timer)
    if (timer.dueAt === Infinity) return
    const late = now - timer.dueAt
    if (late < 0) return this.link(timer, now)
    if (late > BLOCKED_MS && timer.postpone(now, late)) return this.link(timer, now)
    timer.looks = 0
    this.#due.push(timer)
  }

  /** Schedules the next slot that has timers. */
  #armNext(now: number): void {
    this.#nextTick = Infinity
    if (this.#size === 0) return
    let tick = this.#tick + 1
    while (this.#slots[tick & (SLOTS - 1)] === null) tick++
    this.#arm(tick, now)
  }

  #lookAgain(): void {
    this.#looking = true
    this.#arrivalsSeen = this.arrivals
    this.#clock.afterPoll(this.#look)
  }

  /** Called after a poll for I/O: fires what is still due. */
  readonly #look = (): void => {
    this.#looking = false
    const arrived = this.arrivals !== this.#arrivalsSeen
    const due = this.#due
    this.#due = []
    const now = this.now()
    try {
      for (let timer = due.shift(); timer !== undefined; timer = due.shift()) {
        if (timer.dueAt > now || timer.tick !== 0) continue
        if (arrived && timer.looks++ < MAX_LOOKS) this.#due.push(timer)
        else timer.expire()
      }
    } finally {
      // What is left if one of them has thrown.
      this.#due.push(...due)
      if (this.#due.length > 0) this.#lookAgain()
    }
  }
}

/** The wheel of this thread. */
export const timerWheel: TimerWheel = new TimerWheel()

/** How a {@link Timer} differs from the usual one. */
export interface TimerTraits {
  /** Keeps the process running while it is started; for waits that have no socket to do so. */
  readonly keepsAlive?: boolean
  /** Grants more time after the thread was blocked: see {@link TimerWheel}. @defaultValue true */
  readonly patient?: boolean
  readonly wheel?: TimerWheel
}

/** One deadline, started and stopped many times. */
export class Timer {
  /** When it fires; Infinity while it is stopped. @internal */
  dueAt: number = Infinity
  /** The slot that it is in; 0 for none. @internal */
  tick = 0
  /** Its neighbours in the slot. @internal */
  previous: Timer | null = null
  next: Timer | null = null
  /** Turns of the event loop for which it has been due. @internal */
  looks = 0
  readonly keepsAlive: boolean
  readonly #fire: (ms: number) => void
  readonly #wheel: TimerWheel
  readonly #patient: boolean
  #ms = 0
  #postponed = false

  /** @param fire - Is passed the limit in ms. */
  constructor(fire: (ms: number) => void, traits: TimerTraits = {}) {
    this.#fire = fire
    this.#wheel = traits.wheel ?? timerWheel
    this.#patient = traits.patient ?? true
    this.keepsAlive = traits.keepsAlive ?? false
  }

  /**
   * Starts or restarts; `null` stops, since there is no limit.
   *
   * @param now - The present `performance.now()`, where the caller knows it already.
   */
  start(ms: number | null, now: number = this.#wheel.now()): void {
    if (ms === null) return this.stop()
    this.#ms = ms
    this.#postponed = false
    const dueAt = now + ms
    this.dueAt = dueAt
    // Its slot comes in time, or it is moved to an earlier one.
    if (this.tick === 0 || dueAt <= (this.tick - 1) * TICK_MS) this.#wheel.link(this, now)
  }

  stop(): void {
    this.dueAt = Infinity
    if (this.keepsAlive) this.#wheel.unlink(this)
  }

  /** Stops, and leaves the wheel at once, so that nothing refers to what it is a limit for. */
  clear(): void {
    this.dueAt = Infinity
    this.#wheel.unlink(this)
  }

  /** Gives a timer another chance whose moment passed while the thread was blocked. @internal */
  postpone(now: number, late: number): boolean {
    if (!this.#patient || this.#postponed) return false
    this.#postponed = true
    this.dueAt = now + Math.min(late, this.#ms)
    return true
  }

  /** @internal */
  expire(): void {
    this.dueAt = Infinity
    this.#fire(this.#ms)
  }
}
