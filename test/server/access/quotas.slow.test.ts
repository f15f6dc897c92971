/** Limits per tenant: requests over HTTP, to services on real engines. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, RunEngine, type AgentEvent, type EngineOptions } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import {
  bearerKeys,
  RunServiceClient,
  RunServiceError,
  type RunServiceOptions,
} from 'runwright/server'
import { follow, openEngine, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'
import { openService, type Answer, type Opened } from '../open-service.js'

const KEYS = { acme: 'acme-key-0123456789', bolt: 'bolt-key-0123456789' }
const authorize = bearerKeys({
  ann: { key: KEYS.acme, tenant: 'acme' },
  bob: { key: KEYS.bolt, tenant: 'bolt' },
})
type Tenant = keyof typeof KEYS
type PerTenant = NonNullable<NonNullable<RunServiceOptions['limits']>['perTenant']>

type Speaker = () => Said | Promise<Said>

/** A model that waits until the test ends; `said` when it is to say something else. */
async function open(
  t: TestContext,
  perTenant: PerTenant,
  { said, ...options }: Partial<EngineOptions> & { readonly said?: Speaker } = {},
): Promise<{ readonly service: Opened; readonly engine: RunEngine }> {
  let end: () => void = () => undefined
  const over = new Promise<Said>((resolve) => (end = () => resolve({})))
  const { engine } = await openEngine(t, {
    providers: [testProvider(() => said?.() ?? over)],
    cwdPolicy: 'allow',
    maxConcurrentRuns: 50,
    ...options,
  })
  t.after(() => end())
  return { engine, service: await serve(t, engine, perTenant) }
}

async function serve(t: TestContext, engine: RunEngine, perTenant: PerTenant): Promise<Opened> {
  const service = await openService({ engine, authorize, limits: { perTenant } })
  t.after(() => service[Symbol.asyncDispose]())
  return service
}

