import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { AdaptiveSpin } from '../../../../lib/http/transports/blocking/adaptive-spin.js'

/** Simulates 640 waits of these lengths, and counts those of the last 320 that spun. */
function spins(spin: AdaptiveSpin, spunMs: number, sleptMs: number): number {
  let spun = 0
  for (let wait = 0; wait < 640; wait++) {
    const spinMs = spin.next()
    if (wait >= 320 && spinMs > 0) spun++
    spin.record(spinMs, spinMs > 0 ? spunMs : sleptMs)
  }
  return spun
}

const alone = availableParallelism() === 1

test(
  'waits spin where that makes them shorter, and only then',
  { skip: alone && 'one processor' },
  () => {
    const spin = new AdaptiveSpin()
    assert.equal(spins(spin, 0.1, 0.2), 310)
    // A busy machine: the spin takes processor time from the server and the worker.
    assert.equal(spins(spin, 0.4, 0.2), 10)
    // A distant server: the spin makes no difference.
    assert.equal(spins(spin, 20, 20), 10)
    assert.equal(spins(spin, 0.1, 0.2), 310)
  },
)

test('one slow response does not change the choice', { skip: alone && 'one processor' }, () => {
  const spin = new AdaptiveSpin()
  spins(spin, 0.1, 0.2)
  spin.record(0.4, 5_000)
  assert.equal(spins(spin, 0.1, 0.2), 310)
})
