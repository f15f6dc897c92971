/** Changes of the request of a run that has not ended. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore, RunEngine, type AgentEvent, type JsonObject, type RunRequest,
} from 'runwright/agent'
import { delegateStart } from '../../../lib/agent/request/creation.js'
import { loadState } from '../../../lib/agent/log/state.js'
import { untilAborted } from '../../helpers/abort.js'
import {
  atGate, follow, openEngine, payloads, scratch, testProvider,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { SharedCluster } from '../testing/shared-cluster.js'

const GATED = { goal: 'shell: false', hitl_enabled: true, max_iterations: 2 }

/** An engine with a run that waits at its first gate. */
async function gated(
  t: TestContext,
  options: Parameters<typeof openEngine>[1] = {},
  request: JsonObject = {},
): Promise<{ readonly engine: RunEngine; readonly runId: string; readonly store: MemoryStore }> {
  const store = new MemoryStore()
  const providers = [testProvider(() => ({}))]
  const { engine } = await openEngine(t, { store, providers, ...options })
  const { details } = await engine.create({ ...GATED, ...request })
  await follow(engine, details.run_id, atGate)
  return { engine, runId: details.run_id, store }
}

async function requestOf(store: MemoryStore, runId: string): Promise<RunRequest> {
  const [first] = await store.read(runId, 0, 1)
  assert.ok(first?.kind === 'run_created')
  return first.private!.request
}

async function messagesOf(engine: RunEngine, runId: string): Promise<AgentEvent[]> {
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  return events.filter(({ kind }) => kind === 'user_message')
}

test('a new list replaces the one before, and an empty one all of it', async (t) => {
  const { engine, runId } = await gated(t, {}, { may_change: ['a/**', 'b'] })
  assert.deepEqual((await engine.get(runId)).may_change, ['a/**', 'b'])
  for (const [list, shown] of [[['c'], ['c']], [[], null], [['d', 'e'], ['d', 'e']]] as const) {
    const { may_change, status } = await engine.update(runId, { may_change: [...list] })
    assert.deepEqual([may_change, status], [shown, 'awaiting_human'])
  }
  const told = payloads(await messagesOf(engine, runId), 'user_message')
  assert.deepEqual(told.map(({ may_change }) => may_change), [['c'], [], ['d', 'e']])
  assert.match(told[1]!.text, /^From now on, no change to a file of the check counts/)
  assert.match(told[2]!.text, /^From now on, changes to these files .*:\n- d\n- e$/)
  await engine.abort(runId)
  assertInvariants(await follow(engine, runId))
})

test('a list is checked as in a start request, and changes nothing if it is invalid', async (t) => {
  const { engine, runId } = await gated(t, { secrets: ['hunter22-of-the-test'] })
  for (const [update, ...pointers] of [
    [{ may_change: ['a', '/etc/passwd', '../b', 'package.json#scripts'] },
      '/may_change/1', '/may_change/2', '/may_change/3'],
    [{ may_change: ['a', ''] }, '/may_change/1'],
    [{ may_change: 'a' }, '/may_change'],
    [{ may_change: null }, '/may_change'],
    [{ may_change: Array.from({ length: 101 }, () => 'a') }, '/may_change'],
    [{ may_change: ['x/hunter22-of-the-test'] }, '/may_change'],
    [{}, '/may_change'],
    [{ may_change: [], max_iterations: 3 }, '/max_iterations'],
  ] as readonly (readonly [JsonObject, ...string[]])[]) {
    await assert.rejects(engine.update(runId, update), (error: { violations?: unknown }) => {
      const found = error.violations as readonly { readonly pointer: string }[]
      assert.deepEqual(found.map(({ pointer }) => pointer), pointers, JSON.stringify(update))
      return true
    })
  }
  assert.deepEqual(await messagesOf(engine, runId), [])
})

test('a run without a folder has no check whose files may change', async (t) => {
  const providers = [testProvider(() => new Promise(() => undefined))]
  const { engine } = await openEngine(t, { providers })
  const result_schema = { type: 'object', properties: { a: { type: 'number' } } }
  const request = { goal: 'result: a number', workspace: 'none', result_schema }
  const { details } = await engine.create(request)
  const update = engine.update(details.run_id, { may_change: ['a'] })
  await assert.rejects(update, /may_change: must be left out: a run without a folder has none/)
})

