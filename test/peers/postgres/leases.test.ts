/** Claims: their order, and what a process may still do when its lease has run out. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine, type PostgresStoreOptions } from 'runwright/agent'
import type { RunCreated } from '../../../lib/agent/events.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { noPostgres, openDatabase } from './postgres.js'
import { connectionLost, firstClaim, openStore, proxyTo, until, wrap } from './stores.js'
import type { TcpProxy } from './tcp-proxy.js'
import type { WorkerOptions } from './worker.js'
import { Workers } from './workers.js'

/** Commands stop after half of it: enough to stop them before it ends on a busy machine. */
const LEASE_MS = 4_000
const HOUR = 3_600_000
const { connection, newSchema, pool } = await openDatabase()

describe('claims and leases of PostgresStore', { skip: noPostgres }, () => {
  for (const cwdPolicy of ['allow', 'queue'] as const) {
    test(`begun runs are claimed first, by age, then the queue: ${cwdPolicy}`, async (t) => {
      const schema = newSchema()
      const labelsFor: PostgresStoreOptions['labelsFor'] = ({ run_id }) =>
        run_id.startsWith('big') ? ['big'] : []
      const options = { pool, schema, labelsFor, leaseMs: 600_000 }
      const small = await openStore(t, options)
      for (const runId of ['big-1', 'small-1', 'small-2', 'big-2']) {
        const [created] = sampleRun(runId, { status: 'pending' })
        const payload = { ...created!.payload, cwd: `/work/${runId}` }
        const admission = { maxQueued: 10, cwdPolicy, keysSince: 0 }
        await small.shared.admit({ ...admission, created: { ...created, payload } as RunCreated })
      }
      const begun = await small.shared.claim(2)
      assert.deepEqual(begun.map(({ runId }) => runId), ['small-1', 'small-2'])
      for (const { runId } of begun) {
        await small.append(runId, sampleRun(runId, { status: 'running', records: 2 }).slice(1))
        await small.shared.release(runId)
      }
      const big = await openStore(t, { ...options, labels: ['big'] })
      const order: string[] = []
      for (let n = 0; n < 4; n++) order.push((await big.shared.claim(1))[0]!.runId)
      assert.deepEqual(order, ['small-1', 'small-2', 'big-1', 'big-2'])
    })
  }

  test('an answer that comes after the lease acknowledges nothing', async (t) => {
    const options = { schema: newSchema(), leaseMs: 300, pollMs: 20 }
    let isCut = false
    let answer: () => void = () => undefined
    const answered = new Promise<void>((resolve) => (answer = resolve))
    const late = wrap(pool, async (client, query) => {
      if (isCut && query.name?.startsWith('runwright_beat')) throw connectionLost()
      const result = await client.query(query)
      if (isCut && query.name?.startsWith('runwright_append')) await answered
      return result
    })
    const one = await openStore(t, { pool: late, ...options })
    const records = sampleRun('a', { status: 'running', records: 4 })
    await one.append('a', records.slice(0, 2))
    assert.equal((await one.shared.claim(1)).length, 1)
    await one.append('a', records.slice(2, 3))
    isCut = true
    const appended = one.append('a', records.slice(3))
    appended.catch(() => undefined)
    const heir = await openStore(t, { pool, ...options })
    assert.deepEqual(await firstClaim(heir), claimOf('a'))
    isCut = false
    answer()
    await assert.rejects(appended, { code: 'ERR_AGENT_CLAIM_LOST' })
    assert.deepEqual(await heir.read('a', 0, 10), records, 'it was stored, once')
  })

  for (const { what, date, steady, beats } of [
    { what: 'nothing', date: 0, steady: 0, beats: 0 },
    { what: 'the time of day to an earlier one', date: -5 * HOUR, steady: 0, beats: 0 },
    { what: 'the time of day to a later one', date: 5 * HOUR, steady: 0, beats: 1 },
    { what: 'the steady clock', date: 0, steady: 5 * HOUR, beats: 1 },
    { what: 'the two clocks apart', date: -5 * HOUR, steady: 5 * HOUR, beats: 1 },
  ]) {
    test(`${beats} heartbeats confirm a claim when it has moved ${what}`, async (t) => {
      const { store, beaten } = await holder(t)
      const before = beaten()
      moveClocks(t, { date, steady })
      await store.shared.confirm('a')
      assert.equal(beaten() - before, beats)
      await store.shared.confirm('a')
      assert.equal(beaten() - before, beats)
    })
  }

  test('a machine that was suspended beyond its lease starts nothing of a lost run', async (t) => {
    const { store, schema, events } = await holder(t)
    await pool.query(`UPDATE "${schema}".workers SET expires_at = now() - interval '1 s'`)
    const heir = await openStore(t, { pool, schema, leaseMs: 600_000 })
    assert.deepEqual(await firstClaim(heir), claimOf('a'))
    moveClocks(t, { date: HOUR, steady: 0 })
    await assert.rejects(store.shared.confirm('a'), { code: 'ERR_AGENT_CLAIM_LOST' })
    assert.deepEqual(events, ['lost a'])
  })

  for (const isCut of [false, true]) {
    const what = isCut ? 'stopped, as no heartbeat gets through' : 'not stopped'
    test(`commands of a machine whose time of day was set forward are ${what}`, async (t) => {
      const { beaten, cut, events, next } = await holder(t)
      if (isCut) cut()
      const before = beaten()
      const happened = next()
      moveClocks(t, { date: HOUR, steady: 0 })
      if (isCut) await happened
      else await until(async () => assert.ok(beaten() > before))
      assert.deepEqual(events, isCut ? ['doubtful a'] : [])
    })
  }

  test('a process that is cut off has stopped its command when another may claim', async (t) => {
    const { engine, proxy, root, schema, work } = await lonely(t)
    const pidFile = join(root, 'pid')
    await work({ command: `echo $$ > ${pidFile}; exec sleep 1000` })
    const { details } = await engine.create({ goal: 'shell: false', cwd: root })
    const pid = await pidIn(pidFile)
    const heir = await openStore(t, { pool, schema, leaseMs: LEASE_MS, labels: ['worker'] })
    const claimed = firstClaim(heir)
    proxy.stall()
    assert.deepEqual(await claimed, claimOf(details.run_id))
    assert.equal(isAlive(pid), false)
    const { last_seq } = (await heir.head(details.run_id))!.details
    proxy.flow()
    await renewedTwice(schema)
    assert.equal((await heir.head(details.run_id))!.details.last_seq, last_seq)
  })

  test('a command that was stopped for a cut has a result, and its run goes on', async (t) => {
    const { engine, proxy, root, work } = await lonely(t)
    const pidFile = join(root, 'pid')
    // The check of the goal is stopped as well, in a second cut, and runs again.
    const checked = join(root, 'checked')
    const once = (file: string): string =>
      `test -f ${file} && exit 1; echo $$ > ${file}.new; mv ${file}.new ${file}; exec sleep 1000`
    await work({ command: once(pidFile) })
    writeFileSync(checked, '')
    const goal = `shell: ${once(checked)}`
    const { details } = await engine.create({ goal, cwd: root, max_iterations: 2 })
    const first = await pidIn(pidFile)
    rmSync(checked)
    proxy.stall()
    await until(async () => assert.equal(isAlive(first), false))
    proxy.flow()
    const second = await pidIn(checked)
    proxy.stall()
    await until(async () => assert.equal(isAlive(second), false))
    proxy.flow()
    const events = await follow(engine, details.run_id)
    assertInvariants(events)
    const results = events.filter((event) => event.kind === 'tool_result')
    assert.deepEqual(results.map(({ payload }) => payload.exit_code), [130, 1])
    assert.match(results[0]!.payload.output, /the store could not be reached/)
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 0)
    assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
  })

  test('stopped beyond its lease, a process starts nothing although its start is durable', async (t) => {
    const { engine, marks, proxy, root, schema, work } = await lonely(t)
    const worker = await work({})
    const stalled = new Promise<void>((resolve) => {
      proxy.onText('tool_started', () => {
        proxy.stall()
        resolve()
      })
    })
    const { details } = await engine.create({ goal: 'shell: false', cwd: root })
    await stalled
    // The record is durable; its answer waits in the proxy.
    await until(async () => {
      const events = await engine.events(details.run_id, { after: 0, limit: 100 })
      assert.equal(events.at(-1)?.kind, 'tool_started')
    })
    worker.kill('SIGSTOP')
    const heir = await openStore(t, { pool, schema, leaseMs: LEASE_MS, labels: ['worker'] })
    assert.deepEqual(await firstClaim(heir), claimOf(details.run_id))
    const { last_seq } = (await heir.head(details.run_id))!.details
    proxy.flow()
    worker.kill('SIGCONT')
    await renewedTwice(schema)
    assert.equal(readFileSync(marks, 'utf8'), '', 'the tool did not start')
    assert.equal((await heir.head(details.run_id))!.details.last_seq, last_seq)
  })

  test('a call of a dead process does not run again when the answer to a claim is lost', async (t) => {
    const { engine, kill, marks, proxy, root, work } = await lonely(t)
    const worker = await work({})
    const called = new Promise<void>((resolve) => {
      proxy.onText('tool_result', () => {
        proxy.stall()
        proxy.cut()
        resolve()
      })
    })
    const { details } = await engine.create({ goal: 'shell: false', cwd: root, max_iterations: 1 })
    await called
    await kill(worker)
    proxy.cut()
    proxy.flow()
    let lost = false
    // The claim is stored; the heir that made it cannot know, and gives it back with its next one.
    proxy.onText('SET claimed_by = $1, fence', () => {
      proxy.onText('COMMIT', (cutAtAnswer) => {
        lost = true
        cutAtAnswer()
      })
    })
    await work({})
    const events = await follow(engine, details.run_id)
    assertInvariants(events)
    assert.ok(lost)
    const results = events.filter((event) => event.kind === 'tool_result')
    assert.deepEqual(results.map(({ payload }) => payload.exit_code), [-1])
    assert.equal(readFileSync(marks, 'utf8').split('\n').length, 2, 'the tool ran once')
  })
})

