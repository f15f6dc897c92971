import { lstat, mkdir, rm } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { LongWork } from '../../../internal/time.js'
import type { ChangedFile, FilesAtStart, SealStart } from '../../check-files.js'
import { unreadable } from '../../exhaustion.js'
import type { GoalBaseline, GoalCheckContext, GoalSpec } from '../../goal.js'
import { makeUnread } from '../../workspace/touched-files.js'
import { changedKeys, isKeyOfWork, isNamed, isOfRunners } from '../may-change.js'
import { hashFiles } from '../protected-files.js'
import { hasRelevantPart } from '../relevant-part.js'
import { isFixtureName, languageOf } from './file-kinds.js'
import { changedOf, existingIn } from './file-states.js'
import { listFiles, type ListedFile } from './list-files.js'
import { isOfTests, OWNERS, ownersOf, type Rule } from './owners.js'
import { TextReader } from './read-texts.js'
import type { SealedCopy } from './sealed-copy.js'
import { scriptOf } from './surroundings.js'

/** A file that the run has changed, and who owns it. */
export interface OwnedFile extends ChangedFile {
  readonly rule: Rule
  /** Of a package.json: the keys that decide a check and that the run has changed. */
  readonly keys: readonly string[]
  /** Could a request let the run change it? */
  readonly canBeAllowed: boolean
  /** Does the copy have it as the run left it? */
  readonly isRuns: boolean
}

/** What a copy has as at the start. */
export interface PutBack {
  readonly files: readonly OwnedFile[]
  /** Files of the check that are as the run left them, since their content was not stored. */
  readonly lost: readonly string[]
}

/** What the files of a copy are decided by. */
export interface Start {
  readonly goal: GoalSpec
  readonly context: GoalCheckContext
  readonly start: SealStart
  readonly atStart: FilesAtStart
  /** Files of the check that count as the run's, as globs. */
  readonly mayChange: readonly string[]
}

/**
 * Gives a copy of the folder all that the check owns as at the start, and times by which nothing
 * looks newer than what it is made of but what the run has changed.
 *
 * @throws {@link GoalError} when the folder is too large; the signal's reason.
 */
export async function putBack(
  copy: SealedCopy,
  given: Start,
): Promise<PutBack> {
  const { context, start, atStart, mayChange } = given
  const { baselineTests, cwd, signal } = context
  const { root } = copy
  const files = await listFiles(root, signal)
  const changed = start.files === undefined ? await atStart.changed()
    : await changedSince(cwd, start.files, files.filter(({ kind }) => kind !== 'cache').map(pathOf))
  if (changed === null) throw new Error('the files of the start are not known')
  const owners = await ownersIn(changed, root, files, given)
  const isNew = new Set(pathsOf(changed.filter((one) => one.isNew)))
  const old = [...files.map(pathOf), ...pathsOf(changed)].filter((path) => !isNew.has(path))
  const hadTests = baselineTests !== null || old.some(isOfTests)
  const owned = changed.map((one): OwnedFile => {
    const owner = owners.get(one.path)!
    const { rule, keys, canBeAllowed } = owner
    // Without a test at the start, those of the run are all that there is.
    const isOwnTest = one.isNew && !hadTests && (rule === 'test' || rule === 'helper')
    const isAllowed = canBeAllowed && isNamed(mayChange, one.path, keys)
    const isRuns = isOwnTest || isAllowed || OWNERS[rule][0] === 'run'
    return { ...one, ...owner, canBeAllowed: canBeAllowed && !isOwnTest, isRuns }
  })
  const back = owned.filter(({ isRuns }) => !isRuns)
  const caches = files.filter(({ kind }) => kind === 'cache').map(pathOf)
  const there = await existingIn(root, pathsOf(back))
  await copy.putAside([...caches, ...there])
  const wanted = pathsOf(back.filter(({ isNew }) => !isNew))
  const done = new Set(await atStart.restore(root, wanted))
  const lost = wanted.filter((path) => !done.has(path))
  await copy.putBack(there.filter((path) => lost.includes(path)))
  await makeUnread(root, [...done])
  await setTimes(copy, new Map(owned.map((one) => [one.path, one])), start, files.map(pathOf))
  return { files: owned, lost }
}

type Owner = Pick<OwnedFile, 'rule' | 'keys' | 'canBeAllowed'>

