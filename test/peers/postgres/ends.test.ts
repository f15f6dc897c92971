/** A process that is cut off from the database exactly while it appends the end of a run. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import {
  PostgresStore,
  RunEngine,
  type AgentEvent,
  type PgPool,
  type PgQuery,
  type PostgresStoreOptions,
  type RunSubscription,
} from 'runwright/agent'
import { scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { noPostgres, openDatabase } from './postgres.js'
import { connectionLost, wrap } from './stores.js'

const LEASE_MS = 600
const { newSchema, pool } = await openDatabase()

describe('a process that is cut off while it appends run_end', { skip: noPostgres }, () => {
  test('commit lost, claim lost: its readers follow the run elsewhere to its end', async (t) => {
    const wire = cutAt('before')
    const schema = newSchema()
    const root = scratch(t)
    const one = await open(t, wire.pool, schema, root)
    const { details } = await one.create({ goal: 'shell: false', max_iterations: 1 })
    const reader = follow(await one.subscribe(details.run_id))
    await wire.cut
    let go: () => void = () => undefined
    const reached = new Promise<void>((resolve) => (go = resolve))
    // The run waits for its end here until the first process has noticed its loss.
    let takeOver: () => void = () => undefined
    const takenOver = new Promise<void>((resolve) => (takeOver = resolve))
    const held = wrap(pool, async (client, query) => {
      if (endsRun(query)) {
        takeOver()
        await reached
      }
      return await client.query(query)
    })
    const two = await open(t, held, schema, root)
    const learned = follow(await two.subscribe(details.run_id))
    await takenOver
    wire.mend()
    // By its heartbeat or by its append, the first process finds out, and looks for other work.
    for (let polls = 0; polls < 3; polls++) await wire.saw('runwright_candidates')
    go()
    assert.equal(await reader.end, 'run_end')
    await learned.end
    const stored = await two.events(details.run_id, { after: 0, limit: 1_000 })
    assertInvariants(stored)
    assert.deepEqual(reader.events, stored)
    assert.deepEqual(learned.events, stored)
  })

  test('answer lost: its readers get the stored end, which is stored once', async (t) => {
    const wire = cutAt('after')
    const schema = newSchema()
    const root = scratch(t)
    // The second process only reads: it must not claim the run before the first one does.
    const labels = { labels: ['first'], labelsFor: () => ['first'] }
    const one = await open(t, wire.pool, schema, root, labels)
    const { details } = await one.create({ goal: 'shell: false', max_iterations: 1 })
    const reader = follow(await one.subscribe(details.run_id))
    const two = await open(t, pool, schema, root)
    const elsewhere = follow(await two.subscribe(details.run_id))
    await wire.cut
    assert.equal(await elsewhere.end, 'run_end')
    assert.notEqual(reader.events.at(-1)?.kind, 'run_end')
    wire.mend()
    assert.equal(await reader.end, 'run_end')
    assertInvariants(reader.events)
    assert.deepEqual(reader.events, elsewhere.events)
  })

  for (const when of ['before', 'after'] as const) {
    test(`closed while cut off ${when} the commit: 1001, and the cursor continues`, async (t) => {
      const wire = cutAt(when)
      const schema = newSchema()
      const root = scratch(t)
      const one = await open(t, wire.pool, schema, root)
      const { details } = await one.create({ goal: 'shell: false', max_iterations: 1 })
      const reader = follow(await one.subscribe(details.run_id))
      await wire.cut
      await one.close()
      assert.equal(await reader.end, 'shutdown')
      const two = await open(t, pool, schema, root)
      const after = reader.events.at(-1)?.seq ?? 0
      const rest = follow(await two.subscribe(details.run_id, { after }))
      assert.equal(await rest.end, 'run_end')
      assertInvariants([...reader.events, ...rest.events])
    })
  }
})

/** A connection that breaks around the statement that ends a run, until it is mended. */
function cutAt(when: 'before' | 'after'): {
  readonly pool: PgPool
  readonly cut: Promise<void>
  readonly mend: () => void
  /** Resolves after the next statement of this name. */
  readonly saw: (name: string) => Promise<void>
} {
  let state: 'whole' | 'cut' | 'mended' = 'whole'
  let reached: () => void = () => undefined
  const cut = new Promise<void>((resolve) => (reached = resolve))
  const statements = new EventEmitter()
  const broken = wrap(pool, async (client, query) => {
    if (state === 'whole' && endsRun(query)) {
      state = 'cut'
      if (when === 'after') await client.query(query)
      reached()
    }
    if (state === 'cut') throw connectionLost()
    const result = await client.query(query)
    if (query.name !== undefined) statements.emit(query.name.replace(/_[0-9a-f]+$/, ''))
    return result
  })
  const saw = async (name: string): Promise<void> => void (await once(statements, name))
  return { pool: broken, cut, mend: () => (state = 'mended'), saw }
}

function endsRun({ values = [] }: PgQuery): boolean {
  return values.flat().some((value) => String(value).includes('"kind":"run_end"'))
}

async function open(
  t: TestContext,
  to: PgPool,
  schema: string,
  root: string,
  options: Partial<PostgresStoreOptions> = {},
): Promise<RunEngine> {
  const times = { leaseMs: LEASE_MS, pollMs: 20, patienceMs: 200 }
  const engine = await RunEngine.open({
    store: new PostgresStore({ pool: to, schema, ...times, ...options }),
    roots: [root],
    sealedChecks: 'off',
    defaultModel: 'test:m',
    providers: [testProvider(() => ({}))],
  })
  t.after(() => engine.close())
  return engine
}

/** Reads a subscription in the background. */
function follow(reader: RunSubscription): {
  readonly events: AgentEvent[]
  readonly end: Promise<RunSubscription['end']>
} {
  const events: AgentEvent[] = []
  const end = (async () => {
    for await (const batch of reader) {
      events.push(...batch.map(({ json }) => JSON.parse(json) as AgentEvent))
    }
    return reader.end
  })()
  return { events, end }
}
