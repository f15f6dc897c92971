/**
 * Where paths really lead. The other files of the workspace build on three rules:
 *
 * 1. A path is checked by its real path, never by its text.
 * 2. The thing that was checked is the thing that is used. A path may be swapped for a link between
 *    check and use, so {@link Confinement.holds} is applied to the *open descriptor*. On Linux a
 *    folder is then entered through its descriptor (`/proc/self/fd/N/name`), which no rename can
 *    redirect.
 * 3. Closed folders do not exist: no error reveals anything about them.
 * 4. What belongs to git (`.git`, and folders that git takes for a repository) is neither read, nor
 *    listed, nor written: its settings may hold tokens, and can run programs. Git itself, run by a
 *    command, may use it. A hard link that was made to one of its files is a file like any other.
 *
 * @module
 */
import { constants, existsSync, lstatSync, type BigIntStats, type Stats } from 'node:fs'
import { lstat, open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, parse, relative, resolve, sep } from 'node:path'
import { systemCode } from '../../internal/errors.js'
import { WorkspaceError } from '../errors.js'
import { isExhausted, throwIfExhausted, unreadable } from '../exhaustion.js'
import { isGitFolder, REPOSITORY } from './git-names.js'

/** Longer paths are refused before the file system sees them. */
const MAX_PATH_LENGTH = 4_096
/** Links that a path may go through: as many as Linux follows. */
const MAX_LINKS = 40

/** True when folders can be entered through their descriptors. */
export const HAS_PROC: boolean = process.platform === 'linux' && existsSync('/proc/self/fd')

/** A folder by the absolute path with which it was named, and by its real path. */
export interface NamedFolder {
  readonly named: string
  readonly real: string
}

/** Where a path leads once its symbolic links are resolved. */
export interface Location {
  /** The absolute path: real as far as it exists, followed by the names that do not exist yet. */
  readonly real: string
  /** The part of `real` that exists. */
  readonly existing: string
  /** Names below `existing` that do not exist; empty when the path exists. */
  readonly missing: readonly string[]
  /** Relative to the workspace with forward slashes; empty for the root itself. */
  readonly relative: string
}

/** True when `path` is the folder or lies in it; both are real paths. */
export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/** The bounds of one workspace: its root, less the closed folders. */
export class Confinement {
  readonly root: string
  readonly closed: readonly string[]
  readonly #via: string

  /** `via`: the path by which the root is entered, see `pinned-folder.ts`. */
  constructor(root: string, closed: readonly string[], via: string = root) {
    this.root = root
    this.closed = closed
    this.#via = via
  }

  /** The path by which a real path inside is opened. */
  at(real: string): string {
    return this.#via === this.root ? real : `${this.#via}/${relative(this.root, real) || '.'}`
  }

  /** True for a real path that is inside the workspace, not closed, and does not belong to git. */
  holds(real: string): boolean {
    return isInside(real, this.root) && !this.isClosed(real) && !isGitPath(this.show(real))
  }

  isClosed(real: string): boolean {
    return this.closed.some((folder) => isInside(real, folder))
  }

  /** True for an entry of a folder inside that must not be shown, by its real path and name. */
  hides(real: string, name: string): boolean {
    return isGitFolder(name) || this.isClosed(real)
  }

  /** The path as people and models see it: relative, with forward slashes. */
  show(real: string): string {
    return relative(this.root, real).split(sep).join('/')
  }

  /**
   * Finds where a path leads (rule 1). With `forWriting` it need not exist, but must not be a
   * dangling link.
   *
   * @throws {@link WorkspaceError}
   */
  async locate(path: string, forWriting: boolean): Promise<Location> {
    checkText(path)
    const absolute = resolve(this.root, path)
    const { existing, missing } = await existingPart(absolute, path, this.root)
    if (!isInside(existing, this.root)) throw outside(path)
    const real = join(existing, ...missing)
    if (this.isClosed(real)) throw forWriting ? outside(path) : absent(path)
    const shown = this.show(real)
    // The path as given counts as well, because .git may be a link to a folder of another name.
    if ([shown, this.show(absolute)].some(isGitPath) || this.#isInRepository(existing)) {
      throw failure(
        `${path} belongs to git, so it is neither read nor written: its settings may hold ` +
          'tokens, and can run programs; use git commands',
      )
    }
    if (!forWriting && missing.length > 0) throw absent(path)
    return { real, existing, missing, relative: shown }
  }

  #isInRepository(real: string): boolean {
    for (let folder = real; ; folder = dirname(folder)) {
      if (REPOSITORY.every((name) => exists(`${this.at(folder)}/${name}`))) return true
      if (folder === this.root) return false
    }
  }

  /**
   * Opens a folder that {@link Confinement.locate} found and verifies that it is still the same
   * folder (rule 2).
   */
  async openFolder(real: string): Promise<OpenFolder> {
    // Even another folder of the workspace is refused, because it may be .git.
    return await openedFolder(real, this.at(real), () => outside(this.show(real)))
  }

  /** Throws unless an open descriptor is inside the workspace (rule 2). */
  async verify(handle: FileHandle, path: string): Promise<void> {
    if (!this.holds(await pathOfDescriptor(handle, path))) throw outside(this.show(path))
  }
}

