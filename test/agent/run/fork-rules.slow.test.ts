/** Which forks and messages are accepted: by the fields of their schemas, and by state and point. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  FileStore,
  FORK_SCHEMA,
  MemoryStore,
  START_REQUEST_SCHEMA,
  type JsonObject,
  type JsonValue,
  type RunStore,
} from 'runwright/agent'
import { untilAborted } from '../../helpers/abort.js'
import { follow, openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

const INVALID = { code: 'ERR_AGENT_INVALID_REQUEST' }
const SECRET = 'hunter22-of-the-test'
const COMMON = { goal: 'shell: false', max_iterations: 1 }

/** A value for each field of a start request, other than that of the source. */
const OVERRIDES: Readonly<Record<string, (other: string) => JsonValue>> = {
  cwd: (other) => other,
  model_name: () => 'test:other',
  max_iterations: () => 7,
  hitl_enabled: () => true,
  approval: () => 'all',
  max_total_tokens: () => 1_234,
  max_cost_usd: () => 3,
  max_seconds: () => 99,
  max_tool_calls: () => 55,
  metadata: () => ({ a: 'b' }),
  temperature: () => 0.5,
  reasoning_effort: () => 'low',
  max_output_tokens: () => 99,
  workspace: () => 'in_place',
  checkpoints: () => 'off',
  apply: () => 'on_achieved',
  sealed_checks: () => 'require',
  allow_dependency_changes: () => true,
  may_change: () => ['test/**'],
  delegation: () => ({ depth: 1, children: 2 }),
  instructions: () => 'Be kind.',
  project_instructions: () => false,
  tools: () => ['read_file'],
  compaction: () => 'drop',
  fallback_models: () => ['test:other'],
  result_schema: () => ({ type: 'object', required: ['a'] }),
}

test('a fork takes any field of a start request over the one of its source', async (t) => {
  const store = new MemoryStore()
  const other = scratch(t)
  const cwd = scratch(t)
  const base = testProvider(() => ({}))
  const provider = {
    ...base,
    create: (name: string) => ({
      ...base.create(name),
      name: `test:${name}`,
      refusedSetting: () => null,
    }),
  }
  const { engine } = await openEngine(t, {
    store, cwd, roots: [cwd, other], providers: [provider],
    checkpoints: 'auto', workspaceFolder: scratch(t), delegation: {},
  })
  const { details } = await runToEnd(engine, { ...COMMON, metadata: { from: 'source' } })
  const frozen = async (runId: string): Promise<JsonObject> => {
    const [first] = await store.read(runId, 0, 1)
    assert.ok(first?.kind === 'run_created')
    return (first.private as unknown as { request: JsonObject }).request
  }
  const source = await frozen(details.run_id)
  const {
    attempts: _, check: __, goal: ___, holdout: ____, images: _____, setup: ______, ...fields
  } = START_REQUEST_SCHEMA.properties ?? {}
  assert.deepEqual(Object.keys(OVERRIDES).sort(), Object.keys(fields).sort(), 'each has a row')
  for (const [field, valueIn] of Object.entries(OVERRIDES)) {
    const value = valueIn(other)
    const inPlace = ['checkpoints', 'workspace'].includes(field)
    const given = { [field]: value, ...(inPlace && { workspace: 'in_place' }) }
    const fork = await engine.fork(details.run_id, given)
    const request = await frozen(fork.details.run_id)
    const isDefault = field === 'workspace' || field === 'compaction'
    assert.deepEqual(request[field], isDefault ? undefined : value, field)
    for (const [name, kept] of Object.entries(source)) {
      if (name !== field && name !== 'workspace') assert.deepEqual(request[name], kept, name)
    }
    await engine.abort(fork.details.run_id).catch(() => undefined)
    await follow(engine, fork.details.run_id)
  }
  for (const field of ['goal', 'check', 'holdout', 'attempts', 'images', 'run_id', 'owner', 'parent_run_id', 'forked_from'])
    await assert.rejects(engine.fork(details.run_id, { [field]: 'x' }), (error: Error) => {
      assert.match(error.message, new RegExp(field))
      return true
    })
})

