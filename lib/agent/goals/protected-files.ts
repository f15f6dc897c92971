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
import { hash as digest } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readdir, readlink, realpath } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'

import { GoalError } from '../errors.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { GoalBaseline, GoalSpec } from '../goal.js'
import { clip } from '../output.js'
import { isInside } from '../workspace/paths.js'
import { SKIPPED_FOLDERS } from '../workspace/skipped-folders.js'
import { compileGlobs, isLiteral } from './globs.js'
import type { PathMatcher } from './globs.js'
import { HashCache } from './hash-cache.js'
import { hasRelevantPart, relevantPart } from './relevant-part.js'

const MAX_ENTRIES = 200_000
const MAX_FILES = 20_000
const MAX_TOTAL_BYTES = 512 * 1024 * 1024
const MAX_DEPTH = 40
const CHUNK_BYTES = 64 * 1024
const MAX_SHOWN_PATH = 200

/**
 * The hashes of everything that the goal protects.
 *
 * @throws {@link GoalError} when the workspace exceeds the bounds.
 */
export async function captureBaseline(spec: GoalSpec, cwd: string): Promise<GoalBaseline> {
  return { files: Object.fromEntries(await hashProtected(spec, cwd)) }
}

/**
 * How the protected files of a workspace differ from their baseline, by path: one phrase each, such
 * as `test/a.test.js was modified`.
 *
 * @throws {@link GoalError} when the workspace exceeds the bounds.
 */
