import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  RunEngine,
  type AgentEvent,
  type EngineOptions,
  type JsonObject,
  type ModelRequest,
  type RunDetails,
  type RunRecord,
} from 'runwright/agent'
import { untilAborted } from '../../helpers/abort.js'
import { follow, openEngine, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { FaultyStore } from '../../helpers/faulty-store.js'
import { assertInvariants } from '../../helpers/invariants.js'

/** The number of turns in the conversation, the only state that a test model may use. */
const turnOf = (request: ModelRequest): number =>
  request.messages.filter(({ role }) => role === 'assistant').length

/** Two iterations with tools of every effect class; the second one meets the goal. */
const script: readonly Said[] = [
  {
    calls: [
      { tool: 'list_files', args: {}, call_id: 'r1' },
      { tool: 'write_file', args: { path: 'a', content: 'one\n' }, call_id: 'w1' },
    ],
    tokens: [10, 1],
  },
  {
    calls: [{ tool: 'bash', args: { command: 'echo b1 >> ran' }, call_id: 'b1' }],
    tokens: [20, 2],
  },
  { tokens: [30, 3] },
  {
    calls: [
      { tool: 'edit_file', args: { path: 'a', old_text: 'one', new_text: 'two' }, call_id: 'e1' },
    ],
    tokens: [40, 4],
  },
  {
    calls: [{ tool: 'bash', args: { command: 'echo b2 >> ran' }, call_id: 'b2' }],
    tokens: [50, 5],
  },
]
const provider = testProvider((request) => script[turnOf(request)] ?? {})
const goal = 'shell: grep -q two a'

/** The log and the folder at a moment at which the process might have died. */
interface Moment {
  readonly name: string
  readonly records: readonly RunRecord[]
  readonly files: string
}

/** Runs `request` once and keeps what a crash before or after each append would leave. */
async function momentsOf(t: TestContext, request: JsonObject): Promise<Moment[]> {
  const store = new MemoryStore()
  const shelf = scratch(t)
  const cwd = scratch(t)
  const moments: Moment[] = []
  const records: RunRecord[] = []
  const append = store.append.bind(store)
  store.append = async (runId, group) => {
    const files = join(shelf, String(moments.length))
    cpSync(cwd, files, { recursive: true })
    const names = group.map(({ kind }) => kind).join(' ')
    if (records.length > 0) moments.push({ name: `before ${names}`, records: [...records], files })
    records.push(...group)
    moments.push({ name: `after ${names}`, records: [...records], files })
    await append(runId, group)
  }
  const engine = await RunEngine.open({
    store,
    roots: [cwd],
    sealedChecks: 'off',
    providers: [provider],
    defaultModel: 'test:m',
  })
  const { details } = await engine.create({ ...request, cwd })
  await approveAll(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).status, 'achieved')
  await engine.close()
  return moments
}

/** Follows a run to its end and approves every gate on the way. */
async function approveAll(engine: RunEngine, runId: string): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(runId)) {
    for (const { json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      events.push(event)
      if (event.kind === 'human_check_required') {
        await engine
          .resume(runId, { decision: 'approve', gate_id: event.payload.gate_id })
          .catch((error: { problem?: string }) => {
            assert.ok(
              ['stale_gate', 'already_decided', 'not_waiting'].includes(error.problem ?? ''),
            )
          })
      }
    }
  }
  return events
}

for (const [name, request] of [
  ['without gates', { goal }],
  ['with gates', { goal, hitl_enabled: true, approval: 'writes' }],
] as const) {
  test(`a run ${name} recovers from a crash at every position of its log`, async (t) => {
    const moments = await momentsOf(t, request)
    assert.ok(moments.length > 20)
    for (const moment of moments) await goesOn(t, moment)
  })
}

