import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import { onAbort, raceAbort, sleep } from '../../lib/internal/abort.js'

test('work that settles first settles the race, and any number of races share one listener', async () => {
  const { signal } = new AbortController()
  for (let i = 0; i < 10; i++) {
    assert.equal(await raceAbort(Promise.resolve(1), signal), 1)
    await assert.rejects(raceAbort(Promise.reject(new Error('no')), signal), /no/)
  }
  assert.equal(getEventListeners(signal, 'abort').length, 1)
})

test('whoever listens is called once, and not after the wish was taken back', () => {
  const stop = new AbortController()
  const called: string[] = []
  onAbort(stop.signal, () => called.push('first'))
  const forget = onAbort(stop.signal, () => called.push('second'))
  onAbort(stop.signal, () => called.push('third'))
  forget()
  stop.abort()
  stop.signal.dispatchEvent(new Event('abort'))
  assert.deepEqual(called, ['first', 'third'])
})

test('an abort rejects with its reason, and late failure of the work is no unhandled rejection', async () => {
  const stop = new AbortController()
  let fail: (error: Error) => void = () => undefined
  const race = raceAbort(new Promise((_, reject) => (fail = reject)), stop.signal)
  stop.abort(new Error('stopped'))
  await assert.rejects(race, /stopped/)
  fail(new Error('late'))
  await assert.rejects(raceAbort(Promise.reject(new Error('early')), stop.signal), /stopped/)
})

test('a sleep ends with its time or with the signal', async () => {
  const clock = new ManualClock(0)
  const stop = new AbortController()
  const slept = sleep(clock, 1_000, stop.signal)
  clock.advance(1_000)
  await slept
  const cut = sleep(clock, 1_000, stop.signal)
  stop.abort(new Error('up'))
  await assert.rejects(cut, /up/)
  await assert.rejects(sleep(clock, 1, stop.signal), /up/)
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
})
