import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  type AgentEvent,
  type EngineOptions,
  type EventKind,
  type JsonObject,
  type RunEngine,
  type RunRecord,
  type ToolOutput,
} from 'runwright/agent'
import type { RecordDraft } from '../../../lib/agent/events.js'
import {
  follow,
  openEngine,
  runToEnd,
  scratch,
  testProvider,
  type Said,
} from '../../helpers/engine.js'
import { failingExecutor } from '../../helpers/executor.js'
import { KEY_SHAPED, nested } from '../../helpers/hostile-turn.js'
import { assertInvariants } from '../../helpers/invariants.js'

/** A record without what is the same in all of them. */
type Draft = { [K in EventKind]: Omit<Extract<RecordDraft, { kind: K }>, 'iteration'> }[EventKind]

const REMOVED = '[secret removed]'

/** The records of a run up to the plan of its first iteration. */
async function beginning(t: TestContext, cwd: string, more: JsonObject): Promise<RunRecord[]> {
  const store = new MemoryStore()
  const { engine } = await openEngine(t, {
    store,
    cwd,
    providers: [testProvider(() => new Promise<Said>(() => undefined))],
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 2, ...more })
  await follow(engine, details.run_id, ({ kind }) => kind === 'step_start')
  const records = await store.read(details.run_id, 0, 100)
  await engine.close()
  return [...records]
}

/** A store whose only run has these records after its beginning, and an engine that opens it. */
async function reopened(
  t: TestContext,
  drafts: readonly Draft[],
  { request = {}, ...options }: Partial<EngineOptions> & { readonly request?: JsonObject } = {},
): Promise<{ readonly engine: RunEngine; readonly store: MemoryStore; readonly runId: string }> {
  const cwd = scratch(t)
  const records = await beginning(t, cwd, request)
  const { run_id: runId, ts } = records[0]!
  for (const draft of drafts) {
    const seq = records.length + 1
    records.push({ v: 1, run_id: runId, seq, ts: ts + 1, iteration: 1, ...draft } as RunRecord)
  }
  const store = new MemoryStore()
  await store.open()
  await store.append(runId, records)
  const providers = [testProvider(() => ({ stop: 'refusal' }))]
  const { engine } = await openEngine(t, { store, cwd, providers, ...options })
  return { engine, store, runId }
}

/** A turn as earlier versions logged it: ids of the shape of a key are redacted in events only. */
function turnOfBefore(
  ids: readonly string[],
  args: JsonObject = { path: 'a.txt', content: 'x' },
): Draft[] {
  const calls = ids.map((call_id) => ({ call_id, tool: 'write_file', args }))
  const shown = ids.map((id) => (id.startsWith('sk-') ? REMOVED : id))
  return [
    {
      kind: 'model_turn',
      payload: { turn: 1, text: '', stop: 'tool_calls' },
      private: { message: { role: 'assistant', text: '', calls } },
    },
    { kind: 'step_start', payload: { node: 'act' } },
    ...shown.map((call_id): Draft => ({
      kind: 'tool_call',
      payload: { tool: 'write_file', args, call_id },
    })),
  ]
}

function resultIds(events: readonly AgentEvent[]): string[] {
  return events.flatMap((event) => (event.kind === 'tool_result' ? [event.payload.call_id] : []))
}

test('a stored run whose call has another id in its events continues at the next start', async (t) => {
  const { engine, runId } = await reopened(t, turnOfBefore([KEY_SHAPED]))
  const events = await follow(engine, runId)
  assertInvariants(events)
  assert.deepEqual(resultIds(events), [REMOVED])
  assert.equal((await engine.get(runId)).end_reason, 'stuck')
  assert.ok(!JSON.stringify(events).includes(KEY_SHAPED))
})

test('calls whose ids were all redacted get their results in order', async (t) => {
  const { engine, runId } = await reopened(t, turnOfBefore([KEY_SHAPED, `${KEY_SHAPED}6`]))
  const events = await follow(engine, runId)
  assert.deepEqual(resultIds(events), [REMOVED, REMOVED])
  assert.equal(events.at(-1)?.kind, 'run_end')
})

test('a human answers a gate for calls whose ids were redacted', async (t) => {
  const request = { approval: 'all', hitl_enabled: true }
  const { engine, runId } = await reopened(t, turnOfBefore([KEY_SHAPED]), { request })
  const opens = await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
  assert.equal(opens.at(-1)?.kind, 'human_check_required')
  await engine.resume(runId, { decision: 'reject' })
  const more = await follow(engine, runId, ({ kind }) => kind === 'tool_result')
  assert.deepEqual(resultIds(more), [REMOVED])
  await engine.abort(runId)
  assertInvariants(await follow(engine, runId))
})

