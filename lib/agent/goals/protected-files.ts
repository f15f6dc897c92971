/**
 * Protected files: what a run must leave unchanged so that its check keeps its meaning.
 *
 * 1. Nothing outside the workspace is ever opened; a link that leads out is compared as a link.
 * 2. A path is compared by kind (file, link) and by content; its hash covers both.
 * 3. Entries, files, bytes and depth are bounded. A file is read again only when `lstat` shows that
 *    it may have changed.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readlink, realpath, type FileHandle } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { hash as digest } from '../../internal/hash.js'

import { LongWork } from '../../internal/time.js'
import { GoalError } from '../errors.js'
import { throwIfExhausted, unreadable } from '../exhaustion.js'
import type { GoalBaseline, GoalSpec } from '../goal.js'
import { isInside, pathOfDescriptor } from '../workspace/paths.js'
import { exactPath, type RawPath } from '../workspace/raw-paths.js'
import { unlessGone, walkFolder, WalkedFolder, type Walked } from '../workspace/walk-folder.js'
import { clip } from '../output.js'
import { SKIPPED_FOLDERS } from '../workspace/skipped-folders.js'
import { compileGlobs, isLiteral } from '../workspace/globs.js'
import type { PathMatcher } from '../workspace/globs.js'
import { HashCache } from './hash-cache.js'
import { isSameContent } from './package-hash.js'
import { hasRelevantPart, hashRelevantPart, splitPart } from './relevant-part.js'

const MAX_ENTRIES = 200_000
const MAX_FILES = 20_000
const MAX_TOTAL_BYTES = 512 * 1024 * 1024
const MAX_DEPTH = 40
const CHUNK_BYTES = 64 * 1024
/** Larger files of which only a part is protected are protected as a whole. */
const MAX_PARSED_BYTES = 512 * 1024
const MAX_SHOWN_PATH = 200

/**
 * The hashes of everything that the goal protects.
 *
 * @param via the path by which files of the workspace `cwd` are opened
 * @throws {@link GoalError} when the workspace exceeds the bounds.
 */
export async function captureBaseline(
  spec: GoalSpec,
  cwd: string,
  via: string = cwd,
): Promise<GoalBaseline> {
  return { files: Object.fromEntries(await hashProtected(spec, cwd, via)) }
}

/**
 * The hashes of these files, in the form of a baseline: relative paths, taken literally. A path
 * that does not lead to a file has no hash, nor has a file without a part that matters to checks.
 *
 * @throws {@link GoalError} when the files exceed the bounds.
 */
export async function hashFiles(
  root: string,
  paths: Iterable<string>,
): Promise<Record<string, string>> {
  const walk = new Walk(root, root, () => false)
  for (const path of paths) await walk.literal(path)
  return Object.fromEntries(walk.hashes)
}

/**
 * How the files of a baseline differ from it, and the sealed ones that were added, by path: one
 * phrase each, such as `test/a.test.js was modified`. What the baseline names is compared whether
 * or not a glob of the goal names it.
 *
 * @throws {@link GoalError} when the workspace exceeds the bounds.
 */
export async function compareFiles(
  spec: GoalSpec,
  cwd: string,
  baseline: GoalBaseline,
  via: string = cwd,
): Promise<readonly string[]> {
  const now = await hashProtected(spec, cwd, via, Object.keys(baseline.files))
  const sealed = compileGlobs(spec.sealed ?? [])
  const changes = new Map<string, string>()
  for (const [path, hash] of Object.entries(baseline.files)) {
    const found = now.get(path)
    if (found !== undefined && isSameContent(hash, found)) continue
    if (found === undefined) {
      // A file that is protected in part may still exist without that part.
      const isWhole = splitPart(path) === null
      changes.set(path, isWhole && (await isGone(via, path)) ? 'was deleted' : 'was modified')
    } else if (isLink(found) && !isLink(hash)) changes.set(path, 'was replaced by a link')
    else changes.set(path, 'was modified')
  }
  for (const path of now.keys()) {
    if (!Object.hasOwn(baseline.files, path) && sealed(path)) changes.set(path, 'was added')
  }
  return [...changes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, change]) => `${printable(path)} ${change}`)
}

