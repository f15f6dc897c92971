/** Folders that runs and a stranger edit at random, beside what is expected of them. */
import assert from 'node:assert/strict'
import {
  chmodSync, lstatSync, mkdirSync, renameSync, rmSync, rmdirSync, symlinkSync, utimesSync,
  writeFileSync,
} from 'node:fs'
import type { ObjectStore } from 'runwright/agent'
import { mergeTexts } from '../../../lib/agent/workspace/merge-text.js'
import { comparePaths } from '../../../lib/agent/workspace/net-changes.js'
import { readContent, readTree } from '../../../lib/agent/workspace/read-tree.js'
import type { Random } from '../../helpers/random.js'
import {
  diskPath, file, foldersOf, link, put, randomContent, randomEdits, randomPath, readModel,
  writeModel, type Model, type ModelFile,
} from '../../helpers/tree-model.js'

export const NAMES: readonly string[] = [
  'a', 'A', 'b', 'c', 'sub', 'd e', '\u00fcml\u00e4ut', 'u\u0308mla\u0308ut', '\udcff\udc80raw',
  'x\ny', '-dash', '😀',
]
const HIDDEN = new Set(['.env', 'k.pem', 'node_modules'])

/** Is it left out of checkpoints, by its name? */
export function isHidden(path: string): boolean {
  return path.split('/').some((name) => HIDDEN.has(name))
}

export function visible(model: Model): Map<string, ModelFile> {
  return new Map([...model].filter(([path]) => !isHidden(path)))
}

export function isSame(a: ModelFile | undefined, b: ModelFile | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.mode === b.mode && a.link === b.link && a.content.equals(b.content)
}

export function differing(a: Model, b: Model): string[] {
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((path) => !isSame(a.get(path), b.get(path)))
    .sort(comparePaths)
}

/** A few random edits, such as a program or a person would make. */
export function edited(
  random: Random,
  before: Model,
  canary: string,
  bigBytes: number,
): Map<string, ModelFile> {
  const isFixed = (path: string): boolean => path.includes('node_modules')
  const own = new Map([...before].filter(([path]) => !isFixed(path)))
  const after = randomEdits(random, own, random.integer(1, 4), NAMES)
  if (random.chance(0.15)) put(after, randomPath(random, NAMES), link(canary))
  const all = [...after.values()]
  if (random.chance(0.3)) put(after, randomPath(random, NAMES), random.pick([...all, file('')]))
  if (random.chance(0.1)) put(after, `${random.pick(NAMES)}/.env`, file(`S=${random.next()}`))
  if (random.chance(0.2)) put(after, randomPath(random, NAMES), file(randomContent(random), 0o640))
  if (random.chance(0.05)) put(after, 'big', file(Buffer.alloc(bigBytes, random.integer(0, 255))))
  for (const [path, value] of before) if (isFixed(path)) after.set(path, value)
  return after
}

/**
 * Something else takes the place of one of these paths, or of a folder above it: a link that leads
 * out, to a folder with the same files or none; a folder for a file; another file.
 *
 * @param outside a folder that does not exist yet
 */
export function swapped(
  random: Random,
  before: Model,
  paths: readonly string[],
  outside: string,
): Map<string, ModelFile> {
  const after = new Map(before)
  const path = random.pick(paths)
  const slash = path.lastIndexOf('/')
  const kind = slash > 0 ? random.integer(0, 4) : random.integer(2, 4)
  if (kind < 2) {
    const folder = path.slice(0, slash)
    const below = [...before].filter(([it]) => it.startsWith(`${folder}/`))
    mkdirSync(outside)
    const twins = below.map(([it, value]) => [it.slice(folder.length + 1), value] as const)
    if (kind === 0) writeModel(outside, new Map(twins))
    put(after, folder, link(outside))
  } else if (kind === 2) put(after, `${path}/new`, file('new'))
  else {
    // Of the same length, so that only the file's stats and bytes tell.
    const { content, mode } = before.get(path) ?? file('stranger')
    put(after, path, file(Buffer.alloc(content.length, random.integer(0, 255)), mode))
  }
  return after
}

