import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { HealthCheck } from '../../../../lib/http/transports/http2/health-check.js'
import { HeldTimers } from '../../../helpers/held-timers.js'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A check every 4 321 ms of a fake connection, and a record of its actions. */
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
    () => void did.push('ping'),
    () => void did.push('dead'),
  )
  return { socket, did, check }
}

test('a silent connection is pinged, and declared dead when it stays silent', async () => {
  using silences = new HeldTimers(4_321)
  const { socket, did } = watch()
  socket.bytesRead = 9
  silences.fire()
  await turn()
  assert.deepEqual(did, [])
  silences.fire()
  await turn()
  assert.deepEqual(did, ['ping'])
  silences.fire()
  await turn()
  assert.deepEqual(did, ['ping', 'dead'])
  assert.equal(silences.size, 0)
})

test('a reply that is still unread when the time is over counts', async () => {
  using silences = new HeldTimers(4_321)
  const { socket, did } = watch()
  silences.fire()
  silences.fire()
  // Bytes that the event loop reads after the timers have fired.
  socket.bytesRead = 17
  await turn()
  assert.deepEqual(did, ['ping'])
  silences.fire()
  silences.fire()
  await turn()
  assert.deepEqual(did, ['ping', 'ping', 'dead'])
})

test('a stopped check declares nothing dead', async () => {
  using silences = new HeldTimers(4_321)
  const { did, check } = watch()
  silences.fire()
  silences.fire()
  check.stop()
  await turn()
  assert.deepEqual(did, ['ping'])
  assert.equal(silences.size, 0)
})