/** A path as one bounded line: file names may contain line breaks. */
function printable(path: string): string {
  const [file, part] = splitPart(path) ?? [path, null]
  const name = part?.startsWith('sample:') === true ? 'a sample in it' : part
  const line = `${file}${name === null ? '' : ` (${name})`}`.replaceAll(/\p{Cc}/gu, '?')
  return clip(line, MAX_SHOWN_PATH)
}

async function isGone(via: string, path: string): Promise<boolean> {
  return (await lstat(join(via, path)).catch(unreadable)) === null
}

function isLink(hash: string): boolean {
  return hash.startsWith('link:')
}

async function hashProtected(
  spec: GoalSpec,
  cwd: string,
  via: string,
  paths: readonly string[] = [],
): Promise<Map<string, string>> {
  const globs = [...spec.protected, ...(spec.sealed ?? [])]
  const walk = new Walk(cwd, via, compileGlobs(globs))
  await walk.folder('', '', '', 0)
  for (const glob of globs) if (isLiteral(glob)) await walk.named(glob)
  for (const path of spec.runner ?? []) await walk.whole(path)
  const runner = new Set(spec.runner)
  for (const path of paths) if (!runner.has(path)) await walk.literal(path)
  return walk.hashes
}

const sha256 = (content: string): string => digest('sha256', content)

/** Shared by all checks of this process. */
const hashCache: HashCache = new HashCache()

class Walk {
  readonly hashes: Map<string, string> = new Map()
  readonly #cwd: string
  readonly #via: string
  readonly #isProtected: PathMatcher
  /** Real paths of the linked folders that led to the current one, so that loops of links end. */
  readonly #linked: Set<string> = new Set()
  readonly #work = new LongWork()
  #root: string | null = null
  #entries = 0
  #bytes = 0

  /** `cwd` is the workspace, `via` the path by which its files are opened. */
  constructor(cwd: string, via: string, isProtected: PathMatcher) {
    this.#cwd = cwd
    this.#via = via
    this.#isProtected = isProtected
  }