/** Linux's O_PATH: a folder's entries can be reached although the folder is not readable. */
const O_PATH = 0o10000000
export const FOLDER_FLAGS: number =
  constants.O_DIRECTORY | (constants.O_NOFOLLOW ?? 0) | (HAS_PROC ? O_PATH : constants.O_RDONLY)

/** A folder held open, so that its entries are reached through it and not through its path. */
export class OpenFolder implements AsyncDisposable {
  readonly real: string
  readonly #handle: FileHandle

  constructor(handle: FileHandle, real: string) {
    this.#handle = handle
    this.real = real
  }

  /** A path to an entry, valid while the folder is open. */
  entry(name: string): string {
    return HAS_PROC ? `${this.path}/${name}` : join(this.real, name)
  }

  /** A path to the folder itself, valid while it is open. */
  get self(): string {
    return HAS_PROC ? `${this.path}/.` : this.real
  }

  /** The same as a link, for paths below it. */
  get path(): string {
    return HAS_PROC ? `/proc/self/fd/${this.#handle.fd}` : this.real
  }

  /** The descriptor by which it is reached; undefined where that is not possible. */
  get descriptor(): number | undefined {
    return HAS_PROC ? this.#handle.fd : undefined
  }

  /** Its real path now; without `/proc`, the real path that its path leads to now. */
  async location(): Promise<string> {
    return await (HAS_PROC ? readlink(this.path) : realpath(this.real))
  }

  async stat(): Promise<BigIntStats> {
    return await this.#handle.stat({ bigint: true })
  }

