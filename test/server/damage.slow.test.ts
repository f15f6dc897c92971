import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  MemoryStore,
  RunEngine,
  StoreError,
  type RunHead,
  type RunPage,
  type RunQuery,
  type StoreDamage,
  type StoreErrorCode,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { bearerKeys, RunServiceClient, RunServiceError } from 'runwright/server'
import { scratch } from '../helpers/engine.js'
import { FakeEngine } from './fake-engine.js'
import { openService } from './open-service.js'

const PATH = '/srv/data/runs/7.log'
const FREE = 'free-key-0123456789'
const BOUND = 'bound-key-0123456789'
const authorize = bearerKeys({ free: FREE, bound: { key: BOUND, tenant: 'acme' } })

/** A store whose runs can be damaged. */
class DamagedStore extends MemoryStore {
  readonly bad: Map<string, StoreError> = new Map()

  damageRun(runId: string, code: StoreErrorCode = 'ERR_AGENT_STORE_CORRUPT'): void {
    const remedy = 'restore the data directory from a backup, or delete the run'
    this.bad.set(runId, new StoreError(code, `run ${runId}: ${PATH} is damaged; ${remedy}`))
  }

  override async head(runId: string): Promise<RunHead | null> {
    const error = this.bad.get(runId)
    if (error !== undefined) throw error
    return await super.head(runId)
  }

  override async list(query: RunQuery): Promise<RunPage> {
    const { heads, next } = await super.list(query)
    const withProblem = (head: RunHead): RunHead => {
      const problem = this.bad.get(head.details.run_id)?.message
      return problem === undefined ? head : { ...head, problem }
    }
    return { heads: heads.map(withProblem), next }
  }

  override async delete(runId: string): Promise<void> {
    this.bad.delete(runId)
    await super.delete(runId)
  }

  damage(): StoreDamage {
    const runs = [...this.bad].map(([runId, { message }]) => ({ runId, reason: message }))
    return { runs, files: [] }
  }
}

/** A service with one damaged run of each tenant, and one that is fine. */
async function openDamaged(t: test.TestContext, code?: StoreErrorCode) {
  const folder = scratch(t)
  const store = new DamagedStore()
  const engine = await RunEngine.open({
    store, roots: [folder], cwdPolicy: 'allow', sealedChecks: 'off',
    providers: [repairModel()], defaultModel: 'builtin:repair',
  })
  t.after(() => engine.close())
  const create = async (tenant: string | null): Promise<string> => {
    const caller = { owner: { id: 'x', tenant } }
    const cwd = join(folder, tenant ?? 'free')
    mkdirSync(cwd, { recursive: true })
    const { details } = await engine.create({ goal: 'shell: true', cwd }, { caller })
    for await (const _ of await engine.subscribe(details.run_id)) void _
    return details.run_id
  }
  const [free, bound, good] = [await create(null), await create('acme'), await create(null)]
  for (const runId of [free, bound]) store.damageRun(runId, code)
  return { engine, free, bound, good }
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })

for (const { code, answered } of [
  { code: 'ERR_AGENT_STORE_CORRUPT', answered: 'run_damaged' },
  { code: 'ERR_AGENT_STORE_VERSION', answered: 'run_too_new' },
] as const) {
  test(`a run with ${code} is a 500 ${answered} on every route`, async (t) => {
    const { engine, free, bound, good } = await openDamaged(t, code)
    await using opened = await openService({ engine, authorize })
    for (const { runId, key, names } of [
      { runId: free, key: FREE, names: true },
      { runId: bound, key: BOUND, names: false },
    ]) {
      const run = `/api/runs/${runId}`
      for (const [method, path, headers] of [
        ['GET', run, {}],
        ['GET', `${run}/events`, {}],
        ['GET', `${run}/events`, { accept: 'text/event-stream' }],
        ['POST', `${run}/abort`, {}],
        ['POST', `${run}/retry`, {}],
      ] as const) {
        const answer = await opened.call(method, path, { headers: { ...headers, ...bearer(key) } })
        assert.deepEqual([answer.status, answer.json.code], [500, answered], `${method} ${path}`)
        assert.equal(answer.json.detail.includes(PATH), names)
        assert.match(answer.json.detail, names ? /restore the data/ : /ask the operator/)
      }
      const token = Buffer.from(key).toString('base64url')
      using socket = await opened.socket(`/api/ws/${runId}`, {
        'Sec-WebSocket-Protocol': `runwright.v1, bearer.${token}`,
      })
      assert.equal(socket.status, 500)
      const problem = await socket.problem()
      assert.deepEqual([problem.code, problem.detail.includes(PATH)], [answered, names])
    }
    // The store has told of it; every request of a poller would tell of it again.
    assert.deepEqual(opened.errors, [])
    const answer = await opened.call('GET', `/api/runs/${good}`, { headers: bearer(FREE) })
    assert.equal(answer.status, 200)
  })
}

