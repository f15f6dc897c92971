/** Runs that may use some of the tools. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defineTool,
  MemoryStore,
  type JsonObject,
  type ModelRequest,
  type RunStore,
} from 'runwright/agent'
import { follow, keepOpen, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { openFamily, type Brain } from './children/support.js'

const READS = ['read_file', 'list_files']
const COMMON = { goal: 'shell: false', max_iterations: 1 }

const namesIn = ({ tools }: ModelRequest): readonly string[] => tools.map(({ name }) => name)

async function frozenOf(
  store: RunStore,
  runId: string,
): Promise<{ readonly v: number; readonly request: JsonObject }> {
  const [first] = await store.read(runId, 0, 1)
  assert.ok(first?.kind === 'run_created')
  return { v: first.v, request: first.private!.request as unknown as JsonObject }
}

test('a model is offered the named tools alone, and calls of others are refused', async (t) => {
  const offered: (readonly string[])[] = []
  const provider = testProvider((request, n) => {
    offered.push(namesIn(request))
    return n > 0 ? {} : { calls: [{ tool: 'bash', args: { command: 'touch planted' } }] }
  })
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details, events } = await runToEnd(engine, {
    ...COMMON, tools: READS, approval: { default: 'never', tools: { bash: 'always' } },
  })
  assert.deepEqual(offered, [READS, READS])
  const result = events.find(({ kind }) => kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  assert.equal(result.payload.exit_code, 127)
  assert.equal(result.payload.output, 'There is no tool bash. Tools: read_file, list_files')
  assert.deepEqual(details.tools, READS)
  // Nobody was asked about it.
  assert.ok(!events.some(({ kind }) => kind === 'human_check_required'))
})

test('without names all tools are offered, and the details say so', async (t) => {
  let offered: readonly string[] = []
  const provider = testProvider((request) => {
    offered = namesIn(request)
    return {}
  })
  const store = keepOpen(new MemoryStore())
  const { engine } = await openEngine(t, { store, providers: [provider] })
  const { details } = await runToEnd(engine, COMMON)
  assert.deepEqual(offered, engine.tools().map(({ name }) => name))
  assert.equal(details.tools, null)
  assert.equal((await frozenOf(store, details.run_id)).v, 1)
})

for (const [what, tools, pointer, detail] of [
  ['an unknown name', ['read_file', 'read_files'], '/tools/1', /did you mean read_file\?/],
  ['a name twice', ['bash', 'bash'], '/tools/1', /is named twice/],
  ['no name', [], '/tools', /1 to 256 items/],
  ['delegate without delegation', ['delegate'], '/tools/0', /needs `delegation`/],
] as const) {
  test(`a request with ${what} in tools is refused`, async (t) => {
    const { engine } = await openEngine(t, {
      providers: [testProvider(() => ({}))], delegation: {},
    })
    await assert.rejects(engine.create({ ...COMMON, tools: [...tools] }), (error: Error) => {
      const { violations } = error as unknown as {
        violations: readonly { pointer: string; detail: string }[]
      }
      assert.equal(violations[0]?.pointer, pointer)
      assert.match(violations[0]?.detail ?? '', detail)
      return true
    })
  })
}

test('recovery, a fork and a retry keep the tools; a fork may name others', async (t) => {
  const store = keepOpen(new MemoryStore())
  const offered = new Map<string, readonly string[]>()
  const provider = testProvider((request) => {
    offered.set(request.run.run_id, namesIn(request))
    return {}
  })
  const cwdOf = await openEngine(t, { store, providers: [provider] })
  const { engine, cwd } = cwdOf
  const { details } = await engine.create({
    ...COMMON, max_iterations: 2, hitl_enabled: true, tools: READS,
  })
  const id = details.run_id
  await follow(engine, id, ({ kind }) => kind === 'human_check_required')
  await engine.close()
  offered.clear()
  const { engine: next } = await openEngine(t, { store, providers: [provider], cwd })
  await next.resume(id, { decision: 'approve' })
  await follow(next, id)
  assert.deepEqual(offered.get(id), READS)
  const retry = await next.retry(id)
  await next.abort(retry.run_id)
  const { v, request } = await frozenOf(store, retry.run_id)
  assert.deepEqual([v, request['tools']], [4, READS])
  const fork = await next.fork(id, { workspace: 'in_place', hitl_enabled: false })
  await follow(next, fork.details.run_id)
  assert.deepEqual(offered.get(fork.details.run_id), READS)
  const other = await next.fork(id, {
    workspace: 'in_place', hitl_enabled: false, tools: ['bash'],
  })
  await follow(next, other.details.run_id)
  assert.deepEqual(offered.get(other.details.run_id), ['bash'])
})

test('a retry of a run whose tool is gone is refused by the name of the tool', async (t) => {
  const store = keepOpen(new MemoryStore())
  const own = defineTool({
    name: 'own', description: 'does nothing', parameters: { type: 'object' }, execute: () => '',
  })
  const providers = [testProvider(() => ({}))]
  const { engine, cwd } = await openEngine(t, { store, providers, tools: [own] })
  const { details } = await runToEnd(engine, { ...COMMON, tools: ['own'] })
  await engine.close()
  const { engine: next } = await openEngine(t, { store, providers, cwd })
  await assert.rejects(next.retry(details.run_id), /there is no tool \\?"own/)
})

/** What no command checks. */
const PART = { goal: 'result: part', result_schema: { type: 'object' }, max_iterations: 1 }

