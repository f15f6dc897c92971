/**
 * Programs of processes that die: they drive runs, or a tree of runs, over any store. A process
 * that is killed and one that only stops in the process of the test have the same programs.
 */
import { hash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, watch as watchFolder } from 'node:fs'
import { join } from 'node:path'
import {
  defineTool, NO_USAGE, RunEngine, type AgentEvent, type Clock, type JsonObject,
  type ModelProvider, type RunStore,
} from 'runwright/agent'
import { follow } from '../../helpers/engine.js'
import type { Life } from '../../helpers/mortal-child.js'
import { scenario, type DrivePlan } from './scenario.js'

/** A tree of runs, and where it works. */
export interface TreePlan {
  readonly root: string
  /** Folder of the copies of its runs. */
  readonly copies: string
  readonly request: JsonObject
}

/** What a program gets from its process. */
export interface Host {
  readonly store: RunStore
  /** @defaultValue the clock of the system */
  readonly clock?: Clock
  readonly life: Pick<Life, 'begin' | 'say'>
}

/**
 * Drives runs. Says `new run` for each run that it creates, `append number kinds` before each
 * append, `= run seq kind hash` for each event that subscribers get, `hangs run` when a run has started its endless command, and
 * `left run pid` when a resumed run had left such a command running. Steps: appends.
 */
export async function drive(
  { root, generation, runs: count, request, endless }: DrivePlan,
  { life, ...process }: Host,
): Promise<void> {
  life.begin()
  const engine = await RunEngine.open({
    ...process,
    store: saysAppends(process.store, life),
    roots: [root],
    sealedChecks: 'off',
    providers: [scenario(endless)],
    defaultModel: 'crash:m',
    maxConcurrentRuns: 16,
  })

  /** Says `hangs` when the endless command has begun. */
  function tellHang(runId: string, cwd: string): void {
    if (!endless || existsSync(join(cwd, 'pid'))) return
    const watcher = watchFolder(cwd, (_, name) => {
      if (name !== 'pid') return
      life.say(`hangs ${runId}`)
      watcher.close()
    })
  }

  /** Says the events of a run; events up to `old` are from earlier processes. */
  async function watch(runId: string, cwd: string, old: number): Promise<void> {
    for await (const batch of await engine.subscribe(runId)) {
      for (const { seq, kind, json } of batch) {
        if (seq === null) continue
        life.say(`= ${runId} ${seq} ${kind} ${hash('sha256', json).slice(0, 16)}`)
        const pid = join(cwd, 'pid')
        const taken = kind === 'run_recovered' && seq > old
        if (taken && existsSync(pid)) life.say(`left ${runId} ${readFileSync(pid, 'utf8').trim()}`)
        const event = JSON.parse(json) as AgentEvent
        if (event.kind !== 'human_check_required') continue
        const { gate_id } = event.payload
        // An old gate has been answered already; its answer comes next.
        void engine.resume(runId, { decision: 'approve', gate_id }).catch(() => undefined)
      }
    }
  }

  let made = 0

  async function create(): Promise<void> {
    const cwd = join(root, `${generation}-${made++}`)
    mkdirSync(cwd)
    const { details } = await engine.create({ ...request, cwd })
    life.say(`new ${details.run_id}`)
    tellHang(details.run_id, cwd)
    await watch(details.run_id, cwd, 0)
  }

  /** Follows a run, or a new one; with `endless`, another new one after each. */
  async function work(
    run: { readonly run_id: string; readonly last_seq: number } | undefined,
  ): Promise<void> {
    if (run === undefined) await create()
    else {
      const { run_id, last_seq } = run
      const { cwd } = await engine.get(run_id)
      tellHang(run_id, cwd)
      await watch(run_id, cwd, last_seq)
    }
    if (endless) await work(undefined)
  }

  const { runs } = await engine.list({ status: ['pending', 'running', 'awaiting_human'] })
  await Promise.all(Array.from({ length: Math.max(count, runs.length) }, (_, i) => work(runs[i])))
  await engine.close()
}

