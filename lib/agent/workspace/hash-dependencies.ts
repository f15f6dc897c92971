/**
 * Finds and hashes dependencies, synchronously; see `dependencies.ts`.
 *
 * 1. A package is known by its content: paths, links, executable bits and bytes, whatever the order
 *    of its entries and their times. It is known as well by a mark, from which one sees without
 *    reading anything that nobody touched it: inodes, sizes, modes and change times.
 * 2. Change times move in steps: what changed in the step of the newest one that was found may have
 *    changed again in it, and is read again.
 * 3. Entries of the folder are looked at before anything is read: what changes after that has a
 *    change time that is no older than the newest one found.
 *
 * @module
 */
import { createHash, type Hash } from 'node:crypto'
import { closeSync, lstatSync, openSync, readlinkSync, readSync, realpathSync, statSync }
  from 'node:fs'
import type { Stats } from 'node:fs'
import { nameOfBytes } from '../../internal/bytes.js'
import { throwIfExhausted } from '../exhaustion.js'
import { ENVIRONMENT_MARKS, isDependencyFile, isDependencyFolder, kindOfEntry }
  from './dependency-folders.js'
import { isInside } from './paths.js'
import { rawPath, toSystem, type RawPath } from './raw-paths.js'
import { SKIPPED_FOLDERS } from './skipped-folders.js'
import { READ_FLAGS, walkFolder, WalkedFolder, WorkStopped, type Walked } from './walk-folder.js'

/** What is to be looked at. All folders are absolute, real paths. */
export interface DependencyJob {
  readonly folder: string
  /** Packages that are found above the folder. */
  readonly above: string | null
  readonly closed: readonly string[]
  /** Captured before: hashes of what nobody touched since are taken from it. */
  readonly known?: FoundDependencies | undefined
}

/** What there is, by path: see `Dependencies`. */
export interface FoundDependencies {
  readonly since: number
  readonly folders: readonly string[]
  readonly packages: Readonly<Record<string, string>> | null
  readonly marks: Readonly<Record<string, string>>
  /** Marks of what lies in caches. */
  readonly caches: Readonly<Record<string, string>>
  readonly isCoarse: boolean
}

/** How they differ from what they were. */
export interface DependencyDifferences {
  readonly folders: readonly string[]
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly modified: readonly string[]
  readonly caches: readonly string[]
}

/** How much is looked at. */
export interface DependencyLimits {
  /** Entries and bytes of packages that are hashed. */
  readonly hashed: number
  readonly bytes: number
  /** Entries that are looked at. */
  readonly entries: number
  /** Packages that are kept apart; beyond that, each folder counts as one. */
  readonly packages: number
  /** What an agent may add before it is too much to be compared. */
  readonly added: number
}

const LIMITS: DependencyLimits = {
  hashed: 300_000, bytes: 4 * 1024 ** 3, entries: 2_000_000, packages: 10_000, added: 40_000,
}
/** The longest step of a file system's clock, and what it may be behind ours. */
const MAX_STEP_MS = 3_000
const CHUNK = Buffer.allocUnsafeSlow(128 * 1024)
/** Folders that hold folders of dependencies, and folders whose modules nobody loads. */
const ENTERED: ReadonlySet<string> = new Set(['.tox', '.nox'])

/** A package, or what else lies beside packages. */
interface Unit {
  readonly at: RawPath
  readonly kind: 'package' | 'cache'
  /** Set for a whole folder of dependencies. */
  readonly folder: RawPath | null
  readonly mark: Hash
  newest: number
}

/** Finds and hashes them; {@link WorkStopped} when there are too many. */
export function captureAll(
  job: DependencyJob,
  isAborted: () => boolean,
  limits: DependencyLimits = LIMITS,
): FoundDependencies {
  const look = new Look(job, isAborted, false, limits)
  if (look.find(limits.packages)) return look.all()
  const coarse = new Look(job, isAborted, true, limits)
  if (!coarse.find(limits.packages)) throw new WorkStopped('too large')
  return coarse.all()
}

/** Compares them; {@link WorkStopped} when there are too many. */
export function compareAll(
  job: DependencyJob,
  before: FoundDependencies,
  isAborted: () => boolean,
  limits: DependencyLimits = LIMITS,
): DependencyDifferences {
  const look = new Look(job, isAborted, before.isCoarse, limits)
  if (!look.find(limits.packages + limits.added)) throw new WorkStopped('too large')
  return look.differences(before)
}

class Look {
  readonly #job: DependencyJob
  readonly #isAborted: () => boolean
  readonly #isCoarse: boolean
  readonly #limits: DependencyLimits
  readonly #closed: ReadonlySet<RawPath>
  readonly #folders: Set<RawPath> = new Set()
  readonly #units: Map<RawPath, Unit> = new Map()
  #entries = 0
  #hashed = 0
  #bytes = 0
  #newest = 0
  #maxUnits = 0
  readonly #start: number = Date.now()