  /** The real path of the workspace, found when the first file or link needs it. */
  async #realRoot(): Promise<string> {
    this.#root ??= (await realpath(this.#via).catch(unreadable)) ?? this.#cwd
    return this.#root
  }

  /**
   * Hashes the protected files in a folder; `trail` names the links that led there.
   *
   * @param real its path without links, unless it is that of `.bin`
   */
  async folder(path: string, real: string, trail: string, depth: number): Promise<void> {
    const top = new WalkedFolder(null, exactPath(this.#at(real)))
    // The files of a folder that cannot be read count as deleted.
    for (const found of this.#walk(top, depth)) {
      if (this.#work.isDue) await this.#work.next()
      const { kind, name } = found
      const below = shownPath(found.path)
      const child = path === '' ? below : `${path}/${below}`
      if (kind === 'folder') {
        if (!SKIPPED_FOLDERS.has(name)) this.#enter(found)
        else if (name === 'node_modules') {
          const bin = `${real === '' ? below : `${real}/${below}`}/.bin`
          await this.folder(`${child}/.bin`, bin, trail, depth + found.depth + 1)
        }
      } else if (kind === 'link') await this.#link(child, trail, depth + found.depth)
      else if (kind === 'file' && this.#isProtected(child)) await this.#file(child, trail)
    }
  }

  /** Walks an open folder, `depth` levels below the workspace. */
  *#walk(top: WalkedFolder, depth: number): Generator<Walked> {
    if (depth > MAX_DEPTH) throw tooDeep()
    const limits = { depth: MAX_DEPTH - depth, names: MAX_ENTRIES + 1 }
    for (const found of unlessGone(() => walkFolder(top, limits)) ?? []) {
      this.#countEntry()
      yield found
    }
  }

  #enter(found: Walked): void {
    if (found.isDeepest) throw tooDeep()
    found.tryEnter()
  }

  /** Hashes a path that a glob without wildcards names, also below folders that are skipped. */
  async named(path: string): Promise<void> {
    if (this.hashes.has(path) || path.split('/').includes('..')) return
    const stats = await lstat(this.#at(path)).catch(unreadable)
    if (stats === null) return await this.#part(path)
    const inside = await this.#inside(path)
    if (stats.isSymbolicLink() || inside === null) await this.#link(path, '', 0, true)
    else if (stats.isFile()) await this.#file(path, '')
  }

  /** Hashes a path as it is written, whose folders may be links that do not lead out. */
  async literal(path: string): Promise<void> {
    if (this.#work.isDue) await this.#work.next()
    if (this.hashes.has(path) || path.split('/').includes('..')) return
    const inside = await this.#inside(path)
    const stats = await lstat(this.#at(path)).catch(unreadable)
    if (stats === null) return await this.#part(path)
    // A folder that has become a link is a change, even to a folder of the same content.
    if (stats.isFile() && inside !== path) {
      const hash = inside === null ? null : await this.#hash(inside)
      this.#set(path, `link:${sha256(`${inside}\0${hash ?? 'none'}`)}`)
    } else await this.named(path)
  }

  /** Hashes a part of a file that is named as such. */
  async #part(path: string): Promise<void> {
    const [file] = splitPart(path) ?? []
    if (file === undefined || (await this.#inside(file)) !== file) return
    const hash = (await this.#hash(file, basename(path))) ?? ''
    if (hash !== '') this.#set(path, hash)
  }

  /** Hashes a folder as a whole, under one hash; or a file, or a link that leads out. */
  async whole(path: string): Promise<void> {
    if (path.split('/').includes('..')) return
    const lines: string[] = []
    if ((await this.#inside(path)) !== null) await this.#gather(path, lines, 0)
    else {
      const target = await readlink(this.#at(path)).catch(unreadable)
      if (target !== null) lines.push(`link ${target}`)
    }
    if (lines.length > 0) this.#set(path, sha256(lines.join('\n')))
  }

  async #gather(path: string, lines: string[], depth: number): Promise<void> {
    const stats = await lstat(this.#at(path)).catch(unreadable)
    if (stats?.isSymbolicLink() === true) {
      const target = (await readlink(this.#at(path)).catch(unreadable)) ?? ''
      lines.push(`link ${path} ${target}`)
      // Package managers link packages to a store: its files count, links in it are not followed.
      const inside = depth === 0 ? await this.#inside(path) : null
      if (inside !== null && inside !== '' && inside !== path) await this.#gather(inside, lines, 1)
    } else if (stats?.isDirectory() === true) {
      const top = new WalkedFolder(null, exactPath(this.#at(path)))
      for (const found of this.#walk(top, depth)) {
        if (found.name === 'node_modules' || found.name === '__pycache__') continue
        const child = `${path}/${shownPath(found.path)}`
        if (found.kind === 'folder') this.#enter(found)
        else if (found.kind === 'link') {
          lines.push(`link ${child} ${found.folder.target(found.name)?.toString('utf8') ?? ''}`)
        } else if (found.kind === 'file') await this.#gatherFile(child, lines)
      }
    } else if (stats?.isFile() === true) await this.#gatherFile(path, lines)
  }

  async #gatherFile(path: string, lines: string[]): Promise<void> {
    lines.push(`file ${path} ${(await this.#hash(path)) ?? 'unreadable'}`)
  }

  #countEntry(): void {
    this.#entries += 1
    if (this.#entries > MAX_ENTRIES) throw tooMuch(`it holds more than ${MAX_ENTRIES} files`)
  }

  async #link(path: string, before: string, depth: number, named = false): Promise<void> {
    const link = await readlink(this.#at(path)).catch(unreadable)
    const target = link ?? 'a folder outside'
    const trail = `${before}${path} -> ${target}\n`
    const inside = await this.#inside(path)
    const stats = inside === null ? null : await lstat(this.#at(inside)).catch(unreadable)
    if (inside !== null && stats?.isDirectory() === true) {
      if (this.#linked.has(inside) || SKIPPED_FOLDERS.has(basename(path)) || named) return
      this.#linked.add(inside)
      await this.folder(path, inside, trail, depth + 1)
      this.#linked.delete(inside)
    } else if (named || this.#isProtected(path)) {
      const isFile = inside !== null && stats?.isFile() === true
      const content = isFile ? await this.#hash(inside) : null
      this.#set(path, `link:${sha256(`${trail}\0${content ?? 'none'}`)}`)
    }
  }

  /** The path by which `path` is opened, which is relative to the workspace. */
  #at(path: string): string {
    return path === '' ? this.#via : `${this.#via}/${path}`
  }

  /** The real path behind `path`, relative to the workspace; null when it is not in it. */
  async #inside(path: string): Promise<string | null> {
    const root = await this.#realRoot()
    const real = await realpath(this.#at(path)).catch(unreadable)
    return real !== null && isInside(real, root) ? relative(root, real) : null
  }

  async #file(path: string, trail: string): Promise<void> {
    const name = basename(path)
    const hash = (await this.#hash(path, hasRelevantPart(name) ? name : null)) ?? 'unreadable'
    if (hash === '') return
    this.#set(path, trail === '' ? hash : `link:${sha256(`${trail}\0${hash}`)}`)
  }

  #set(path: string, hash: string): void {
    if (this.hashes.size >= MAX_FILES) {
      throw tooMuch(`more than ${MAX_FILES} of its files are protected`)
    }
    this.hashes.set(path, hash)
  }

  /**
   * The hash of a regular file, which is read only if it may have changed; null like `#read`. With
   * `name`, only of its part that is relevant in files of that name; empty without such a part.
   */
  async #hash(path: string, name: string | null = null): Promise<string | null> {
    const stats = await lstat(this.#at(path), { bigint: true }).catch(unreadable)
    if (stats === null) return null
    // One file may be hashed both as a whole and in part.
    const key = join(await this.#realRoot(), name === null ? path : `${path}\0${name}`)
    const remembered = stats.isFile() ? hashCache.get(key, stats) : null
    if (remembered !== null) return remembered
    const hash = await this.#read(path, name)
    if (hash !== null) hashCache.set(key, stats, hash)
    return hash
  }

  /** As `#hash`; null for links, pipes, devices and unreadable files. */
  async #read(path: string, name: string | null): Promise<string | null> {
    let file
    try {
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
      file = await open(this.#at(path), flags)
    } catch (error) {
      throwIfExhausted(error)
      return null
    }
    try {
      const stats = await file.stat()
      if (!stats.isFile()) return null
      this.#checkBytes(stats.size)
      // A folder on the way may have been swapped for a link.
      const real = await pathOfDescriptor(file, this.#at(path))
      if (!isInside(real, await this.#realRoot())) return null
      return await this.#digest(file, name)
    } catch (error) {
      if (error instanceof GoalError) throw error
      throwIfExhausted(error)
      return null
    } finally {
      await file.close()
    }
  }

  /** Throws if so many more bytes would be too many. */
  #checkBytes(more: number): void {
    if (this.#bytes + more <= MAX_TOTAL_BYTES) return
    throw tooMuch(`its protected files exceed ${MAX_TOTAL_BYTES / 1024 / 1024} MiB`)
  }

  async #digest(file: FileHandle, name: string | null): Promise<string> {
    const whole = createHash('sha256')
    const chunks: Buffer[] = []
    for (let size = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES)
      if (bytesRead === 0) {
        if (name === null || size > MAX_PARSED_BYTES) return whole.digest('hex')
        return hashRelevantPart(name, Buffer.concat(chunks).toString('utf8')) ?? ''
      }
      size += bytesRead
      this.#checkBytes(bytesRead)
      this.#bytes += bytesRead
      const part = chunk.subarray(0, bytesRead)
      whole.update(part)
      if (name !== null && size <= MAX_PARSED_BYTES) chunks.push(part)
    }
  }
}

/** Without a name for bytes that are not UTF-8, which no glob can name either. */
function shownPath(path: RawPath): string {
  return Buffer.from(path, 'latin1').toString('utf8')
}

function tooDeep(): GoalError {
  return tooMuch(`folders nest deeper than ${MAX_DEPTH} levels`)
}

function tooMuch(problem: string): GoalError {
  return new GoalError(
    'unsuitable',
    `the workspace is too large to watch its tests: ${problem}; ` +
      "start the run in the package's own folder",
  )
}
