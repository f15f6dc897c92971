/**
 * The folders that lead to a path, held open, so that no rename or link redirects what is done to
 * the path. Closed folders and what belongs to git are never entered (see `paths.ts`).
 *
 * @module
 */
import { constants } from 'node:fs'
import { mkdir, open, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { bytesOfName } from '../../internal/bytes.js'
import {
  codeOf, FOLDER_FLAGS, HAS_PROC, isRepositoryAt, OpenFolder, type Confinement,
} from './paths.js'
import type { PathStep } from './plan-steps.js'

/** A path whose names need not be UTF-8. */
export function bytePath(path: string): string | Buffer {
  return /\p{Surrogate}/u.test(path) ? bytesOfName(path) : path
}

/** The folders that lead to the one in use, held open. Steps by path use most of them again. */
export class FolderChain implements AsyncDisposable {
  readonly #confinement: Confinement
  /** From the top; the names of those below. */
  readonly #folders: OpenFolder[]
  readonly #names: string[] = []
  /** Those of them in which names changed. */
  readonly #changed: Set<OpenFolder> = new Set()

  private constructor(confinement: Confinement, top: OpenFolder) {
    this.#confinement = confinement
    this.#folders = [top]
  }

  static async open(confinement: Confinement): Promise<FolderChain> {
    return new FolderChain(confinement, await confinement.openFolder(confinement.root))
  }

  /** False for paths that no run may use. */
  mayEnter(path: string): boolean {
    const names = path.split('/')
    const isName = (name: string): boolean =>
      name !== '' && name !== '.' && name !== '..' && !name.includes('\0')
    return names.every(isName) && this.#confinement.holds(join(this.#confinement.root, path))
  }

  /** How many folders lead to the one in use. */
  get depth(): number {
    return this.#names.length
  }

  /** The path to the folder in use. */
  get self(): string {
    return this.#folders.at(-1)!.self
  }

  /** The path to a name in the folder in use, or in the one above it that is so deep. */
  entry(name: string, depth: number = this.depth): string | Buffer {
    return bytePath(this.#folders[depth]!.entry(name))
  }

  /** Says that names change in the folder in use, and in the one above it that is so deep. */
  changed(depth: number = this.depth): void {
    this.#changed.add(this.#folders.at(-1)!)
    this.#changed.add(this.#folders[depth]!)
  }

  /**
   * Opens a folder by its relative path. Null when it does not exist; the deepest one on the way
   * to it is in use then.
   *
   * @param onMake makes it with those above, and is called with the path of each
   * @throws an error with a code of `OVERTAKEN` when something else is there.
   */
  async at(path: string, onMake?: (path: string) => void): Promise<OpenFolder | null> {
    const names = path === '' ? [] : path.split('/')
    let same = 0
    while (same < names.length && names[same] === this.#names[same]) same += 1
    while (this.#names.length > same) await this.#leave()
    // Somebody may have moved one of them away since, even out of the workspace.
    while (this.#names.length > 0 && !(await this.#isInPlace())) await this.#leave()
    for (const name of names.slice(this.#names.length)) {
      const folder = await this.#enter(name, onMake)
      if (folder === null) return null
      this.#folders.push(folder)
      this.#names.push(name)
      if (isRepositoryAt(folder)) throw overtaken()
    }
    return this.#folders.at(-1)!
  }

  async #isInPlace(): Promise<boolean> {
    const { path, real } = this.#folders.at(-1)!
    return !HAS_PROC || (await readlink(path, { encoding: 'buffer' })).equals(bytesOfName(real))
  }

  async #enter(name: string, onMake?: (path: string) => void): Promise<OpenFolder | null> {
    const above = this.#folders.at(-1)!
    const at = bytePath(above.entry(name))
    const real = join(above.real, name)
    try {
      return new OpenFolder(await open(at, FOLDER_FLAGS), real)
    } catch (error) {
      if (onMake === undefined && ABSENT.has(codeOf(error) ?? '')) return null
      if (codeOf(error) !== 'ENOENT') throw error
    }
    this.#changed.add(above)
    try {
      await mkdir(at)
      onMake?.([...this.#names, name].join('/'))
    } catch (error) {
      // Another lane may have made it.
      if (codeOf(error) !== 'EEXIST') throw error
    }
    return new OpenFolder(await open(at, FOLDER_FLAGS), real)
  }

  /** Resolves when the names that changed are on the disk. */
  async sync(): Promise<void> {
    for (const folder of this.#changed) await this.#sync(folder)
  }

  async #sync(folder: OpenFolder): Promise<void> {
    try {
      await using handle = await open(folder.self, constants.O_RDONLY | constants.O_DIRECTORY)
      await handle.sync()
    } catch (error) {
      // It cannot be read, or its file system cannot do that.
      if (!NO_SYNC.has(codeOf(error) ?? '')) throw error
    }
    this.#changed.delete(folder)
  }

  async #leave(): Promise<void> {
    const folder = this.#folders.at(-1)!
    if (this.#changed.has(folder)) await this.#sync(folder)
    this.#names.pop()
    this.#folders.pop()
    await folder[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const folder of this.#folders.splice(0)) await folder[Symbol.asyncDispose]()
  }
}

const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])
const NO_SYNC: ReadonlySet<string> = new Set([
  'EACCES', 'EBADF', 'EINVAL', 'EISDIR', 'ENOENT', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM',
])

/** For what is in the way: a repository, or what was a link just now. */
export function overtaken(): Error {
  return Object.assign(new Error('something else is in the way'), { code: 'ENOTDIR' })
}

/** Steps that are done at once: more would wait for the threads that Node has for files. */
const LANES = 4
/** Sorted steps that one lane does in a row, most of them in one folder. */
const RUN = 32
/** Bytes of files of which several may be in memory. */
const MAX_SMALL = 1024 * 1024

/** Does steps whose order does not matter. When one fails, those that have begun end first. */
export async function inLanes(
  confinement: Confinement,
  steps: readonly PathStep[],
  work: (folders: FolderChain, step: PathStep) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const isSmall = ({ before, after }: PathStep): boolean =>
    Math.max(before?.size ?? 0, after?.size ?? 0) <= MAX_SMALL
  const small = steps.filter(isSmall)
  const large = steps.filter((step) => !isSmall(step))
  const runs = large.length > 0 ? [large] : []
  for (let at = 0; at < small.length; at += RUN) runs.push(small.slice(at, at + RUN))
  const failures: unknown[] = []
  const lane = async (): Promise<void> => {
    await using folders = await FolderChain.open(confinement)
    for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
      for (const step of run) {
        if (failures.length > 0) return
        signal?.throwIfAborted()
        await work(folders, step)
      }
    }
    await folders.sync()
  }
  const lanes = Array.from({ length: Math.min(LANES, runs.length) }, () =>
    lane().catch((error: unknown) => failures.push(error)),
  )
  await Promise.all(lanes)
  if (failures.length > 0) throw failures[0]
}
