// One process of the benchmark: opens a store, or an engine on it, and runs one role per message.
import { peer } from '../http/peer.mjs'
import { langGraph } from '../agent/contenders/langgraph.mjs'
import { openBenchEngine } from '../agent/contenders/runwright.mjs'
import { median, Run } from '../agent/task.mjs'

const { port, schema } = JSON.parse(process.argv[2])
const { PostgresStore, RunEngine } = await import(process.env.RUNWRIGHT_AGENT)
const { default: pg } = await peer('pg')
const connection = { host: '127.0.0.1', port, user: 'runwright', database: 'postgres' }
const pool = new pg.Pool({ ...connection, max: 10 })
pool.on('error', () => undefined)

const now = () => performance.timeOrigin + performance.now()
let serial = 0

/** A record of some 300 bytes, the size of a typical tool result. */
function record(runId, seq, message = 'x'.repeat(150)) {
  return {
    v: 1,
    seq,
    run_id: runId,
    kind: 'log',
    iteration: 1,
    ts: now() / 1000,
    payload: { level: 'info', message },
  }
}

function created(runId) {
  const request = {
    goal: 'bench',
    cwd: `/bench/${runId}`,
    model_name: 'm',
    max_iterations: 1,
    hitl_enabled: false,
    approval: 'never',
    metadata: {},
  }
  return {
    v: 1,
    seq: 1,
    run_id: runId,
    kind: 'run_created',
    iteration: 0,
    ts: now() / 1000,
    payload: {
      goal: 'bench',
      model_name: 'm',
      cwd: request.cwd,
      max_iterations: 1,
      hitl_enabled: false,
      parent_run_id: null,
    },
    private: {
      request,
      goal: {},
      prices: null,
      tools: [],
      owner: { id: null, tenant: null },
      idempotency: null,
    },
  }
}

/** Opens a store whose runs only this process drives, unless `options` change its labels. */
async function openStore(options = {}) {
  const mine = [String(process.pid)]
  const store = new PostgresStore({ pool, schema, labels: mine, labelsFor: () => mine, ...options })
  store.shared.listen({ claimable() {}, abortRequested() {}, lost() {} })
  await store.open()
  return store
}

/** Creates and claims `count` runs; resolves with their ids. */
async function holdRuns(store, count) {
  const mine = `${process.pid}-${(serial += 1)}`
  const ids = Array.from({ length: count }, (_, i) => `${mine}-${i}`)
  await Promise.all(ids.map((runId) => store.append(runId, [created(runId)])))
  while (ids.some((runId) => !store.shared.holds(runId))) await store.shared.claim(count)
  return ids
}

