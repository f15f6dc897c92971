/**
 * The dependencies of a workspace: what they are, and how they differ from what they were.
 *
 * 1. What counts is content: paths, links, executable bits and bytes of each package. Installing
 *    the same packages anew is no difference.
 * 2. Links are compared as links: what lies in the workspace is no dependency because one leads to
 *    it. A folder of dependencies that is itself a link is followed.
 * 3. Only what was touched since is read again, see `hash-dependencies.ts`.
 * 4. Caches are told apart, because what is in them may be code: see `dependency-folders.ts`.
 *
 * @module
 */
import type { Dependencies } from '../check-files.js'
import { clip } from '../output.js'
import { performTask, taskError } from './folder-threads.js'
import type { DependencyDifferences, DependencyJob, FoundDependencies }
  from './hash-dependencies.js'
import { failure } from './paths.js'

export interface DependencyOptions {
  /** Folders that do not exist for runs. @defaultValue none */
  readonly closed?: readonly string[] | undefined
  /** Real path of the packages that are found above the workspace. @defaultValue none */
  readonly above?: string | null | undefined
  readonly signal?: AbortSignal | undefined
}

/** How dependencies differ. */
export interface DependencyComparison {
  /** One phrase each, sorted, such as `node_modules/x was modified`, in one line. */
  readonly changes: readonly string[]
  /** Relative paths of what was changed or made in caches. */
  readonly caches: readonly string[]
}

/** Changes that are named. */
const MAX_CHANGES = 1_000
const MAX_SHOWN_PATH = 200

/** The last capture in each of some folders: later runs read only packages that changed. */
const captured = new Map<string, FoundDependencies>()
const MAX_CAPTURED = 8

/**
 * Looks at the dependencies of a workspace, and hashes what was touched since they were captured
 * last.
 *
 * @param folder its real path
 * @throws {@link WorkspaceError} when the folder cannot be looked at, or has more than two million
 * entries; the signal's reason.
 */
export async function captureDependencies(
  folder: string,
  options: DependencyOptions = {},
): Promise<Dependencies> {
  const key = JSON.stringify([folder, options.above, options.closed])
  const found = await look<FoundDependencies>(folder, null, options, captured.get(key))
  captured.delete(key)
  captured.set(key, found)
  const [oldest] = captured.keys()
  if (captured.size > MAX_CAPTURED) captured.delete(oldest!)
  return found
}

/**
 * How the dependencies of a workspace differ from what they were, and which caches do.
 *
 * @throws as {@link captureDependencies} does.
 */
export async function compareDependencies(
  folder: string,
  before: Dependencies,
  options: DependencyOptions = {},
): Promise<DependencyComparison> {
  const found = await look<DependencyDifferences>(folder, before, options)
  return { changes: phrases(before, found), caches: found.caches }
}

/** The changes of {@link compareDependencies}. */
export async function dependencyChanges(
  folder: string,
  before: Dependencies,
  options: DependencyOptions = {},
): Promise<readonly string[]> {
  return (await compareDependencies(folder, before, options)).changes
}

async function look<Found>(
  folder: string,
  before: Dependencies | null,
  { closed = [], above = null, signal }: DependencyOptions,
  known?: FoundDependencies,
): Promise<Found> {
  const job: DependencyJob = { folder, above, closed, known }
  const report = await performTask<Found>({ t: 'dependencies', folder, job, before }, signal)
  if ('result' in report) return report.result
  if ('error' in report) throw taskError(`the dependencies in ${folder} cannot be read`, report)
  throw failure(`${folder} holds too many dependencies`)
}

/** What happened to a whole folder is told once. */
function phrases(before: Dependencies, found: DependencyDifferences): readonly string[] {
  const is = new Set(found.folders)
  const was = new Set(before.folders)
  const isNew = (folder: string): boolean => is.has(folder) && !was.has(folder)
  const isGone = (folder: string): boolean => was.has(folder) && !is.has(folder)
  const changes = new Map([
    ...found.added.map((path) => [outermost(path, isNew), 'was added'] as const),
    ...found.removed.map((path) => [outermost(path, isGone), 'was removed'] as const),
    ...found.modified.map((path) => [path, 'was modified'] as const),
  ])
  const all = [...changes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, change]) => `${clip(path.replaceAll(/\p{Cc}/gu, '?'), MAX_SHOWN_PATH)} ${change}`)
  const more = all.length - MAX_CHANGES
  return more <= 0 ? all : [...all.slice(0, MAX_CHANGES), `${more} more were changed`]
}

/** The folder in which a path lies that is one of those; else the path. */
function outermost(path: string, isOne: (folder: string) => boolean): string {
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    if (isOne(path.slice(0, at))) return path.slice(0, at)
  }
  return path
}
