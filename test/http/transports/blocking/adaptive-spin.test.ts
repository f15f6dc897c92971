import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { AdaptiveSpin } from '../../../../lib/http/transports/blocking/worker-channel.js'

/** Simulates 2048 waits of these lengths, and counts those of the last 1024 that spun. */
function spins(spin: AdaptiveSpin, spun: (row: number) => number, sleptMs: number): number {
  let count = 0
  let row = 0
  for (let wait = 0; wait < 2048; wait++) {
    const spinMs = spin.next()
    row = spinMs > 0 ? row + 1 : 0
    if (wait >= 1024 && spinMs > 0) count++
    spin.record(spinMs > 0 ? spun(row) : sleptMs)
  }
  return count
}

const alone = availableParallelism() === 1
const skip = alone && 'one processor'
/** Of 64 blocks, two are tried the other way. */
const ALWAYS = 1024 - 32
const NEVER = 32

test('waits spin where that makes them shorter, and only then', { skip }, () => {
  const spin = new AdaptiveSpin()
  assert.equal(spins(spin, () => 0.1, 0.2), ALWAYS)
  // A busy machine: the spin takes processor time from the server and the worker.
  assert.equal(spins(spin, () => 0.4, 0.2), NEVER)
  // A distant server: the spin makes no difference.
  assert.equal(spins(spin, () => 20, 20), NEVER)
  assert.equal(spins(spin, () => 0.1, 0.2), ALWAYS)
})

test('a spin that pays only after others is found to pay', { skip }, () => {
  const spin = new AdaptiveSpin()
  assert.equal(spins(spin, () => 0.4, 0.2), NEVER)
  assert.equal(spins(spin, (row) => (row > 3 ? 0.08 : 0.25), 0.2), ALWAYS)
})

test('one slow response does not change the choice', { skip }, () => {
  const spin = new AdaptiveSpin()
  spins(spin, () => 0.1, 0.2)
  spin.record(5_000)
  assert.equal(spins(spin, () => 0.1, 0.2), ALWAYS)
})
