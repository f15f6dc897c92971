import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MockTransport, Response } from 'runwright/http'
import { bearerKeys, RunServiceClient } from 'runwright/server'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'
import { openReal } from '../real.js'
import { refusal } from './refusal.js'

const KEY = 'client-key-0123456789'

test('an error has the status, the code and the invalid fields', async (t) => {
  const { service } = await openReal(t)
  await using runs = RunServiceClient.inProcess(service)
  const error = await refusal(runs.create({ goal: 'auto', max_iterations: 0 }))
  assert.equal(error.status, 422)
  assert.equal(error.code, 'invalid_request')
  assert.deepEqual(error.errors.map(({ pointer }) => pointer), ['/max_iterations'])
  assert.equal(error.retryAfterMs, null)
})

test('the client sends its key, and an error never contains a wrong one', async () => {
  await using opened = await openService({ authorize: bearerKeys({ me: KEY }) })
  await using runs = RunServiceClient.inProcess(opened.service, { key: KEY })
  assert.deepEqual((await runs.list()).runs, [])
  const wrong = 'wrong-key-0123456789'
  await using stranger = RunServiceClient.inProcess(opened.service, { key: wrong })
  const error = await refusal(stranger.list())
  assert.equal(error.code, 'unauthorized')
  assert.ok(!JSON.stringify([error, error.message, error.stack]).includes(wrong))
})

test('the same idempotency key starts one run; without one each call starts a run', async (t) => {
  const { service } = await openReal(t)
  await using runs = RunServiceClient.inProcess(service)
  const start = (idempotencyKey?: string): Promise<string> =>
    runs.create({ goal: 'shell: true' }, { idempotencyKey }).then(({ run_id }) => run_id)
  const [first, second] = [await start('k'), await start('k')]
  assert.equal(first, second)
  assert.equal(new Set([first, await start(), await start()]).size, 3)
})

const ENDLESS: readonly (readonly [what: string, next: (page: number) => number, RegExp])[] = [
  ['has the same cursor on each page', () => 7, /leads back/],
  ['has two pages that lead to each other', (page) => 1 - page, /leads back/],
  ['leads back to a page in the middle', (page) => (page === 9 ? 4 : page + 1), /leads back/],
  ['has no end of empty pages', (page) => page + 1, /64 empty pages/],
]

for (const [what, next, reason] of ENDLESS) {
  test(`a list of runs is an error that ${what}`, async () => {
    const runs = reason.source.includes('empty') ? [] : [{ run_id: 'r' }]
    const transport = new MockTransport(({ url }) => {
      if (transport.requests.length > 200) throw new Error('it goes on for ever')
      const cursor = next(Number(url.searchParams.get('cursor')))
      const headers = { Link: `</api/runs?cursor=${cursor}>; rel="next"` }
      return new Response(200, { headers, json: runs })
    })
    await using client = new RunServiceClient({ baseUrl: 'http://a.test', transport, retry: null })
    const read = async (): Promise<void> => {
      for await (const _ of client.runs());
    }
    await assert.rejects(read(), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'ERR_HTTP_REMOTE_PROTOCOL')
      assert.match(error.message, /^the list of runs /)
      assert.match(error.message, reason)
      return true
    })
  })
}

test('filters reach the service, and pages are read to the last', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  const ids = Array.from({ length: 7 }, () => engine.add()).reverse()
  const page = await runs.list({ limit: 3 })
  assert.deepEqual(page.runs.map(({ run_id }) => run_id), ids.slice(0, 3))
  assert.ok(page.next !== null)
  const seen: string[] = []
  for await (const { run_id } of runs.runs({ limit: 2 })) seen.push(run_id)
  assert.deepEqual(seen, ids)

  await runs.list({
    status: ['achieved', 'failed'],
    goal: 'a & b',
    search: 'needle +1',
    modelName: 'm',
    root: 'r/1',
    parent: 'p',
    role: 'root',
    cwd: '/w & x',
    endReason: 'stuck',
    metadata: { 'a.b': '1=2', c: '' },
    sort: 'created_at',
    createdAfter: new Date(1_000),
    createdBefore: '1970-01-01T00:00:02Z',
  })
  const query = engine.calls.at(-1)![1] as Record<string, unknown>
  assert.deepEqual(
    [
      query['status'],
      query['search'],
      query['goal'],
      query['modelName'],
      query['root'],
      query['parent'],
      query['role'],
      query['cwd'],
      query['endReason'],
      query['metadata'],
      query['sort'],
      query['createdAfter'],
      query['createdBefore'],
    ],
    [
      ['achieved', 'failed'], 'needle +1', 'a & b', 'm', 'r/1', 'p', 'root',
      '/w & x', ['stuck'], { 'a.b': '1=2', c: '' }, 'created_at', 1, 2,
    ],
  )
})

for (const { what, type, body } of [
  { what: 'a page from a proxy', type: 'text/html', body: '<h1>no</h1>' },
  { what: 'a problem without a code', type: 'application/problem+json', body: '{"status":502}' },
  { what: 'a truncated problem', type: 'application/problem+json', body: '{"code":"x"' },
]) {
  test(`${what} is reported as unexpected_answer`, async () => {
    const answer = (): Response =>
      new Response(502, { headers: { 'content-type': type, 'retry-after': '7' }, content: body })
    const transport = new MockTransport(answer)
    await using runs = new RunServiceClient({ baseUrl: 'http://a.test', transport, retry: null })
    const error = await refusal(runs.models())
    assert.deepEqual(
      [error.status, error.code, error.retryAfterMs],
      [502, 'unexpected_answer', 7_000],
    )
  })
}

test('a start request is never repeated by the client itself', async () => {
  const transport = new MockTransport(() => new Response(503, { content: '' }))
  await using runs = new RunServiceClient({
    baseUrl: 'http://a.test',
    transport,
    retry: { retries: 2, backoffMs: 0 },
  })
  await refusal(runs.create({ goal: 'auto' }))
  assert.equal(transport.requests.length, 1)
  await refusal(runs.models())
  assert.equal(transport.requests.length, 4)
})

test('the health of a draining service is returned, not thrown', async () => {
  const opened = await openService()
  await using runs = RunServiceClient.inProcess(opened.service, { retry: null })
  await opened.service.close({ graceMs: 0 })
  assert.equal((await runs.health()).status, 'draining')
  assert.equal((await refusal(runs.create({ goal: 'auto' }))).code, 'draining')
  await opened[Symbol.asyncDispose]()
})

test('a call ends with the reason of its signal', async () => {
  const transport = new MockTransport(() => new Promise<never>(() => {}))
  await using runs = new RunServiceClient({ baseUrl: 'http://a.test', transport })
  const reason = new Error('enough')
  await assert.rejects(runs.get('x', { signal: AbortSignal.abort(reason) }), reason)
})

test('an id that would be the path of something else is refused before it is sent', async () => {
  const transport = new MockTransport(() => new Response(200, { json: [] }))
  await using runs = new RunServiceClient({ baseUrl: 'http://a.test', transport })
  for (const id of ['', '.', '..', undefined, null, {}] as string[]) {
    await assert.rejects(async () => runs.get(id), TypeError)
    await assert.rejects(async () => runs.delete(id), TypeError)
  }
  assert.equal(transport.requests.length, 0)
})
