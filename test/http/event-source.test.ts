import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventSourceSession } from '../../lib/http/event-source.js'

test('a server cannot have its event stream opened again without a pause', () => {
  const session = new EventSourceSession({ reconnectMs: 0 })
  assert.equal(session.nextDelay(null), 0)
  session.requestOptions()
  session.feed(Buffer.from('retry: 0\n\n'))
  assert.equal(session.nextDelay(null), 100)
  session.feed(Buffer.from('retry: 5000\n\n'))
  assert.equal(session.nextDelay(null), 5_000)
})