/** Who owns the files of a copy that are not as at the start. */
async function ownersIn(
  changed: readonly ChangedFile[],
  root: string,
  files: readonly ListedFile[],
  { goal, context: { baseline, signal }, start, atStart }: Start,
): Promise<ReadonlyMap<string, Owner>> {
  const place = join(dirname(root), '.start')
  await mkdir(place)
  const scripts = Object.keys(baseline.files).filter(isScript)
  const old = pathsOf(changed.filter(({ isNew }) => !isNew))
  await atStart.restore(place, [...new Set([...old, ...scripts])])
  const isChanged = new Set(pathsOf(changed))
  const [now, then] = [new TextReader(root), new TextReader(place)]
  const rules = await ownersOf(changed, {
    goal, baseline, root, files, signal, reported: start.tests ?? [],
    script: await scriptOf(goal, place),
    now: (path) => now.read(path),
    atStart: (path) => (isChanged.has(path) ? then : now).read(path),
  })
  const owners = new Map<string, Owner>()
  for (const [path, rule] of rules) {
    const isManifest = rule === 'settings' && posix.basename(path) === 'package.json'
    const keys = isManifest ? changedKeys(await then.read(path), await now.read(path)) : []
    const canBeAllowed = isManifest ? keys.length > 0 && keys.every(isKeyOfWork)
      : rule !== 'named' && rule !== 'shadow' && !isOfRunners(path)
    owners.set(path, { rule, keys, canBeAllowed })
  }
  await rm(place, { recursive: true })
  return owners
}

/**
 * Files of the start among `paths`, which the check has written and read, that it owns. One that is
 * as before may have been put back. Data that the check makes is written again as it was.
 */
export async function rewrittenIn(
  copy: SealedCopy,
  given: Start,
  paths: readonly string[],
): Promise<readonly string[]> {
  const { atStart, context } = given
  const changed: ChangedFile[] = []
  const isAsBefore = new Set<string>()
  for (const path of paths) {
    const before = await atStart.hashOf(path)
    if (before == null) continue
    changed.push({ path, isNew: false, isGone: false })
    if (before === (await hashFiles(copy.root, [path]))[path]) isAsBefore.add(path)
  }
  if (changed.length === 0) return []
  const files = await listFiles(copy.root, context.signal)
  const owners = await ownersIn(changed, copy.root, files, given)
  return pathsOf(changed).filter((path) => {
    const { rule, keys, canBeAllowed } = owners.get(path)!
    if (OWNERS[rule][0] === 'run' || rule === 'result') return false
    const isData = rule === 'fixture' || rule === 'rest'
    if (isData && isAsBefore.has(path) && !isFixtureName(path)) return false
    return !(canBeAllowed && isNamed(given.mayChange, path, keys))
  })
}

/** What has changed since the start in a folder without checkpoints. */
async function changedSince(
  cwd: string,
  states: { readonly [path: string]: string },
  paths: readonly string[],
): Promise<readonly ChangedFile[]> {
  const old = await changedOf(cwd, states, Object.keys(states))
  const there = new Set(paths)
  const added = paths.filter((path) => !Object.hasOwn(states, path))
  return [
    ...old.map((path) => ({ path, isNew: false, isGone: !there.has(path) })),
    ...added.map((path) => ({ path, isNew: true, isGone: false })),
  ]
}

/** Files of the check that a copy has as the run left them. */
export function ownOf(files: readonly OwnedFile[], { files: known }: GoalBaseline): string[] {
  const isOfCheck = ({ path, rule }: OwnedFile): boolean =>
    OWNERS[rule][0] === 'check' || Object.hasOwn(known, path) ||
    hasRelevantPart(posix.basename(path))
  return pathsOf(files.filter((one) => one.isRuns && isOfCheck(one))).slice()
}

async function setTimes(
  copy: SealedCopy,
  owned: ReadonlyMap<string, OwnedFile>,
  { since, times = {} }: SealStart,
  paths: readonly string[],
): Promise<void> {
  const now = Date.now()
  const work = new LongWork()
  for (const path of new Set([...paths, ...owned.keys()])) {
    if (work.isDue) await work.next()
    const stats = await lstat(join(copy.root, path)).catch(unreadable)
    if (stats?.isFile() !== true) continue
    if (owned.get(path)?.isRuns === true) await copy.setTimes({ [path]: now })
    else if (stats.mtimeMs >= since) await copy.setTimes({ [path]: times[path] ?? since })
  }
}

/** May a command be followed into this file? */
function isScript(path: string): boolean {
  const name = posix.basename(path)
  return name === 'package.json' || !name.includes('.') || /^(?:shell|make)$/.test(languageOf(path))
}

const pathOf = ({ path }: { readonly path: string }): string => path

function pathsOf(files: readonly ChangedFile[]): readonly string[] {
  return files.map(pathOf)
}
