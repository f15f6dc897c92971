/** What providers are sent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpModel } from 'runwright/agent'
import { deepFreeze } from '../../../lib/internal/freeze.js'
import { serve } from '../../helpers/serve.js'
import { modelRequest, tool } from './exchange.js'
import { ADAPTERS, DIALECTS, STREAMS, whole } from './exchanges/dialects.js'
import { REQUESTS } from './exchanges/requests.js'

for (const dialect of DIALECTS)
  for (const row of REQUESTS[dialect]) {
    const { title, asks, options, body, fields = {}, headers = {}, path, params } = row
    test(`${dialect}: ${title}`, () => {
      // A request that cannot be changed is sent as any other.
      const request = deepFreeze(modelRequest(asks))
      const wire = ADAPTERS[dialect].encode(request, { model: 'm', stream: true, ...options })
      if (body !== undefined) assert.deepEqual(wire.body, body)
      for (const [name, value] of Object.entries(fields))
        assert.deepEqual(wire.body[name], value, name)
      for (const [name, value] of Object.entries(headers)) assert.equal(wire.headers[name], value)
      if (path !== undefined) assert.equal(wire.path, path)
      if (params !== undefined) assert.deepEqual(wire.params, params)
    })
  }

test('gemini: the key is sent in a header, not in the URL', async () => {
  let seen: { url: string; key: unknown } | undefined
  const calls = ['a', 'b'].map((path) => ({ id: '', name: 'read_file', args: { path } }))
  const stream = STREAMS.gemini(whole('gemini', { calls }))
  await using served = await serve((request, response) => {
    seen = { url: request.url ?? '', key: request.headers['x-goog-api-key'] }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream)
  })
  await using model = new HttpModel(ADAPTERS.gemini, {
    model: 'gemini-2.5-flash', apiKey: 'g-key', baseUrl: served.origin,
  })
  const turn = await model.complete(modelRequest({ tools: [tool('read_file')] }))
  assert.equal(turn.message.calls.length, 2)
  assert.deepEqual(seen, {
    url: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse', key: 'g-key',
  })
})
