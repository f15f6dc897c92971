/** The child processes that killed-run.ts starts. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { FileStore, RunEngine, type JsonObject } from 'runwright/agent'
import { bash, payloads, testProvider } from '../../../helpers/engine.js'
import type { Life } from '../../../helpers/mortal-child.js'

/** The plan of one child. */
export interface KilledPlan {
  /** Folder of the store. */
  readonly directory: string
  readonly root: string
  /** Where copies are made: beside those of isolated runs, or in a temporary folder. */
  readonly place: 'beside' | 'temporary'
  readonly request: JsonObject
  /** What the model does in its only iteration. */
  readonly command: string
  /**
   * Null: not by itself. Otherwise while that copy is made, when it has as many files, or while it
   * is removed, when so few are left. Copies are counted from 1.
   */
  readonly dies: {
    readonly what: 'making' | 'removing'
    readonly copy: number
    readonly files: number
  } | null
}

/** How a child ended that was not killed. */
export interface KilledEnd {
  readonly runId: string
  readonly status: string
  readonly end_reason: string
  readonly goal_reason: string
  readonly assurance: JsonObject
  /** Iteration and verdict of each. */
  readonly checks: readonly (readonly [iteration: number, achieved: boolean])[]
  /** Numbers of the evaluations of held-out tests. */
  readonly evaluations: readonly number[]
  readonly recoveries: number
}

/**
 * Drives a run with sealed checks and held-out tests over a file store until it ends, and says how.
 * It dies while a copy is made or removed if the plan says so.
 */
export async function drive(plan: KilledPlan, life: Life): Promise<void> {
  const store = new FileStore({ directory: plan.directory })
  // Without it, copies are made in a temporary folder of the process.
  if (plan.place === 'temporary') Object.defineProperty(store, 'dataFolder', { value: undefined })
  const engine = await RunEngine.open({
    store,
    roots: [plan.root],
    defaultModel: 'test:m',
    maxRecoveries: 20,
    providers: [
      testProvider(({ messages }) =>
        messages.some(({ role }) => role === 'assistant') ? {} : bash(plan.command),
      ),
    ],
  })
  const over = new AbortController()
  if (plan.dies !== null) void dieDuring(plan.directory, plan.dies, life, over.signal)
  const { runs } = await engine.list()
  const runId = runs[0]?.run_id ?? (await engine.create(plan.request)).details.run_id
  for await (const _ of await engine.subscribe(runId)) continue
  const { status, end_reason, assurance, final_state } = await engine.get(runId)
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  const checks = events.flatMap((event) =>
    event.kind === 'goal_check' ? [[event.iteration, event.payload.achieved]] : [],
  )
  const evaluations = payloads(events, 'holdout_evaluation').map(({ number }) => number)
  const recoveries = payloads(events, 'run_recovered').length
  await engine.close()
  over.abort()
  const { goal_reason } = final_state
  const end = { runId, status, end_reason, goal_reason, assurance, checks, evaluations, recoveries }
  life.say(JSON.stringify(end))
}

/** Dies when as many files of a copy are there as the plan says. */
async function dieDuring(
  directory: string,
  { what, copy, files }: NonNullable<KilledPlan['dies']>,
  life: Life,
  over: AbortSignal,
): Promise<void> {
  const copies = join(directory, 'workspaces/.sealed')
  const seen = new Set<string>()
  while (!over.aborted) {
    for (const name of namesIn(copies)) {
      if (!name.startsWith(what === 'making' ? '.new-' : '.old-')) continue
      seen.add(name)
      if (seen.size < copy) continue
      const count = namesIn(join(copies, name), true).length
      if (what === 'making' ? count >= files : count <= files) life.die()
    }
    await setImmediate()
  }
}

/** Returns what is in a folder that others may be removing. */
function namesIn(folder: string, recursive = false): readonly string[] {
  try {
    return readdirSync(folder, { recursive, encoding: 'utf8' })
  } catch {
    return []
  }
}