/** A request of a tenant. */
function send(
  service: Opened,
  tenant: Tenant,
  method: string,
  path: string,
  { body, headers }: { body?: object; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const authorization = `Bearer ${KEYS[tenant]}`
  const more = body === undefined ? {} : { body }
  return service.call(method, path, { headers: { authorization, ...headers }, ...more })
}

const start = (service: Opened, tenant: Tenant, headers: Record<string, string> = {}) =>
  send(service, tenant, 'POST', '/api/runs', {
    body: { goal: 'shell: false', workspace: 'in_place', cwd: cwds.get(tenant) },
    headers,
  })
/** Folders belong to one tenant. */
const cwds = new Map<Tenant, string>()

/** An engine whose roots are a folder for each tenant. */
function folders(t: TestContext): Partial<EngineOptions> {
  cwds.set('acme', scratch(t)).set('bolt', scratch(t))
  return { roots: [...cwds.values()] }
}

/** Ends a run by aborting it. */
async function abort(engine: RunEngine, runId: string): Promise<void> {
  await engine.abort(runId)
  await follow(engine, runId)
}

test('a start beyond the runs of a tenant is 429 and says so; another tenant starts', async (t) => {
  const { service, engine } = await open(t, { runs: 2 }, folders(t))
  const first = await start(service, 'acme')
  assert.deepEqual([first.status, (await start(service, 'acme')).status], [201, 201])
  const refused = await start(service, 'acme')
  assert.equal(refused.status, 429)
  assert.equal(refused.json.code, 'quota_runs')
  assert.deepEqual(refused.json.quota, { used: 2, allowed: 2, frees_at: null })
  assert.match(refused.json.detail, /has 2 runs .* may have 2; when .* is not known/)
  assert.equal(refused.headers['retry-after'], undefined)
  assert.equal((await start(service, 'bolt')).status, 201)
  await abort(engine, first.json.run_id)
  assert.equal((await start(service, 'acme')).status, 201)
})

test('forks and retries count as starts, and a repeated start does not', async (t) => {
  const { service, engine } = await open(t, { runs: 1 }, folders(t))
  const { json: ended } = await start(service, 'acme')
  await abort(engine, ended.run_id)
  const key = { 'idempotency-key': 'k1' }
  const { json: running } = await start(service, 'acme', key)
  for (const [action, body] of [['retry', {}], ['fork', { workspace: 'in_place' }]] as const) {
    const refused = await send(service, 'acme', 'POST', `/api/runs/${ended.run_id}/${action}`, {
      body,
    })
    assert.deepEqual([action, refused.status, refused.json.code], [action, 429, 'quota_runs'])
  }
  const again = await start(service, 'acme', key)
  assert.deepEqual([again.status, again.json.run_id], [200, running.run_id])
  await abort(engine, running.run_id)
  const retried = await send(service, 'acme', 'POST', `/api/runs/${ended.run_id}/retry`)
  assert.equal(retried.status, 201)
})

test('starts that arrive together at two services on one store get no run too many', async (t) => {
  const { service, engine } = await open(t, { runs: 3 }, folders(t))
  const other = await serve(t, engine, { runs: 3 })
  assert.equal((await start(other, 'acme')).status, 201)
  const answers = await Promise.all(Array.from({ length: 12 }, () => start(service, 'acme')))
  const statuses = answers.map(({ status }) => status).sort()
  assert.deepEqual(statuses, [201, 201, ...Array<number>(10).fill(429)])
  assert.equal((await start(other, 'acme')).status, 429)
  assert.deepEqual(await engine.usage('acme'), { openRuns: 3, cost: null })
  assert.deepEqual(await engine.usage('bolt'), { openRuns: 0, cost: null })
})

test('a tenant whose runs cost too much within a day starts again when they leave it', async (t) => {
  const clock = new ManualClock(Date.parse('2026-03-01T10:00:30Z'))
  const said = (): Said => ({ text: 'done', tokens: [300_000, 0] })
  const { service, engine } = await open(t, { costUsdPerDay: 1 }, { ...folders(t), clock, said })
  const spend = async (tenant: Tenant, max_iterations: number): Promise<void> => {
    const body = { goal: 'shell: false', cwd: cwds.get(tenant), max_iterations }
    const { status, json } = await send(service, tenant, 'POST', '/api/runs', { body })
    assert.equal(status, 201)
    await follow(engine, json.run_id)
  }
  await spend('acme', 2)
  clock.advance(3_600_000)
  await spend('acme', 1)
  await spend('acme', 1)
  const refused = await start(service, 'acme')
  assert.deepEqual([refused.status, refused.json.code], [429, 'quota_cost'])
  const { used, allowed, frees_at } = refused.json.quota
  assert.deepEqual([used, allowed], [1.2, 1])
  // From 11:00:30 to the end of the minute in which the first run was created, a day later.
  assert.equal(refused.headers['retry-after'], String(23 * 3600 + 30))
  assert.ok(!Number.isNaN(Date.parse(frees_at)))
  assert.match(refused.json.detail, /used 1\.2 US dollars within 24 hours, and may use 1; the oldest/)
  await spend('bolt', 1)
  clock.advance((23 * 3600 + 29) * 1000)
  assert.equal((await start(service, 'acme')).status, 429)
  clock.advance(1_000)
  await spend('acme', 1)
  assert.deepEqual(round(await engine.usage('acme', { costs: true })), [0, 0.9, 3_600_000])
})

test('what live attempts cost counts, before their run has it', async (t) => {
  let asked = 0
  let reached: () => void = () => undefined
  const working = new Promise<void>((resolve) => (reached = resolve))
  let end: () => void = () => undefined
  const over = new Promise<Said>((resolve) => (end = () => resolve({})))
  // Each attempt uses 0.5 dollars, and is then at work until the test ends.
  const said = (): Said | Promise<Said> => {
    asked += 1
    if (asked === 4) reached()
    const calls = [{ tool: 'list_files', args: {} }]
    return asked > 2 ? over : { calls, tokens: [500_000, 0] }
  }
  const copies = { workspaceFolder: scratch(t), checkpoints: 'auto' } as const
  const given = { ...folders(t), ...copies, said }
  const { service, engine } = await open(t, { costUsdPerDay: 1 }, given)
  t.after(() => end())
  const body = { goal: 'shell: false', cwd: cwds.get('acme'), attempts: { count: 2 } }
  const { json, status } = await send(service, 'acme', 'POST', '/api/runs', { body })
  assert.equal(status, 201)
  await working
  assert.equal((await engine.get(json.run_id)).final_state.estimated_cost_usd, 0)
  const { openRuns, cost } = await engine.usage('acme', { costs: true })
  assert.deepEqual([openRuns, cost?.usd], [1, 1])
  const refused = await start(service, 'acme')
  assert.deepEqual([refused.status, refused.json.code], [429, 'quota_cost'])
  await abort(engine, json.run_id)
  const after = await engine.usage('acme', { costs: true })
  assert.deepEqual([after.openRuns, after.cost?.usd], [0, 1])
})

/** Open runs, US dollars, and milliseconds until some of them count no longer. */
function round({ openRuns, cost }: Awaited<ReturnType<RunEngine['usage']>>): unknown[] {
  return [openRuns, Math.round(cost!.usd * 1e6) / 1e6, cost!.freesInMs]
}

test('costs count while a run goes on, once, in every process, and after it was deleted', async (t) => {
  const store = new MemoryStore()
  let hold = true
  let go: () => void = () => undefined
  const held = new Promise<Said>((resolve) => (go = () => resolve({ tokens: [100_000, 0] })))
  let turns = 0
  const clock = new ManualClock(Date.parse('2026-03-01T10:00:00Z'))
  const cwd = scratch(t)
  const provider = testProvider(() =>
    turns++ > 0 && hold ? held : { tokens: [200_000, 0], calls: [] },
  )
  const { engine } = await openEngine(t, { store, clock, cwd, providers: [provider] })
  const caller = { owner: { id: 'ann', tenant: 'acme' } }
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 2 }, { caller })
  const isSecond = ({ kind, iteration }: AgentEvent): boolean =>
    kind === 'step_start' && iteration === 2
  await follow(engine, details.run_id, isSecond)
  assert.deepEqual(round(await engine.usage('acme', { costs: true })), [1, 0.2, 86_460_000])
  clock.advance(48 * 3_600_000)
  // It goes on, so it counts, and nobody knows for how long.
  assert.deepEqual(round(await engine.usage('acme', { costs: true })), [1, 0.2, null])
  hold = false
  go()
  await follow(engine, details.run_id)
  assert.deepEqual(round(await engine.usage('acme', { costs: true })), [0, 0, null])
  const next = await engine.create({ goal: 'shell: false', max_iterations: 1 }, { caller })
  await follow(engine, next.details.run_id)
  for (let n = 0; n < 2; n++) {
    assert.deepEqual(round(await engine.usage('acme', { costs: true })), [0, 0.2, 86_460_000])
  }
  await engine.delete(next.details.run_id)
  assert.deepEqual(round(await engine.usage('acme', { costs: true })), [0, 0.2, 86_460_000])
})

