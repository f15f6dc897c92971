import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { bearerKeys, jsonLines, type LogLine } from 'runwright/server'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

const KEY = 'log-key-0123456789abcdef'

test('a line has caller, route and outcome, and no line has content of the request', async () => {
  const lines: LogLine[] = []
  const engine = new FakeEngine()
  const runId = engine.add('acme')
  await using opened = await openService({
    engine,
    authorize: bearerKeys({ alice: { key: KEY, tenant: 'acme' } }),
    allowedQuery: ['token'],
    onLog: (line) => lines.push(line),
  })
  const headers = { authorization: `Bearer ${KEY}`, cookie: 'session=s3cret' }
  await opened.call('GET', `/api/runs/${runId}?token=s3cret`, { headers })
  await opened.call('POST', '/api/runs', { headers, body: { goal: 's3cret' } })
  await opened.call('GET', '/s3cret/path')
  await opened.call('GET', '/api/models', {
    headers: { authorization: 'Bearer s3cret-and-wrong-key' },
  })
  using socket = await opened.socket(`/api/ws/${runId}`, {
    'Sec-WebSocket-Protocol': `runwright.v1, bearer.${Buffer.from(KEY).toString('base64url')}`,
  })
  engine.finish(runId)
  await socket.rest()
  const text = JSON.stringify(lines)
  for (const secret of ['s3cret', KEY, Buffer.from(KEY).toString('base64url')]) {
    assert.ok(!text.includes(secret), secret)
  }
  const requests = lines.flatMap((line) =>
    line.event === 'request'
      ? [[line.method, line.route, line.run_id, line.status, line.principal]]
      : [],
  )
  // The first line is for the description, which the test client reads to check responses.
  const own = requests.filter(([, route]) => route !== '/api/openapi.json')
  assert.deepEqual(own, [
    ['GET', '/api/runs/{run_id}', runId, 200, 'alice'],
    ['POST', '/api/runs', null, 201, 'alice'],
    ['GET', '/api/models', null, 401, null],
    ['GET', '/api/ws/{run_id}', runId, 101, null],
  ])
  const end = lines.find(({ event }) => event === 'stream_end')
  assert.ok(end?.event === 'stream_end')
  assert.deepEqual([end.kind, end.run_id, end.end], ['websocket', runId, 'run_end'])
})

for (const [kind, onLog] of [
  [
    'throws',
    () => {
      throw new Error('disk full')
    },
  ],
  ['rejects', () => Promise.reject(new Error('disk full'))],
] as const) {
  test(`a log that ${kind} does not take the service down`, async (t) => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    t.after(() => process.removeAllListeners('warning'))
    await using opened = await openService({ onLog })
    assert.equal((await opened.call('GET', '/api/models')).status, 200)
    assert.match((await warned).message, /onLog failed/)
  })
}

test('an onError whose promise rejects does not end the process', async () => {
  // An unhandled rejection would fail this test.
  await using opened = await openService({
    authorize: () => {
      throw new Error('the directory of users is down')
    },
    onError: () => Promise.reject(new Error('and so is the log')),
  })
  assert.equal((await opened.call('GET', '/api/models')).status, 500)
  await setImmediate()
})

test('jsonLines writes one document per line', () => {
  const written: string[] = []
  const log = jsonLines({ write: (text) => written.push(text) })
  const line: LogLine = {
    event: 'stream_end',
    time: '2026-01-01T00:00:00.000Z',
    kind: 'sse',
    run_id: 'a\nb',
    end: 'stuck',
    duration_ms: 1,
  }
  log(line)
  assert.equal(written.length, 1)
  assert.equal(written[0]!.indexOf('\n'), written[0]!.length - 1)
  assert.deepEqual(JSON.parse(written[0]!), line)
})