test('a stored run with arguments nested 2 000 deep ends at the next start', async (t) => {
  const args = nested(2_000) as JsonObject
  const { engine, runId } = await reopened(t, turnOfBefore(['c1'], args))
  assertInvariants(await follow(engine, runId))
  assert.notEqual((await engine.get(runId)).status, 'running')
  await engine.delete(runId)
})

const SENSELESS: Draft[] = [
  ...turnOfBefore(['c1']),
  {
    kind: 'tool_result',
    payload: { tool: 'x', output: '', exit_code: 0, call_id: 'c1', duration_ms: 0 },
  },
  { kind: 'tool_started', payload: { call_id: 'c2', args_hash: '', effect: 'read' } },
]

test('a stored run whose log makes no sense ends as failed at the next start', async (t) => {
  t.mock.method(process, 'emitWarning', () => undefined)
  const { engine, runId } = await reopened(t, SENSELESS)
  await follow(engine, runId)
  const details = await engine.get(runId)
  assert.deepEqual([details.status, details.end_reason], ['failed', 'internal_error'])
  assert.match(details.error?.message ?? '', /names an unknown tool call c2/)
  assertInvariants(await follow(engine, runId))
  await engine.delete(runId)
})

test('open calls and a requested abort of a log that makes no sense are in its end', async (t) => {
  t.mock.method(process, 'emitWarning', () => undefined)
  const { engine, runId } = await reopened(t, [
    ...SENSELESS,
    ...turnOfBefore(['c2', 'c3']).slice(2),
    { kind: 'abort_requested', payload: { by: null } },
  ])
  const events = await follow(engine, runId)
  assertInvariants(events)
  assert.equal((await engine.get(runId)).end_reason, 'cancelled')
})

/** A store with a bug: it throws what no store may, the next `bugs` times that a run ends. */
class BuggyStore extends MemoryStore {
  bugs: number

  constructor(bugs: number) {
    super()
    this.bugs = bugs
  }

  override async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    if (records.some(({ kind }) => kind === 'run_end') && this.bugs-- > 0) throw new Error('a bug')
    await super.append(runId, records)
  }
}

const gives = (): Said => ({ stop: 'refusal' })
const throws = (): Said => {
  throw new Error('a bug')
}

for (const { bugs, turn } of [
  { bugs: 1, turn: gives },
  { bugs: 2, turn: gives },
  { bugs: 1, turn: throws },
  { bugs: 2, turn: throws },
]) {
  test(`a run whose model ${turn.name} and whose end throws ${bugs} times ends`, async (t) => {
    const { engine } = await openEngine(t, {
      store: new BuggyStore(bugs),
      providers: [testProvider(turn)],
      executor: failingExecutor,
    })
    const { events, details } = await runToEnd(engine, { goal: 'shell: x' })
    assertInvariants(events)
    assert.equal(details.end_reason, 'internal_error')
  })
}

test('a run that nothing could end can be aborted', async (t) => {
  t.mock.method(process, 'emitWarning', () => undefined)
  const store = new BuggyStore(Infinity)
  const { engine } = await openEngine(t, {
    store,
    providers: [testProvider(() => ({ stop: 'refusal' }))],
    executor: failingExecutor,
  })
  const { details } = await engine.create({ goal: 'shell: x' })
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).status, 'running')
  store.bugs = 0
  await engine.abort(details.run_id)
  assertInvariants(await follow(engine, details.run_id))
  assert.equal((await engine.get(details.run_id)).status, 'aborted')
  assert.equal((await engine.abort(details.run_id)).already, true)
  await engine.delete(details.run_id)
})

for (const { what, output } of [
  { what: 'changes that cannot be folded', output: { output: '', exitCode: 0, changes: [null] } },
  { what: 'an output that is no text', output: { output: 42, exitCode: 0 } },
  {
    what: 'changes nested 100 000 deep',
    output: { output: '', exitCode: 0, changes: [nested(100_000)] },
  },
]) {
  test(`a run whose tool returns ${what} ends`, async (t) => {
    const tool = {
      name: 'odd',
      description: 'returns what no tool should',
      parameters: { type: 'object' },
      effect: 'read',
      execute: () => Promise.resolve(output as unknown as ToolOutput),
    } as const
    const calls = [{ tool: 'odd', args: {} }, { tool: 'list_files', args: {} }]
    const { engine } = await openEngine(t, {
      tools: [tool],
      providers: [testProvider(() => ({ calls }))],
      executor: failingExecutor,
    })
    const { events, details } = await runToEnd(engine, { goal: 'shell: x', max_iterations: 1 })
    assertInvariants(events)
    assert.equal(details.status, 'failed')
  })
}
