import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import { sleep } from '../../lib/internal/sleep.js'

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