/** One change of a folder on the way from one model to another. */
export type Edit =
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'removeFolder'; readonly path: string }
  | { readonly do: 'move'; readonly path: string; readonly to: string }
  | {
      readonly do: 'write'
      readonly path: string
      readonly value: ModelFile
      /** Neither it nor anything below it was there. */
      readonly isNew: boolean
    }

export function editsBetween(random: Random, before: Model, after: Model): Edit[] {
  const paths = differing(before, after)
  const gone = paths.filter((path) => before.has(path) && !after.has(path))
  const edits: Edit[] = []
  const moved = new Map<ModelFile, string>()
  for (const path of gone) {
    const value = before.get(path)!
    const to = paths.find((other) => after.get(other) === value && !before.has(other))
    // Of two files that move, one must not take the place of the folder of the other.
    const isApart = (it: string): boolean => !to!.startsWith(`${it}/`) && !it.startsWith(`${to}/`)
    const isMoved = to !== undefined && gone.every(isApart) && !moved.has(value)
    if (isMoved) moved.set(value, to)
    if (isMoved) edits.push({ do: 'move', path, to })
    else edits.push({ do: 'remove', path })
    const slash = path.lastIndexOf('/')
    if (slash > 0 && random.chance(0.5)) {
      edits.push({ do: 'removeFolder', path: path.slice(0, slash) })
    }
  }
  edits.sort((x, y) => Number(x.do === 'move') - Number(y.do === 'move'))
  for (const path of paths) {
    const value = after.get(path)
    if (value === undefined || moved.get(value) === path) continue
    const isNew = ![...before.keys()].some((it) => it === path || it.startsWith(`${path}/`))
    edits.push({ do: 'write', path, value, isNew })
  }
  return edits
}

/** What a stranger does. @param sly keeps the time and the file, if only its bytes change */
export function perform(folder: string, edits: readonly Edit[], sly: boolean): void {
  for (const edit of edits) {
    const at = diskPath(folder, edit.path)
    if (edit.do === 'remove') rmSync(at)
    else if (edit.do === 'removeFolder') removeIfEmpty(at)
    else if (edit.do === 'move') {
      const to = diskPath(folder, edit.to)
      mkdirSync(to.subarray(0, to.lastIndexOf('/')), { recursive: true })
      rmSync(to, { recursive: true, force: true })
      renameSync(at, to)
    } else write(at, edit.value, sly)
  }
}

function removeIfEmpty(at: Buffer): void {
  try {
    rmdirSync(at)
  } catch {
    // It holds something.
  }
}

function write(at: Buffer, { content, mode, link }: ModelFile, sly: boolean): void {
  const old = lstatSync(at, { throwIfNoEntry: false })
  mkdirSync(at.subarray(0, at.lastIndexOf('/')), { recursive: true })
  const keeps = sly && old?.isFile() === true && link !== true
  if (!keeps) rmSync(at, { recursive: true, force: true })
  if (link === true) return symlinkSync(content, at)
  writeFileSync(at, content)
  chmodSync(at, mode)
  if (keeps) utimesSync(at, old.atime, old.mtime)
}

/** What a restore does: the steps, those that are possible, and what is in the way of others. */
export function expectedRestore(
  now: Model,
  target: Model,
): { steps: string[]; done: string[]; inTheWay: string[] } {
  const steps = differing(visible(now), target)
  const hidden = [...now.keys()].filter(isHidden)
  const blocking = (path: string): string[] =>
    target.has(path) ? hidden.filter((other) => other.startsWith(`${path}/`)) : []
  const done = steps.filter((path) => blocking(path).length === 0)
  return { steps, done, inTheWay: steps.flatMap(blocking).sort(comparePaths) }
}

/** The folder after these paths got the values of a target. */
export function withPaths(now: Model, target: Model, paths: readonly string[]): Model {
  const after = new Map(now)
  for (const path of paths) {
    const value = target.get(path)
    if (value === undefined) after.delete(path)
  }
  for (const path of paths) if (target.has(path)) after.set(path, target.get(path)!)
  return after
}