export async function compareFiles(
  spec: GoalSpec,
  cwd: string,
  baseline: GoalBaseline,
): Promise<readonly string[]> {
  const now = await hashProtected(spec, cwd)
  const sealed = compileGlobs(spec.sealed ?? [])
  const changes = new Map<string, string>()
  for (const [path, hash] of Object.entries(baseline.files)) {
    const found = now.get(path)
    if (found === hash) continue
    if (found === undefined) {
      // A file that is protected in part may still exist without that part.
      changes.set(path, (await isGone(cwd, path)) ? 'was deleted' : 'was modified')
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
  const line = path.replaceAll(/\p{Cc}/gu, '?')
  return clip(line, MAX_SHOWN_PATH)
}

async function isGone(cwd: string, path: string): Promise<boolean> {
  return (await lstat(join(cwd, path)).catch(() => null)) === null
}

function isLink(hash: string): boolean {
  return hash.startsWith('link:')
}

async function hashProtected(spec: GoalSpec, cwd: string): Promise<Map<string, string>> {
  const globs = [...spec.protected, ...(spec.sealed ?? [])]
  const walk = new Walk(await realpath(cwd).catch(() => cwd), compileGlobs(globs))
  await walk.folder('', '', 0)
  for (const glob of globs) if (isLiteral(glob)) await walk.named(glob)
  for (const path of spec.runner ?? []) await walk.whole(path)
  return walk.hashes
}

const sha256 = (content: Buffer | string): string => digest('sha256', content)

/** Shared by all checks of this process. */
const hashCache: HashCache = new HashCache()

class Walk {
  readonly hashes: Map<string, string> = new Map()
  readonly #root: string
  readonly #isProtected: PathMatcher
  /** Real paths of the linked folders that led to the current one, so that loops of links end. */
  readonly #linked: Set<string> = new Set()
  #entries = 0
  #bytes = 0

  constructor(root: string, isProtected: PathMatcher) {
    this.#root = root
    this.#isProtected = isProtected
  }

  /** Hashes the protected files in `path`; `trail` names the links that led there. */
  async folder(path: string, trail: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) throw tooMuch(`folders nest deeper than ${MAX_DEPTH} levels`)
    let entries
    try {
      entries = await readdir(join(this.#root, path), { withFileTypes: true })
    } catch (error) {
      throwIfExhausted(error)
      return // gone or not permitted: its files count as deleted
    }
    for (const entry of entries) {
      this.#countEntry()
      const child = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isDirectory()) {
        if (!SKIPPED_FOLDERS.has(entry.name)) await this.folder(child, trail, depth + 1)
        else if (entry.name === 'node_modules') await this.folder(`${child}/.bin`, trail, depth + 1)
      } else if (entry.isSymbolicLink()) await this.#link(child, trail, depth)
      else if (entry.isFile() && this.#isProtected(child)) await this.#file(child, trail)
    }
  }

  /** Hashes a path that a glob without wildcards names, also below folders that are skipped. */
  async named(path: string): Promise<void> {
    if (this.hashes.has(path) || path.split('/').includes('..')) return
    const stats = await lstat(join(this.#root, path)).catch(() => null)
    if (stats === null) return
    const real = await this.#inside(path)
    if (stats.isSymbolicLink() || real === null) await this.#link(path, '', 0, true)
    else if (stats.isFile()) await this.#file(path, '')
  }

  /** Hashes a folder as a whole, under one hash; or a file, or a link that leads out. */
  async whole(path: string): Promise<void> {
    if (path.split('/').includes('..')) return
    const lines: string[] = []
    if ((await this.#inside(path)) !== null) await this.#gather(path, lines, 0)
    else {
      const target = await readlink(join(this.#root, path)).catch(() => null)
      if (target !== null) lines.push(`link ${target}`)
    }
    if (lines.length > 0) this.#set(path, sha256(lines.join('\n')))
  }

  async #gather(path: string, lines: string[], depth: number): Promise<void> {
    if (depth > MAX_DEPTH) throw tooMuch(`folders nest deeper than ${MAX_DEPTH} levels`)
    const stats = await lstat(join(this.#root, path)).catch(() => null)
    if (stats?.isSymbolicLink() === true) {
      const target = await readlink(join(this.#root, path)).catch(() => '')
      lines.push(`link ${path} ${target}`)
      // Package managers link packages to a store: its files count, links in it are not followed.
      const real = depth === 0 ? await this.#inside(path) : null
      const inside = real === null ? '' : relative(this.#root, real)
      if (inside !== '' && inside !== path) await this.#gather(inside, lines, 1)
    } else if (stats?.isDirectory() === true) {
      const names = await readdir(join(this.#root, path)).catch(noNames)
      for (const name of names.sort()) {
        this.#countEntry()
        const skipped = name === 'node_modules' || name === '__pycache__'
        if (!skipped) await this.#gather(`${path}/${name}`, lines, depth + 1)
      }
    } else if (stats?.isFile() === true) {
      const hash = await this.#hash(join(this.#root, path), sha256)
      lines.push(`file ${path} ${hash ?? 'unreadable'}`)
    }
  }

  #countEntry(): void {
    this.#entries += 1
    if (this.#entries > MAX_ENTRIES) throw tooMuch(`it holds more than ${MAX_ENTRIES} files`)
  }

  async #link(path: string, before: string, depth: number, named = false): Promise<void> {
    const target = await readlink(join(this.#root, path)).catch(() => 'a folder outside')
    const trail = `${before}${path} -> ${target}\n`
    const real = await this.#inside(path)
    const stats = real === null ? null : await lstat(real).catch(() => null)
    if (real !== null && stats?.isDirectory() === true) {
      if (this.#linked.has(real) || SKIPPED_FOLDERS.has(basename(path)) || named) return
      this.#linked.add(real)
      await this.folder(path, trail, depth + 1)
      this.#linked.delete(real)
    } else if (named || this.#isProtected(path)) {
      const isFile = real !== null && stats?.isFile() === true
      const content = isFile ? await this.#hash(real, sha256) : null
      this.#set(path, `link:${sha256(`${trail}\0${content ?? 'none'}`)}`)
    }
  }

  /** The real path behind `path` when it lies in the workspace, else null. */
  async #inside(path: string): Promise<string | null> {
    const real = await realpath(join(this.#root, path)).catch(() => null)
    return real !== null && isInside(real, this.#root) ? real : null
  }

  async #file(path: string, trail: string): Promise<void> {
    const name = basename(path)
    const hashOf = (content: Buffer): string => {
      if (!hasRelevantPart(name)) return sha256(content)
      const part = relevantPart(name, content.toString('utf8'))
      return part === null ? '' : sha256(part)
    }
    const hash = (await this.#hash(join(this.#root, path), hashOf)) ?? 'unreadable'
    if (hash === '') return
    this.#set(path, trail === '' ? hash : `link:${sha256(`${trail}\0${hash}`)}`)
  }

  #set(path: string, hash: string): void {
    if (this.hashes.size >= MAX_FILES) {
      throw tooMuch(`more than ${MAX_FILES} of its files are protected`)
    }
    this.hashes.set(path, hash)
  }

  /** The hash of a regular file, which is read only if it may have changed; null like `#read`. */
  async #hash(absolute: string, hashOf: (content: Buffer) => string): Promise<string | null> {
    const stats = await lstat(absolute, { bigint: true }).catch(() => null)
    if (stats === null) return null
    // One file may be hashed both as a whole and in part.
    const key = hashOf === sha256 ? absolute : `${absolute}\0`
    const remembered = stats.isFile() ? hashCache.get(key, stats) : null
    if (remembered !== null) return remembered
    const content = await this.#read(absolute)
    if (content === null) return null
    const hash = hashOf(content)
    hashCache.set(key, stats, hash)
    return hash
  }

  /** The content of a regular file; null for links, pipes, devices and unreadable files. */
  async #read(absolute: string): Promise<Buffer | null> {
    let file
    try {
      file = await open(absolute, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    } catch (error) {
      throwIfExhausted(error)
      return null
    }
    try {
      if (!(await file.stat()).isFile()) return null
      const chunks: Buffer[] = []
      for (;;) {
        const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
        const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES)
        if (bytesRead === 0) return Buffer.concat(chunks)
        this.#bytes += bytesRead
        if (this.#bytes > MAX_TOTAL_BYTES) {
          throw tooMuch(`its protected files exceed ${MAX_TOTAL_BYTES / 1024 / 1024} MiB`)
        }
        chunks.push(chunk.subarray(0, bytesRead))
      }
    } catch (error) {
      if (error instanceof GoalError) throw error
      throwIfExhausted(error)
      return null
    } finally {
      await file.close()
    }
  }
}

function noNames(error: unknown): string[] {
  throwIfExhausted(error)
  return []
}

function tooMuch(problem: string): GoalError {
  return new GoalError(
    'unsuitable',
    `the workspace is too large to watch its tests: ${problem}; ` +
      "start the run in the package's own folder",
  )
}
