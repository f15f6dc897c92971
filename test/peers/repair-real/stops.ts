/** Runs that are stopped in the middle: they must leave the folder as it was, or accepted patches. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bug } from './bug.js'
import { host, type HostResult } from './hosted.js'
import type { RealPackage } from './packages.js'
import { seeded, type Random } from './random.js'
import { runSuite, suiteCommand } from './suite.js'
import { planted, type Planted } from './trial.js'
import { changedPaths, snapshot } from './workspace.js'

const WAYS = ['abort', 'max_seconds', 'max_tool_calls', 'killed'] as const
/** When a run is stopped, at the latest. */
const LATEST_MS = 20_000
const LATEST_CALL = 24

export interface StopOptions {
  readonly count: number
  readonly seed: string
  readonly cache: string
  readonly seconds: number
  readonly jobs: number
}

/** Stops runs, one way after the other, and returns how many left something. */
export async function stops(
  bugs: readonly Bug[], packageOf: (bug: Bug) => RealPackage, options: StopOptions,
): Promise<number> {
  const random = seeded(`stops ${options.seed}`)
  const queue = Array.from({ length: options.count }, (_, index) => ({
    bug: bugs[random.below(bugs.length)]!,
    way: WAYS[index % WAYS.length]!,
    random: seeded(`${options.seed} ${index} ${random.below(2 ** 30)}`),
  }))
  let leftovers = 0
  let keptSome = 0
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { bug, way } = next
      const one = packageOf(bug)
      await using place = await planted(one, bug, options.cache)
      const before = await runSuite(one.runner, place.goal.replace('shell: ', ''), place.cwd)
      const how = await stopped(place, way, next.random, options.seconds)
      const changed = changedPaths(place.before, await snapshot(place.cwd))
      const after = changed.length === 0
        ? before : await runSuite(one.runner, suiteCommand(one, bug.heldOut), place.cwd)
      const sourcesOnly = changed.every((path) => one.sources.test(path))
      const helps = sourcesOnly && after.passed > before.passed && after.failed <= before.failed
      const verdict = changed.length === 0 ? 'as before' : helps ? 'kept what helps' : 'LEFTOVER'
      if (verdict === 'LEFTOVER') leftovers += 1
      if (verdict === 'kept what helps') keptSome += 1
      console.log(`${verdict.padEnd(15)} ${way}, ${how}: ${bug.package} ${bug.file}:${bug.line}` +
        (changed.length > 0 ? `: ${changed.join(', ')}` : ''))
      if (verdict === 'LEFTOVER') console.log(await excerpt(place, bug))
    }
  }
  await Promise.all(Array.from({ length: options.jobs }, work))
  console.log(`\n${options.count} runs stopped, ${keptSome} kept what helps, ${leftovers} leftovers`)
  return leftovers
}

/** Runs the repair until it is stopped in this way; tells when, and what became of the run. */
async function stopped(
  { cwd, store, goal }: Planted, way: (typeof WAYS)[number], random: Random, seconds: number,
): Promise<string> {
  const afterMs = 500 + random.below(LATEST_MS)
  const base = { cwd, store, goal, limits: { max_seconds: seconds } }
  const told = (result: HostResult | null): string => result?.endReason ?? 'killed'
  if (way === 'abort') {
    return `${told(await host({ ...base, abortAfterMs: afterMs }).result)} at ${afterMs} ms`
  }
  if (way === 'max_seconds') {
    const limit = Math.max(1, Math.round(afterMs / 100) / 10)
    return told(await host({ ...base, limits: { max_seconds: limit } }).result) + ` at ${limit} s`
  }
  if (way === 'max_tool_calls') {
    const calls = 2 + random.below(LATEST_CALL)
    const limits = { ...base.limits, max_tool_calls: calls }
    return told(await host({ ...base, limits }).result) + ` at ${calls} calls`
  }
  const first = host(base)
  const runId = await first.started
  const ended = await Promise.race([first.result, sleep(afterMs, undefined)])
  if (ended !== undefined) return `${told(ended)} before it was killed`
  first.kill()
  await first.result
  return `killed at ${afterMs} ms, then ${told(await host({ ...base, cancel: runId }).result)}`
}

/** What the line of the bug is now. */
async function excerpt({ cwd }: Planted, { file, line }: Bug): Promise<string> {
  const lines = (await readFile(join(cwd, file), 'utf8')).split('\n')
  return lines.slice(line - 2, line + 1).map((text) => `    ${text}`).join('\n')
}
