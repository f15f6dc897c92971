/**
 * Four processes share the runs of one database while they are killed, paused and disconnected,
 * also in the middle of a `run_end`, and while the database is restarted. The sequence of faults
 * depends on a seed and on the progress of the runs, never on the clock.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PostgresStore, RunEngine } from 'runwright/agent'
import { scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { Random } from '../../helpers/random.js'
import { noPostgres, startPostgres } from './postgres.js'
import { followThrough, outlastLeases } from './stores.js'
import { openTcpProxy } from './tcp-proxy.js'
import { Workers } from './workers.js'

const RUNS = Number(process.env['RUNWRIGHT_CHAOS_RUNS'] ?? 40)
const SEED = Number(process.env['RUNWRIGHT_CHAOS_SEED'] ?? Date.now() % 1_000_000)
const LEASE_MS = 1_500
/** Longer than any series of faults, on the slowest machine. */
const PATIENCE_MS = 600_000
const EVENTS_PER_FAULT = 80
/** `end`: connections are cut while a `run_end`, or its answer, is on its way. */
const FAULTS = ['kill', 'kill', 'pause', 'pause', 'cut', 'restart', 'end', 'end'] as const

test(
  `${RUNS} runs on 4 processes survive kills, pauses, cuts and restarts (seed ${SEED})`,
  { skip: noPostgres },
  async (t) => {
    const random = new Random(SEED)
    const root = scratch(t)
    const marks = join(root, 'marks')
    writeFileSync(marks, '')
    const postgres = await startPostgres()
    const proxy = await openTcpProxy(postgres.connection.port)
    const workers = new Workers(t, {
      connection: { ...postgres.connection, port: proxy.port },
      schema: 'chaos',
      root,
      marks,
      leaseMs: LEASE_MS,
      patienceMs: PATIENCE_MS,
      slots: 8,
    })
    const watchers: RunEngine[] = []
    t.after(async () => {
      await workers.killAll()
      await Promise.all(watchers.map((engine) => engine.close()))
      await pool.end()
      await proxy.close()
      await postgres.remove()
    })

    // Two engines that accept requests and watch, one of them without notifications.
    const pool = postgres.pool({ port: proxy.port, max: 20 })
    for (const more of [{}, { listen: false }] as const) {
      watchers.push(
        await RunEngine.open({
          store: new PostgresStore({
            pool,
            schema: 'chaos',
            leaseMs: LEASE_MS,
            labelsFor: () => ['worker'],
            patienceMs: PATIENCE_MS,
            ...more,
          }),
          roots: [root],
          sealedChecks: 'off',
          defaultModel: 'test:m',
          maxQueuedRuns: RUNS,
          providers: [testProvider(() => ({}))],
        }),
      )
    }
    await workers.start(4)

    let seen = 0
    let chaos = Promise.resolve()
    const faults: string[] = []
    const onEvent = (): void => {
      seen += 1
      if (seen % EVENTS_PER_FAULT === 0) chaos = chaos.then(injectFault)
    }
    const injectFault = async (): Promise<void> => {
      const fault = random.pick(FAULTS)
      faults.push(fault)
      switch (fault) {
        case 'kill':
          return await workers.replace(random)
        case 'pause':
          return workers.pauseOrResume(random)
        case 'cut':
          return proxy.cut()
        case 'end': {
          const how = random.pick(['commit', 'answer', 'claim'] as const)
          return proxy.onText('run_end', (cutAtAnswer) => {
            if (how === 'answer') return cutAtAnswer()
            proxy.cut()
            if (how === 'claim') void outlastLeases(postgres, proxy, 'chaos')
          })
        }
        case 'restart':
          await postgres.stop(random.pick(['fast', 'immediate']))
          return await postgres.start()
      }
    }

    const folders = Array.from({ length: Math.ceil(RUNS / 2) }, (_, i) => join(root, `w${i}`))
    for (const folder of folders) mkdirSync(folder)
    const following = Promise.all(
      Array.from({ length: RUNS }, async (_, i) => {
        const cwd = folders[i % folders.length] as string
        const engine = watchers[i % 2] as RunEngine
        const request = { goal: 'shell: false', cwd, max_iterations: 1 + (i % 3) }
        const { details } = await engine.create(request, { idempotencyKey: `run ${i}` })
        return await Promise.all(
          watchers.map((watcher) =>
            followThrough(watcher, details.run_id, watcher === engine ? onEvent : undefined),
          ),
        )
      }),
    )
    const logs = await Promise.race([following, workers.failure])
    await chaos
    workers.resumeAll()

    const started = new Set<string>()
    const ends: Record<string, number> = {}
    let recoveries = 0
    for (const [one, other] of logs) {
      assertInvariants(one!)
      assert.deepEqual(other, one, 'every subscriber sees the same log')
      for (const event of one!) {
        if (event.kind === 'tool_started') started.add(event.payload.call_id)
        if (event.kind === 'run_recovered') recoveries += 1
        if (event.kind === 'run_end')
          ends[event.payload.end_reason] = (ends[event.payload.end_reason] ?? 0) + 1
      }
    }
    const calls = readFileSync(marks, 'utf8').split('\n').filter(Boolean)
    const twice = calls.filter((id, i) => calls.indexOf(id) !== i)
    for (const id of twice) {
      const log = logs.find(([one]) => JSON.stringify(one).includes(id))
      const lines = (log?.[0] ?? []).map((event) => JSON.stringify(event))
      t.diagnostic(`${id} ran twice:\n${lines.join('\n')}`)
    }
    assert.deepEqual(twice, [], 'no unsafe call ran twice')
    for (const call of calls) assert.ok(started.has(call), `call ${call} was durable before it ran`)
    assert.equal((await watchers[0]!.counts()).failed, RUNS)
    t.diagnostic(`${seen} events, faults: ${faults.join(' ')}`)
    t.diagnostic(`${recoveries} recoveries; ends: ${JSON.stringify(ends)}`)
    const allowed = new Set(['max_iterations', 'recovery_failed'])
    assert.deepEqual(
      Object.keys(ends).filter((reason) => !allowed.has(reason)),
      [],
    )
  },
)
