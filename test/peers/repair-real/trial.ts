/** One bug, planted in a copy, and what becomes of it. */
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { behavesAlike } from './behaviour.js'
import { plant, type Bug } from './bug.js'
import { fetched } from './cache.js'
import { host, type HostResult, type ToolCalled } from './hosted.js'
import type { RealPackage } from './packages.js'
import { passes, runSuite, suiteCommand } from './suite.js'
import { changedPaths, copyPackage, snapshot, type Snapshot } from './workspace.js'

/** How a repaired text compares with the one before the bug. */
export type Quality = 'equal' | 'equivalent' | 'overfit'
export type Missed = 'time' | 'gave up' | 'stuck' | 'suite too large' | 'obstacle' | 'other'

export interface TrialResult {
  readonly bug: Bug
  readonly runner: string
  readonly quality: Quality | null
  readonly missed: Missed | null
  /** Was undoing the bug among the patches? */
  readonly triedOriginal: boolean
  readonly trials: number
  readonly seconds: number
  /** Paths that are neither sources nor caches and are not as they were. */
  readonly touched: readonly string[]
  /** Sources that an unachieved run left changed, though no more tests pass. */
  readonly leftovers: readonly string[]
  /** Sources that it left changed because more tests pass. */
  readonly kept: readonly string[]
  readonly said: string
}

/** A folder with a planted package, gone when it is disposed of. */
export interface Planted extends AsyncDisposable {
  /** The package with the bug; the store of the engine; the package without the bug. */
  readonly cwd: string
  readonly store: string
  readonly right: string
  readonly goal: string
  readonly before: Snapshot
}

export async function planted(one: RealPackage, bug: Bug, cache: string): Promise<Planted> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'repair-real-')))
  // The name is that of the package: some runners leave out paths that look like tests.
  const cwd = join(folder, 'work', one.name.replace('/', '+'))
  await mkdir(join(folder, 'work'))
  const right = await fetched(one, cache)
  await copyPackage(right, cwd, bug.heldOut)
  await plant(cwd, bug)
  return {
    cwd, right, store: join(folder, 'store'), before: await snapshot(cwd),
    goal: `shell: ${suiteCommand(one, bug.heldOut)}`,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

export async function trial(
  one: RealPackage, bug: Bug, cache: string, seconds: number,
): Promise<TrialResult> {
  await using place = await planted(one, bug, cache)
  const { cwd, right, goal, store, before } = place
  const wrong = await readFile(join(cwd, bug.file), 'utf8')
  const failing = await runSuite(one.runner, suiteCommand(one, bug.heldOut), cwd)
  const started = performance.now()
  const result = await host({ cwd, store, goal, limits: { max_seconds: seconds } }).result
  if (result === null) throw new Error('the process of the engine was killed')
  const took = (performance.now() - started) / 1000
  const changed = changedPaths(before, await snapshot(cwd))
  const sources = changed.filter((path) => one.sources.test(path))
  const achieved = result.status === 'achieved'
  const original = await readFile(join(right, bug.file), 'utf8')
  const left = achieved || sources.length === 0
    ? null : await runSuite(one.runner, suiteCommand(one, bug.heldOut), cwd)
  const helps = left !== null && left.passed > failing.passed && left.failed <= failing.failed
  return {
    bug, runner: one.runner, seconds: took, trials: trialsOf(result.calls), said: result.said,
    quality: achieved ? await qualityOf(one, bug, place, sources) : null,
    missed: achieved ? null : missedBy(result),
    triedOriginal: patchesOf(result.calls).some((patch) =>
      patch.path === bug.file && squeezed(patched(wrong, patch)) === squeezed(original)),
    touched: changed.filter((path) => !one.sources.test(path)),
    leftovers: left === null || helps ? [] : sources,
    kept: helps ? sources : [],
  }
}

const squeezed = (text: string): string => text.replaceAll(/\s+/g, '')

async function qualityOf(
  one: RealPackage, bug: Bug, { cwd, right }: Planted, sources: readonly string[],
): Promise<Quality> {
  const read = (folder: string, path: string): Promise<string> =>
    readFile(join(folder, path), 'utf8')
  const same = await Promise.all(
    [...new Set([...sources, bug.file])].map(
      async (path) => squeezed(await read(cwd, path)) === squeezed(await read(right, path)),
    ),
  )
  if (same.every(Boolean)) return 'equal'
  for (const path of bug.heldOut) await writeFile(join(cwd, path), await read(right, path))
  if (!passes(await runSuite(one.runner, suiteCommand(one), cwd))) return 'overfit'
  if (bug.heldOut.length > 0) return 'equivalent'
  return (await behavesAlike(one, right, cwd, bug.file)) ? 'equivalent' : 'overfit'
}

function missedBy({ endReason, reason, said, lastCheck }: HostResult): Missed {
  const texts = `${said}\n${reason}\n${lastCheck}`
  if (/\b(?:too (?:large|long|slow|many tests)|longer than)\b/i.test(said)) return 'suite too large'
  if (endReason === 'time_budget') return 'time'
  if (/\bobstacle|not offered|cannot (?:read|run)/i.test(texts)) return 'obstacle'
  if (/^No candidate left|\bgave up|gives? up/i.test(said)) return 'gave up'
  return endReason === 'stuck' ? 'stuck' : 'other'
}

interface Patch {
  readonly path: string
  readonly edits: readonly { readonly from: string; readonly to: string }[]
}

/** All patches in the arguments of the calls: those that undo an earlier one are patches, too. */
function patchesOf(calls: readonly ToolCalled[]): Patch[] {
  return calls.flatMap(({ tool, args }) => {
    const list: unknown = tool === 'try_patches' ? args['patches'] : [args]
    return Array.isArray(list) ? list.flatMap((each) => patchIn(each, '')) : []
  })
}

function patchIn(value: unknown, outerPath: string): Patch[] {
  if (typeof value !== 'object' || value === null) return []
  const fields = value as Readonly<Record<string, unknown>>
  const path = typeof fields['path'] === 'string' ? fields['path'].replace(/^\.\//, '') : outerPath
  const { old_text: from, new_text: to, edits, content } = fields
  if (typeof from === 'string' && typeof to === 'string') return [{ path, edits: [{ from, to }] }]
  if (typeof content === 'string') return [{ path, edits: [{ from: '', to: content }] }]
  if (!Array.isArray(edits)) return []
  const inner = edits.flatMap((each) => patchIn(each, path))
  const [first] = inner
  return first === undefined ? [] : [{ ...first, edits: inner.flatMap((each) => each.edits) }]
}

/** A patch without a text to replace is a whole file. */
const patched = (text: string, { edits }: Patch): string =>
  edits.reduce((now, { from, to }) => (from === '' ? to : now.replace(from, () => to)), text)

/** Each edit in the workspace is taken back by another one. */
function trialsOf(calls: readonly ToolCalled[]): number {
  const edits = calls.filter(({ tool }) => tool === 'edit_file').length
  const tried = calls.reduce((sum, { tool, args }) => {
    const list: unknown = tool === 'try_patches' ? args['patches'] : []
    return sum + (Array.isArray(list) ? list.length : 0)
  }, 0)
  return tried > 0 ? tried : Math.ceil(edits / 2)
}
