import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeEngine } from '../fake-engine.js'
import { openService } from '../open-service.js'

const EVENT_STREAM = { accept: 'text/event-stream' }

test('an unknown query parameter is a 422 that names it and the one that is meant', async () => {
  const engine = new FakeEngine()
  const run = `/api/runs/${engine.add()}`
  await using opened = await openService({ engine, metrics: true })
  for (const [method, path, name, meant, headers] of [
    ['GET', '/api/runs?stauts=failed', 'stauts', 'status'],
    ['GET', '/api/runs?createdAfter=2026-01-01T00:00:00Z', 'createdAfter', 'created_after'],
    ['GET', '/api/runs?status=failed&status=aborted&limits=1', 'limits', 'limit'],
    ['GET', '/api/runs?Status=failed', 'Status', 'status'],
    ['GET', '/api/runs?%73tatus=failed&constructor=1', 'constructor', 'status'],
    ['GET', '/api/runs?metadata=x', 'metadata', 'metadata.<name>'],
    ['GET', '/api/runs?metadata[team]=x', 'metadata[team]', 'metadata.<name>'],
    ['GET', '/api/runs?metadata.a=1&metadata.a=2', 'metadata.a', 'must be given once'],
    ['POST', '/api/runs?hitl_enabled=1', 'hitl_enabled', 'there are none'],
    ['GET', `${run}?x`, 'x', 'there are none'],
    ['DELETE', `${run}?force=1`, 'force', 'there are none'],
    ['POST', `${run}/abort?a/b~=1`, 'a~1b~0', 'there are none'],
    ['POST', `${run}/retry?x=1`, 'x', 'there are none'],
    ['POST', `${run}/resume?decision=approve`, 'decision', 'there are none'],
    ['GET', `${run}/events?kind=run_end`, 'kind', 'kinds'],
    ['GET', `${run}/events?atfer=3`, 'atfer', 'after', EVENT_STREAM],
    ['GET', '/api/models?x=1', 'x', 'there are none'],
    ['GET', '/api/goals?x=1', 'x', 'there are none'],
    ['GET', '/metrics?x=1', 'x', 'there are none'],
  ] as const) {
    const { status, json, text } = await opened.call(method, path, { headers: { ...headers } })
    assert.equal(status, 422, `${method} ${path} ${text}`)
    assert.equal(json.code, 'invalid_request')
    assert.equal(json.errors[0].pointer, `/${name}`)
    assert.equal(json.errors[0].in, 'query')
    assert.ok(json.errors[0].detail.includes(meant), text)
  }
  const { status } = await opened.call('HEAD', '/api/runs?stauts=failed')
  assert.equal(status, 422)
  assert.equal(engine.calls.length, 0, 'the engine was called')
})

test('an unknown query parameter of a WebSocket is refused before the 101', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  for (const [query, name] of [['kind=run_end', 'kind'], ['after=0&after=1', 'after']] as const) {
    using socket = await opened.socket(`/api/ws/${runId}?${query}`)
    assert.equal(socket.status, 422)
    assert.equal((await socket.problem()).errors[0].pointer, `/${name}`)
  }
})

test('a parameter with one value is a 422 when it is given twice', async () => {
  const engine = new FakeEngine()
  const run = `/api/runs/${engine.add()}`
  await using opened = await openService({ engine })
  for (const path of ['/api/runs?limit=1&limit=1', `${run}/events?deltas=0&deltas=1`]) {
    const { status, json } = await opened.call('GET', path)
    assert.equal(status, 422, path)
    assert.equal(json.errors[0].detail, 'must be given once')
  }
})

test('names of allowedQuery are accepted everywhere, whatever their value', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine, allowedQuery: ['access_token', '_'] })
  for (const path of ['/api/runs', `/api/runs/${runId}`, '/api/models']) {
    const { status } = await opened.call('GET', `${path}?access_token=a&access_token=b&_=1`)
    assert.equal(status, 200, path)
  }
  using socket = await opened.socket(`/api/ws/${runId}?access_token=a&after=0`)
  assert.equal(socket.status, 101)
  assert.equal((await opened.call('GET', '/api/models?_a=1')).status, 422)
})

test('what is public ignores parameters that caches and probes add', async () => {
  await using opened = await openService()
  for (const path of [
    '/', '/runwright/app.js', '/api/openapi.json', '/api/asyncapi.json', '/api/health',
  ]) {
    const { status } = await opened.call('GET', `${path}?v=1&v=2`)
    assert.equal(status, (await opened.call('GET', path)).status, path)
  }
})

test('a long or odd name is quoted in part', async () => {
  await using opened = await openService()
  const { status, text } = await opened.call('GET', `/api/runs?${'x'.repeat(5_000)}=1`)
  assert.equal(status, 422)
  assert.ok(text.length < 1_000, text)
})