interface Holder {
  readonly store: PostgresStore
  readonly schema: string
  /** How many heartbeats were answered. */
  readonly beaten: () => number
  /** Lets no heartbeat through any more. */
  readonly cut: () => void
  /** What the store has reported of the run. */
  readonly events: readonly string[]
  /** Resolves when it reports something. */
  readonly next: () => Promise<void>
}

/** A store that holds the run `a`, with a lease of ten minutes. */
async function holder(t: TestContext): Promise<Holder> {
  const schema = newSchema()
  let beats = 0
  let isCut = false
  const counting = wrap(pool, async (client, query) => {
    const isBeat = query.name?.startsWith('runwright_beat') === true
    if (isBeat && isCut) throw connectionLost()
    const result = await client.query(query)
    if (isBeat) beats += 1
    return result
  })
  const store = await openStore(t, { pool: counting, schema, leaseMs: 600_000 })
  await store.append('a', sampleRun('a', { status: 'running', records: 2 }))
  assert.equal((await store.shared.claim(1)).length, 1)
  const events: string[] = []
  let told = (): void => undefined
  const note = (what: string) => (runId: string) => {
    events.push(`${what} ${runId}`)
    told()
  }
  store.shared.listen({
    abortRequested: () => undefined,
    lost: note('lost'),
    doubtful: note('doubtful'),
    messagesLeft: () => undefined,
    claimable: () => undefined,
  })
  const next = (): Promise<void> => new Promise((resolve) => (told = resolve))
  return { store, schema, beaten: () => beats, cut: () => (isCut = true), events, next }
}

