import assert from 'node:assert/strict'
import { behaviour, collect, useApp } from './both-clients.js'

useApp()

behaviour(
  'sse() resumes a broken stream, and ends at 204',
  async ({ client }) => {
    const events = await collect(client.sse('/events'))
    assert.deepEqual(events, [
      { event: 'tick', data: 'at\n0', id: '1', retry: 1 },
      { event: 'tick', data: 'at\n1', id: '2', retry: 1 },
      { event: 'tick', data: 'at\n2', id: '3', retry: 1 },
    ])
    const once = await collect(client.sse('/events', { reconnect: false, lastEventId: '1' }))
    assert.deepEqual(
      once.map(({ id }) => id),
      ['2'],
    )
  },
)
