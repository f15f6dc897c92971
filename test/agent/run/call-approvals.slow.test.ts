/** Which calls wait for a human: the rules of a request, and the host's function. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  RunEngine,
  type ApproveCall,
  type CallToApprove,
  type EngineOptions,
  type JsonObject,
  type JsonValue,
  type RunStore,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { follow, keepOpen, openEngine, testProvider, type Said } from '../../helpers/engine.js'

const CALLS: Said = {
  calls: [
    { tool: 'list_files', args: {}, call_id: 'l' },
    { tool: 'read_file', args: { path: 'none' }, call_id: 'r' },
    { tool: 'write_file', args: { path: 'a', content: 'x' }, call_id: 'w' },
    { tool: 'edit_file', args: { path: 'a', old_text: 'x', new_text: 'y' }, call_id: 'e' },
    { tool: 'bash', args: { command: 'true' }, call_id: 'b' },
    { tool: 'try_patches', args: { patches: [], command: 'true' }, call_id: 't' },
    { tool: 'none', args: {}, call_id: 'n' },
  ],
}
const LONG = 'x'.repeat(9_999)
const COMMON = { goal: 'shell: false', max_iterations: 1 }

/** The calls that wait when a run has made all of these; empty when it has ended without a gate. */
async function gated(
  t: TestContext,
  approval: JsonValue | undefined,
  options: Partial<EngineOptions> = {},
): Promise<{ readonly calls: readonly string[]; readonly engine: RunEngine; readonly id: string }> {
  const providers = [testProvider((_, n) => (n === 0 ? CALLS : {}))]
  const { engine } = await openEngine(t, { providers, ...options })
  const request: JsonObject = approval === undefined ? COMMON : { ...COMMON, approval }
  const { details } = await engine.create(request)
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const { gate } = await engine.get(details.run_id)
  return { calls: (gate?.calls ?? []).map(({ call_id }) => call_id), engine, id: details.run_id }
}

for (const [approval, calls] of [
  ['never', ''],
  ['writes', 'webt'],
  ['all', 'lrwebt'],
  [{ tools: {} }, ''],
  [{ tools: { bash: 'always' } }, 'bt'],
  [{ tools: { try_patches: 'always' } }, 't'],
  [{ tools: { write_file: 'always' } }, 'webt'],
  [{ tools: { edit_file: 'always', bash: 'never', write_file: 'never' } }, 'webt'],
  [{ tools: { list_files: 'always', bash: 'never' } }, 'l'],
  [{ default: 'never', tools: { bash: 'never' } }, ''],
  [{ default: 'writes', tools: { write_file: 'never' } }, 'ebt'],
  [{ default: 'writes', tools: { read_file: 'always' } }, 'rwebt'],
  [{ default: 'writes', tools: { bash: 'never' } }, 'wet'],
  [{ default: 'writes', tools: { try_patches: 'never' } }, 'webt'],
  [{ default: 'writes', tools: { bash: 'never', try_patches: 'never' } }, 'we'],
  [{ default: 'all', tools: { list_files: 'never', bash: 'never' } }, 'rwet'],
] as const) {
  test(`approval ${JSON.stringify(approval)} lets wait: ${calls || 'none'}`, async (t) => {
    assert.deepEqual((await gated(t, approval)).calls, [...calls])
  })
}

for (const [approval, pointer, detail] of [
  [{ tools: { basch: 'always' } }, '/approval/tools/basch', /no tool "basch".* did you mean bash\?/],
  [{ tools: { 'a/b~c': 'never' } }, '/approval/tools/a~1b~0c', /there are bash, read_file, /],
  [JSON.parse('{"tools":{"__proto__":"always"}}'), '/approval/tools/__proto__', /no tool/],
  [{ tools: { [LONG]: 'never' } }, `/approval/tools/${LONG}`, /^.{0,800}$/],
  [{ tools: { bash: 'writes' } }, '/approval/tools/bash', /"never", "always"/],
  [{ default: 'always', tools: {} }, '/approval/default', /"never", "writes", "all"/],
  [{ default: 'all' }, '/approval/tools', /is required/],
  [{ tools: {}, tool: {} }, '/approval/tool', /tools/],
  ['sometimes', '/approval', /"never", "writes", "all"/],
] as const) {
  test(`a request with approval ${JSON.stringify(approval).slice(0, 50)} is refused`, async (t) => {
    const { engine } = await openEngine(t, { providers: [testProvider(() => ({}))] })
    const { details } = await engine.create(COMMON)
    await follow(engine, details.run_id)
    const isRefused = (error: Error): boolean => {
      const { violations } = error as unknown as {
        violations: readonly { pointer: string; detail: string }[]
      }
      assert.deepEqual(violations.map((one) => one.pointer), [pointer])
      assert.match(violations[0]!.detail, detail)
      return true
    }
    await assert.rejects(engine.create({ ...COMMON, approval }), isRefused)
    const fork = engine.fork(details.run_id, { workspace: 'in_place', approval })
    await assert.rejects(fork, isRefused)
  })
}

const RULES = { default: 'all', tools: { bash: 'never' } } as const

/** The format of the first record of a run, and its frozen approval. */
async function frozen(store: RunStore, runId: string): Promise<readonly unknown[]> {
  const [first] = await store.read(runId, 0, 1)
  assert.ok(first?.kind === 'run_created')
  return [first.v, first.private?.request.approval]
}

