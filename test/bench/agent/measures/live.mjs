// Runs in progress: many at once, long ones, late subscribers, an abort.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { median, Run } from '../task.mjs'
import { runwright } from '../contenders/runwright.mjs'
import { agent, folder, sampleRun } from './folder.mjs'

/** Microseconds per event while `runs` runs are driven at once. */
export async function manyRuns({ runs, store }) {
  const engine = await runwright({ store, reader: false, concurrent: runs })
  return {
    async measure({ ms }) {
      let events = 0
      const cpu = process.cpuUsage()
      const started = performance.now()
      do events += await engine.runMany(runs, 100)
      while (performance.now() - started < ms)
      const elapsed = performance.now() - started
      const { user, system } = process.cpuUsage(cpu)
      return { append: (elapsed / events) * 1000, cpu: (user + system) / events }
    },
    close: () => engine.close(),
  }
}

/** Microseconds per step in a run of 1000, where its log has about `events` events. */
export async function stepBehind({ events, store }) {
  const contender = await runwright({ store, reader: false })
  const first = Math.max(1, events / 10 - 50)
  return {
    async measure({ ms }) {
      const steps = []
      const until = performance.now() + ms
      do {
        const task = new Run(1_000)
        const log = await contender.log(task, 1_000)
        const ends = log.filter(({ kind }) => kind === 'iteration_complete').map(({ ts }) => ts)
        steps.push((ends[first + 48] - ends[first - 1]) / 49)
      } while (performance.now() < until)
      return { step: median(steps) * 1e6 }
    },
    close: () => contender.close(),
  }
}

/** Milliseconds until a late subscriber has received all events of an ended run. */
export async function lateReader({ store: kind, events }) {
  const { FileStore, MemoryStore, RunEngine } = agent
  const store = kind === 'memory' ? new MemoryStore() : new FileStore({ directory: folder() })
  const engine = await RunEngine.open({ store, roots: [folder()] })
  const log = sampleRun('late', { records: events, text: 'x'.repeat(180) })
  for (let at = 0; at < events; at += 5) await store.append('late', log.slice(at, at + 5))
  return {
    async measure({ ms }) {
      const times = []
      const until = performance.now() + ms
      do {
        const started = performance.now()
        let count = 0
        for await (const batch of await engine.subscribe('late')) count += batch.length
        if (count !== events) throw new Error(`got ${count} events, expected ${events}`)
        times.push(performance.now() - started)
      } while (performance.now() < until)
      return { replay: median(times) }
    },
    close: () => engine.close(),
  }
}

/** The floor of {@link lateReader}: encodes the same events from an array. */
export async function encodeArray({ events }) {
  const log = sampleRun('late', { records: events, text: 'x'.repeat(180) })
  return {
    measure() {
      const started = performance.now()
      let length = 0
      for (const record of log) length += JSON.stringify(record).length
      if (length === 0) throw new Error('no events')
      return { replay: performance.now() - started }
    },
  }
}

const SLEEP = 'sleep 300 & sleep 300'

/** Milliseconds from an abort until the process group of the run's command has ended. */
export async function abortRun() {
  const { MemoryStore, RunEngine, NO_USAGE } = agent
  const model = {
    name: 'bench:shell',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: async () => ({
      message: {
        role: 'assistant',
        text: '',
        calls: [{ call_id: 'c', tool: 'bash', args: { command: SLEEP } }],
      },
      reasoning: '',
      usage: NO_USAGE,
      stop: 'tool_calls',
    }),
  }
  const provider = {
    id: 'bench',
    description: 'a script',
    isLanguageModel: false,
    suggestions: [],
    create: () => model,
  }
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [folder()],
    providers: [provider],
    defaultModel: 'bench:shell',
  })
  return {
    async measure() {
      const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
      const pgid = await groupOf(await engine.subscribe(details.run_id))
      const started = performance.now()
      await engine.abort(details.run_id)
      await untilGone(pgid)
      return { abort: performance.now() - started }
    },
    close: () => engine.close(),
  }
}

async function groupOf(subscription) {
  for await (const batch of subscription) {
    for (const { kind, json } of batch) {
      if (kind === 'tool_started') return JSON.parse(json).payload.pgid
      if (kind === 'tool_result') throw new Error(`the command did not run: ${json}`)
    }
  }
  throw new Error('the command did not start')
}

/** The floor of {@link abortRun}: kills a process in a group of its own. */
export async function killGroup() {
  return {
    async measure() {
      const child = spawn('/bin/sh', ['-c', 'exec sleep 300'], { detached: true, stdio: 'ignore' })
      await once(child, 'spawn')
      const started = performance.now()
      process.kill(-child.pid, 'SIGTERM')
      await untilGone(child.pid)
      return { abort: performance.now() - started }
    },
  }
}

/** Resolves once every process of the group has ended. */
async function untilGone(pgid) {
  for (;;) {
    try {
      process.kill(-pgid, 0)
    } catch {
      return
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
}
