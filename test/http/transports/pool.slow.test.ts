import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { AsyncClient, HttpTransport } from 'runwright/http'
import { abortAtRandom, answerInStages } from '../random-aborts.js'
import { serve } from '../../helpers/serve.js'

test('1000 random aborts leak no connection, waiter or listener', async () => {
  await using server = await serve(answerInStages)
  const transport = new HttpTransport({ limits: { maxConnections: 8 } })
  await using client = new AsyncClient({ transport, baseUrl: server.origin })
  const signals = await abortAtRandom(client, 1000)
  assert.equal((await client.get('/?stage=2')).content.length, 200_000)
  assert.equal(
    signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0),
    0,
  )
  assert.equal(transport.stats.waiting, 0)
  assert.equal(transport.stats.open, transport.stats.idle)
  await transport.close()
  assert.deepEqual(transport.stats, { open: 0, idle: 0, waiting: 0 })
})