async function goesOn(t: TestContext, { name, records, files }: Moment): Promise<void> {
  const first = records[0]
  assert.ok(first?.kind === 'run_created')
  const cwd = first.payload.cwd
  for (const entry of readdirSync(cwd))
    await import('node:fs/promises').then(({ rm }) => rm(join(cwd, entry), { recursive: true }))
  mkdirSync(cwd, { recursive: true })
  cpSync(files, cwd, { recursive: true })
  const store = new MemoryStore()
  await store.open()
  await store.append(first.run_id, records)
  const { engine } = await openEngine(t, { store, cwd, providers: [provider] })
  const events = await approveAll(engine, first.run_id)
  assertInvariants(events)
  const context = `crash ${name} (${records.length} records)`
  assert.deepEqual(
    events.slice(0, records.length).map(({ seq, kind }) => [seq, kind]),
    records.map(({ seq, kind }) => [seq, kind]),
    context,
  )
  const ran = existsSync(join(cwd, 'ran'))
    ? readFileSync(join(cwd, 'ran'), 'utf8').trim().split('\n')
    : []
  assert.equal(new Set(ran).size, ran.length, `${context}: no command ran twice: ${ran.join()}`)
  const { status } = await engine.get(first.run_id)
  assert.equal(status, 'achieved', context)
  assert.equal(readFileSync(join(cwd, 'a'), 'utf8'), 'two\n', context)
  await engine.close()
}

/** A stored run whose process died during the call. */
async function diedDuring(
  t: TestContext,
  callId: string,
  request: JsonObject = {},
): Promise<Moment> {
  const moments = await momentsOf(t, { goal, ...request })
  const at = moments.find(({ records }) => {
    const last = records.at(-1)
    return last?.kind === 'tool_started' && last.payload.call_id === callId
  })
  assert.ok(at !== undefined)
  return at
}

async function reopen(
  t: TestContext,
  { records, files }: Moment,
): Promise<{ engine: RunEngine; runId: string }> {
  const first = records[0] as Extract<RunRecord, { kind: 'run_created' }>
  const { cwd } = first.payload
  cpSync(files, cwd, { recursive: true, force: true })
  const store = new MemoryStore()
  await store.open()
  await store.append(first.run_id, records)
  const { engine } = await openEngine(t, { store, cwd, providers: [provider] })
  return { engine, runId: first.run_id }
}

test('a command whose outcome is unknown is not run again, and its result says so', async (t) => {
  const { engine, runId } = await reopen(t, await diedDuring(t, 'b1'))
  const events = await follow(engine, runId)
  assertInvariants(events)
  const recovered = events.find((event) => event.kind === 'run_recovered')
  assert.ok(recovered?.kind === 'run_recovered')
  assert.deepEqual(recovered.payload, { attempt: 1, in_doubt: ['b1'] })
  const result = events.find(
    (event) => event.kind === 'tool_result' && event.payload.call_id === 'b1',
  )
  assert.ok(result?.kind === 'tool_result')
  assert.equal(result.payload.exit_code, -1)
  assert.match(result.payload.output, /unknown/i)
})

test('with gates, an unknown outcome opens a gate', async (t) => {
  const { engine, runId } = await reopen(t, await diedDuring(t, 'b1', { hitl_enabled: true }))
  const events = await follow(
    engine,
    runId,
    ({ kind, seq }) => kind === 'human_check_required' && seq > 10,
  )
  const gate = events.at(-1)
  assert.ok(gate?.kind === 'human_check_required')
  assert.equal(gate.payload.kind, 'recovery')
  // The summary must not claim to know what the interrupted command changed.
  assert.match(gate.payload.summary, /calls of unknown outcome changed is not known/)
  assert.doesNotMatch(gate.payload.summary, /No file changed/)
  assertInvariants(await approveAll(engine, runId))
})

test('a run that has already been recovered three times fails, and says why', async (t) => {
  const moment = await diedDuring(t, 'b1')
  const records = [...moment.records]
  for (let attempt = 1; attempt <= 3; attempt++) {
    const last = records.at(-1) as RunRecord
    const { run_id, iteration, ts } = last
    records.push({
      v: 1,
      run_id,
      iteration,
      ts,
      seq: last.seq + 1,
      kind: 'run_recovered',
      payload: { attempt, in_doubt: [] },
    })
  }
  const { engine, runId } = await reopen(t, { ...moment, records })
  const events = await follow(engine, runId)
  assertInvariants(events)
  const { status, end_reason, error } = await engine.get(runId)
  assert.deepEqual([status, end_reason], ['failed', 'recovery_failed'])
  assert.match(error?.message ?? '', /stopped 4 times .* without progress in between/)
})

/**
 * Kills the process of a run again and again, each time after an event that `until` accepts, and
 * then lets it run to its end.
 */
