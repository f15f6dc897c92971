import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearerKeys } from 'runwright/server'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

const DAMAGE = {
  runs: [
    { runId: 'r1', reason: 'a line is damaged' },
    { runId: 'r2', reason: 'a line is missing' },
  ],
  files: ['/data/7.log is missing'],
}

for (const { what, break: breakIt, code, status, problem } of [
  { what: 'works', break: () => {}, code: 200, status: 'ok', problem: null },
  {
    what: 'has a full queue',
    break: (engine: FakeEngine) => (engine.queued = 2),
    code: 200,
    status: 'busy',
    problem: 'the queue is full: 2 runs are waiting',
  },
  {
    what: 'has found damage',
    break: (engine: FakeEngine) => (engine.damaged = DAMAGE),
    code: 200,
    status: 'damaged',
    problem: 'damaged runs: 2, r1: a line is damaged; damaged files: 1, /data/7.log is missing',
  },
  {
    what: 'has found damage in one run, and has a full queue',
    break: (engine: FakeEngine) => {
      engine.damaged = { ...DAMAGE, files: [] }
      engine.queued = 2
    },
    code: 200,
    status: 'busy',
    problem: 'the queue is full: 2 runs are waiting',
  },
  {
    what: 'has found damage and cannot write to its disk',
    break: (engine: FakeEngine) => {
      engine.damaged = DAMAGE
      engine.broken = new Error('ENOSPC')
    },
    code: 503,
    status: 'failing',
    problem: 'ENOSPC',
  },
  {
    what: 'cannot write to its disk',
    break: (engine: FakeEngine) => (engine.broken = new Error('cannot write to /data: ENOSPC')),
    code: 503,
    status: 'failing',
    problem: 'cannot write to /data: ENOSPC',
  },
]) {
  test(`a service that ${what} reports it`, async () => {
    const engine = new FakeEngine()
    breakIt(engine)
    await using opened = await openService({ engine })
    const answer = await opened.call('GET', '/api/health')
    assert.equal(answer.status, code)
    assert.equal(answer.json.status, status)
    assert.equal(answer.json.problem, problem)
    const { runs, files } = engine.damaged
    const counts = { runs: runs.length, files: files.length }
    assert.deepEqual(answer.json.damaged, counts.runs > 0 ? counts : undefined)
  })
}

test('the problem is reported to callers without a tenant, the status to all', async () => {
  const [free, bound] = ['free-key-0123456789', 'bound-key-0123456789']
  const engine = new FakeEngine()
  engine.broken = new Error('cannot write to /data: ENOSPC')
  engine.damaged = DAMAGE
  await using opened = await openService({
    engine,
    authorize: bearerKeys({ free, bound: { key: bound, tenant: 'acme' } }),
  })
  for (const headers of [{}, { authorization: `Bearer ${bound}` }]) {
    assert.deepEqual((await opened.call('GET', '/api/health', { headers })).json, {
      status: 'failing',
    })
  }
  const headers = { authorization: `Bearer ${free}` }
  assert.match((await opened.call('GET', '/api/health', { headers })).json.problem, /ENOSPC/)
})

test('the store is checked once per interval, however often health is requested', async () => {
  const engine = new FakeEngine()
  let checks = 0
  const check = async (): Promise<void> => void (checks += 1)
  await using opened = await openService({ engine: Object.assign(engine, { check }) })
  await Promise.all(Array.from({ length: 20 }, () => opened.call('GET', '/api/health')))
  assert.equal(checks, 1)
})

test('a store that does not answer is reported as failing', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const engine = new FakeEngine()
  const asked = new Promise<void>((resolve) => {
    Object.assign(engine, {
      check: () => {
        resolve()
        return new Promise<void>(() => {})
      },
    })
  })
  await using opened = await openService({ engine })
  const answer = opened.call('GET', '/api/health')
  await asked
  t.mock.timers.tick(5_000)
  assert.equal((await answer).json.status, 'failing')
})