/** A model that delegates once; the runs that it starts try that too. */
const delegating: Brain = (_, turn) =>
  turn === 0 ? { calls: [{ tool: 'delegate', args: PART }] } : { text: 'done' }

for (const [tools, depth, root, child] of [
  [undefined, 1, true, false],
  [['read_file', 'delegate'], 1, ['read_file', 'delegate'], ['read_file']],
  [['read_file', 'delegate'], 2, ['read_file', 'delegate'], ['read_file', 'delegate']],
  [['read_file'], 1, ['read_file'], null],
  [['delegate'], 1, ['delegate'], []],
] as const) {
  const what = `${tools === undefined ? 'all tools' : tools.join(', ')}, ${depth} deep`
  test(`which tools delegates are offered: ${what}`, async (t) => {
    const offered: (readonly string[])[] = []
    const { engine } = await openFamily(t, {
      m: (request, turn) => {
        if (turn === 0) offered.push(namesIn(request))
        return delegating(request, turn)
      },
    })
    const approval = { default: 'never', tools: { bash: 'always' } }
    const { details } = await runToEnd(engine, {
      ...COMMON, approval, delegation: { depth, children: 1 },
      ...(tools !== undefined && { tools: [...tools] }),
    })
    const seen = (at: number): unknown =>
      typeof root === 'boolean' ? offered[at]?.includes('delegate') : (offered[at] ?? null)
    assert.deepEqual([seen(0), seen(1)], [root, child])
    const { runs } = await engine.list({ root: details.run_id })
    assert.equal(runs.length > 1, child !== null)
    for (const { run_id, role } of runs) {
      const one = await engine.get(run_id)
      assert.deepEqual(one.approval, approval)
      // What has ended can be started again.
      if (role !== 'delegate' || one.tools?.[0] === 'delegate') continue
      await engine.abort((await engine.retry(run_id)).run_id).catch(() => undefined)
    }
  })
}

test('attempts get the tools and the approvals of their run', async (t) => {
  const offered: (readonly string[])[] = []
  const { engine } = await openFamily(t, {
    m: (request) => {
      offered.push(namesIn(request))
      return { stop: 'refusal' }
    },
  })
  const approval = { default: 'writes', tools: { bash: 'never' } }
  const { details } = await runToEnd(engine, {
    ...COMMON, tools: READS, approval, attempts: { count: 2 },
  })
  assert.deepEqual(offered, [READS, READS])
  const { runs } = await engine.list({ root: details.run_id })
  assert.equal(runs.length, 3)
  for (const { run_id } of runs) assert.deepEqual((await engine.get(run_id)).approval, approval)
})