  /** Opens a subfolder; links are not followed. */
  async child(name: string): Promise<OpenFolder> {
    return new OpenFolder(await open(this.entry(name), FOLDER_FLAGS), join(this.real, name))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

/**
 * Opens the folder at a real path.
 *
 * @param at the path by which it is opened
 * @param moved the error if something else is opened, or lies somewhere else
 */
export async function openedFolder(
  real: string,
  at: string = real,
  moved: () => Error = () => outside(real),
): Promise<OpenFolder> {
  const handle = await open(at, FOLDER_FLAGS)
  try {
    if ((await pathOfDescriptor(handle, real)) !== real) throw moved()
    return new OpenFolder(handle, real)
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * The real path of an open descriptor. Without `/proc`, the real path of `path`, provided that it
 * still leads to the file that was opened.
 */
export async function pathOfDescriptor(handle: FileHandle, path: string): Promise<string> {
  if (HAS_PROC) return await readlink(`/proc/self/fd/${handle.fd}`)
  const real = await realpath(path)
  const [now, opened] = await Promise.all([stat(real), handle.stat()])
  if (now.ino !== opened.ino || now.dev !== opened.dev) throw outside(path)
  return real
}

/** The real path of the deepest part of `absolute` that exists, and the names below it. */
async function existingPart(
  absolute: string,
  path: string,
  root: string,
): Promise<{ readonly existing: string; readonly missing: readonly string[] }> {
  const missing: string[] = []
  for (let candidate = absolute; ; candidate = dirname(candidate)) {
    try {
      return { existing: await realpath(candidate), missing }
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ELOOP') throw failure(`${path} is a symbolic link that leads to itself`, error)
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw failure(`${path} cannot be reached`, error)
      await refuseDanglingLink(candidate, path, root)
      missing.unshift(basename(candidate))
      if (candidate === dirname(candidate)) throw absent(path)
    }
  }
}

/** Refuses a link whose target does not exist: writing through it would create that target. */
async function refuseDanglingLink(candidate: string, path: string, root: string): Promise<void> {
  if ((await statOrNull(candidate).catch(unreadable))?.isSymbolicLink() !== true) return
  if ((await followLinks(candidate, [{ named: root, real: root }])) === null) throw outside(path)
  throw new WorkspaceError(
    'ERR_AGENT_WORKSPACE',
    `${path} goes through a symbolic link whose target does not exist; use the target's own path`,
  )
}

/** See `openWorkspace`; `via` as in {@link Confinement}. */
export async function confine(
  cwd: string,
  roots: readonly string[] | undefined,
  closed: readonly string[],
  via?: string,
): Promise<Confinement> {
  return await confineReal(await locateRoot(cwd, roots), cwd, closed, via)
}

/** The same for a folder that is open: its real path is known. */
export async function confinePinned(
  { real, path }: Pick<OpenFolder, 'real' | 'path'>,
  roots: readonly string[] | undefined,
  closed: readonly string[],
): Promise<Confinement> {
  await assertInRoots(real, roots, real)
  return await confineReal(real, real, closed, path)
}

async function confineReal(
  root: string,
  cwd: string,
  closed: readonly string[],
  via?: string,
): Promise<Confinement> {
  const closedPaths = await Promise.all(closed.map(realOrAsIs))
  if (closedPaths.some((folder) => isInside(root, folder))) throw outsideRoots(cwd)
  return new Confinement(root, closedPaths, via)
}

async function assertInRoots(
  real: string,
  roots: readonly string[] | undefined,
  name: string,
): Promise<void> {
  if (roots === undefined) return
  const folders = await Promise.all(roots.map(realOrAsIs))
  if (!folders.some((root) => isInside(real, root))) throw outsideRoots(name)
}

/**
 * See `resolveUnderRoots`; without roots, any directory is allowed.
 *
 * @param check gets the real path of one inside, whether it exists or not, and may throw
 * @param name what errors call it
 */
export async function locateRoot(
  path: string,
  roots: readonly string[] | undefined,
  check?: (real: string) => Promise<void>,
  name: string = path,
): Promise<string> {
  checkText(path)
  const { existing, missing } = await deepestReal(resolve(path))
  await assertInRoots(existing, roots, name)
  await check?.(join(existing, missing))
  if (missing !== '') throw failure(`${name} does not exist`)
  const stats = await stat(existing)
  if (!stats.isDirectory()) throw failure(`${name} is not a directory`)
  return existing
}

/**
 * An absolute path without its symbolic links, as far as it exists; null if it leads out of the
 * `folders`. Each step is compared with them before the file system is asked about it, so what lies
 * outside is never looked at. What a path beyond 40 links leads to is not said.
 */
export async function followLinks(
  path: string,
  folders: readonly NamedFolder[],
): Promise<string | null> {
  let place = parse(path).root
  let links = 0
  const ahead = namesOf(path)
  while (ahead.length > 0) {
    const next = resolve(place, ahead.pop()!)
    const folder = folders.find(({ named }) => named === next)
    if (folder !== undefined) place = folder.real
    else if (!isIn(next, folders)) {
      if (!isAbove(next, folders)) return null
      place = next
    } else {
      const target = links < MAX_LINKS ? await targetOf(next) : null
      if (target === null) place = next
      else {
        links += 1
        if (isAbsolute(target)) place = parse(target).root
        ahead.push(...namesOf(target))
      }
    }
  }
  return isIn(place, folders) ? place : null
}

/** The names in a path, the last one first. */
function namesOf(path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter((name) => name !== '').reverse()
}

function isIn(path: string, folders: readonly NamedFolder[]): boolean {
  return folders.some(({ real }) => isInside(path, real))
}

function isAbove(path: string, folders: readonly NamedFolder[]): boolean {
  return folders.some(({ named, real }) => isInside(named, path) || isInside(real, path))
}

/** Where a symbolic link leads; null for anything else. */
async function targetOf(path: string): Promise<string | null> {
  try {
    return await readlink(path)
  } catch (error) {
    return unreadable(error)
  }
}

/** The deepest part of a path that exists, and the rest; dangling links count as missing. */
export async function deepestReal(
  absolute: string,
): Promise<{ readonly existing: string; readonly missing: string }> {
  for (let candidate = absolute; ; candidate = dirname(candidate)) {
    try {
      return { existing: await realpath(candidate), missing: relative(candidate, absolute) }
    } catch (error) {
      const isLast = candidate === dirname(candidate)
      if (isLast || isExhausted(error)) throw failure(`${absolute} cannot be reached`, error)
    }
  }
}

/** The real path of a folder, or the path itself while it does not exist. */
export async function realOrAsIs(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    throwIfExhausted(error)
    return resolve(path)
  }
}

/** @throws {@link WorkspaceError} for a text that can be no path. */
export function checkText(path: string): void {
  if (path.includes('\0')) throw failure('a path cannot contain a NUL character')
  if (path.length > MAX_PATH_LENGTH) {
    throw failure(`a path cannot be longer than ${MAX_PATH_LENGTH} characters`)
  }
}

/** Does git take this folder for a repository? */
export function isRepositoryAt(folder: OpenFolder): boolean {
  return REPOSITORY.every((name) => exists(folder.entry(name)))
}

function isGitPath(path: string): boolean {
  return path.split('/').some(isGitFolder)
}

/** Synchronous: it is asked for many paths, of which the system has just looked up the folders. */
function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** `lstat` of a path; null when it does not exist. */
export async function statOrNull(path: string | Buffer): Promise<Stats | null> {
  try {
    return await lstat(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** The `code` of a file system error. */
export const codeOf: (error: unknown) => string | undefined = systemCode

/** The error for a path that leads outside the workspace. */
export function outside(path: string): WorkspaceError {
  return new WorkspaceError(
    'ERR_AGENT_OUTSIDE_WORKSPACE',
    `${path || 'this path'} leads outside the workspace; use a path inside it`,
  )
}

export function outsideRoots(path: string): WorkspaceError {
  return new WorkspaceError(
    'ERR_AGENT_OUTSIDE_WORKSPACE',
    `${path} is outside the roots that this host allows`,
  )
}

function absent(path: string): WorkspaceError {
  return failure(`${path} does not exist`)
}

/** The error for any other problem with a path; names the system's error code, if any. */
export function failure(message: string, cause?: unknown): WorkspaceError {
  const reason = codeOf(cause)
  return new WorkspaceError(
    'ERR_AGENT_WORKSPACE',
    reason === undefined ? message : `${message} (${reason})`,
    cause === undefined ? undefined : { cause },
  )
}
