/** Traces, secrets, deltas, judge and replay of engines that share a database. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import {
  PostgresStore,
  RunEngine,
  type AgentEvent,
  type DeltaPayload,
  type EngineOptions,
  type ModelProvider,
  type ModelRequest,
  type PostgresStoreOptions,
  type Span,
  type Tracer,
} from 'runwright/agent'
import { follow, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { judgeProvider, type JudgeAnswer } from '../../helpers/judge.js'
import { noPostgres, openDatabase } from './postgres.js'

const SECRET = 'host-secret-1234'
const MARK = '[secret removed]'
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
/** Longer than any pause of a machine: no process loses its lease here. */
const LEASE_MS = 600_000

const { newSchema, pool } = await openDatabase()

describe('over a shared PostgresStore', { skip: noPostgres }, () => {
  test('a run that changes processes stays one trace, with the spans of each', async (t) => {
    const world = newWorld(t)
    const tracers = [new RecordingTracer(), new RecordingTracer()]
    const provider = handedOver()
    const one = await world.open({ providers: [provider], tracer: tracers[0] })
    const trace = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01`, tracestate: null }
    const { details } = await one.create({ goal: 'shell: false', max_iterations: 2 }, { trace })
    await follow(one, details.run_id, inIteration(2))
    const two = await world.open({
      providers: [testProvider(() => ({ tokens: [3, 2] }))],
      tracer: tracers[1],
    })
    const followed = follow(two, details.run_id)
    await one.close()
    assertInvariants(await followed)
    await two.close()
    const [first, second] = tracers.map((tracer) => tracer.named('invoke_agent runwright'))
    for (const span of tracers.flatMap(({ ended }) => ended)) {
      assert.equal(span.context.traceparent.slice(3, 35), TRACE)
    }
    assert.equal(first?.attributes['runwright.resumed'], false)
    assert.equal(second?.attributes['runwright.resumed'], true)
    assert.equal(second?.attributes['runwright.end_reason'], 'max_iterations')
    assert.equal(second?.attributes['runwright.iterations'], 2)
  })

  test('a secret reaches no row of the database, no other process, and no model', async (t) => {
    const world = newWorld(t)
    const requests: string[] = []
    const turns: readonly Said[] = [
      {
        calls: [
          { tool: 'read_file', args: { path: '.env' } },
          { tool: 'bash', args: { command: 'cat .env' } },
        ],
      },
      {
        text: `I use ${SECRET}`,
        calls: [
          { tool: 'edit_file', args: { path: '.env', old_text: 'MODE=a', new_text: 'MODE=b' } },
        ],
      },
      { calls: [{ tool: 'write_file', args: { path: 'copy', content: SECRET } }] },
      { stop: 'refusal' },
    ]
    const provider = testProvider((request, n) => {
      requests.push(JSON.stringify(request.messages))
      return turns[n] ?? {}
    })
    const one = await world.open(
      { providers: [provider], secrets: [SECRET], sealedChecks: 'prefer' },
      { labels: ['one'], labelsFor: () => ['one'] },
    )
    const two = await world.open(
      { providers: [testProvider(() => ({}))], secrets: [SECRET] },
      { labels: ['two'] },
    )
    writeFileSync(join(world.cwd, '.env'), `KEY=${SECRET}\nMODE=a\n`)
    const { details } = await one.create({ goal: 'shell: cat .env; false', max_iterations: 2 })
    const events = await follow(two, details.run_id)
    assertInvariants(events)
    const { rows: tables } = await pool.query<{ name: string }>(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1',
      [world.schema],
    )
    const stored = []
    for (const { name } of tables) {
      stored.push((await pool.query(`SELECT * FROM "${world.schema}"."${name}"`)).rows)
    }
    const all = JSON.stringify([stored, events, await two.get(details.run_id), requests])
    assert.ok(tables.length > 2 && all.includes(MARK))
    assert.ok(!all.includes(SECRET))
    assert.equal(readFileSync(join(world.cwd, '.env'), 'utf8'), `KEY=${SECRET}\nMODE=b\n`)
  })

  test('only the driving process delivers deltas, and without secrets', async (t) => {
    const world = newWorld(t)
    let begun: () => void = () => undefined
    const reading = new Promise<void>((resolve) => (begun = resolve))
    const provider = testProvider(async (request, n) => {
      if (n > 0) return {}
      await reading
      for (const piece of ['It is host-', 'secret-12', '34', ', no?']) request.onDelta?.(piece)
      return { text: `It is ${SECRET}, no?` }
    })
    const one = await world.open(
      { providers: [provider], secrets: [SECRET] },
      { labels: ['one'], labelsFor: () => ['one'] },
    )
    const two = await world.open({ providers: [provider] }, { labels: ['two'] })
    const { details } = await one.create({ goal: 'shell: false', max_iterations: 1 })
    const lists = [one, two].map(async (engine) => {
      const texts: string[] = []
      const events: AgentEvent[] = []
      const stream = await engine.subscribe(details.run_id, { deltas: true })
      if (engine === one) begun()
      for await (const items of stream) {
        for (const { seq, json } of items) {
          const item = JSON.parse(json) as AgentEvent & { payload: DeltaPayload }
          if (seq === null) texts.push(item.payload.text)
          else events.push(item)
        }
      }
      return { texts, events }
    })
    const [here, there] = await Promise.all(lists)
    assert.equal(here?.texts.join(''), `It is ${MARK}, no?`)
    assert.deepEqual(there?.texts, [])
    assert.deepEqual(there?.events, here?.events)
    assertInvariants(here!.events)
  })

  test('the judge of the second process sees what both processes have done', async (t) => {
    const world = newWorld(t)
    const judges = [judgeProvider(secondFile), judgeProvider(secondFile)]
    const worker = handedOver({
      calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'by the first\n' } }],
    })
    const one = await world.open({
      providers: [worker, judges[0]!.provider],
      judgeModel: 'judge:j',
    })
    const { details } = await one.create({ goal: 'Write two files.', max_iterations: 2 })
    await follow(one, details.run_id, inIteration(2))
    const next = testProvider((_, n) =>
      n === 0
        ? { calls: [{ tool: 'write_file', args: { path: 'b.txt', content: 'by the second\n' } }] }
        : {},
    )
    const two = await world.open({ providers: [next, judges[1]!.provider], judgeModel: 'judge:j' })
    const followed = follow(two, details.run_id)
    await one.close()
    const events = await followed
    assertInvariants(events)
    const last = events.at(-1)
    assert.ok(last?.kind === 'run_end' && last.payload.achieved)
    assert.deepEqual(judges.map(({ asked }) => asked.length), [1, 1])
    const shown = JSON.stringify(judges[1]!.asked[0])
    assert.match(shown, /by the first/)
    assert.match(shown, /by the second/)
    const used = events.flatMap((event) =>
      event.kind === 'llm_usage' && event.payload.purpose === 'judge' ? [event.payload] : [],
    )
    assert.deepEqual(
      used.map(({ input_tokens: input }) => input),
      [1_000, 1_000],
    )
  })

  test('a run of one process is replayed in another', async (t) => {
    const world = newWorld(t)
    const turns: readonly Said[] = [
      { text: 'I look.', calls: [{ tool: 'list_files', args: {} }], tokens: [100, 20] },
      {
        calls: [{ tool: 'write_file', args: { path: 'done', content: 'yes' } }],
        tokens: [200, 10],
      },
      { text: 'That is all.', tokens: [300, 5] },
    ]
    const one = await world.open({ providers: [testProvider((_, n) => turns[n] ?? {})] })
    const first = await one.create({ goal: 'shell: test -f done' })
    const recorded = await follow(one, first.details.run_id)
    await one.close()
    rmSync(join(world.cwd, 'done'))
    const unused = testProvider(() => assert.fail('a replay must not call a model'))
    const two = await world.open({ providers: [unused] })
    const again = await two.create({
      goal: 'shell: test -f done',
      model_name: `replay:${first.details.run_id}`,
    })
    const replayed = await follow(two, again.details.run_id)
    assertInvariants(replayed)
    const calls = (events: readonly AgentEvent[]) =>
      events
        .flatMap((event) =>
          event.kind === 'tool_call' || event.kind === 'run_end' ? [event.payload] : [],
        )
        .map((payload) =>
          'tool' in payload ? [payload.tool, payload.args] : [payload.status, payload.total_tokens],
        )
    assert.deepEqual(calls(replayed), calls(recorded))
    assert.equal((await two.get(again.details.run_id)).final_state.estimated_cost_usd, 0)
  })
})

/** Opens engines with the same schema and folder, like processes of one service. */
function newWorld(t: TestContext): {
  readonly cwd: string
  readonly schema: string
  open(options: Partial<EngineOptions>, store?: Partial<PostgresStoreOptions>): Promise<RunEngine>
} {
  const cwd = scratch(t)
  const schema = newSchema()
  return {
    cwd,
    schema,
    async open(options, store = {}) {
      const engine = await RunEngine.open({
        store: new PostgresStore({ pool, schema, leaseMs: LEASE_MS, ...store }),
        roots: [cwd],
        sealedChecks: 'off',
        defaultModel: 'test:m',
        ...options,
      })
      t.after(() => engine.close())
      return engine
    },
  }
}

/** A model with one turn in the first iteration, which then waits until its engine is closed. */
function handedOver(first: Said = { tokens: [3, 2] }): ModelProvider {
  return testProvider(async ({ signal, run }) => {
    if (run.iteration === 2)
      await once(signal, 'abort').then(() => Promise.reject(signal.reason as Error))
    return run.turn === 0 ? first : {}
  })
}

const inIteration =
  (n: number) =>
  ({ kind, iteration }: AgentEvent): boolean =>
    kind === 'step_start' && iteration === n

/** A judge that is satisfied once a request mentions the second file. */
const secondFile = (_: number, request: ModelRequest): JudgeAnswer => ({
  achieved: JSON.stringify(request).includes('by the second'),
  reason: 'Seen.',
})

/** A tracer that keeps ended spans. */
class RecordingTracer implements Tracer {
  readonly ended: Span[] = []

  startSpan(): undefined {
    return undefined
  }

  addEvent(): void {
    return undefined
  }

  endSpan(span: Span): void {
    this.ended.push(span)
  }

  named(name: string): Span {
    const span = this.ended.find((one) => one.name === name)
    assert.ok(span !== undefined, `there is a span ${name}`)
    return span
  }
}
