import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { HealthCheck } from '../../../../lib/http/transports/http2/health-check.js'
import { HeldTimers } from '../../../helpers/held-timers.js'

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

test('a silent connection is pinged, and declared dead when it stays silent', () => {
  using silences = new HeldTimers(4_321)
  const { socket, did } = watch()
  socket.bytesRead = 9
  silences.fire()
  assert.deepEqual(did, [])
  silences.fire()
  assert.deepEqual(did, ['ping'])
  silences.fire()
  assert.deepEqual(did, ['ping', 'dead'])
  assert.equal(silences.size, 0)
})

test('a connection that has replied is pinged again when it is silent again', () => {
  using silences = new HeldTimers(4_321)
  const { socket, did } = watch()
  silences.fire()
  socket.bytesRead = 17
  silences.fire()
  assert.deepEqual(did, ['ping'])
  silences.fire()
  silences.fire()
  assert.deepEqual(did, ['ping', 'ping', 'dead'])
})

test('a stopped check pings no more', () => {
  using silences = new HeldTimers(4_321)
  const { did, check } = watch()
  silences.fire()
  check.stop()
  silences.fire()
  assert.deepEqual(did, ['ping'])
  assert.equal(silences.size, 0)
})