/** The same store, which says what it appends. */
function saysAppends(store: RunStore, life: Pick<Life, 'say'>): RunStore {
  // In a store that processes share, the first append is that of the admission.
  let appends = store.shared === undefined ? 0 : 1
  const append: RunStore['append'] = (runId, records) => {
    life.say(`append ${++appends} ${records.map(({ kind }) => kind).join()}`)
    return store.append(runId, records)
  }
  return new Proxy(store, {
    get: (_, name) => {
      if (name === 'append') return append
      const value: unknown = Reflect.get(store, name, store)
      return typeof value === 'function' ? (value.bind(store) as unknown) : value
    },
  })
}

const partOf = (name: string) => ({
  goal: `write ${name} ${name}`,
  check: `grep -q ${name} ${name}.txt`,
})

interface Call {
  readonly tool: string
  readonly args: JsonObject
}

/** What a model is told whose copy was restored in a store that processes share. */
const FILES_LOST = 'What was changed after it is lost'

/** `write FILE WORD` is done by writing that file; other goals by the calls of the first turn. */
function firstCalls(goal: string, model: string): readonly Call[] {
  const [, file, word] = /Goal: write (\S+) (\S+)/.exec(goal) ?? []
  const write = (path: string, content: string): Call => ({
    tool: 'write_file',
    args: { path, content },
  })
  if (file !== undefined) return [write(`${file}.txt`, `${word}\n`)]
  if (model === 'boss') return ['a', 'b'].map((name) => ({ tool: 'delegate', args: partOf(name) }))
  if (model === 'host') return [{ tool: 'work', args: {} }]
  return [write('answer.txt', model === 'bad' ? 'bad\n' : `good ${model}\n`)]
}

function treeProvider(): ModelProvider {
  const lifeId = randomUUID()
  let calls = 0
  return {
    id: 'test',
    description: 'of the test',
    isLanguageModel: false,
    suggestions: [],
    create: (name) => ({
      name: `test:${name}`,
      isLanguageModel: false,
      contextWindow: null,
      prices: null,
      complete: async ({ messages }) => {
        const isFirst = messages.every(({ role }) => role !== 'assistant')
        const [first] = messages
        const goal = first?.role === 'user' ? first.text : ''
        const news = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1)
        const isTold = news.some((one) => one.role === 'user' && one.text.includes(FILES_LOST))
        const asked = isFirst || isTold ? firstCalls(goal, name) : []
        const ids = asked.map((call) => ({ call_id: `${lifeId}_${++calls}`, ...call }))
        return await Promise.resolve({
          message: { role: 'assistant', text: 'now', calls: ids },
          reasoning: '',
          usage: { ...NO_USAGE, input_tokens: 1, output_tokens: 1 },
          stop: asked.length > 0 ? 'tool_calls' : 'end',
        })
      },
    }),
  }
}

const work = defineTool({
  name: 'work',
  description: 'starts two runs',
  parameters: { type: 'object', properties: {} },
  effect: 'idempotent',
  plan: () => Promise.resolve({}),
  verify: () => Promise.resolve('undone'),
  execute: async (_, { startRun }) => {
    const results = await Promise.all([startRun(partOf('a')), startRun(partOf('b'))])
    return results.map(({ status }) => status).join(' ')
  },
})

/** Drives a tree of runs to its end. Steps: writes. */
export async function driveTree(
  { root, copies, request }: TreePlan,
  { life, ...process }: Host,
): Promise<void> {
  const engine = await RunEngine.open({
    ...process,
    workspaceFolder: copies,
    roots: [root],
    sealedChecks: 'off',
    providers: [treeProvider()],
    defaultModel: 'test:good',
    tools: [work],
    delegation: { depth: 1, children: 4 },
    maxRecoveries: 100,
    maxConcurrentRuns: 2,
  })
  life.begin()
  const { details } = await engine.create(request, { idempotencyKey: 'tree' })
  await follow(engine, details.run_id)
  await engine.close()
}