test('a key makes a change unique, and an ended run takes none', async (t) => {
  const { engine, runId } = await gated(t)
  const key = { idempotencyKey: 'k' }
  const update = { may_change: ['a'] }
  await engine.update(runId, update, key)
  await engine.update(runId, { may_change: ['b'] })
  assert.deepEqual((await engine.update(runId, update, key)).may_change, ['b'])
  const reused = { code: 'ERR_AGENT_IDEMPOTENCY' }
  await assert.rejects(engine.update(runId, { may_change: ['c'] }, key), reused)
  assert.equal((await messagesOf(engine, runId)).length, 2)
  await engine.abort(runId)
  await follow(engine, runId)
  await assert.rejects(engine.update(runId, update), {
    code: 'ERR_AGENT_RUN_STATE',
    problem: 'ended',
    message: /has ended as aborted, and it was not changed: fork the run with this may_change/,
  })
})

test('a fork begins with the newest list of its source, or with its own', async (t) => {
  const cwd = scratch(t)
  const { engine, runId, store } = await gated(
    t, { cwd, checkpoints: 'auto', workspaceFolder: scratch(t) }, { may_change: ['a'] },
  )
  await engine.update(runId, { may_change: ['b'] })
  await engine.abort(runId)
  await follow(engine, runId)
  for (const [request, list, heard] of [
    [{}, ['b'], 1],
    [{ may_change: ['c'] }, ['c'], 0],
  ] as const) {
    const { details } = await engine.fork(runId, { ...request, hitl_enabled: false })
    assert.deepEqual(details.may_change, list)
    assert.deepEqual((await requestOf(store, details.run_id)).may_change, list)
    const [created] = await follow(engine, details.run_id)
    assert.ok(created?.kind === 'run_created')
    assert.equal(created.payload.messages?.length ?? 0, heard)
  }
  // Taken back, it is not in forks either.
  const { engine: other, runId: source } = await gated(
    t, { cwd, checkpoints: 'auto', workspaceFolder: scratch(t) }, { may_change: ['a'] },
  )
  await other.update(source, { may_change: [] })
  const { details } = await other.fork(source, { at: 'start' })
  assert.equal(details.may_change, null)
})

test('runs that it starts later begin with the newest list', async (t) => {
  const { engine, runId, store } = await gated(t, { delegation: {} }, { may_change: ['a'] })
  await engine.update(runId, { may_change: ['b'] })
  const state = await loadState(store, runId)
  const left = {
    max_total_tokens: null, max_cost_usd: null, max_seconds: null, max_tool_calls: null,
  }
  const asked = { goal: 'shell: false' }
  assert.deepEqual(delegateStart(state!, asked, left, new Map()).may_change, ['b'])
})

test('attempts that have not begun begin with the newest list', async (t) => {
  const store = new MemoryStore()
  let answer: () => void = () => undefined
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const { engine } = await openEngine(t, {
    store, checkpoints: 'auto', workspaceFolder: scratch(t), maxConcurrentRuns: 1,
    providers: [testProvider(async () => (await answered, {}))],
  })
  const once = { goal: 'shell: false', max_iterations: 1 }
  const first = await engine.create(once)
  await follow(engine, first.details.run_id, ({ kind }) => kind === 'step_start')
  const attempts = { count: 1 }
  const { details } = await engine.create({ ...once, attempts })
  await engine.update(details.run_id, { may_change: ['b'] })
  answer()
  const [started] = payloads(await follow(engine, details.run_id), 'attempt_started')
  assert.deepEqual((await requestOf(store, started!.run_id)).may_change, ['b'])
})

test('the process that drives a run gets a change from another, which goes on with it', async (t) => {
  const cluster = new SharedCluster()
  const cwd = scratch(t)
  let asked: () => void = () => undefined
  const isAsked = new Promise<void>((resolve) => (asked = resolve))
  const open = async (answers: boolean): Promise<RunEngine> => {
    const engine = await RunEngine.open({
      store: await cluster.connect(), roots: [cwd], checkpoints: 'off', sealedChecks: 'off',
      defaultModel: 'test:m',
      providers: [
        testProvider(({ signal }) => {
          if (answers) return {}
          asked()
          return untilAborted(signal)
        }),
      ],
    })
    t.after(() => engine.close())
    return engine
  }
  const driver = await open(false)
  const { details } = await driver.create({ goal: 'shell: false', max_iterations: 1 })
  const runId = details.run_id
  await isAsked
  const other = await open(true)
  assert.deepEqual((await other.update(runId, { may_change: ['a'] })).may_change, ['a'])
  assert.deepEqual((await driver.get(runId)).may_change, ['a'])
  await driver.close()
  const events = await follow(other, runId)
  assertInvariants(events)
  assert.equal(payloads(events, 'user_message').length, 1)
  assert.deepEqual((await other.get(runId)).may_change, ['a'])
})
