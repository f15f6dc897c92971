/**
 * Three processes share the runs in one PostgreSQL database, and one of them is killed half-way:
 *
 *   DATABASE_URL=postgres://user:password@localhost/database node … examples/cluster.ts
 *
 * Needs the `pg` package. The tables are created in their own schema, which is dropped at the end.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { NO_USAGE, PostgresStore, RunEngine, type Model, type ModelProvider } from 'runwright/agent'

const RUNS = 24
const [, script, role, schema = `runwright_example_${process.pid}`, root = ''] = process.argv

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
pool.on('error', () => undefined) // the pool replaces lost connections

/** A worker process: it claims any run that is ready. */
async function work(): Promise<void> {
  const store = new PostgresStore({ pool, schema, leaseMs: 2_000, labels: ['worker'] })
  const engine = await RunEngine.open({
    store,
    roots: [root],
    providers: [threeSteps],
    maxConcurrentRuns: 4,
  })
  process.once('disconnect', () => void engine.close().then(() => pool.end()))
  process.send?.('ready')
}

/** Creates the runs and follows them; in a real host, any process can do that. */
async function lead(): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-cluster-')))
  const store = new PostgresStore({ pool, schema, leaseMs: 2_000, labelsFor: () => ['worker'] })
  const engine = await RunEngine.open({
    store,
    roots: [folder],
    defaultModel: 'steps:three',
    providers: [threeSteps],
  })
  const workers = await Promise.all(['one', 'two', 'three'].map(() => startWorker(folder)))
  console.log(`${workers.length} processes wait for runs`)

  let ended = 0
  let events = 0
  let takenOver = 0
  const startedAt = performance.now()
  const statuses = await Promise.all(
    Array.from({ length: RUNS }, async (_, i) => {
      const cwd = join(folder, `project-${i}`)
      mkdirSync(cwd)
      const { details } = await engine.create({ goal: 'shell: test -f done', cwd })
      for await (const batch of await engine.subscribe(details.run_id)) {
        events += batch.length
        takenOver += batch.filter(({ kind }) => kind === 'run_recovered').length
      }
      ended += 1
      if (ended === RUNS / 2) {
        workers[1]?.kill('SIGKILL')
        console.log(`${ended} of ${RUNS} runs have ended; one process is killed`)
      }
      return (await engine.get(details.run_id)).status
    }),
  )
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const achieved = statuses.filter((status) => status === 'achieved').length
  console.log(
    `${achieved} of ${RUNS} runs achieved their goal in ${seconds} s, ${events} events, none lost`,
  )
  console.log(`${takenOver} of them were taken over from the process that was killed`)

  for (const worker of workers) {
    if (worker.connected) worker.disconnect()
    if (worker.exitCode === null && worker.signalCode === null) await once(worker, 'exit')
  }
  await engine.close()
  await pool.query(`DROP SCHEMA "${schema}" CASCADE`)
  await pool.end()
  rmSync(folder, { recursive: true, force: true })
}

async function startWorker(folder: string): Promise<ChildProcess> {
  const worker = fork(fileURLToPath(new URL(`file://${script}`)), ['worker', schema, folder])
  await once(worker, 'message')
  return worker
}

/** In place of a language model: writes the file in its third iteration. */
const threeSteps: ModelProvider = {
  id: 'steps',
  description: 'writes the file in its third iteration',
  isLanguageModel: false,
  suggestions: ['three'],
  create: (): Model => ({
    name: 'steps:three',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    async complete({ messages }) {
      const last = messages.at(-1)
      const turns = messages.filter((message) => message.role === 'assistant').length
      const command = turns < 4 ? 'sleep 0.1; ls' : 'touch done'
      const calls =
        last?.role === 'tool' ? [] : [{ call_id: `call-${turns}`, tool: 'bash', args: { command } }]
      return {
        message: { role: 'assistant', text: `Step ${turns}.`, calls },
        reasoning: '',
        usage: NO_USAGE,
        stop: calls.length > 0 ? 'tool_calls' : 'end',
      }
    },
  }),
}

if (role === 'worker') await work()
else await lead()
