import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { HealthCheck } from '../../../../lib/http/transports/http2/health-check.js'
import { HeldTimers } from '../../../helpers/held-timers.js'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A check every 4 321 ms of a connection that is a count of octets, and what it did so far. */
function watch(): {
  readonly socket: { bytesRead: number }
  readonly did: string[]
  readonly check: HealthCheck
} {
  const did: string[] = []
  const socket = { bytesRead: 0 }
  const check = new HealthCheck(
    socket as Socket,
    4_321,
    () => void did.push('asked'),
    () => void did.push('gave up'),
  )
  return { socket, did, check }
}

test('silence is asked about, and given up when it goes on', async () => {
  using silences = new HeldTimers(4_321)
  const { socket, did } = watch()
  socket.bytesRead = 9
  silences.fire()
  await turn()
  assert.deepEqual(did, [])
  silences.fire()
  await turn()
  assert.deepEqual(did, ['asked'])
  silences.fire()
  await turn()
  assert.deepEqual(did, ['asked', 'gave up'])
  assert.equal(silences.size, 0)
})

test('an answer that waits to be read when the time is over counts', async () => {
  using silences = new HeldTimers(4_321)
  const { socket, did } = watch()
  silences.fire()
  silences.fire()
  // What the poll behind the timers reads.
  socket.bytesRead = 17
  await turn()
  assert.deepEqual(did, ['asked'])
  silences.fire()
  silences.fire()
  await turn()
  assert.deepEqual(did, ['asked', 'asked', 'gave up'])
})

test('one that was stopped gives nothing up any more', async () => {
  using silences = new HeldTimers(4_321)
  const { did, check } = watch()
  silences.fire()
  silences.fire()
  check.stop()
  await turn()
  assert.deepEqual(did, ['asked'])
  assert.equal(silences.size, 0)
})
