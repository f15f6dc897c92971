/**
 * The folders in which isolated runs work: complete, private copies, each in a folder of its own.
 *
 * ```text
 * <folder>/<run_id>/<name>        the copy
 * <folder>/<run_id>/copy.json     whose it is, and what it is a copy of
 * <folder>/<run_id>/.git          keeps git from using a repository above, see `guards`
 * <folder>/<run_id>/node_modules  packages found above the original, if any
 * <folder>/<run_id>               a link, of a run that took over the copy of another one
 * <folder>/.new-<run_id>-<uuid>   a copy that is being made
 * <folder>/.old-<uuid>            one that is being removed
 * ```
 *
 * A copy gets its name once it is complete, and is renamed before it is removed, so that no half of
 * one is ever used. It keeps its path as long as it exists, because programs that were installed in
 * it hold the path. Several processes may share the folder if they share the store: only the one
 * that works on a run makes or changes its copy, and a sweep asks the store which runs there are.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, readlink, realpath, rename, symlink, unlink, writeFile }
  from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { JsonValue } from '../../internal/json.js'
import { failure, codeOf } from '../workspace/paths.js'
import type { IsolatedCopy } from '../executor.js'
import { assertFits, copyTree, removeFolder } from '../workspace/copy.js'
import { packagesAbove, problemsAbove } from './above.js'

/** Where copies are made, and within what limits. */
export interface IsolatedFoldersOptions {
  /** Is created; private to what shares the store. */
  readonly folder: string
  /** Bytes of one copy. */
  readonly maxBytes: number
  /** Folders that are not copied: those of the store. */
  readonly closed: readonly string[]
}

/** How the copy for a run is made. */
export interface CreateOptions {
  /** May large `node_modules` be mounted read-only? See `Executor.mountsFolders`. */
  readonly mounts: boolean
  /**
   * Changes the copy before it can be used: gives it the files of a checkpoint. Resolves with what
   * there is to tell.
   */
  readonly fill?: ((path: string) => Promise<readonly string[]>) | undefined
  readonly signal?: AbortSignal | undefined
}

/** A copy that was just made. */
export interface NewCopy extends IsolatedCopy {
  /** What the user has to know, as sentences. */
  readonly notes: readonly string[]
}

/** `copy.json`. */
interface Description {
  readonly owner: string
  readonly original: string
  readonly name: string
  /** Relative paths. */
  readonly readOnly: readonly string[]
}

const DESCRIPTION = 'copy.json'
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/
const NEW = '.new-'
const OLD = '.old-'

/**
 * Stops programs that look for their settings in the folders above, and would find those of a
 * project in which the copies lie: git would work on its repository, npm would install into it.
 */
const guards: Readonly<Record<string, string>> = {
  '.git': 'gitdir: /nonexistent/no-repository-here\n',
  'package.json': '{ "private": true }\n',
}

/** See the comment of this file. */
export class IsolatedFolders {
  readonly #options: IsolatedFoldersOptions

  constructor(options: IsolatedFoldersOptions) {
    this.#options = options
  }

  /**
   * Finds out early that no copy of this folder can be made; `mounts` as in {@link CreateOptions}.
   *
   * @throws {@link WorkspaceTooLargeError}; {@link WorkspaceError}.
   */
  async assertFits(cwd: string, mounts: boolean): Promise<void> {
    const { closed, maxBytes } = this.#options
    await assertFits(cwd, { closed, maxBytes, mounts })
  }

