/**
 * Four processes share trees of runs of one database while they are killed, paused and cut off,
 * also just before and after a statement that stores a step of a tree, and while the database is
 * restarted. The sequence of faults depends on a seed and on the progress of the runs, never on the
 * clock.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  PostgresStore, RunEngine, RunStateError, StoreError, UnknownRunError,
  type AgentEvent, type RunDetails,
} from 'runwright/agent'
import { brains } from '../../agent/run/children/support.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { noPostgres, startPostgres } from './postgres.js'
import { followThrough, outlastLeases } from './stores.js'
import { openTcpProxy } from './tcp-proxy.js'
import {
  assertAttempts, assertBroughtBack, assertMarks, assertNamedOnce, assertRun, FinalFiles,
  type EndedRun,
} from './tree-audit.js'
import { STORY, TREE_PLANS, type TreePlan } from './tree-plans.js'
import type { TreeWorkerOptions } from './tree-worker.js'
import { Workers } from './workers.js'

const TREES = Number(process.env['RUNWRIGHT_CHAOS_TREES'] ?? 8)
const SEED = Number(process.env['RUNWRIGHT_CHAOS_SEED'] ?? Date.now() % 1_000_000)
const LEASE_MS = 3_000
/** Longer than any series of faults, on the slowest machine. */
const PATIENCE_MS = 600_000
const EVENTS_PER_FAULT = 80
const FAULTS = ['kill', 'pause', 'pause', 'cut', 'restart', 'aim', 'aim', 'aim', 'aim'] as const
/** Texts in the statements at which faults are aimed. */
const STEPS = [
  'attempt_started', 'attempt_ended', 'attempt_chosen', 'delegate_started', 'delegate_ended',
  'files_changing', 'files_changed', 'run_end',
] as const
/** Whether the statement arrives, or only its answer is lost, and what happens to its sender. */
const AIMS = [
  'cut before', 'cut after', 'leases end', 'kill before', 'kill after', 'pause before',
  'pause after',
] as const
/** What a user makes of the file that attempts have changed. */
const EDITED = `zero\n${STORY}`

/** A tree that runs. */
interface Tree {
  readonly plan: TreePlan
  readonly cwd: string
  readonly runId: string
  /** The file of the attempts, as it was once the changes of the winner had been applied. */
  applied: string | null
  /** What a user has made of it since. */
  edited: boolean
}

