/**
 * Waits for a line on standard input, then drives runs over a file store until it is killed or
 * kills itself. Prints `ready` once the engine is open, `new run` for each run that it creates, `=
 * run seq kind hash` for each event that subscribers get, `hangs run` when a run has started its
 * endless command, and `left run pid` when a resumed run had left such a command running. See
 * matrix.test.ts and kills.test.ts.
 */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, watch as watchFolder, writeSync } from 'node:fs'
import { join } from 'node:path'
import { RunEngine } from '../../../lib/agent/engine.js'
import type { AgentEvent } from '../../../lib/agent/events.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { scenario, type ChildPlan } from './scenario.js'

const plan = JSON.parse(process.argv[2] ?? '{}') as ChildPlan
await once(process.stdin, 'data')

const say = (line: string): void => void writeSync(1, `${line}\n`)
const die = (): void => void process.kill(process.pid, 'SIGKILL')

const store = new FileStore({ directory: plan.directory, segmentBytes: 64 << 10 })
const append = store.append.bind(store)
let appends = 0
store.append = async (runId, records) => {
  const here = (appends += 1) === plan.killAt
  if (here && plan.side === 'before') die()
  await append(runId, records)
  if (here && plan.side === 'after') die()
}
const engine = await RunEngine.open({
  store,
  roots: [plan.root],
  sealedChecks: 'off',
  providers: [scenario(plan.endless)],
  defaultModel: 'crash:m',
  maxConcurrentRuns: 16,
})
say('ready')

/** Prints `hangs` when the endless command has begun. */
function tellHang(runId: string, cwd: string): void {
  if (!plan.endless || existsSync(join(cwd, 'pid'))) return
  const watcher = watchFolder(cwd, (_, name) => {
    if (name !== 'pid') return
    say(`hangs ${runId}`)
    watcher.close()
  })
}

/** Prints the events of a run; events up to `old` are from earlier processes. */
async function watch(runId: string, cwd: string, old: number): Promise<void> {
  for await (const batch of await engine.subscribe(runId)) {
    for (const { seq, kind, json } of batch) {
      if (seq === null) continue
      say(`= ${runId} ${seq} ${kind} ${hash('sha256', json).slice(0, 16)}`)
      const pid = join(cwd, 'pid')
      const taken = kind === 'run_recovered' && seq > old
      if (taken && existsSync(pid)) say(`left ${runId} ${readFileSync(pid, 'utf8').trim()}`)
      if (kind !== 'human_check_required') continue
      const { payload } = JSON.parse(json) as Extract<AgentEvent, { kind: 'human_check_required' }>
      // An old gate has been answered already; its answer comes next.
      void engine
        .resume(runId, { decision: 'approve', gate_id: payload.gate_id })
        .catch(() => undefined)
    }
  }
}

let made = 0

async function create(): Promise<void> {
  const cwd = join(plan.root, `${plan.generation}-${made++}`)
  mkdirSync(cwd)
  const { details } = await engine.create({ ...plan.request, cwd })
  say(`new ${details.run_id}`)
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
  if (plan.endless) await work(undefined)
}

const { runs } = await engine.list({ status: ['pending', 'running', 'awaiting_human'] })
await Promise.all(Array.from({ length: Math.max(plan.runs, runs.length) }, (_, i) => work(runs[i])))
await engine.close()
say(`done ${appends}`)
process.stdin.destroy()