async function killed(
  t: TestContext,
  kills: number,
  answer: (request: ModelRequest) => Said | Promise<Said>,
  until: (event: AgentEvent) => boolean,
  options: Partial<EngineOptions> = {},
): Promise<{ readonly details: RunDetails; readonly events: readonly AgentEvent[] }> {
  const cwd = scratch(t)
  let records: readonly RunRecord[] = []
  let runId = ''
  for (let kill = 0; ; kill++) {
    const store = new FaultyStore()
    await store.open()
    if (runId !== '') await store.append(runId, records)
    const providers = [testProvider(answer)]
    const { engine } = await openEngine(t, { store, cwd, providers, ...options })
    if (runId === '') runId = (await engine.create({ goal })).details.run_id
    const seen = records.length
    const isTime = (event: AgentEvent): boolean => event.seq > seen && until(event)
    const events = await follow(engine, runId, kill < kills ? isTime : undefined)
    if (kill === kills) return { events, details: await engine.get(runId) }
    records = await store.read(runId, 0, 10_000)
    store.lose()
    await engine.close()
  }
}

test('a run that makes progress survives any number of crashes', async (t) => {
  const turns = 8
  const { details, events } = await killed(
    t,
    turns,
    (request) => {
      const turn = turnOf(request)
      const command = turn < turns ? `echo ${turn} >> ran` : 'echo two > a'
      return { calls: [{ tool: 'bash', args: { command } }] }
    },
    ({ kind }) => kind === 'tool_started',
    { maxTurnsPerIteration: 50 },
  )
  assertInvariants(events)
  assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, turns)
  assert.equal(details.status, 'achieved')
})

for (const maxRecoveries of [undefined, 1]) {
  test(`a run without progress survives ${maxRecoveries ?? 3} crashes`, async (t) => {
    const { details, events } = await killed(
      t,
      (maxRecoveries ?? 3) + 1,
      () => new Promise(() => undefined),
      ({ kind }) => kind === 'step_start' || kind === 'run_recovered',
      { maxRecoveries },
    )
    assertInvariants(events)
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, maxRecoveries ?? 3)
    assert.equal(details.end_reason, 'recovery_failed')
  })
}

test('a clean restart does not count as a crash', async (t) => {
  const cwd = scratch(t)
  const store = new MemoryStore()
  store.close = () => Promise.resolve()
  let hang = true
  const hanging = testProvider((request) =>
    hang
      ? untilAborted(request.signal)
      : (script[turnOf(request)] ?? {}),
  )
  let runId = ''
  for (let restart = 0; restart < 6; restart++) {
    hang = restart < 5
    const { engine } = await openEngine(t, { store, cwd, providers: [hanging] })
    if (restart === 0) runId = (await engine.create({ goal })).details.run_id
    if (hang) {
      const { last_seq } = await engine.get(runId)
      if (restart === 0) await follow(engine, runId, ({ kind }) => kind === 'step_start')
      else assert.ok(last_seq > 0)
      await engine.close()
    } else {
      const events = await follow(engine, runId)
      assertInvariants(events)
      assert.ok(!events.some(({ kind }) => kind === 'run_recovered'))
      assert.equal((await engine.get(runId)).status, 'achieved')
    }
  }
})

test('commands that a dead process left are killed, even if the run only has to end', async (t) => {
  const moment = await diedDuring(t, 'b1')
  const last = moment.records.at(-1) as RunRecord
  const { run_id, iteration, ts, seq } = last
  const asked: RunRecord = {
    v: 1,
    run_id,
    iteration,
    ts,
    seq: seq + 1,
    kind: 'abort_requested',
    payload: { by: null },
  }
  const stray = spawn('sleep', ['600'], {
    env: { PATH: process.env['PATH'] ?? '', RUNWRIGHT_RUN: run_id },
  })
  t.after(() => stray.kill('SIGKILL'))
  const ended = once(stray, 'exit')
  const { engine, runId } = await reopen(t, { ...moment, records: [...moment.records, asked] })
  await follow(engine, runId)
  await ended
})

test('an abort that was requested before a crash takes effect after it', async (t) => {
  const moment = await diedDuring(t, 'b1')
  const last = moment.records.at(-1) as RunRecord
  const { run_id, iteration, ts, seq } = last
  const asked: RunRecord = {
    v: 1,
    run_id,
    iteration,
    ts,
    seq: seq + 1,
    kind: 'abort_requested',
    payload: { by: 'ann' },
  }
  const { engine, runId } = await reopen(t, { ...moment, records: [...moment.records, asked] })
  assertInvariants(await follow(engine, runId))
  assert.equal((await engine.get(runId)).status, 'aborted')
})