test('no field of a fork or a message may hold a secret', async (t) => {
  const { engine } = await openEngine(t, {
    providers: [testProvider(() => ({}))], secrets: [SECRET],
  })
  const { details } = await runToEnd(engine, COMMON)
  const values: readonly JsonValue[] = [SECRET, { a: SECRET }, { [SECRET]: 'a' }, [SECRET]]
  const isRefused = (error: Error & { readonly code?: string }): boolean => {
    assert.equal(error.code, INVALID.code)
    return true
  }
  for (const field of Object.keys(FORK_SCHEMA.properties ?? {})) {
    for (const value of values) {
      const request = { workspace: 'in_place', [field]: value }
      await assert.rejects(engine.fork(details.run_id, request), isRefused, field)
    }
  }
  const live = await engine.create({ ...COMMON, hitl_enabled: true, max_iterations: 2 })
  await follow(engine, live.details.run_id, ({ kind }) => kind === 'human_check_required')
  for (const field of ['text', 'deliver', 'by', SECRET])
    for (const value of values)
      await assert.rejects(
        engine.message(live.details.run_id, { text: 'x', [field]: value }), isRefused, field,
      )
  await engine.abort(live.details.run_id)
})

const POINTS = ['end', 'start', { iteration: 0 }, { iteration: 1 }, { iteration: 9 }, { seq: 1 }]
const STATES = ['running', 'awaiting_human', 'failed', 'achieved', 'aborted', 'pending'] as const

async function tableFor(t: TestContext, store: RunStore): Promise<void> {
  const { engine } = await openEngine(t, {
    store, checkpoints: 'auto', workspaceFolder: scratch(t), maxConcurrentRuns: 1,
    gateTimeoutMs: null,
    providers: [
      testProvider(({ run, signal }) => {
        if (run.goal !== 'shell: sleep 0; false') return {}
        return untilAborted(signal)
      }),
    ],
  })
  const ids: Record<string, string> = {}
  ids['failed'] = (await runToEnd(engine, COMMON)).details.run_id
  ids['achieved'] = (await runToEnd(engine, { goal: 'shell: true' })).details.run_id
  for (const name of ['aborted', 'awaiting_human']) {
    const { details } = await engine.create({ ...COMMON, hitl_enabled: true, max_iterations: 2 })
    ids[name] = details.run_id
    await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
    if (name === 'aborted') await engine.abort(details.run_id)
  }
  // It keeps the only slot, so that no fork begins.
  const running = await engine.create({ goal: 'shell: sleep 0; false', workspace: 'isolated' })
  ids['running'] = running.details.run_id
  await follow(engine, ids['running'], ({ kind }) => kind === 'step_start')
  ids['pending'] = (await engine.create(COMMON)).details.run_id
  for (const state of STATES) {
    const run = ids[state]!
    assert.equal((await engine.get(run)).status, state)
    const events = await engine.events(run, { after: 0, limit: 1_000 })
    const ended = ['failed', 'achieved', 'aborted'].includes(state)
    const turns = events.filter(({ kind }) => kind === 'iteration_complete').length
    const keeps = events.some(({ kind }) => kind === 'checkpoint')
    for (const at of POINTS) {
      for (const workspace of [undefined, 'isolated', 'in_place', 'none']) {
        const isLater = typeof at === 'object' && 'iteration' in at && at.iteration! > turns
        const expected =
          workspace === 'none'
            ? 'ERR_AGENT_INVALID_REQUEST'
            : workspace === 'in_place' && !ended
              ? 'ERR_AGENT_RUN_STATE'
              : isLater
                ? 'ERR_AGENT_INVALID_REQUEST'
                : !keeps && !(workspace === 'in_place' && at === 'end')
                  ? 'ERR_AGENT_CHECKPOINT'
                  : 'forked'
        const what = `${state} at ${JSON.stringify(at)}, ${workspace}`
        const request = { at, ...(workspace !== undefined && { workspace }) } as JsonObject
        const answer = await engine.fork(run, request).catch((error: { code: string }) => error)
        if ('code' in answer) assert.equal(answer.code, expected, what)
        else {
          assert.equal('forked', expected, what)
          assert.equal(answer.details.forked_from?.run_id, run)
          assert.equal(answer.details.workspace, workspace ?? 'isolated')
          await engine.abort(answer.details.run_id)
        }
        assert.deepEqual(await engine.events(run, { after: 0, limit: 1_000 }), events, what)
      }
    }
    const message = await engine.message(run, { text: 'x' }).catch((error: object) => error)
    assert.equal('message_id' in message, !ended, `message while ${state}`)
  }
  for (const name of ['pending', 'running', 'awaiting_human']) await engine.abort(ids[name]!)
}

test('a table of states, points and workspaces: forks and messages in memory', (t) =>
  tableFor(t, new MemoryStore()))

test('a table of states, points and workspaces: forks and messages in files', (t) =>
  tableFor(t, new FileStore({ directory: scratch(t) })))