test('what runs cost counts once, although the time of day is set back', async (t) => {
  const clock = new ShiftedClock()
  const provider = testProvider(() => ({ tokens: [100_000, 0] }))
  const { engine } = await openEngine(t, { clock, providers: [provider] })
  const caller = { owner: { id: 'ann', tenant: 'acme' } }
  const spend = async (): Promise<void> => {
    const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 }, { caller })
    await follow(engine, details.run_id)
  }
  const used = async (): Promise<unknown> => round(await engine.usage('acme', { costs: true }))[1]
  await spend()
  clock.advance(HOUR)
  await spend()
  assert.equal(await used(), 0.2)
  clock.advance(2 * HOUR)
  clock.shiftMs = -2.5 * HOUR
  await spend()
  clock.advance(HOUR)
  assert.equal(await used(), 0.3)
  assert.equal(await used(), 0.3)
})

test('the client tells how much of a limit is used', async (t) => {
  const { service } = await open(t, { runs: 1 }, folders(t))
  const baseUrl = `http://127.0.0.1:${service.port}`
  const client = new RunServiceClient({ baseUrl, key: KEYS.acme, retry: null })
  t.after(() => client.close())
  const request = { goal: 'shell: false', cwd: cwds.get('acme')! }
  await client.create(request)
  await assert.rejects(client.create(request), (error: RunServiceError) => {
    assert.deepEqual([error.code, error.retryAfterMs], ['quota_runs', null])
    assert.deepEqual(error.quota, { used: 1, allowed: 1, frees_at: null })
    return true
  })
})

test('the calls of the host itself are not limited, and count for the tenant that they name', async (t) => {
  const { service, engine } = await open(t, { runs: 1 }, folders(t))
  const caller = { owner: { id: 'host', tenant: 'acme' } }
  const request = { goal: 'shell: false', cwd: cwds.get('acme')! }
  for (let n = 0; n < 3; n++) await engine.create(request, { caller })
  const refused = await start(service, 'acme')
  assert.deepEqual(refused.json.quota, { used: 3, allowed: 1, frees_at: null })
})

for (const [perTenant, named] of [
  [{ runs: 0 }, /^limits\.perTenant\.runs must be an integer from 1/],
  [{ runs: 1.5 }, /^limits\.perTenant\.runs /],
  [{ costUsdPerDay: 0 }, /^limits\.perTenant\.costUsdPerDay must be a number of US dollars/],
  [{ costUsdPerDay: NaN }, /^limits\.perTenant\.costUsdPerDay /],
  [{ costUsdPerDai: 1 }, /costUsdPerDay/],
] as const) {
  test(`${JSON.stringify(perTenant)} is refused by name`, async () => {
    const limits = { perTenant: perTenant as { runs?: number } }
    await assert.rejects(openService({ limits }), { message: named })
  })
}