test('lists show damaged runs with their problem, without paths for a single tenant', async (t) => {
  const { engine, free, bound, good } = await openDamaged(t)
  await using opened = await openService({ engine, authorize })
  const listed = async (key: string): Promise<unknown> => {
    const { json } = await opened.call('GET', '/api/runs', { headers: bearer(key) })
    return Object.fromEntries(json.map((run: any) => [run.run_id, run.problem]))
  }
  const { message } = engine.damage().runs.map(({ reason }) => ({ message: reason }))[0]!
  assert.deepEqual(await listed(FREE), { [free]: message, [good]: null })
  assert.deepEqual(await listed(BOUND), {
    [bound]: 'this run cannot be used; ask the operator of this service',
  })
})

test('metrics count what is damaged', async () => {
  const engine = new FakeEngine()
  engine.damaged = { runs: [{ runId: 'r', reason: 'x' }], files: ['x', 'y'] }
  await using opened = await openService({ engine, metrics: true })
  const { text } = await opened.call('GET', '/metrics')
  assert.match(text, /^runwright_damaged{kind="runs"} 1\nrunwright_damaged{kind="files"} 2$/m)
})

test('a caller of all tenants can delete damaged runs, and health is ok again', async (t) => {
  const { engine, free, bound } = await openDamaged(t)
  await using opened = await openService({ engine, authorize })
  const remove = (runId: string, key: string): Promise<{ status: number }> =>
    opened.call('DELETE', `/api/runs/${runId}`, { headers: bearer(key) })
  assert.equal((await remove(bound, BOUND)).status, 500)
  const status = async (): Promise<string> => (await opened.call('GET', '/api/health')).json.status
  assert.equal(await status(), 'damaged')
  for (const runId of [free, bound]) assert.equal((await remove(runId, FREE)).status, 204)
  assert.equal(await status(), 'ok')
})

test('a client does not follow a damaged run again and again', async (t) => {
  const { engine, free } = await openDamaged(t)
  await using opened = await openService({ engine })
  await using client = new RunServiceClient({ baseUrl: opened.served.origin, retry: null })
  let requests = 0
  opened.served.server.on('request', () => (requests += 1))
  const first = client.events(free, { reconnectMs: 1 }).next()
  await assert.rejects(first, (error: RunServiceError) => error.code === 'run_damaged')
  assert.equal(requests, 1)
  const { damaged } = await client.health()
  assert.deepEqual(damaged, { runs: 2, files: 0 })
})

for (const { code, message } of [
  {
    code: 'ERR_AGENT_STORE_UNAVAILABLE',
    message: 'cannot write to /d: the disk is full; free some space',
  },
  { code: 'ERR_AGENT_STORE_LOCKED', message: 'process 7 has taken the data directory /d over' },
] as const) {
  test(`${code} is a 503 with Retry-After, with its cause for callers of all tenants`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({ engine, authorize })
    const own = { [FREE]: engine.add(), [BOUND]: engine.add('acme') }
    for (const [key, runId] of Object.entries(own)) {
      for (const path of ['', `/${runId}/abort`, `/${runId}/retry`, `/${runId}/resume`]) {
        engine.failure = new StoreError(code, message)
        const body = { '': { goal: 'x' }, [`/${runId}/resume`]: { decision: 'abort' } }[path] ?? {}
        const answer = await opened.call('POST', `/api/runs${path}`, { body, headers: bearer(key) })
        assert.deepEqual([answer.status, answer.json.code], [503, 'store_unavailable'])
        assert.match(String(answer.headers['retry-after']), /^\d+$/)
        assert.equal(answer.json.detail.includes(message), key === FREE)
      }
    }
    assert.deepEqual(opened.errors, [])
  })
}
