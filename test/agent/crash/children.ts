/** Child processes that use an engine until they are killed; tests start them by `Children`. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import {
  existsSync, mkdirSync, readFileSync, rmSync, watch as watchFolder, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import {
  defineTool, FileStore, NO_USAGE, RunEngine, type AgentEvent, type JsonObject, type ModelProvider,
} from 'runwright/agent'
import { follow, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import type { Life } from '../../helpers/mortal-child.js'
import { scenario, type DrivePlan } from './scenario.js'
import { talk, talkProvider, type TalkPlan } from './talk.js'

/** A tree of runs, and where it works. */
export interface TreePlan {
  readonly directory: string
  readonly root: string
  readonly request: JsonObject
}

/**
 * Drives runs over a file store. Says `new run` for each run that it creates, `= run seq kind hash`
 * for each event that subscribers get, `hangs run` when a run has started its endless command, and
 * `left run pid` when a resumed run had left such a command running. Steps: appends.
 */
export async function drive(
  { directory, root, generation, runs: count, request, endless }: DrivePlan,
  life: Life,
): Promise<void> {
  const store = new FileStore({ directory, segmentBytes: 64 << 10 })
  life.countAppends(store)
  life.begin()
  const engine = await RunEngine.open({
    store,
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

/** A store in a process whose steps are its writes: appends and changes of files. */
async function storeOf(directory: string, life: Life): Promise<FileStore> {
  const store = new FileStore({ directory })
  life.countAppends(store)
  await life.countFiles()
  return store
}

/** Talks to a fork until it has ended, and says what {@link talk} tells. Steps: writes. */
export async function talkToFork(plan: TalkPlan, life: Life): Promise<void> {
  const { directory, root, at } = plan
  const store = await storeOf(directory, life)
  const engine = await RunEngine.open({
    store, roots: [root], providers: [talkProvider(at)], defaultModel: 'talk:m',
    sealedChecks: 'off',
  })
  life.begin()
  await talk(engine, plan, (line) => life.say(line))
  await engine.close()
}

const partOf = (name: string) => ({
  goal: `write ${name} ${name}`,
  check: `grep -q ${name} ${name}.txt`,
})

interface Call {
  readonly tool: string
  readonly args: JsonObject
}

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
        const asked = isFirst ? firstCalls(goal, name) : []
        const ids = asked.map((call) => ({ call_id: `c${process.pid}_${++calls}`, ...call }))
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
export async function driveTree({ directory, root, request }: TreePlan, life: Life): Promise<void> {
  const store = await storeOf(directory, life)
  const engine = await RunEngine.open({
    store,
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

/**
 * Drives a run whose log fills the file system, and lets it go on when there is room again; then
 * the same, but stops the engine while the file system is full.
 */
export async function fillDisk(
  { mount, root }: { readonly mount: string; readonly root: string },
  life: Life,
): Promise<void> {
  const ballast = join(mount, 'ballast')
  writeFileSync(ballast, Buffer.alloc(400_000))
  for (const name of ['loud', 'quiet', 'late']) mkdirSync(join(root, name))
  const store = new FileStore({ directory: join(mount, 'data'), segmentBytes: 100_000 })
  let refused: () => void = () => undefined
  let full = new Promise<void>((resolve) => (refused = resolve))
  let hasRoom = false
  const append = store.append.bind(store)
  store.append = async (runId, records) => {
    try {
      await append(runId, records)
    } catch (error) {
      refused()
      throw error
    }
  }
  const loud = testProvider(({ run }, n) =>
    run.cwd.endsWith('loud') && !hasRoom
      ? {
          text: `${n}`,
          calls: [
            { tool: 'write_file', args: { path: 'a', content: `${n} ${'x'.repeat(20_000)}` } },
          ],
        }
      : { stop: 'refusal' },
  )
  const engine = await RunEngine.open({
    store,
    roots: [root],
    sealedChecks: 'off',
    providers: [loud],
    defaultModel: 'test:m',
    maxTurnsPerIteration: 50,
  })

  const quiet = await engine.create({ goal: 'shell: false', cwd: join(root, 'quiet') })
  await follow(engine, quiet.details.run_id)
  const { details } = await engine.create({
    goal: 'shell: false',
    cwd: join(root, 'loud'),
    max_iterations: 1000,
  })
  const followed = follow(engine, details.run_id)
  await full
  const denied = await engine
    .create({ goal: `shell: : ${'x'.repeat(32_000)}`, cwd: join(root, 'late') })
    .catch((error: Error) => error)
  assert.equal((denied as { code?: string }).code, 'ERR_AGENT_STORE_UNAVAILABLE')
  const problem = await engine.check().catch((error: Error) => error.message)
  const { status } = await engine.get(details.run_id)
  life.say(`${status}, while ${problem}`)
  hasRoom = true
  rmSync(ballast)
  const events = await followed
  assertInvariants(events)
  assert.equal((await engine.get(details.run_id)).end_reason, 'stuck')
  const asked = events.filter(({ kind }) => kind === 'tool_call')
  const results = events.filter((event) => event.kind === 'tool_result')
  assert.equal(results.length, asked.length)
  assert.ok(results.every(({ payload }) => payload.exit_code === 0), 'every result was kept')
  assert.equal((await engine.get(quiet.details.run_id)).end_reason, 'stuck')
  await engine.check()
  const after = await engine.create({ goal: 'shell: true', cwd: join(root, 'late') })
  await follow(engine, after.details.run_id)
  assert.equal((await engine.get(after.details.run_id)).status, 'achieved')

  hasRoom = false
  full = new Promise<void>((resolve) => (refused = resolve))
  writeFileSync(ballast, Buffer.alloc(200_000))
  const last = await engine.create({
    goal: 'shell: false',
    cwd: join(root, 'loud'),
    max_iterations: 1000,
  })
  await full
  await engine.close()
  life.say('closed while the disk is full')
  hasRoom = true
  rmSync(ballast)
  const again = new FileStore({ directory: join(mount, 'data') })
  const next = await RunEngine.open({
    store: again,
    roots: [root],
    sealedChecks: 'off',
    providers: [loud],
    defaultModel: 'test:m',
  })
  const stored = await follow(next, last.details.run_id)
  assertInvariants(stored)
  assert.equal((await next.get(last.details.run_id)).end_reason, 'stuck')
  assert.deepEqual(again.quarantined, [])
  assertInvariants(await again.read(details.run_id, 0, 100_000))
  await next.close()
}