test('rules are frozen in a log that earlier engines refuse; a fork and a retry keep them', async (t) => {
  const store = keepOpen(new MemoryStore())
  const { engine, id } = await gated(t, RULES, { store })
  assert.deepEqual((await engine.get(id)).approval, RULES)
  assert.deepEqual(await frozen(store, id), [4, RULES])
  await engine.abort(id)
  await follow(engine, id)
  const retry = await engine.retry(id)
  const fork = await engine.fork(id, { workspace: 'in_place' })
  assert.deepEqual(await frozen(store, retry.run_id), [4, RULES])
  assert.deepEqual(await frozen(store, fork.details.run_id), [4, RULES])
  const word = await engine.fork(id, { workspace: 'in_place', approval: { tools: {} } })
  assert.deepEqual(await frozen(store, word.details.run_id), [2, 'never'])
})

for (const [what, approval, answer, calls] of [
  ['`ask` is stricter than the request', 'never', 'ask', 'lrwebt'],
  ['`allow` is looser than the request', RULES, 'allow', ''],
  ['nothing leaves it to the request', 'writes', undefined, 'webt'],
  ['a promise is awaited', 'all', Promise.resolve('allow'), ''],
  ['a word that it does not know is a question', 'never', 'never', 'lrwebt'],
  ['true is a question', 'never', true, 'lrwebt'],
  ['null is a question', 'never', null, 'lrwebt'],
] as const) {
  test(`the host decides: ${what}`, async (t) => {
    const host = (() => answer) as unknown as ApproveCall
    assert.deepEqual((await gated(t, approval, { approval: host })).calls, [...calls])
  })
}

for (const [what, fail] of [
  ['throws', () => { throw new Error('no policy') }],
  ['rejects', () => Promise.reject(new Error('no policy'))],
] as const) {
  test(`when the host's function ${what}, a human is asked`, async (t) => {
    assert.deepEqual((await gated(t, 'never', { approval: fail })).calls, [...'lrwebt'])
  })
}

test('the host is asked once for each call, with the call and its run', async (t) => {
  const asked: CallToApprove[] = []
  const approval: ApproveCall = (call, run) => {
    asked.push({ ...call, args: structuredClone(call.args) })
    Object.assign(call.args, { command: 'touch planted' })
    assert.deepEqual([run.owner.tenant, run.details.status], ['acme', 'running'])
    return call.tool === 'bash' ? 'ask' : undefined
  }
  const { engine } = await openEngine(t, {
    approval, providers: [testProvider((_, n) => (n === 0 ? CALLS : {}))],
  })
  const caller = { owner: { id: 'ann', tenant: 'acme' } }
  const { details } = await engine.create(COMMON, { caller })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const { gate } = await engine.get(details.run_id)
  assert.deepEqual(gate?.calls, [
    { call_id: 'b', tool: 'bash', args: { command: 'true' } },
    { call_id: 't', tool: 'try_patches', args: { patches: [], command: 'true' } },
  ])
  await engine.resume(details.run_id, { decision: 'approve' })
  await follow(engine, details.run_id)
  assert.deepEqual(asked.map(({ call_id, effect, via = '' }) => `${call_id} ${effect} ${via}`), [
    'l read ', 'r read ', 'w idempotent ', 'e idempotent ', 'b unsafe ', 't read ',
    't unsafe try_patches',
  ])
})

test('calls beyond the budget are not asked about', async (t) => {
  let asked = 0
  const approval: ApproveCall = () => {
    asked += 1
    return 'allow'
  }
  const two: Said = { calls: [...CALLS.calls!.slice(0, 1)] }
  const { engine } = await openEngine(t, { approval, providers: [testProvider(() => two)] })
  const { details } = await engine.create({ ...COMMON, max_tool_calls: 1 })
  await follow(engine, details.run_id)
  assert.equal(asked, 1)
})

test('a host that takes more than a minute is not waited for', async (t) => {
  const clock = new ManualClock()
  let called: () => void = () => undefined
  const calling = new Promise<void>((resolve) => (called = resolve))
  const approval: ApproveCall = (call) => {
    if (call.call_id !== 'b') return 'allow'
    called()
    return new Promise(() => undefined)
  }
  const going = gated(t, 'never', { approval, clock })
  await calling
  clock.advance(60_000)
  assert.deepEqual((await going).calls, ['b'])
})

test('a run is aborted and suspended while the host decides', async (t) => {
  const store = keepOpen(new MemoryStore())
  let called: () => void = () => undefined
  let calling = new Promise<void>((resolve) => (called = resolve))
  const approval: ApproveCall = () => {
    called()
    return new Promise(() => undefined)
  }
  const providers = [testProvider(() => CALLS)]
  const first = await openEngine(t, { store, approval, providers })
  const aborted = await first.engine.create(COMMON)
  await calling
  await first.engine.abort(aborted.details.run_id)
  await follow(first.engine, aborted.details.run_id)
  assert.equal((await first.engine.get(aborted.details.run_id)).status, 'aborted')
  const events = await follow(first.engine, aborted.details.run_id)
  assert.ok(!events.some(({ kind }) => kind === 'human_check_required'))
  calling = new Promise<void>((resolve) => (called = resolve))
  const { details } = await first.engine.create(COMMON)
  await calling
  await first.engine.close()
  // Asked again by the next process, whose answer may differ.
  const again: ApproveCall = ({ tool }) => (tool === 'bash' ? 'ask' : 'allow')
  const second = await openEngine(t, { store, approval: again, providers, cwd: first.cwd })
  await follow(second.engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const { gate } = await second.engine.get(details.run_id)
  assert.deepEqual(gate?.calls.map(({ call_id }) => call_id), ['b', 't'])
})
