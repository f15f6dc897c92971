/** What readers and observers learn of a run's end while its process is cut off from the store. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { RunEngine, StoreError, type AgentEvent, type RunRecord } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { SharedCluster, type ClusterStore } from '../testing/shared-cluster.js'

const endsRun = (records: readonly RunRecord[]): boolean => records.at(-1)?.kind === 'run_end'

/** A process is cut off while it appends `run_end`, and loses its claim meanwhile. */
const cuts = {
  'the commit is lost': async (store: () => Promise<void>, lapse: () => void) => {
    lapse()
    await store()
  },
  'the answer is lost': async (store: () => Promise<void>, lapse: () => void) => {
    await store()
    lapse()
    throw new StoreError('ERR_AGENT_CLAIM_LOST', 'the connection was lost, then the claim')
  },
}

for (const [title, cut] of Object.entries(cuts)) {
  test(`cut off during run_end, ${title}: readers get the durable end, from anywhere`, async (t) => {
    const cluster = new SharedCluster()
    const one: ClusterStore = await cluster.connect((records, store) =>
      endsRun(records) ? cut(store, () => one.lapse()) : store(),
    )
    const root = scratch(t)
    const first = await open(t, one, root)
    const observed: number[] = []
    first.observe(({ events, details }) => {
      observed.push(...events.map(({ seq }) => seq))
      if (events.at(-1)?.kind !== 'run_end') assert.notEqual(details.status, 'failed')
    })
    const released = one.released()
    const { details } = await first.create({ goal: 'shell: false', max_iterations: 1 })
    const { run_id } = details
    const reader = await first.subscribe(run_id)
    const seen: AgentEvent[] = []
    const reading = (async () => {
      for await (const batch of reader)
        seen.push(...batch.map(({ json }) => JSON.parse(json) as AgentEvent))
    })()
    await released
    for (let turns = 0; turns < 5; turns++) await nextTurn()
    const stored = await one.read(run_id, 0, 1_000)
    if (endsRun(stored)) await reading
    else assert.equal(reader.end, undefined, 'the run goes on: its readers wait')
    assert.ok(observed.every((seq) => seq <= stored.length))

    const second = await open(t, await cluster.connect(), root)
    await reading
    assert.equal(reader.end, 'run_end')
    assertInvariants(seen)
    assert.deepEqual(seen, await second.events(run_id, { after: 0, limit: 1_000 }))
  })
}

test('a process that closes before the end is stored ends its streams with shutdown', async (t) => {
  const cluster = new SharedCluster()
  let cut: () => void = () => undefined
  const ending = new Promise<void>((resolve) => (cut = resolve))
  const one: ClusterStore = await cluster.connect(async (records, store) => {
    if (!endsRun(records)) return await store()
    cut()
    throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the database is away')
  })
  const engine = await open(t, one, scratch(t))
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  const reader = await engine.subscribe(details.run_id)
  let last = 0
  const reading = (async () => {
    for await (const batch of reader) last = batch.at(-1)?.seq ?? last
  })()
  await ending
  await engine.close()
  await reading
  assert.equal(reader.end, 'shutdown')
  const other = await open(t, await cluster.connect(), scratch(t))
  const rest = await other.subscribe(details.run_id, { after: last })
  for await (const batch of rest) last = batch.at(-1)?.seq ?? last
  assert.equal(rest.end, 'run_end')
  assert.equal(last, (await other.get(details.run_id)).last_seq)
})

async function open(t: TestContext, store: ClusterStore, root: string): Promise<RunEngine> {
  const engine = await RunEngine.open({
    store,
    roots: [root],
    defaultModel: 'test:m',
    providers: [testProvider(() => ({ tokens: [1, 1] }))],
  })
  t.after(() => engine.close())
  return engine
}
