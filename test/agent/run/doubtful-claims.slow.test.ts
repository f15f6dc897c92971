/** What a process does with a run whose claim it cannot be certain of. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { defineTool, RunEngine, type EngineOptions, type Executor } from 'runwright/agent'
import { untilAborted } from '../../helpers/abort.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { SharedCluster, type ClusterStore } from '../testing/shared-cluster.js'

test('tools stop when their claim is doubtful, and the run goes on with their results', async (t) => {
  const store = await new SharedCluster().connect()
  let calls = 0
  const wait = defineTool({
    name: 'wait',
    description: 'Waits, the first time.',
    parameters: { type: 'object', properties: {} },
    async execute(_, { signal }) {
      if (++calls > 1) return 'waited'
      store.doubt()
      return await untilAborted(signal)
    },
  })
  const engine = await open(t, store, {
    tools: [wait],
    providers: [
      testProvider((_, n) => (n % 2 === 0 ? { calls: [{ tool: 'wait', args: {} }] } : {})),
    ],
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 2 })
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const results = events.filter((event) => event.kind === 'tool_result')
  assert.deepEqual(
    results.map(({ payload }) => [payload.exit_code, payload.output]),
    [[130, 'Stopped: the store could not be reached'], [0, 'waited']],
  )
  assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 0)
})

test('a command that had not begun when its claim was doubtful runs later', async (t) => {
  const store = await new SharedCluster().connect()
  let runs = 0
  const executor: Executor = {
    name: 'test',
    killMarked: () => Promise.resolve(0),
    async run(command, { onStart, signal }) {
      const ended = { output: '', truncated: false, timedOut: false, durationMs: 0 }
      if (command === 'work' && ++runs <= 4) {
        store.doubt()
        assert.equal(signal?.aborted, true)
        return { ...ended, exitCode: 130 }
      }
      await onStart?.(undefined as unknown as number)
      return { ...ended, exitCode: command === 'work' ? 0 : 1 }
    },
  }
  const engine = await open(t, store, {
    executor,
    providers: [
      testProvider((_, n) =>
        n === 0 ? { calls: [{ tool: 'bash', args: { command: 'work' } }] } : {},
      ),
    ],
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const results = events.filter((event) => event.kind === 'tool_result')
  assert.deepEqual([runs, results.map(({ payload }) => payload.exit_code)], [5, [0]])
})

test('a model call goes on while the claim is doubtful', async (t) => {
  const store = await new SharedCluster().connect()
  const engine = await open(t, store, {
    providers: [
      testProvider(({ signal }) => {
        store.doubt()
        assert.equal(signal.aborted, false)
        return {}
      }),
    ],
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  assert.equal((await follow(engine, details.run_id)).at(-1)?.kind, 'run_end')
  assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
})

test('no check begins when another process has taken over the run', async (t) => {
  const cluster = new SharedCluster()
  const one: ClusterStore = await cluster.connect(async (records, store) => {
    await store()
    if (!records.some(({ kind }) => kind === 'run_started')) return
    one.lapse()
    assert.equal((await two.shared.claim(1)).length, 1)
  })
  const two = await cluster.connect()
  const released = one.released()
  const engine = await open(t, one)
  const cwd = join(engine.cwd, 'work')
  mkdirSync(cwd)
  await engine.create({ goal: 'shell: touch checked', cwd })
  await released
  assert.equal(existsSync(join(cwd, 'checked')), false)
})

async function open(
  t: TestContext,
  store: ClusterStore,
  options: Partial<EngineOptions> = {},
): Promise<RunEngine & { readonly cwd: string }> {
  const cwd = scratch(t)
  const engine = await RunEngine.open({
    store,
    roots: [cwd],
    sealedChecks: 'off',
    defaultModel: 'test:m',
    providers: [testProvider(() => ({}))],
    ...options,
  })
  t.after(() => engine.close())
  return Object.assign(engine, { cwd })
}