export interface ExpectedApply {
  readonly conflicts: string[]
  readonly merged: string[]
  readonly applied: string[]
  readonly after: Model
  /** What is in no tree, and keeps all from being done. */
  readonly inTheWay: string[]
}

/** What an apply takes for the base: what the folder has as a fork found it is no change. */
export function baseOf(
  { began, start }: { readonly began: Model; readonly start: Model },
  now: Model,
): Model {
  const theirs = visible(now)
  const asFound = [...began.keys(), ...start.keys()].filter((path) =>
    isSame(start.get(path), theirs.get(path)),
  )
  return withPaths(began, start, asFound)
}

/** What an apply does; with conflicts and no `force`, that would be done. */
export function expectedApply(
  base: Model,
  ours: Model,
  now: Model,
  wanted: ReadonlySet<string> | null,
  force: boolean,
): ExpectedApply {
  const theirs = visible(now)
  const hidden = [...now.keys()].filter(isHidden)
  const [conflicts, merged] = [new Set<string>(), new Set<string>()]
  const steps = new Map<string, ModelFile | undefined>()
  for (const path of differing(base, ours)) {
    if (wanted !== null && !wanted.has(path)) continue
    const b = theirs.get(path)
    const [o, a] = [withModeOf(b, base.get(path)), withModeOf(b, ours.get(path))]
    if (isSame(a, b) || isSame(o, a)) continue
    if (isSame(o, b)) steps.set(path, a)
    else {
      const both = mergedFile(o, a, b)
      if (both === null) {
        conflicts.add(path)
        if (force) steps.set(path, a)
      } else if (!isSame(both, b)) {
        steps.set(path, both)
        if (!both.content.equals(a!.content) && !both.content.equals(b!.content)) merged.add(path)
      }
    }
  }
  for (const [path, value] of [...steps]) {
    if (value === undefined || theirs.has(path)) continue
    const inWay = [...theirs.keys()].filter(
      (it) => it.startsWith(`${path}/`) || path.startsWith(`${it}/`),
    )
    const left = inWay.filter((it) => !steps.has(it) || steps.get(it) !== undefined)
    const isBlocked = hidden.some((it) => it.startsWith(`${path}/`))
    if (left.length === 0 && !isBlocked) continue
    conflicts.add(path)
    if (!force) steps.delete(path)
    else for (const it of left) {
      conflicts.add(it)
      steps.set(it, undefined)
    }
  }
  const applied = [...steps.keys()].sort(comparePaths)
  const target = new Map([...steps].filter(([, value]) => value !== undefined)) as Model
  const after = withPaths(now, target, applied)
  const sorted = (paths: Iterable<string>): string[] => [...paths].sort(comparePaths)
  const isInTheWay = (it: string): boolean =>
    [...target.keys()].some((path) => it.startsWith(`${path}/`))
  const inTheWay = sorted(hidden.filter(isInTheWay))
  return { conflicts: sorted(conflicts), merged: sorted(merged), applied, after, inTheWay }
}

/** Only whether a file can be executed is brought. */
function withModeOf(
  theirs: ModelFile | undefined,
  one: ModelFile | undefined,
): ModelFile | undefined {
  if (one === undefined || one.link === true) return one
  const mode = theirs === undefined || theirs.link === true ? 0o644 : theirs.mode
  const isProgram = (one.mode & 0o100) !== 0
  if (isProgram === ((mode & 0o100) !== 0)) return { ...one, mode }
  return { ...one, mode: isProgram ? mode | 0o100 | ((mode & 0o444) >> 2) : mode & 0o666 }
}

