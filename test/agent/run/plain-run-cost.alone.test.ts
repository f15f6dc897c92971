/** What a plain run costs in file-system calls and threads, workers included. */
import assert from 'node:assert/strict'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import workers from 'node:worker_threads'
import type { Executor, RunEngine } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

/** Calls of the main thread, and those of workers. */
const calls = new Int32Array(new SharedArrayBuffer(8))
workers.setEnvironmentData('file-system calls', calls)

const require = createRequire(import.meta.url)
const counter = fileURLToPath(
  new URL('../../fixtures/threads/count-file-calls.cjs', import.meta.url),
)
const load = `process.getBuiltinModule('module').createRequire('/')(${JSON.stringify(counter)})`

let [threads, mostThreads] = [0, 0]

class CountedWorker extends workers.Worker {
  constructor(code: string, options: workers.WorkerOptions) {
    super(`${load};${code}`, options)
    threads += 1
    mostThreads = Math.max(mostThreads, threads)
    this.once('exit', () => (threads -= 1))
  }
}

require(counter)
Object.assign(workers, { Worker: CountedWorker })
syncBuiltinESMExports()

/** Fails all commands without running them. */
const executor: Executor = {
  name: 'none',
  run: async () =>
    await Promise.resolve({
      exitCode: 1, output: '', truncated: false, timedOut: false, durationMs: 0,
    }),
  killMarked: async () => await Promise.resolve(0),
}

/** An engine whose runs work in a folder of so many files. */
async function open(t: TestContext, files: number = 0): Promise<RunEngine> {
  const providers = [testProvider(() => ({ text: 'x' }))]
  const defaults = { checkpoints: undefined, sealedChecks: undefined }
  const options = { providers, executor, detectStuck: false as const, maxConcurrentRuns: 100 }
  const { engine, cwd } = await openEngine(t, { ...options, ...defaults })
  for (let i = 0; i < files; i++) writeFileSync(join(cwd, `${i}.js`), 'x')
  return engine
}

async function runOnce(engine: RunEngine, steps: number): Promise<void> {
  const request = { goal: 'shell: false', max_iterations: steps }
  const { details } = await runToEnd(engine, request)
  assert.equal(details.end_reason, 'max_iterations')
  assert.equal(details.iteration, steps)
}

const RUNS = 20

/** The calls of one run, on average. */
async function callsOf(t: TestContext, steps: number): Promise<readonly [number, number]> {
  const engine = await open(t)
  // Loads the code and starts the threads.
  for (let i = 0; i < 3; i++) await runOnce(engine, steps)
  calls.fill(0)
  for (let i = 0; i < RUNS; i++) await runOnce(engine, steps)
  return [calls[0]! / RUNS, calls[1]! / RUNS]
}

const skip = process.platform !== 'linux' && 'without /proc, folders are compared more often'

test('a run of one step makes few file-system calls, and starts no thread', { skip }, async (t) => {
  const [main, inWorkers] = await callsOf(t, 1)
  t.diagnostic(`${main} calls, and ${inWorkers} in workers`)
  assert.ok(main + inWorkers <= 80, `${main} calls, ${inWorkers} in workers`)
  assert.equal(mostThreads, 0)
})

test('further steps make no file-system calls', async (t) => {
  const [one] = await callsOf(t, 1)
  const [eleven] = await callsOf(t, 11)
  assert.ok(eleven - one < 2, `${one} and ${eleven} calls`)
})

test('runs at once in folders of ten files start no thread', async (t) => {
  const engine = await open(t, 10)
  mostThreads = threads
  await Promise.all(Array.from({ length: 100 }, async () => await runOnce(engine, 1)))
  assert.equal(mostThreads, 0)
})
