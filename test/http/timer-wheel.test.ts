import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Timer,
  TimerWheel,
  type WheelClock,
  type WheelTimeout,
} from '../../lib/http/timer-wheel.js'
import { Random } from '../helpers/random.js'

/** A clock that the test moves. */
class ManualClock implements WheelClock {
  ms = 12_345.678
  /** Whether the one timeout keeps the process running; null without one. */
  held: boolean | null = null
  #callback: (() => void) | null = null
  #at = Infinity
  #afterPoll: (() => void)[] = []

  now(): number {
    return this.ms
  }

  setTimeout(callback: () => void, ms: number): WheelTimeout {
    assert.equal(this.#callback, null, 'a second timeout')
    this.#callback = callback
    this.#at = this.ms + ms
    this.held = true
    return {
      ref: () => (this.held = true),
      unref: () => (this.held = false),
      close: () => this.#clear(),
    }
  }

  afterPoll(callback: () => void): void {
    this.#afterPoll.push(callback)
  }

  /** One turn of the event loop: timers, then `poll`, then what waits for the poll. */
  turn(poll: () => void = () => {}): void {
    const callback = this.ms >= this.#at ? this.#callback : null
    if (callback !== null) {
      this.#clear()
      callback()
    }
    poll()
    for (const after of this.#afterPoll.splice(0)) after()
  }

  /** Lets `ms` pass without blocking the thread: the event loop turns whenever a timeout is due. */
  pass(ms: number): void {
    const end = this.ms + ms
    for (; this.#at <= end; this.turn()) this.ms = Math.max(this.ms, this.#at)
    this.ms = end
    this.turn()
  }

  #clear(): void {
    this.#callback = null
    this.#at = Infinity
    this.held = null
  }
}

/** A wheel, and a way to make timers that log when they fire. */
function wheelOf(): {
  readonly clock: ManualClock
  readonly wheel: TimerWheel
  readonly log: string[]
  timer(name: string, traits?: { keepsAlive?: boolean; patient?: boolean }): Timer
} {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const log: string[] = []
  const timer = (name: string, traits = {}): Timer =>
    new Timer((ms) => log.push(`${name} ${ms}`), { ...traits, wheel })
  return { clock, wheel, log, timer }
}

test('a timer fires once, with its limit, never early and at most 10 ms late', () => {
  for (const ms of [0.5, 1, 9.9, 10, 99, 5_000, 5_119, 60_000, 3_600_000]) {
    const { clock, log, timer } = wheelOf()
    timer('a').start(ms)
    clock.pass(ms - 0.4)
    assert.deepEqual(log, [], `${ms} ms`)
    clock.pass(12)
    assert.deepEqual(log, [`a ${ms}`])
    clock.pass(2 * ms + 100)
    assert.deepEqual(log, [`a ${ms}`])
  }
})

test('a restarted timer counts from its last start, a stopped one not at all', () => {
  const { clock, log, timer } = wheelOf()
  const [a, b, c] = [timer('a'), timer('b'), timer('c')]
  for (const one of [a, b, c]) one.start(100)
  clock.pass(60)
  a.start(100)
  b.stop()
  c.start(10)
  clock.pass(30)
  assert.deepEqual(log, ['c 10'])
  b.start(5)
  clock.pass(30)
  assert.deepEqual(log, ['c 10', 'b 5'])
  clock.pass(60)
  assert.deepEqual(log, ['c 10', 'b 5', 'a 100'])
  b.start(null)
  c.start(Infinity)
  clock.pass(1e7)
  assert.equal(log.length, 3)
})

test('a due timer waits for a poll, which may stop or restart it', () => {
  const { clock, log, timer } = wheelOf()
  const [a, b, c] = [timer('a'), timer('b'), timer('c')]
  for (const one of [a, b, c]) one.start(100)
  clock.ms += 115
  clock.turn(() => {
    assert.deepEqual(log, [], 'nothing fires before the poll')
    a.stop()
    b.start(100)
  })
  assert.deepEqual(log, ['c 100'])
  clock.pass(112)
  assert.deepEqual(log, ['c 100', 'b 100'])
})

test('a due timer waits while polls bring bytes, but not for ever', () => {
  const { clock, wheel, log, timer } = wheelOf()
  timer('a').start(100)
  clock.ms += 115
  for (let turn = 0; turn < 3; turn++) clock.turn(() => wheel.arrivals++)
  assert.deepEqual(log, [])
  clock.turn()
  assert.deepEqual(log, ['a 100'])
  timer('b').start(100)
  clock.ms += 115
  for (let turn = 0; turn < 16; turn++) clock.turn(() => wheel.arrivals++)
  assert.equal(log.length, 1)
  clock.turn(() => wheel.arrivals++)
  assert.deepEqual(log, ['a 100', 'b 100'])
})

test('after a blocked thread a patient timer gets as much time again, up to its limit, once', () => {
  const { clock, log, timer } = wheelOf()
  timer('short').start(100)
  timer('long').start(1_000)
  timer('total', { patient: false }).start(100)
  clock.ms += 1_300
  clock.turn()
  assert.deepEqual(log, ['total 100'])
  clock.pass(99)
  assert.deepEqual(log, ['total 100'])
  clock.pass(12)
  assert.deepEqual(log, ['total 100', 'short 100'])
  clock.pass(170)
  assert.equal(log.length, 2)
  clock.ms += 500
  clock.turn()
  assert.deepEqual(log, ['total 100', 'short 100', 'long 1000'])
})

test('only a running timer that must keep the process running does', () => {
  const { clock, timer } = wheelOf()
  const [background, wait] = [timer('a'), timer('b', { keepsAlive: true })]
  background.start(1_000)
  assert.equal(clock.held, false)
  wait.start(2_000)
  assert.equal(clock.held, true)
  wait.stop()
  assert.equal(clock.held, false)
  wait.start(2_000)
  clock.pass(1_500)
  assert.equal(clock.held, true)
  clock.pass(1_000)
  assert.equal(clock.held, null)
})

test('a callback that throws does not keep other timers from firing', () => {
  const { clock, wheel, log, timer } = wheelOf()
  const failing = new Timer(() => assert.fail('a fault'), { wheel })
  failing.start(100)
  timer('a').start(100)
  clock.ms += 115
  assert.throws(() => clock.turn(), /a fault/)
  clock.turn()
  assert.deepEqual(log, ['a 100'])
})

test('random timers fire as in a model that looks at all of them at each moment', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const generator = new Random(seed)
    const random = (): number => generator.next()
    const { clock, wheel } = wheelOf()
    const due = new Map<Timer, number>()
    const timers = Array.from({ length: 20 }, (_, index) => {
      const timer: Timer = new Timer(
        () => {
          const late = clock.ms - (due.get(timer) ?? Infinity)
          assert.ok(late >= 0 && late <= 12, `seed ${seed}, timer ${index}: ${late} ms late`)
          due.delete(timer)
        },
        { wheel, keepsAlive: index % 3 === 0 },
      )
      return timer
    })
    for (let step = 0; step < 200; step++) {
      const timer = timers[Math.floor(random() * timers.length)]!
      const ms = 1 + Math.floor(10_000 * random() ** 4)
      const action = random()
      if (action < 0.6) {
        timer.start(ms)
        due.set(timer, clock.ms + ms)
      } else {
        due.delete(timer)
        if (action < 0.8) timer.stop()
        else timer.clear()
      }
      clock.pass(200 * random() ** 3)
      for (const at of due.values()) assert.ok(clock.ms - at <= 12, `seed ${seed}, step ${step}`)
    }
    clock.pass(20_000)
    assert.equal(due.size, 0)
    assert.equal(clock.held, null)
  }
})