const roles = {
  /** Appends to `runs` runs concurrently, one event after another in each. */
  async append({ runs, ms }) {
    const store = await openStore()
    const ids = await holdRuns(store, runs)
    const cpu = process.cpuUsage()
    const started = performance.now()
    let events = 0
    await Promise.all(
      ids.map(async (runId) => {
        for (let seq = 2; performance.now() - started < ms; seq++) {
          await store.append(runId, [record(runId, seq)])
          events += 1
        }
      }),
    )
    const elapsed = performance.now() - started
    const { user, system } = process.cpuUsage(cpu)
    await store.close()
    return { events, elapsed, cpu: (user + system) / events }
  },

  /** Claims runs ten at a time and releases them. */
  async claim({ runs, ms }) {
    const store = await openStore({ labels: [], labelsFor: () => [] })
    const mine = `${process.pid}-${(serial += 1)}`
    await Promise.all(
      Array.from({ length: runs }, (_, i) =>
        store.append(`${mine}-${i}`, [created(`${mine}-${i}`)]),
      ),
    )
    const started = performance.now()
    let claims = 0
    while (performance.now() - started < ms) {
      const taken = await store.shared.claim(10)
      claims += taken.length
      await Promise.all(taken.map(({ runId }) => store.shared.release(runId)))
    }
    const elapsed = performance.now() - started
    await store.close()
    return { claims, elapsed }
  },

  /** Appends `rate` events per second to `runs` runs in turn, each with the time of its append. */
  async pace({ runs, rate, ms }) {
    const store = await openStore()
    const ids = await holdRuns(store, runs)
    process.send({ ids })
    await new Promise((resolve) => process.once('message', resolve))
    const seqs = new Map(ids.map((runId) => [runId, 1]))
    const started = performance.now()
    const pending = new Set()
    for (let sent = 0; performance.now() - started < ms; ) {
      for (const due = ((performance.now() - started) * rate) / 1000; sent < due; sent++) {
        const runId = ids[sent % runs]
        const seq = seqs.get(runId) + 1
        seqs.set(runId, seq)
        const append = store
          .append(runId, [record(runId, seq, String(now()))])
          .finally(() => pending.delete(append))
        pending.add(append)
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(pending)
    await store.close()
    return { events: [...seqs.values()].reduce((sum, seq) => sum + seq - 1, 0) }
  },

  /** Subscribes to runs and measures the age of events on arrival. */
  async tail({ ids, ms }) {
    const engine = await RunEngine.open({
      store: new PostgresStore({ pool, schema, labels: ['tail'] }),
      roots: ['/tmp'],
    })
    const ages = []
    const subscriptions = await Promise.all(ids.map((runId) => engine.subscribe(runId)))
    const following = subscriptions.map(async (subscription) => {
      for await (const batch of subscription) {
        const arrived = now()
        for (const { json } of batch) {
          const { kind, payload } = JSON.parse(json)
          if (kind === 'log') ages.push(arrived - Number(payload.message))
        }
      }
    })
    process.send({ following: true })
    await new Promise((resolve) => setTimeout(resolve, ms))
    for (const subscription of subscriptions) subscription.close()
    await Promise.all(following)
    await engine.close()
    ages.sort((a, b) => a - b)
    const at = (share) => ages[Math.floor(ages.length * share)]
    return { events: ages.length, p50: at(0.5), p99: at(0.99), max: ages.at(-1) }
  },

  /** Microseconds of each kind of statement, in a store of `runs` ended runs. */
  async statements({ runs, ms }) {
    const store = await openStore({ labels: [], labelsFor: () => [], listen: false })
    const anyRun = () => 1 + Math.floor(Math.random() * runs)
    const idOf = (i) => `old-${String(i).padStart(7, '0')}`
    const cursorAt = (i) => Buffer.from(JSON.stringify([i, idOf(i)])).toString('base64url')
    const page = 50
    const statements = {
      'a page from the middle of a log': () => store.read(idOf(anyRun()), 25, page),
      'the head of a run': () => store.head(idOf(anyRun())),
      'the first page of the list': () => store.list({ limit: page }),
      'a page from the middle of the list': () =>
        store.list({ limit: page, cursor: cursorAt(anyRun()) }),
      'a page of a tenant and a status': () =>
        store.list({ limit: page, tenant: 't7', status: ['failed'] }),
      'a search that finds a page': () => store.list({ limit: page, search: 'tests' }),
      'a search that finds nothing': () => store.list({ limit: page, search: 'nowhere' }),
      'counts by status': () => store.counts(),
    }
    const timeOf = async (work) => {
      const began = performance.now()
      await work()
      return (performance.now() - began) * 1000
    }
    const results = {}
    for (const [what, work] of Object.entries(statements)) {
      const times = []
      const until = performance.now() + ms
      while (performance.now() < until) times.push(await timeOf(work))
      results[what] = median(times)
    }
    const claims = []
    for (const began = performance.now(); performance.now() - began < ms; ) {
      const runId = `${process.pid}-${(serial += 1)}`
      await store.append(runId, [created(runId)])
      claims.push(await timeOf(() => store.shared.claim(1)))
      await store.delete(runId)
    }
    await store.close()
    return { ...results, 'a claim': median(claims) }
  },

  /** Microseconds of a step of runwright. */
  async step({ length }) {
    let task
    const engine = await openBenchEngine({
      store: new PostgresStore({ pool, schema }),
      cwd: '/tmp',
      task: () => task,
    })
    const steps = []
    for (let i = 0; i < 5; i++) {
      task = new Run(length)
      const { details } = await engine.create({ goal: 'shell: false', max_iterations: length })
      for await (const _ of await engine.subscribe(details.run_id)) void _
      steps.push((performance.now() - task.began) / length)
      task.check()
    }
    await engine.close()
    return { us: median(steps) * 1000 }
  },

  /** Microseconds of a step of LangGraph.js with its own checkpointer for PostgreSQL. */
  async langgraph({ length }) {
    const { PostgresSaver } = await peer('@langchain/langgraph-checkpoint-postgres')
    const checkpointer = new PostgresSaver(pool)
    await checkpointer.setup()
    const graph = await langGraph({ checkpointer, name: `${process.pid}` })
    const steps = []
    for (let i = 0; i < 5; i++) {
      const task = new Run(length)
      await graph.run(task, length)
      steps.push((performance.now() - task.began) / length)
      task.check()
    }
    return { us: median(steps) * 1000 }
  },

  /** Claims one run, which is held until the process is killed. */
  async hold({ leaseMs }) {
    const store = await openStore({ leaseMs, labelsFor: () => [] })
    const [runId] = await holdRuns(store, 1)
    return { runId }
  },

  /** Milliseconds until the run of a killed process can be claimed. */
  async takeOver({ leaseMs, killedAt }) {
    return await new Promise((resolve) => {
      const store = new PostgresStore({ pool, schema, leaseMs })
      store.shared.listen({
        abortRequested() {},
        lost() {},
        async claimable() {
          const [claim] = await store.shared.claim(1).catch(() => [])
          if (claim !== undefined) resolve({ ms: now() - killedAt })
        },
      })
      void store.open()
    })
  },
}

process.on('message', async (order) => {
  if (order.role === undefined) return // for the role in progress
  try {
    process.send({ result: await roles[order.role](order) })
  } catch (error) {
    process.send({ error: error.stack })
  }
})
process.on('disconnect', () => process.exit())
process.send('ready')