  constructor(
    job: DependencyJob,
    isAborted: () => boolean,
    isCoarse: boolean,
    limits: DependencyLimits,
  ) {
    this.#job = job
    this.#isAborted = isAborted
    this.#isCoarse = isCoarse
    this.#limits = limits
    this.#closed = new Set(job.closed.map(rawPath))
  }

  /** Finds all there are; false when there are more than so many. */
  find(maxUnits: number): boolean {
    this.#maxUnits = maxUnits
    const root = rawPath(this.#job.folder)
    const folders = new Map<RawPath, RawPath>()
    for (const [found, stats] of this.#visit(root)) {
      const { path, name, at } = found
      const real = `${root}/${path}`
      if (this.#closed.has(real)) continue
      if (stats.isSymbolicLink() && isDependencyFolder(path)) {
        this.#add(path, { at: real, folder: null, kind: 'package' }, '', at, stats)
        // What a link shows in the folder itself is found there.
        const end = folderBehind(real)
        if (end !== null && !isInside(end, root)) folders.set(path, end)
      } else if (isDependencyFile(path)) {
        this.#add(path, { at: real, folder: null, kind: 'package' }, '', at, stats)
      }
      if (!stats.isDirectory()) continue
      if (isDependencyFolder(path) || isEnvironment(at)) folders.set(path, real)
      else if (!SKIPPED_FOLDERS.has(name) || ENTERED.has(name)) found.tryEnter()
    }
    const { above } = this.#job
    if (above !== null) folders.set('../node_modules', rawPath(above))
    for (const [path, real] of folders) this.#folder(path, real)
    return this.#units.size <= this.#maxUnits
  }

  all(): FoundDependencies {
    const packages: Record<string, string> = {}
    const marks: Record<string, string> = {}
    const caches: Record<string, string> = {}
    const isTooMuch = this.#hashed > this.#limits.hashed || this.#bytes > this.#limits.bytes
    for (const [path, unit] of this.#units) {
      const text = textOf(path)
      const of = unit.kind === 'cache' ? caches : marks
      of[text] = markOf(unit)
      if (unit.kind !== 'package' || isTooMuch) continue
      const { known } = this.#job
      const isSame = known !== undefined && isUntouched(known, text, unit)
      packages[text] = (isSame ? known.packages?.[text] : undefined) ?? this.#hash(unit)
    }
    // The clock has gone on since then, whatever its steps.
    const isPast = this.#newest < this.#start - MAX_STEP_MS
    return {
      since: this.#newest + (isPast ? 1 : 0),
      folders: [...this.#folders].map(textOf),
      packages: isTooMuch ? null : packages,
      marks,
      caches,
      isCoarse: this.#isCoarse,
    }
  }

  differences(before: FoundDependencies): DependencyDifferences {
    const found = new Set<string>()
    const added: string[] = []
    const modified: string[] = []
    const caches: string[] = []
    for (const [path, unit] of this.#units) {
      const text = textOf(path)
      found.add(text)
      if (isUntouched(before, text, unit)) continue
      if (unit.kind === 'cache') caches.push(text)
      else if (!Object.hasOwn(before.marks, text)) added.push(text)
      else if (before.packages?.[text] !== this.#hash(unit)) modified.push(text)
    }
    const removed = Object.keys(before.marks).filter((path) => !found.has(path))
    return { folders: [...this.#folders].map(textOf), added, removed, modified, caches }
  }

  /** A folder of dependencies. `path` is by which it is known. */
  #folder(folder: RawPath, real: RawPath): void {
    /** Folders of packages that were entered, and the unit in which the rest is. */
    const groups = new Set<RawPath>([''])
    let unit = ''
    let kind: Unit['kind'] = 'package'
    for (const [entry, stats] of this.#visit(real)) {
      const { path, name, at } = entry
      if (this.#closed.has(`${real}/${path}`) || name === '__pycache__') continue
      const parent = path.slice(0, Math.max(path.length - name.length - 1, 0))
      if (groups.has(parent)) {
        const found = kindOfEntry(folder, parent, name)
        if (found === 'state') continue
        if (found === 'packages' && stats.isDirectory()) {
          groups.add(path)
          entry.tryEnter()
          continue
        }
        unit = path
        // A link may lead anywhere, and cannot be hidden.
        const isCache = found === 'cache' && (stats.isDirectory() || parent !== '')
        kind = isCache ? 'cache' : 'package'
      }
      if (stats.isDirectory()) {
        entry.tryEnter()
        continue
      }
      const isOne = this.#isCoarse && kind === 'package'
      const [key, within] = isOne
        ? [folder, path]
        : [`${folder}/${unit}`, path.slice(unit.length)]
      if (kind === 'package') this.#folders.add(folder)
      const place = isOne ? { at: real, folder } : { at: `${real}/${unit}`, folder: null }
      this.#add(key, { ...place, kind }, within, at, stats)
    }
  }

  #add(
    key: RawPath,
    place: Pick<Unit, 'at' | 'folder' | 'kind'>,
    within: RawPath,
    at: RawPath,
    stats: Stats,
  ): void {
    let unit = this.#units.get(key)
    if (unit === undefined) {
      if (this.#units.size > this.#maxUnits) return
      unit = { ...place, mark: createHash('sha256'), newest: 0 }
      this.#units.set(key, unit)
    }
    const { ino, size, mode, ctimeMs } = stats
    unit.mark.update(`${within}\0${ino} ${size} ${mode} ${ctimeMs}\n`)
    unit.newest = Math.max(unit.newest, ctimeMs)
    this.#newest = Math.max(this.#newest, ctimeMs)
    if (place.kind !== 'package') return
    this.#hashed += 1
    this.#bytes += stats.isFile() ? size : at.length
  }

  /** The hash of what a package holds. */
  #hash({ at, folder }: Unit): string {
    const hash = createHash('sha256')
    const stats = lstatSync(toSystem(at), { throwIfNoEntry: false })
    if (stats === undefined) return 'gone'
    if (!stats.isDirectory()) this.#entry(hash, '', at, stats)
    else {
      for (const [found, own] of this.#visit(at)) {
        const { depth, name, path } = found
        const isOther = folder !== null && depth === 0 && !isHeld(folder, name)
        if (name === '__pycache__' || isOther) continue
        if (own.isDirectory()) found.tryEnter()
        else this.#entry(hash, path, found.at, own)
      }
    }
    return hash.digest('base64url')
  }

  #entry(hash: Hash, path: RawPath, at: RawPath, stats: Stats): void {
    const kind = stats.isSymbolicLink() ? 'link' : stats.isFile() ? 'file' : 'other'
    const isProgram = stats.isFile() && (stats.mode & 0o111) !== 0
    hash.update(`${path}\0${isProgram ? 'program' : kind}\0`, 'latin1')
    const content = createHash('sha256')
    try {
      if (kind === 'link') content.update(readlinkSync(toSystem(at), 'buffer'))
      else if (kind === 'file') this.#content(content, at)
    } catch (error) {
      if (error instanceof WorkStopped) throw error
      throwIfExhausted(error)
      content.update('\0unreadable')
    }
    hash.update(content.digest())
  }

  #content(hash: Hash, at: RawPath): void {
    const file = openSync(toSystem(at), READ_FLAGS)
    try {
      for (;;) {
        const length = readSync(file, CHUNK, 0, CHUNK.length, null)
        if (length === 0) return
        if (this.#isAborted()) throw new WorkStopped('aborted')
        hash.update(CHUNK.subarray(0, length))
      }
    } finally {
      closeSync(file)
    }
  }

  /** What is in a folder, with its stats; access times stay as they are. */
  *#visit(folder: RawPath): Generator<readonly [Walked, Stats]> {
    const limits = {
      entries: this.#limits.entries - this.#entries,
      isAborted: this.#isAborted,
      keepsAccessTimes: true,
    }
    using top = WalkedFolder.open(folder)
    for (const found of walkFolder(top, limits)) {
      this.#entries += 1
      const stats = found.stat()
      if (stats !== null) yield [found, stats]
    }
  }
}

/** Does an entry of a folder of dependencies belong to them, rather than to caches or state? */
function isHeld(folder: RawPath, name: RawPath): boolean {
  return name !== '.cache' && ['package', 'packages'].includes(kindOfEntry(folder, '', name))
}

/** What a link leads to; null when that is no folder. */
function folderBehind(path: RawPath): RawPath | null {
  try {
    const real = realpathSync(toSystem(path), 'latin1')
    return statSync(toSystem(real)).isDirectory() ? real : null
  } catch (error) {
    throwIfExhausted(error)
    return null
  }
}

function isEnvironment(at: RawPath): boolean {
  return ENVIRONMENT_MARKS.some((name) => {
    try {
      return lstatSync(toSystem(`${at}/${name}`), { throwIfNoEntry: false }) !== undefined
    } catch (error) {
      throwIfExhausted(error)
      return false
    }
  })
}

function isUntouched(before: FoundDependencies, path: string, unit: Unit): boolean {
  const marks = unit.kind === 'cache' ? before.caches : before.marks
  const isKnown = Object.hasOwn(marks, path) && unit.newest < before.since
  return isKnown && marks[path] === markOf(unit)
}

function markOf({ mark }: Unit): string {
  return mark.copy().digest('base64url').slice(0, 22)
}

function textOf(path: RawPath): string {
  return nameOfBytes(Buffer.from(path, 'latin1'))
}
