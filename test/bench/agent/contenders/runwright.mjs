import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Run, TOKENS, TOOL } from '../task.mjs'

/**
 * step_start ×3, llm_usage, model_turn, tool_call, tool_started, tool_result, goal_check,
 * iteration_complete.
 */
export const EVENTS_PER_STEP = 10
/** run_created, run_started, the check before the first iteration, run_end. */
const EVENTS_AROUND = 4

/** Ended runs that the store keeps: enough that a run is not dropped before it is measured. */
const KEPT_RUNS = 64

/** An engine whose model and only tool belong to the task that `task()` returns. */
export async function openBenchEngine({ store, cwd, concurrent = 1, task }) {
  const { NO_USAGE, RunEngine } = await import(process.env.RUNWRIGHT_AGENT)
  const usage = { ...NO_USAGE, input_tokens: TOKENS.input, output_tokens: TOKENS.output }
  const model = {
    name: 'bench:script',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    async complete() {
      const { text, callId, args } = task().turn()
      const calls = [{ call_id: callId, tool: TOOL.name, args }]
      return {
        message: { role: 'assistant', text, calls },
        reasoning: '',
        usage,
        stop: 'tool_calls',
      }
    },
  }
  const provider = {
    id: 'bench',
    description: 'a script',
    isLanguageModel: false,
    suggestions: [],
    create: () => model,
  }
  const tool = {
    ...TOOL,
    effect: 'read',
    execute: async (args) => ({ output: task().use(args), exitCode: 0 }),
  }
  return await RunEngine.open({
    store,
    roots: [cwd],
    providers: [provider],
    defaultModel: 'bench:script',
    tools: [tool],
    // As with the other contenders, an iteration is one model call. The goal is checked after each
    // by an executor in process: a real command would take milliseconds and hide the engine's cost.
    maxTurnsPerIteration: 1,
    maxConcurrentRuns: concurrent,
    cwdPolicy: 'allow',
    executor: {
      name: 'none',
      run: async () => ({
        exitCode: 1,
        output: '',
        truncated: false,
        timedOut: false,
        durationMs: 0,
      }),
      killMarked: async () => 0,
    },
  })
}

/**
 * The engine as a host uses it: a run per task, every event in its log. `store` is memory, file
 * (without sync) or durable; with `reader` a subscriber receives each event as JSON.
 */
export async function runwright({ store: kind, reader, concurrent = 1 }) {
  const { FileStore, MemoryStore } = await import(process.env.RUNWRIGHT_AGENT)
  const cwd = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  const data = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  const retain = { runs: KEPT_RUNS }
  const store =
    kind === 'memory'
      ? new MemoryStore({ retain })
      : new FileStore({ directory: data, retain, sync: kind === 'file' ? 'none' : 'group' })
  let task
  const engine = await openBenchEngine({ store, cwd, concurrent, task: () => task })
  const start = async (length) =>
    (await engine.create({ goal: 'shell: false', max_iterations: length })).details.run_id
  const logOf = async (runId, length) => {
    const expected = EVENTS_PER_STEP * length + EVENTS_AROUND
    const log = await engine.events(runId, { after: 0, limit: expected + 1 })
    if (log.length !== expected) throw new Error(`${log.length} events instead of ${expected}`)
    return log
  }
  return {
    /** Resolves with the milliseconds of all steps by the log, or undefined to use the caller's. */
    async run(next, length) {
      if (!reader) {
        const log = await this.log(next, length)
        return (log.at(-1).ts - log.find(({ kind }) => kind === 'step_start').ts) * 1000
      }
      task = next
      const runId = await start(length)
      let events = 0
      for await (const batch of await engine.subscribe(runId)) events += batch.length
      if (events !== EVENTS_PER_STEP * length + EVENTS_AROUND) throw new Error(`${events} events`)
      return undefined
    },
    /** Resolves with the log of one run. */
    async log(next, length) {
      task = next
      const runId = await start(length)
      await untilEnded(engine, runId)
      return await logOf(runId, length)
    },
    /** Resolves with the number of events of many runs at once. */
    async runMany(runs, length) {
      task = new Run(runs * length)
      const ids = await Promise.all(Array.from({ length: runs }, () => start(length)))
      let events = 0
      for (const runId of ids) {
        await untilEnded(engine, runId)
        events += (await engine.get(runId)).last_seq
      }
      return events
    },
    async close() {
      await engine.close()
      rmSync(cwd, { recursive: true, force: true })
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** Polls, since a subscription would be part of what is measured. */
async function untilEnded(engine, runId) {
  while ((await engine.get(runId)).ended_at === null) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