test(
  `${TREES} trees on 4 processes survive kills, pauses, cuts and restarts (seed ${SEED})`,
  { skip: noPostgres },
  async (t) => {
    const random = new Random(SEED)
    const root = scratch(t)
    const copies = scratch(t)
    const marks = join(scratch(t), 'marks')
    writeFileSync(marks, '')
    const postgres = await startPostgres()
    const proxy = await openTcpProxy(postgres.connection.port)
    const options: TreeWorkerOptions = {
      connection: { ...postgres.connection, port: proxy.port },
      schema: 'chaos',
      root,
      copies,
      marks,
      leaseMs: LEASE_MS,
      patienceMs: PATIENCE_MS,
      slots: 6,
    }
    const workers = new Workers(t, options, 'tree-worker.ts')
    const engines: RunEngine[] = []
    t.after(async () => {
      await workers.killAll()
      await Promise.all(engines.map((engine) => engine.close()))
      await pool.end()
      await proxy.close()
      await postgres.remove()
    })

    const pool = postgres.pool({ port: proxy.port, max: 20 })
    const open = async (): Promise<RunEngine> => {
      const engine = await RunEngine.open({
        store: new PostgresStore({
          pool,
          schema: 'chaos',
          leaseMs: LEASE_MS,
          labelsFor: () => ['worker'],
          patienceMs: PATIENCE_MS,
        }),
        roots: [root],
        workspaceFolder: copies,
        sealedChecks: 'off',
        defaultModel: 'test:line',
        delegation: { depth: 3, children: 16 },
        maxQueuedRuns: TREES,
        providers: [brains({})],
      })
      engines.push(engine)
      return engine
    }
    const engine = await open()
    await workers.start(4)

    let seen = 0
    let chaos = Promise.resolve()
    const faults: string[] = []
    const onProgress = (): void => {
      seen += 1
      if (seen % EVENTS_PER_FAULT === 0) chaos = chaos.then(injectFault)
    }
    const injectFault = async (): Promise<void> => {
      const fault = random.pick(FAULTS)
      switch (fault) {
        case 'kill':
          faults.push(fault)
          return await workers.replace(random)
        case 'pause':
          faults.push(fault)
          return workers.pauseOrResume(random)
        case 'cut':
          faults.push(fault)
          return proxy.cut()
        case 'restart':
          faults.push(fault)
          await postgres.stop(random.pick(['fast', 'immediate']))
          return await postgres.start()
        case 'aim':
          return aim(random.pick(STEPS), random.pick(AIMS))
      }
    }
    const aim = (step: string, how: (typeof AIMS)[number]): void => {
      proxy.onText(step, (cutAtAnswer, sender) => {
        faults.push(`${how} ${step}`)
        const pid = Number(/^worker-(\d+)$/.exec(sender.name)?.[1])
        const isKill = how.startsWith('kill')
        if (how === 'cut after') return cutAtAnswer()
        if (how === 'cut before' || how === 'leases end') proxy.cut()
        if (how === 'leases end') chaos = chaos.then(() => outlastLeases(postgres, proxy, 'chaos'))
        if (Number.isNaN(pid)) return
        if (how === 'kill before' || how === 'pause before') sender.cut()
        if (how.startsWith('pause')) workers.pauseProcess(pid)
        if (isKill) chaos = chaos.then(() => workers.replaceProcess(pid))
      })
    }

    /** Repeats what an unavailable store refuses; the run may have ended meanwhile. */
    const insist = async (work: () => Promise<unknown>): Promise<void> => {
      for (;;) {
        try {
          await work()
          return
        } catch (error) {
          if (error instanceof RunStateError) return
          if (!(error instanceof StoreError)) throw error
        }
      }
    }

    const ended = new Set<string>()
    /** Follows a run and all below it; null for one that never began. */
    const followTree = async (
      runId: string,
      parent: string | null,
      onEvent: (event: AgentEvent) => void = () => undefined,
    ): Promise<EndedRun[]> => {
      const below: Promise<EndedRun[]>[] = []
      for (;;) {
        try {
          await engine.get(runId)
          break
        } catch (error) {
          if (!(error instanceof UnknownRunError || error instanceof StoreError)) throw error
          if (parent !== null && ended.has(parent)) return []
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      const log = await followThrough(engine, runId, (event) => {
        onProgress()
        onEvent(event)
        if (event.kind === 'attempt_started' || event.kind === 'delegate_started')
          below.push(followTree(event.payload.run_id, runId))
      })
      ended.add(runId)
      let details: RunDetails | undefined
      await insist(async () => (details = await engine.get(runId)))
      return [{ details: details!, log }, ...(await Promise.all(below)).flat()]
    }

    const trees: Tree[] = []
    const runTree = async (i: number): Promise<EndedRun[]> => {
      const plan = TREE_PLANS[i % TREE_PLANS.length]!
      const cwd = join(root, `w${i}`)
      mkdirSync(cwd)
      writeFileSync(join(cwd, 'story.txt'), STORY)
      const key = { idempotencyKey: `tree ${i}` }
      const { details } = await engine.create({ ...plan.request, cwd }, key)
      const runId = details.run_id
      const tree: Tree = { plan, cwd, runId, applied: null, edited: false }
      trees.push(tree)
      const story = join(cwd, 'story.txt')
      let started = 0
      return await followTree(runId, null, (event) => {
        if (event.kind === 'attempt_started' || event.kind === 'delegate_started') {
          started += 1
          if (started === plan.abortAfter) void insist(() => engine.abort(runId))
        }
        if (event.kind === 'human_check_required') {
          const { candidates, gate_id } = event.payload
          const possible = candidates!.filter(({ status }) => status === 'achieved')
          const { attempt } = possible[i % possible.length]!
          void insist(() => engine.resume(runId, { decision: 'approve', gate_id, attempt }))
        }
        if (event.kind === 'files_changed' && event.payload.operation === 'apply') {
          tree.applied = readFileSync(story, 'utf8')
          // If the changes were applied once more, they would be there again.
          tree.edited = plan.request['attempts'] !== undefined && i % 2 === 0
          if (tree.edited) writeFileSync(story, EDITED)
        }
      })
    }

    const all = Promise.all(Array.from({ length: TREES }, (_, i) => runTree(i)))
    const found = (await Promise.race([all, workers.failure])).flat()
    await chaos
    workers.resumeAll()
    t.diagnostic(`${seen} events, faults: ${faults.join(', ')}`)

    const runs = new Map(found.map((run) => [run.details.run_id, run]))
    // Connections of the pool may have been cut.
    const direct = postgres.pool({ max: 1 })
    const stored = await direct.query('SELECT run_id FROM chaos.runs WHERE ended_ms IS NOT NULL')
    await direct.end()
    assert.deepEqual(
      stored.rows.map((row) => String(row['run_id'])).sort(),
      [...runs.keys()].sort(),
      'no other runs are in the store, and all have ended',
    )
    const statuses: Record<string, number> = {}
    const files = new FinalFiles(engine)
    assertNamedOnce(runs)
    for (const run of runs.values()) {
      const { attempts, end_reason, role, status } = run.details
      const result = `${role} ${status} ${end_reason}`
      statuses[result] = (statuses[result] ?? 0) + 1
      try {
        assertRun(run, runs)
        if (attempts !== null) assertAttempts(run)
        await assertBroughtBack(run, runs, files)
      } catch (error) {
        t.diagnostic(run.log.map((event) => JSON.stringify(event)).join('\n'))
        throw error
      }
    }
    t.diagnostic(JSON.stringify(statuses, null, 1))
    assertMarks(readFileSync(marks, 'utf8').split('\n').filter(Boolean), runs)
    for (const { plan, cwd, runId, applied, edited } of trees) {
      const run = runs.get(runId)!
      const story = readFileSync(join(cwd, 'story.txt'), 'utf8')
      const { attempts, status } = run.details
      if (attempts === null || status !== 'achieved') {
        if (attempts === null) assert.equal(story, STORY)
        continue
      }
      const chosen = attempts.runs.find(({ attempt }) => attempt === attempts.chosen)
      const winner = runs.get(chosen?.run_id ?? '')!
      const expected = (await files.lines(winner, 'story.txt')).join('\n')
      assert.equal(applied, expected, `${plan.name}: the folder has the result of the winner`)
      assert.equal(story, edited ? EDITED : expected, `${plan.name}: it was applied once`)
    }

    await workers.killAll()
    await open()
    const kept = [...runs.values()].filter(
      ({ details: { role, workspace, changes } }) =>
        role === 'root' && workspace === 'isolated' && changes !== 'applied',
    )
    const unwanted = (): readonly string[] =>
      readdirSync(copies).filter((name) =>
        kept.every(({ details }) => !name.includes(details.run_id)),
      )
    // The sweep of that engine happens beside other work.
    for (let looks = 0; looks < 5_000 && unwanted().length > 0; looks++)
      await pool.query('SELECT 1')
    assert.deepEqual(unwanted(), [], 'no copy of a child is left')
    assert.deepEqual(processesIn([root, copies]), [], 'no process is left')
  },
)

/** The processes that work in one of these folders. */
function processesIn(folders: readonly string[]): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const cwd = readlinkSync(`/proc/${pid}/cwd`)
      return folders.some((folder) => cwd.startsWith(folder))
    } catch {
      return false // it is gone, or another user's
    }
  })
}
