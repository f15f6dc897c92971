import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { abortListeners, raceAbort } from '../../lib/internal/time.js'

test('work that settles first wins, and all races of a signal share one listener', async () => {
  const { signal } = new AbortController()
  for (let i = 0; i < 10; i++) {
    assert.equal(await raceAbort(Promise.resolve(1), signal), 1)
    await assert.rejects(raceAbort(Promise.reject(new Error('no')), signal), /no/)
  }
  assert.equal(getEventListeners(signal, 'abort').length, 1)
})

test('listeners are called once with the reason, unless they were deleted before', () => {
  const stop = new AbortController()
  const called: unknown[] = []
  const second = (): unknown => called.push('second')
  abortListeners(stop.signal)
    .add((reason) => called.push('first', reason))
    .add(second)
    .add((reason) => called.push('third', reason))
    .delete(second)
  stop.abort('why')
  stop.signal.dispatchEvent(new Event('abort'))
  assert.deepEqual(called, ['first', 'why', 'third', 'why'])
})

test('an abort rejects with its reason, and a late failure of the work is handled', async () => {
  const stop = new AbortController()
  let fail: (error: Error) => void = () => undefined
  const race = raceAbort(new Promise((_, reject) => (fail = reject)), stop.signal)
  stop.abort(new Error('stopped'))
  await assert.rejects(race, /stopped/)
  fail(new Error('late'))
  await assert.rejects(raceAbort(Promise.reject(new Error('early')), stop.signal), /stopped/)
})