/** Moves the clocks of this process until the end of the test. */
function moveClocks(t: TestContext, ms: { readonly date: number; readonly steady: number }): void {
  const { now } = Date
  const steadyNow = performance.now.bind(performance)
  t.mock.method(Date, 'now', () => now() + ms.date)
  t.mock.method(performance, 'now', () => steadyNow() + ms.steady)
}

interface Lonely {
  readonly engine: RunEngine
  readonly proxy: TcpProxy
  readonly schema: string
  readonly root: string
  readonly marks: string
  readonly work: (more: Partial<WorkerOptions>) => Promise<ChildProcess>
  readonly kill: (worker: ChildProcess) => Promise<void>
}

/** An engine that accepts runs, and a worker that drives them through a proxy. */
async function lonely(t: TestContext): Promise<Lonely> {
  const schema = newSchema()
  const root = join(scratch(t), 'work')
  mkdirSync(root)
  const marks = join(root, 'marks')
  writeFileSync(marks, '')
  const proxy = await proxyTo(t, connection.port)
  const through = { ...connection, port: proxy.port }
  const options = { connection: through, schema, root, marks, leaseMs: LEASE_MS, slots: 1 }
  const workers = new Workers(t, { ...options, patienceMs: 60_000 })
  t.after(() => workers.killAll())
  const engine = await RunEngine.open({
    store: new PostgresStore({ pool, schema, leaseMs: LEASE_MS, labelsFor: () => ['worker'] }),
    roots: [root],
    sealedChecks: 'off',
    defaultModel: 'test:m',
    providers: [testProvider(() => ({}))],
  })
  t.after(() => engine.close())
  const work = async (more: Partial<WorkerOptions>): Promise<ChildProcess> =>
    (await workers.start(1, more))[0]!
  const kill = (worker: ChildProcess): Promise<void> => workers.kill(worker)
  return { engine, proxy, schema, root, marks, work, kill }
}

function claimOf(runId: string): unknown {
  return { runId, abandoned: true, abort: null, hasMessages: false, overdue: false }
}

/** The process id in a file, once that has one. */
async function pidIn(file: string): Promise<number> {
  const content = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  await until(async () => assert.match(content(), /^\d+\n$/))
  return Number(content())
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Resolves once every process has renewed its lease twice from now. */
async function renewedTwice(schema: string): Promise<void> {
  const text = `SELECT worker_id, expires_at::text FROM "${schema}".workers`
  const expiries = async (): Promise<ReadonlyMap<string, string>> => {
    const { rows } = await pool.query<{ worker_id: string; expires_at: string }>(text)
    return new Map(rows.map((row) => [row.worker_id, row.expires_at]))
  }
  for (let times = 0; times < 2; times++) {
    const earlier = await expiries()
    await until(async () => {
      const now = await expiries()
      for (const [worker, expiry] of earlier) assert.notEqual(now.get(worker), expiry)
    })
  }
}
