import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRunService, RunServiceClient, RunServiceError } from 'runwright/server'
import { serve } from '../helpers/serve.js'
import { FakeEngine } from './fake-engine.js'
import { call, openService } from './open-service.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('every response has an id, whatever answers', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.finish(runId)
  await using opened = await openService({ engine, basePath: '/agents', metrics: true })
  const seen = new Set<unknown>()
  for (const [method, path, status, headers] of [
    ['GET', '/agents/api/runs', 200],
    ['HEAD', '/agents/api/runs', 200],
    ['GET', `/agents/api/runs/${runId}`, 200],
    // The same reply as before.
    ['GET', `/agents/api/runs/${runId}`, 200],
    ['GET', `/agents/api/runs/${runId}/events`, 200, { accept: 'text/event-stream' }],
    ['GET', `/agents/api/runs/${runId}/events?after=2`, 204, { accept: 'text/event-stream' }],
    ['GET', '/agents/api/runs/x', 404],
    ['GET', '/agents/api/runs?x=1', 422],
    ['PUT', '/agents/api/runs', 405],
    ['OPTIONS', '/agents/api/runs', 204],
    ['GET', '/agents/api/health', 200],
    ['GET', '/agents/metrics', 200],
    ['GET', '/agents/', 200],
    ['GET', '/agents', 308],
    ['GET', '/agents/nothing', 404],
    ['GET', '/elsewhere', 404],
    ['POST', '/agents/api/runs', 403, { origin: 'http://evil.test' }],
  ] as const) {
    const answer = await call(opened.port, method, path, { headers: { ...headers } })
    assert.equal(answer.status, status, `${method} ${path}`)
    const id = answer.headers['x-request-id']
    assert.match(String(id), UUID, `${method} ${path}`)
    assert.ok(!seen.has(id))
    seen.add(id)
    const isProblem = answer.headers['content-type'] === 'application/problem+json'
    if (isProblem) assert.equal(answer.json.request_id, id)
  }
  for (const [path, line] of [
    [`/agents/api/ws/${runId}`, /^HTTP\/1\.1 101 /],
    ['/agents/api/ws/x', /^HTTP\/1\.1 404 /],
  ] as const) {
    using socket = await opened.socket(path)
    assert.match(socket.head, line)
    const [, id = ''] = /\r\nX-Request-Id: (.*)\r\n/i.exec(socket.head) ?? []
    assert.match(id, UUID)
    if (path.endsWith('x')) assert.equal((await socket.problem()).request_id, id)
  }
})

for (const [what, given, kept] of [
  ['a UUID', '0f8fad5b-d9cb-469f-a165-70867728950e', true],
  ['the id of a proxy', 'Root=1-67891233-abcdef012345678912345678', true],
  ['128 characters', 'a'.repeat(128), true],
  ['129 characters', 'a'.repeat(129), false],
  ['nothing', '', false],
  ['blanks', 'a b', false],
  ['quotes', 'a"b', false],
  ['two ids', 'a, b', false],
  ['letters beyond ASCII', '\xe9', false],
  ['a tab', 'a\tb', false],
] as const) {
  test(`an id of the caller with ${what} is ${kept ? 'kept' : 'replaced'}`, async () => {
    await using opened = await openService()
    const headers = { 'x-request-id': given }
    const answer = await opened.call('GET', '/api/runs/x', { headers })
    const id = answer.headers['x-request-id']
    if (kept) assert.equal(id, given)
    else assert.match(String(id), UUID)
    assert.equal(answer.json.request_id, id)
  })
}

test('the log of requests, and errors that the host is told of, have the id', async () => {
  const models = (): never => {
    throw new Error('no models')
  }
  const engine = Object.assign(new FakeEngine(), { models })
  const told: unknown[] = []
  await using opened = await openService({
    engine,
    onLog: (line) => told.push(line.event === 'request' && [line.status, line.request_id]),
    onError: (_error, { method, path, requestId }) => told.push([method, path, requestId]),
  })
  const headers = { 'x-request-id': 'mine' }
  const answer = await opened.call('GET', '/api/models', { headers })
  assert.equal(answer.status, 500)
  const other = await call(opened.port, 'GET', '/api/goals')
  assert.deepEqual(told.filter((one) => JSON.stringify(one).includes('mine')), [
    ['GET', '/api/models', 'mine'],
    [500, 'mine'],
  ])
  assert.ok(JSON.stringify(told).includes(String(other.headers['x-request-id'])))
})

test('errors of the client have the id, over HTTP and WebSocket', async () => {
  const idOf = async (asked: Promise<unknown>): Promise<string | null> => {
    const error = await asked.then(() => assert.fail('no error'), (error: unknown) => error)
    assert.ok(error instanceof RunServiceError, String(error))
    return error.requestId
  }
  await using opened = await openService()
  const baseUrl = `http://127.0.0.1:${opened.port}`
  const unknown = '01930000-0000-7000-8000-999999999999'
  await using named = new RunServiceClient({ baseUrl, headers: { 'X-Request-Id': 'mine' } })
  await using unnamed = new RunServiceClient({ baseUrl })
  for (const transport of ['sse', 'websocket'] as const) {
    const first = (client: RunServiceClient): Promise<unknown> =>
      client.events(unknown, { transport })[Symbol.asyncIterator]().next()
    assert.equal(await idOf(first(named)), 'mine')
    assert.match(String(await idOf(first(unnamed))), UUID)
  }
  assert.equal(await idOf(named.get(unknown)), 'mine')
  await using proxy = await serve((_request, response) => response.writeHead(502).end())
  await using lost = new RunServiceClient({ baseUrl: proxy.origin, retry: null })
  assert.equal(await idOf(lost.models()), null)
})

test('a handler of the host that answers in place of the service is left alone', async () => {
  await using service = await createRunService({ engine: new FakeEngine() })
  await using served = await serve((request, response) =>
    service.handler(request, response, () => void response.writeHead(404).end()),
  )
  const answer = await call(served.port, 'GET', '/elsewhere')
  assert.deepEqual([answer.status, answer.headers['x-request-id']], [404, undefined])
})
