import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearerKeys } from 'runwright/server'
import { Limiter } from '../../../lib/server/access/limits.js'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

const OFF = { requestsPerSecond: null, burst: 1, concurrentRequests: null, openStreams: null }

/** The problem of a refused admission; null when it was admitted. */
function refused(admit: () => unknown): { code: string; retryAfter: string | undefined } | null {
  try {
    admit()
    return null
  } catch (error) {
    const { code, headers } = error as { code: string; headers: Record<string, string> }
    return { code, retryAfter: headers['Retry-After'] }
  }
}

test('each principal has a burst at once, then as many as the rate allows', () => {
  let now = 1_000
  const limiter = new Limiter({ ...OFF, requestsPerSecond: 2, burst: 3 }, () => now)
  const admit = (who: string): unknown => refused(() => limiter.admitRequest(who)())
  const limited = { code: 'rate_limited', retryAfter: '1' }
  assert.deepEqual([admit('a'), admit('a'), admit('a'), admit('a')], [null, null, null, limited])
  assert.deepEqual(admit('b'), null)
  now += 500
  assert.deepEqual([admit('a'), admit('a')], [null, limited])
  now += 60_000
  assert.deepEqual([admit('a'), admit('a'), admit('a'), admit('a')], [null, null, null, limited])
})

test('Retry-After says when the next request will be admitted', () => {
  let now = 0
  const limiter = new Limiter({ ...OFF, requestsPerSecond: 0.1, burst: 1 }, () => now)
  limiter.admitRequest('a')()
  assert.deepEqual(
    refused(() => limiter.admitRequest('a')),
    { code: 'rate_limited', retryAfter: '10' },
  )
  now = 7_000
  assert.deepEqual(
    refused(() => limiter.admitRequest('a')),
    { code: 'rate_limited', retryAfter: '3' },
  )
  now = 10_000
  assert.equal(refused(() => limiter.admitRequest('a')), null)
})

test('a refused request costs no token, and a slot is released once', () => {
  const limiter = new Limiter({ ...OFF, concurrentRequests: 2 })
  const first = limiter.admitRequest('a')
  limiter.admitRequest('a')
  assert.equal(refused(() => limiter.admitRequest('a'))?.code, 'too_many_at_once')
  first()
  first()
  assert.equal(refused(() => limiter.admitRequest('a')), null)
  assert.equal(refused(() => limiter.admitRequest('a'))?.code, 'too_many_at_once')
})

test('the table of principals is bounded, and drops idle ones first', () => {
  const limiter = new Limiter({ ...OFF, openStreams: 1 })
  const end = limiter.admitStream('first')
  for (let i = 0; i < 12_000; i++) limiter.admitRequest(`p${i}`)()
  assert.equal(limiter.size, 10_000)
  assert.equal(refused(() => limiter.admitStream('first'))?.code, 'too_many_at_once')
  end()
})

test('calling too often is 429, but not for other principals or public routes', async () => {
  const [alice, bob] = ['alice-key-0123456789', 'bobby-key-0123456789']
  await using opened = await openService({
    authorize: bearerKeys({ alice, bob }),
    limits: { requestsPerSecond: 0.001, burst: 2 },
  })
  const get = (key: string, path = '/api/models'): ReturnType<typeof opened.call> =>
    opened.call('GET', path, { headers: { authorization: `Bearer ${key}` } })
  const statuses = [(await get(alice)).status, (await get(alice)).status]
  assert.deepEqual(statuses, [200, 200])
  const answer = await get(alice)
  assert.equal(answer.status, 429)
  assert.equal(answer.json.code, 'rate_limited')
  assert.match(String(answer.headers['retry-after']), /^\d+$/)
  assert.equal((await get(bob)).status, 200)
  assert.equal((await get(alice, '/api/health')).status, 200)
  using socket = await opened.socket('/api/ws/x', { Authorization: `Bearer ${alice}` })
  assert.equal(socket.status, 429)
})

test('streams of both kinds count together, and an ended one frees its slot', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine, limits: { openStreams: 2 } })
  const path = `/api/ws/${runId}`
  using first = await opened.socket(path)
  using second = await opened.socket(path)
  assert.deepEqual([first.status, second.status], [101, 101])
  using third = await opened.socket(path)
  assert.equal(third.status, 429)
  assert.equal((await third.problem()).code, 'too_many_at_once')
  const sse = await opened.call('GET', `/api/runs/${runId}/events`, {
    headers: { accept: 'text/event-stream' },
  })
  assert.equal(sse.status, 429)
  engine.finish(runId)
  await Promise.all([first.rest(), second.rest()])
  const again = await opened.call('GET', `/api/runs/${runId}/events`, {
    headers: { accept: 'text/event-stream' },
  })
  assert.equal(again.status, 200)
  assert.match(again.text, /run_end/)
})

for (const { limits, named } of [
  { limits: { requestsPerSecond: 0 }, named: 'limits.requestsPerSecond' },
  { limits: { requestsPerSecond: NaN }, named: 'limits.requestsPerSecond' },
  { limits: { burst: 0 }, named: 'limits.burst' },
  { limits: { concurrentRequests: 1.5 }, named: 'limits.concurrentRequests' },
  { limits: { openStreams: -1 }, named: 'limits.openStreams' },
]) {
  test(`${JSON.stringify(limits)} is refused by name`, async () => {
    await assert.rejects(openService({ limits }), (error: Error) => error.message.startsWith(named))
  })
}
