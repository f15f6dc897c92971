import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, createServer as createHttp2Server, type Http2Server } from 'node:http2'
import { test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { createRunService, type RunServiceOptions } from 'runwright/server'
import { VERSION } from '../../lib/internal/version.js'
import { listen, serve } from '../helpers/serve.js'
import { call, openService } from './open-service.js'
import { FakeEngine } from './fake-engine.js'

for (const { options, message } of [
  { options: { engine: undefined }, message: 'createRunService() needs engine: an engine' },
  { options: { basePath: 'agents' }, message: 'basePath must be' },
  { options: { basePath: '/agents/' }, message: 'basePath must be' },
  { options: { basePath: '/' }, message: 'basePath must be' },
  { options: { basePath: '/a/../b?' }, message: 'basePath must be' },
  { options: { authorize: 'key' }, message: 'authorize must be a function, got a string' },
  { options: { publicOrigin: 'https://x/' }, message: 'publicOrigin must be an origin' },
  { options: { allowedOrigins: 'https://x' }, message: 'allowedOrigins must be an array' },
  { options: { allowedOrigins: ['*'] }, message: 'allowedOrigins must be a list like' },
  { options: { maxBodyBytes: 0 }, message: 'maxBodyBytes must be an integer from 1' },
  { options: { streams: { pingMs: 0.5 } }, message: 'streams.pingMs must be an integer' },
  { options: { streams: { stuckMs: 2 ** 31 } }, message: 'streams.stuckMs must be an integer' },
  { options: { onError: {} }, message: 'onError must be a function' },
]) {
  test(`${JSON.stringify(options)} is refused: ${message}`, async () => {
    const given = { engine: new FakeEngine(), ...options } as unknown as RunServiceOptions
    await assert.rejects(
      createRunService(given),
      (error) => error instanceof TypeError && error.message.startsWith(message),
    )
  })
}

test('the reported version is that of the package', () => {
  const file = new URL('../../package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  assert.equal(VERSION, version)
})

test('a closed service answers 503 and leaves the engine of the host open', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  await opened.service.close()
  await opened.service.close()
  assert.equal((await engine.get(runId)).run_id, runId)
  const answer = await opened.call('GET', '/api/runs')
  assert.deepEqual([answer.status, answer.json.code], [503, 'draining'])
  assert.equal(answer.headers.connection, 'close')
  assert.equal((await opened.call('GET', '/')).status, 200)
})

test('an engine of its own is opened and closed by the service', async () => {
  const service = await createRunService({
    engine: { store: new MemoryStore(), roots: [import.meta.dirname] },
  })
  const { engine } = service
  assert.deepEqual((await engine.list()).runs, [])
  await service[Symbol.asyncDispose]()
  await assert.rejects(engine.create({ goal: 'shell: true' }), { code: 'ERR_AGENT_CLOSED' })
})

test('an error of opening the engine is thrown', async () => {
  const engine = { store: new MemoryStore(), roots: [] }
  await assert.rejects(createRunService({ engine }), TypeError)
})

test('OPTIONS lists the methods of a resource, without CORS', async () => {
  await using opened = await openService()
  const answer = await opened.call('OPTIONS', '/api/runs', { headers: { origin: 'http://x' } })
  assert.equal(answer.status, 204)
  assert.equal(answer.headers.allow, 'POST, GET, HEAD, OPTIONS')
  assert.equal(answer.headers['access-control-allow-origin'], undefined)
})

test('responses are not cached, sniffed, framed or read by other sites', async () => {
  await using opened = await openService()
  const { headers } = await opened.call('GET', '/api/runs')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.equal(headers['x-frame-options'], 'DENY')
  assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
})

test('requests over HTTP/2 are answered through its compatibility API', async () => {
  const engine = new FakeEngine()
  const service = await createRunService({ engine })
  await using served = await listen<Http2Server>(createHttp2Server(service.handler))
  service.attach(served.server)
  const session = connect(served.origin)
  const ask = (headers: Record<string, string>, body?: string): Promise<[number, string]> =>
    new Promise((resolve, reject) => {
      const stream = session.request(headers)
      let [status, text] = [0, '']
      stream.setEncoding('utf8')
      stream.on('response', (head) => (status = Number(head[':status'])))
      stream.on('data', (chunk: string) => (text += chunk))
      stream.on('end', () => resolve([status, text]))
      stream.on('error', reject)
      stream.end(body)
    })
  const json = { 'content-type': 'application/json' }
  const post = { ':method': 'POST', ':path': '/api/runs', ...json }
  const [created, text] = await ask(post, '{"goal":"x"}')
  assert.equal(created, 201)
  const { run_id } = JSON.parse(text) as { run_id: string }
  engine.finish(run_id)
  const [status, events] = await ask({
    ':path': `/api/runs/${run_id}/events`,
    accept: 'text/event-stream',
  })
  assert.equal(status, 200)
  assert.match(events, /id: 2\ndata: .*run_end/)
  assert.deepEqual(await ask({ ':method': 'HEAD', ':path': '/api/runs' }), [200, ''])
  const [big] = await ask(post, JSON.stringify({ goal: 'x'.repeat(1_048_577) }))
  assert.equal(big, 413)
  const [evil] = await ask({ ':path': '/api/runs', ':authority': 'evil.example' })
  assert.equal(evil, 403)
  session.close()
  await service.close()
})

test('by default an unexpected error is one line and its stack on standard error', async (t) => {
  const lines: string[] = []
  t.mock.method(process.stderr, 'write', (text: string) => lines.push(text) > 0)
  const engine = new FakeEngine()
  engine.failure = new Error('disk full')
  const service = await createRunService({ engine })
  await using served = await serve(service.handler)
  assert.equal((await call(served.port, 'GET', '/api/runs?goal=secret')).status, 500)
  t.mock.restoreAll()
  assert.match(lines[0]!, /^runwright: GET \/api\/runs failed \(request [0-9a-f-]{36}\): Error: disk full\n/)
  assert.doesNotMatch(lines.join(''), /secret/)
})
