import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { test } from 'node:test'
import { createRunService } from 'runwright/server'
import { WebSocketServer } from 'runwright/ws'
import { FakeEngine } from '../server/fake-engine.js'

/** What frameworks give their users in place of a server, by its shape. */
const applications: Readonly<Record<string, unknown>> = {
  Express: Object.assign(() => {}, EventEmitter.prototype, { listen() {}, address: undefined }),
  Koa: Object.assign(new EventEmitter(), { listen() {}, callback: () => () => {} }),
  Fastify: { server: createServer(), listen() {}, addresses: () => [], close() {} },
  Hono: { fetch() {}, request() {} },
  nothing: undefined,
  'the port': 8000,
}

for (const [name, application] of Object.entries(applications)) {
  test(`attach() with ${name} in place of a server says what to pass`, async () => {
    const message = /^attach\(\) needs a server of node:http.*createServer\(app\).*app\.server/
    const sockets = new WebSocketServer()
    assert.throws(() => sockets.attach(application as never), { name: 'TypeError', message })
    await using service = await createRunService({ engine: new FakeEngine() })
    assert.throws(() => service.attach(application as never), { name: 'TypeError', message })
  })
}

test('servers of node:http and http2 are accepted', () => {
  const sockets = new WebSocketServer()
  for (const server of [createServer(), createSecureServer()]) sockets.attach(server)()
})