  /**
   * Makes the copy for a run; one that it had before is removed.
   *
   * @param cwd the real path of the folder
   * @throws {@link WorkspaceTooLargeError}; {@link WorkspaceError} when the folder cannot be
   * copied, for example because the disk is full, or when another run took over the copy of this
   * one; the signal's reason. Nothing is left then.
   */
  async create(runId: string, cwd: string, options: CreateOptions): Promise<NewCopy> {
    checkRunId(runId)
    await this.remove(runId)
    const taken = (await this.#found(runId))?.description
    if (taken != null) {
      throw failure(`the copy of run ${runId} was handed on to run ${taken.owner}; fork that one`)
    }
    const folder = await this.#ready()
    const temporary = join(folder, `${NEW}${runId}-${randomUUID()}`)
    try {
      await mkdir(temporary, { mode: 0o700 })
      const made = await this.#make(folder, temporary, runId, cwd, options)
      await rename(temporary, join(folder, runId))
      return made
    } catch (error) {
      await removeFolder(temporary).catch(() => undefined)
      if (codeOf(error) === undefined || RUNWRIGHT.test(codeOf(error)!)) throw error
      throw failure(`the copy of ${cwd} cannot be made in ${folder}`, error)
    }
  }

  async #make(
    folder: string,
    temporary: string,
    runId: string,
    cwd: string,
    { mounts, fill, signal }: CreateOptions,
  ): Promise<NewCopy> {
    const { maxBytes } = this.#options
    const closed = [...this.#options.closed, folder]
    const place = join(folder, runId)
    const name = nameFor(cwd)
    const original = { from: cwd, to: join(place, name) }
    // A sandbox does not show what is above the folder, copied or not.
    const above = mounts ? null : await packagesAbove(cwd, closed)
    const packages = above === null ? [] : [{ from: above, to: join(place, 'node_modules') }]
    const shared = { closed, signal }
    const copied = await copyTree(cwd, join(temporary, name), {
      ...shared, maxBytes, mounts, place: original.to, others: packages,
    })
    const problems = mounts ? [] : await problemsAbove(folder)
    const notes = [...copied.notes, ...problems]
    for (const { from, to } of packages) {
      const rest = maxBytes - copied.bytes
      const result = await copyTree(from, join(temporary, 'node_modules'), {
        ...shared, maxBytes: rest, place: to, others: [original],
      })
      notes.push(`The packages in ${from} were copied as well.`, ...result.notes)
    }
    if (fill !== undefined) notes.push(...(await fill(join(temporary, name))))
    signal?.throwIfAborted()
    const { readOnly } = copied
    const description: Description = { owner: runId, original: cwd, name, readOnly }
    const files = { ...guards, [DESCRIPTION]: JSON.stringify(description) }
    for (const [file, text] of Object.entries(files)) await writeFile(join(temporary, file), text)
    return { ...copyAt(place, description), notes }
  }

  /** The copy in which a run works; null when it has none. */
  async find(runId: string): Promise<IsolatedCopy | null> {
    checkRunId(runId)
    const found = await this.#found(runId)
    if (found === null || found.description?.owner !== runId) return null
    const copy = copyAt(found.place, found.description)
    const stats = await lstat(copy.root).catch(() => null)
    return stats?.isDirectory() === true ? copy : null
  }

  /** Hands the copy of a run to another one; null when there is none. */
  async adopt(fromRunId: string, toRunId: string): Promise<IsolatedCopy | null> {
    checkRunId(toRunId)
    const found = (await this.find(fromRunId)) === null ? null : await this.#found(fromRunId)
    if (found?.description == null) return null
    await this.remove(toRunId)
    const description = { ...found.description, owner: toRunId }
    await symlink(basename(found.place), join(dirname(found.place), toRunId))
    const claimed = await this.#claim(found.place, fromRunId)
    if (claimed === null) return null
    await writeFile(claimed, JSON.stringify(description))
    await rename(claimed, join(found.place, DESCRIPTION))
    return copyAt(found.place, description)
  }

  /**
   * Takes the description of a run's copy away, which one of those can do who want to hand the copy
   * on or to remove it; null when another one has.
   */
  async #claim(place: string, owner: string): Promise<string | null> {
    const file = join(place, DESCRIPTION)
    const claimed = `${file}.${randomUUID()}`
    try {
      await rename(file, claimed)
      const { owner: now } = JSON.parse(await readFile(claimed, 'utf8')) as Description
      if (now === owner) return claimed
      await rename(claimed, file)
    } catch (error) {
      ignoreAbsence(error)
    }
    return null
  }

