/** The demo of a host: a run to watch, which it prepares. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { StartRequest } from 'runwright/agent'
import { bearerKeys, RunServiceClient, type Principal } from 'runwright/server'
import { FakeEngine } from './fake-engine.js'
import { openService } from './open-service.js'
import { openReal } from './real.js'

const KEYS = { ann: 'ann-key-0123456789ab', bob: 'bob-key-0123456789ab' }
const authorize = bearerKeys({
  ann: { key: KEYS.ann, tenant: 'red' },
  bob: { key: KEYS.bob, tenant: 'blue' },
})
const as = (key: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${key}` },
})

test('without the option there is no demo, and nothing tells of one', async () => {
  await using opened = await openService()
  const { status, headers, json } = await opened.call('POST', '/api/demo')
  assert.deepEqual([status, json.code], [404, 'not_found'])
  assert.equal(headers['content-type'], 'application/problem+json')
  assert.ok(!('demo' in (await opened.call('GET', '/api/health')).json))
  const { paths } = (await opened.call('GET', '/api/openapi.json')).json
  assert.equal(paths['/api/demo'], undefined)
})

test('a demo is told by the health, described, and started as any other run', async (t) => {
  let root = ''
  const real = await openReal(t, {
    service: {
      demo: () => {
        const cwd = mkdtempSync(join(root, 'demo-'))
        writeFileSync(join(cwd, 'fault'), 'planted')
        return { goal: 'shell: test ! -e fault', cwd, metadata: { name: 'Demo' } }
      },
    },
    answer: () => ({ calls: [{ tool: 'bash', args: { command: 'rm fault' } }] }),
  })
  root = real.root
  assert.equal((await real.call('GET', '/api/health')).json.demo, true)
  const started = await real.call('POST', '/api/demo')
  const { run_id, metadata } = started.json
  assert.equal(started.status, 201)
  assert.equal(started.headers['location'], `/api/runs/${run_id}`)
  assert.deepEqual(metadata, { name: 'Demo' })
  for await (const batch of await real.service.engine.subscribe(run_id)) {
    if (batch.some(({ kind }) => kind === 'run_end')) break
  }
  assert.equal((await real.call('GET', `/api/runs/${run_id}`)).json.status, 'achieved')
  // It takes no fields, and other methods are refused.
  assert.equal((await real.call('POST', '/api/demo', { body: { goal: 'x' } })).status, 422)
  assert.equal((await real.call('POST', '/api/demo', { body: {} })).status, 201)
  assert.equal((await real.call('GET', '/api/demo')).status, 405)
})

test('each caller gets a demo of its own, within the limits of its tenant', async (t) => {
  const asked: (Principal | null)[] = []
  let root = ''
  const real = await openReal(t, {
    service: {
      authorize,
      limits: { perTenant: { runs: 1 } },
      demo: (principal) => {
        asked.push(principal)
        return { goal: 'shell: true', cwd: join(root, principal!.tenant!), hitl_enabled: true }
      },
    },
    engine: { roots: (principal) => [join(root, principal!.tenant!)] },
  })
  root = real.root
  for (const tenant of ['red', 'blue']) mkdirSync(join(root, tenant))
  assert.equal((await real.call('POST', '/api/demo')).status, 401)
  // Nobody needs a key to see that there is one.
  assert.deepEqual((await real.call('GET', '/api/health')).json, { status: 'ok', demo: true })
  const { json } = await real.call('POST', '/api/demo', as(KEYS.ann))
  assert.equal(json.cwd, join(root, 'red'))
  assert.equal((await real.call('GET', `/api/runs/${json.run_id}`, as(KEYS.bob))).status, 404)
  assert.equal((await real.call('POST', '/api/demo', as(KEYS.bob))).json.cwd, join(root, 'blue'))
  assert.deepEqual(asked.map((principal) => principal?.id), ['ann', 'bob'])
})

test('a tenant whose runs are at their limit gets no demo, and none is prepared', async () => {
  class Full extends FakeEngine {
    override readonly usage: FakeEngine['usage'] = async () => ({ openRuns: 1, cost: null })
  }
  let prepared = 0
  const demo = (): StartRequest => ({ goal: `shell: true ${(prepared += 1)}` })
  await using opened = await openService({
    engine: new Full(), authorize, demo, limits: { perTenant: { runs: 1 } },
  })
  const { status, json } = await opened.call('POST', '/api/demo', as(KEYS.ann))
  assert.deepEqual([status, json.code, prepared], [429, 'quota_runs', 0])
})

test('demos that are asked for at once are prepared and started one after the other', async () => {
  const steps: string[] = []
  const engine = new FakeEngine()
  const { create } = engine
  Object.defineProperty(engine, 'create', {
    value: async (...args: Parameters<typeof create>) => {
      const made = await create.apply(engine, args)
      steps.push('started')
      return made
    },
  })
  let fails = false
  const demo = async (): Promise<StartRequest> => {
    steps.push('prepared')
    await new Promise(setImmediate)
    if (fails) throw new Error('the disk is full')
    return { goal: 'shell: true' }
  }
  await using opened = await openService({ engine, demo })
  const all = await Promise.all([1, 2, 3].map(() => opened.call('POST', '/api/demo')))
  assert.deepEqual(all.map(({ status }) => status), [201, 201, 201])
  assert.equal(new Set(all.map(({ json }) => json.run_id)).size, 3)
  assert.deepEqual(steps, [1, 2, 3].flatMap(() => ['prepared', 'started']))
  // One that fails is an error of the host, and the next one is prepared all the same.
  fails = true
  const { status, json } = await opened.call('POST', '/api/demo')
  assert.deepEqual([status, json.code], [500, 'internal_error'])
  assert.match(String(opened.errors[0]), /the disk is full/)
  fails = false
  assert.equal((await opened.call('POST', '/api/demo')).status, 201)
})

test('a service that drains starts no demo', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine, demo: () => ({ goal: 'shell: true' }) })
  await opened.service.close({ graceMs: 0 })
  assert.equal((await opened.call('POST', '/api/demo')).status, 503)
})

test('a client starts the demo, and is told where there is none', async () => {
  await using opened = await openService({ demo: () => ({ goal: 'shell: true' }) })
  await using runs = RunServiceClient.inProcess(opened.service)
  const { run_id } = await runs.demo()
  assert.equal((await runs.get(run_id)).run_id, run_id)
  await using without = await openService({})
  await using others = RunServiceClient.inProcess(without.service)
  await assert.rejects(others.demo(), { name: 'RunServiceError', status: 404 })
})