/** Null for a conflict. */
function mergedFile(
  o: ModelFile | undefined,
  a: ModelFile | undefined,
  b: ModelFile | undefined,
): ModelFile | null {
  if (o === undefined || a === undefined || b === undefined) return null
  if (o.link === true || a.link === true || b.link === true) return null
  if (a.mode !== o.mode && b.mode !== o.mode && a.mode !== b.mode) return null
  const mode = a.mode === o.mode ? b.mode : a.mode
  const takesOurs = a.content.equals(b.content) || b.content.equals(o.content)
  if (takesOurs) return { content: a.content, mode }
  if (a.content.equals(o.content)) return { content: b.content, mode }
  const work = mergeTexts(o.content, a.content, b.content)
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value === null ? null : { content: value, mode }
  }
}

/** Changes folders without changing files; a run that must not leave empty ones removes them. */
export function editFolders(random: Random, folder: string, leavesEmpty: boolean): void {
  const all = foldersOf(folder).filter((path) => !/node_modules/.test(path))
  if (all.length > 0 && random.chance(0.3)) {
    chmodSync(diskPath(folder, random.pick(all)), random.pick([0o700, 0o755, 0o750]))
  }
  if (leavesEmpty) {
    const name = `empty ${random.integer(1, 3)}`
    const at = diskPath(folder, all.length === 0 ? name : `${all[0]}/${name}`)
    if (random.chance(0.3)) mkdirSync(at, { recursive: true })
  } else for (const path of all.toReversed()) removeIfEmpty(diskPath(folder, path))
}

/** The folders of a folder must be those of a checkpoint, besides those of what is in none. */
export async function assertFolders(
  folder: string,
  objects: ObjectStore,
  id: string,
  hint: string,
): Promise<void> {
  const { folders } = await readTree(objects, id)
  const shown = (path: string, mode: number): string => `${path} ${mode.toString(8)}`
  const wanted = [...folders!].map(([path, mode]) => shown(path, mode))
  const holds = [...readModel(folder).keys()].filter(isHidden)
  const isForeign = (path: string): boolean =>
    !folders!.has(path) && (isHidden(path) || holds.some((it) => it.startsWith(`${path}/`)))
  const found = foldersOf(folder)
    .filter((path) => !isForeign(path))
    .map((path) => shown(path, lstatSync(diskPath(folder, path)).mode & 0o777))
  assert.deepEqual(found.sort(), wanted.sort(), `${hint}: folders`)
}

/** What a checkpoint has. */
export async function readCheckpoint(objects: ObjectStore, id: string): Promise<Model> {
  const { entries } = await readTree(objects, id)
  const model = new Map<string, ModelFile>()
  for (const [path, entry] of entries) {
    const content = Buffer.from(await readContent(objects, entry))
    model.set(path, entry.kind === 'link' ? link(content) : file(content, entry.mode))
  }
  return model
}

/** What happened to a folder while a stranger edited it. */
export interface Meeting {
  readonly before: Model
  /** What the stranger made of paths last; undefined for nothing. */
  readonly stranger: ReadonlyMap<string, ModelFile | undefined>
  readonly after: Model
  /** What the operation may have written. */
  readonly targets: readonly Model[]
  /** The checkpoints that it made. */
  readonly kept: readonly Model[]
}

/** Nothing may be lost without a name, and nothing may be there that nobody wrote. */
export function problemsOf({ before, stranger, after, targets, kept }: Meeting): string[] {
  const problems: string[] = []
  const isKept = (path: string, value: ModelFile): boolean =>
    [after, ...kept].some((model) => isSame(model.get(path), value))
  for (const [path, value] of before) {
    if (!stranger.has(path) && !isKept(path, value)) problems.push(`lost: ${JSON.stringify(path)}`)
  }
  for (const [path, value] of stranger) {
    if (value !== undefined && !isKept(path, value))
      problems.push(`lost of the stranger: ${JSON.stringify(path)}`)
  }
  for (const [path, value] of after) {
    const known = [before.get(path), stranger.get(path), ...targets.map((it) => it.get(path))]
    if (!known.some((other) => isSame(value, other))) {
      problems.push(`nobody wrote: ${JSON.stringify(path)}`)
    }
  }
  return problems
}
