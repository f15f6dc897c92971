/**
 * Drives a run with sealed checks and held-out tests over a file store until it ends, prints how it
 * ended, and closes. Dies by itself while a copy is made or removed, if it is told to; see
 * killed.test.ts and killed-often.test.ts.
 */
import { readdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { RunEngine } from '../../../../lib/agent/engine.js'
import { NO_USAGE } from '../../../../lib/agent/usage.js'
import { FileStore } from '../../../../lib/agent/stores/file/file-store.js'
import type { KilledPlan } from './killed-world.js'

const plan = JSON.parse(process.argv[2] ?? '{}') as KilledPlan
const store = new FileStore({ directory: plan.directory })
// Without it, copies are made in a temporary folder of the process.
if (plan.place === 'temporary') Object.defineProperty(store, 'dataFolder', { value: undefined })
const engine = await RunEngine.open({
  store,
  roots: [plan.root],
  defaultModel: 'once:m',
  maxRecoveries: 20,
  providers: [
    {
      id: 'once',
      description: 'does the work in one command',
      isLanguageModel: false,
      suggestions: [],
      create: () => ({
        name: 'once:m',
        isLanguageModel: false,
        contextWindow: null,
        prices: null,
        complete: ({ messages }) => {
          const isDone = messages.some(({ role }) => role === 'assistant')
          const calls = [{ call_id: 'c1', tool: 'bash', args: { command: plan.command } }]
          const message = { role: 'assistant' as const, text: '', calls: isDone ? [] : calls }
          return Promise.resolve({ message, reasoning: '', usage: NO_USAGE, stop: 'end' as const })
        },
      }),
    },
  ],
})

/** Dies when as many files are there as it is told to, of the copy that it is told to. */
async function dieDuring({ what, copy, files }: NonNullable<KilledPlan['dies']>): Promise<void> {
  const seen = new Set<string>()
  for (;;) {
    for (const name of namesIn(copies())) {
      if (!name.startsWith(what === 'making' ? '.new-' : '.old-')) continue
      seen.add(name)
      if (seen.size < copy) continue
      const count = filesIn(join(copies(), name))
      const isNow = what === 'making' ? count >= files : count <= files
      if (isNow) process.kill(process.pid, 'SIGKILL')
    }
    await setImmediate()
  }
}

function copies(): string {
  return join(plan.directory, 'workspaces/.sealed')
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function filesIn(folder: string): number {
  try {
    return readdirSync(folder, { recursive: true }).length
  } catch {
    return 0
  }
}

if (plan.dies !== null) void dieDuring(plan.dies)
const { runs } = await engine.list()
const runId = runs[0]?.run_id ?? (await engine.create(plan.request)).details.run_id
for await (const _ of await engine.subscribe(runId)) continue
const { status, end_reason, assurance, final_state } = await engine.get(runId)
const events = await engine.events(runId, { after: 0, limit: 1_000 })
const checks = events.flatMap((event) =>
  event.kind === 'goal_check' ? [[event.iteration, event.payload.achieved]] : [],
)
const evaluations = events.flatMap((event) =>
  event.kind === 'holdout_evaluation' ? [event.payload.number] : [],
)
const recoveries = events.filter(({ kind }) => kind === 'run_recovered').length
await engine.close()
const { goal_reason } = final_state
const end = { runId, status, end_reason, goal_reason, assurance, checks, evaluations, recoveries }
writeSync(1, JSON.stringify(end))
process.exit()
