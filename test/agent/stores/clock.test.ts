import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import {
  cautiousTime, steadyNow, steadyTime, systemClock,
} from '../../../lib/internal/time.js'
import { HOUR } from '../../helpers/shifted-clock.js'

test('the system clock returns the time of day in fractions of milliseconds', () => {
  const before = Date.now()
  const readings = Array.from({ length: 1_000 }, () => systemClock.now())
  const after = Date.now()
  assert.ok(readings[0]! >= before - 4 && readings.at(-1)! <= after + 4)
  assert.ok(readings.some((reading) => reading % 1 !== 0))
})

test('the system clock fires a timer unless it was cancelled', async () => {
  const fired: string[] = []
  systemClock.setTimeout(() => fired.push('cancelled'), 0).cancel()
  await new Promise<void>((resolve) => {
    systemClock.setTimeout(() => {
      fired.push('kept')
      resolve()
    }, 1)
  })
  assert.deepEqual(fired, ['kept'])
})

test('the system clock does not fire early for a delay that overflows a Node timer', async () => {
  let fired = false
  const timer = systemClock.setTimeout(() => (fired = true), 2 ** 31 + 10)
  // Node turns a delay that overflows into 1 ms, which would fire before this later timer.
  await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 1))
  timer.cancel()
  assert.equal(fired, false)
})

test('a manual clock fires due timers in order of time, each at its own time', () => {
  const clock = new ManualClock(1_000)
  const fired: string[] = []
  const note = (name: string) => () => void fired.push(`${name}@${clock.now()}`)
  clock.setTimeout(note('c'), 30)
  clock.setTimeout(note('a'), 10)
  clock.setTimeout(note('b'), 10)
  clock.setTimeout(() => clock.setTimeout(note('nested'), 5), 10)
  clock.setTimeout(note('never'), 20).cancel()
  clock.advance(9)
  assert.deepEqual(fired, [])
  clock.advance(21)
  assert.deepEqual(fired, ['a@1010', 'b@1010', 'nested@1015', 'c@1030'])
  assert.equal(clock.now(), 1_030)
  assert.equal(clock.pending, 0)
})

test('whenPending() of a manual clock resolves once the code under test waits', async () => {
  const clock = new ManualClock()
  const waiting = clock.whenPending(2)
  clock.setTimeout(() => {}, 5)
  queueMicrotask(() => clock.setTimeout(() => {}, 5))
  await waiting
  await clock.whenPending()
  assert.equal(clock.pending, 2)
})

test('a manual clock does not go back', () => {
  assert.throws(() => new ManualClock().advance(-1), RangeError)
})

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`the steady clock does not follow the time of day: ${jump / HOUR} h`, (t) => {
    const steady = steadyTime(systemClock)
    const cautious = cautiousTime(systemClock)
    const began = [steadyNow(systemClock), steady(), cautious()]
    const { now } = Date
    t.mock.method(Date, 'now', () => now() + jump)
    const moved = systemClock.now() - began[1]!
    assert.ok(Math.abs(moved - jump) < HOUR)
    for (const [i, ms] of [steadyNow(systemClock), steady()].entries()) {
      assert.ok(ms >= began[i]! && ms < began[i]! + HOUR)
    }
    // For ages: never ahead of either.
    assert.ok(Math.abs(cautious() - began[2]! - Math.min(0, jump)) < HOUR)
  })
}

test('a clock without `steady()` is taken for steady', () => {
  const clock = { now: () => 7, setTimeout: systemClock.setTimeout }
  assert.equal(steadyNow(clock), 7)
})