  /**
   * Removes the copy of a run, and what was left of one that was being made. Removing what does not
   * exist is harmless.
   */
  async remove(runId: string): Promise<void> {
    checkRunId(runId)
    const folder = await this.#existing()
    if (folder === null) return
    for (const name of await readdir(folder)) {
      if (name.startsWith(`${NEW}${runId}-`)) await this.#discard(join(folder, name))
    }
    const found = await this.#found(runId)
    if (found === null) return
    if (found.link !== null) await unlink(found.link).catch(ignoreAbsence)
    const { description, place } = found
    const isOwn = description === null ? basename(place) === runId : description.owner === runId
    if (!isOwn || (description !== null && (await this.#claim(place, runId)) === null)) return
    await this.#discard(place)
  }

  /**
   * Removes the copies of runs that are not wanted any more, and what killed processes have left.
   *
   * @param isWanted must be true for a run from its creation until its copy may be removed,
   * whichever process works on it
   */
  async sweep(isWanted: (runId: string) => Promise<boolean>): Promise<void> {
    const folder = await this.#existing()
    if (folder === null) return
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if (name.startsWith(OLD)) await removeFolder(path).catch(() => undefined)
      else if (name.startsWith(NEW)) {
        const runId = name.slice(NEW.length, -1 - randomUUID().length)
        if (RUN_ID.test(runId) && !(await isWanted(runId))) await this.#discard(path)
      } else if (RUN_ID.test(name)) await this.#sweepCopy(name, isWanted)
    }
  }

  async #sweepCopy(name: string, isWanted: (runId: string) => Promise<boolean>): Promise<void> {
    const found = await this.#found(name)
    if (found === null) return
    const owner = found.description?.owner ?? name
    if (found.link !== null && owner !== name) await unlink(found.link).catch(ignoreAbsence)
    else if (!(await isWanted(owner))) await this.remove(owner)
  }

  /** The folder of a run's copy, whether it is this run's or was; null when there is none. */
  async #found(runId: string): Promise<Found | null> {
    const folder = await this.#existing()
    if (folder === null) return null
    const path = join(folder, runId)
    const stats = await lstat(path).catch(() => null)
    if (stats === null) return null
    const isLink = stats.isSymbolicLink()
    if (!isLink && !stats.isDirectory()) return null
    const place = isLink ? join(folder, basename(await readlink(path))) : path
    return { link: isLink ? path : null, place, description: await describedAt(place) }
  }

  /** Takes a folder away at once, and then removes it. */
  async #discard(path: string): Promise<void> {
    const old = join(dirname(path), `${OLD}${randomUUID()}`)
    try {
      await rename(path, old)
    } catch (error) {
      ignoreAbsence(error)
      return
    }
    await removeFolder(old)
  }

  async #ready(): Promise<string> {
    try {
      await mkdir(this.#options.folder, { recursive: true, mode: 0o700 })
      return await realpath(this.#options.folder)
    } catch (error) {
      throw failure(`${this.#options.folder} cannot be used for copies`, error)
    }
  }

  async #existing(): Promise<string | null> {
    return await realpath(this.#options.folder).catch(() => null)
  }
}

interface Found {
  readonly link: string | null
  readonly place: string
  readonly description: Description | null
}

const RUNWRIGHT = /^ERR_AGENT_/

function copyAt(place: string, { original, name, readOnly }: Description): IsolatedCopy {
  const root = join(place, name)
  return {
    root,
    original,
    readOnly: readOnly.map((path) => ({ from: join(original, path), to: join(root, path) })),
  }
}

async function describedAt(place: string): Promise<Description | null> {
  try {
    const value = JSON.parse(await readFile(join(place, DESCRIPTION), 'utf8')) as JsonValue
    return isDescription(value) ? value : null
  } catch {
    return null
  }
}

function isDescription(value: unknown): value is Description {
  if (typeof value !== 'object' || value === null) return false
  const { owner, original, name, readOnly } = value as Partial<Description>
  const texts = [owner, original, name, ...(Array.isArray(readOnly) ? readOnly : [null])]
  return texts.every((text) => typeof text === 'string')
}

/** The name of the original, unless a file beside the copy has it. */
function nameFor(cwd: string): string {
  const name = basename(cwd)
  const isTaken = name === '' || name === DESCRIPTION || name === 'node_modules' || name in guards
  return isTaken ? 'folder' : name
}

function checkRunId(runId: string): void {
  if (!RUN_ID.test(runId)) throw new TypeError(`${runId} is no run id`)
}

function ignoreAbsence(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}
