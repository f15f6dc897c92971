import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../lib/agent/testing/manual-clock.js'
import { systemClock } from '../../../lib/internal/clock.js'

test('the system clock tells the time of day and goes on with fractions', () => {
  const before = Date.now()
  const readings = Array.from({ length: 1_000 }, () => systemClock.now())
  const after = Date.now()
  assert.ok(readings[0]! >= before - 4 && readings.at(-1)! <= after + 4)
  assert.ok(readings.some((reading) => reading % 1 !== 0))
})

test('the system clock fires a timer, and not one that was cancelled', async () => {
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

test('the system clock does not fire at once for delays that overflow a Node timer', async () => {
  let fired = false
  const timer = systemClock.setTimeout(() => (fired = true), 2 ** 31 + 10)
  // One that overflows is due after 1 ms in Node, and so before one of 1 ms that was set after it.
  await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 1))
  timer.cancel()
  assert.equal(fired, false)
})

test('a manual clock fires due timers in the order of their times, each at its own time', () => {
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

test('a manual clock tells when the code under test has begun to wait', async () => {
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
