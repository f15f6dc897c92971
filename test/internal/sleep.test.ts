import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import { LATE, sleep, within } from '../../lib/internal/time.js'

test('a sleep ends after its time or when the signal aborts', async () => {
  const clock = new ManualClock(0)
  const stop = new AbortController()
  const slept = sleep(1_000, stop.signal, clock)
  clock.advance(1_000)
  await slept
  const cut = sleep(1_000, stop.signal, clock)
  stop.abort(new Error('up'))
  await assert.rejects(cut, /up/)
  await assert.rejects(sleep(1, stop.signal, clock), /up/)
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
})

test('work has the time that it is given', async () => {
  const clock = new ManualClock(0)
  const never = new Promise<string>(() => undefined)
  const waited = within(1_000, never, clock)
  clock.advance(1_000)
  assert.equal(await waited, LATE)
  assert.equal(await within(1_000, Promise.resolve('done'), clock), 'done')
  await assert.rejects(within(1_000, Promise.reject(new Error('failed')), clock), /failed/)
  let fail: (error: Error) => void = () => undefined
  const late = within(1_000, new Promise((_, reject) => (fail = reject)), clock)
  clock.advance(1_000)
  assert.equal(await late, LATE)
  // Nobody is told any more: it would be an unhandled rejection.
  fail(new Error('too late'))
  assert.equal(clock.pending, 0)
})
