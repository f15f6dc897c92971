/**
 * The folders in which isolated runs work: complete, private copies, each in a folder of its own.
 *
 * ```text
 * <folder>/<run_id>/<name>        the copy
 * <folder>/<run_id>/copy.json     whose it is, and what it is a copy of: `copy.<run_id>.json` once
 *                                 another run has it, `copy.-.json` once it is being removed
 * <folder>/<run_id>/.git          keeps git from using a repository above, see `guards`
 * <folder>/<run_id>/node_modules  packages found above the original, if any
 * <folder>/<run_id>/.empty        hides parts of what is mounted, see `sealed-mounts.ts`
 * <folder>/.new-<run_id>-<uuid>   a copy that is being made
 * <folder>/.old-<uuid>            one that is being removed
 * ```
 *
 * 1. A copy gets its name once it is complete, and is renamed before it is removed, so that no half
 *    of one is ever used. Nothing waits for the disk to have it: a run goes on only in a copy that
 *    was made since the machine started.
 * 2. It keeps its path as long as it exists, because programs that were installed in it hold the
 *    path. Who hands it on or removes it renames `copy.json` first: one of several can do that.
 * 3. Processes that share a store may share the folder: only the one that works on a run makes or
 *    changes its copy, and a sweep asks the store which runs there are. Stores with other data
 *    folders leave each other's copies alone, by a mark in `copy.json` and in `.new-<mark>.…`.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, realpath, rename, unlink, writeFile }
  from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { hash } from '../../internal/hash.js'
import { bootId } from '../../internal/processes.js'
import type { JsonValue } from '../../internal/json.js'
import { StoreError } from '../errors.js'
import type { IsolatedCopy } from '../executor.js'
import { inOwnPlace, onOwnFiles, throwIfExhausted, unreadable } from '../exhaustion.js'
import { assertFits, copyTree, removeFolder } from '../workspace/copy.js'
import { codeOf, failure, isInside } from '../workspace/paths.js'
import { installedElsewhere, packagesAbove, problemsAbove } from './above.js'
import { EMPTY, sealedMounts } from './sealed-mounts.js'

/** Where copies are made, and within what limits. */
export interface IsolatedFoldersOptions {
  /** Is created. */
  readonly folder: string
  /** Bytes of one copy. */
  readonly maxBytes: number
  /** Folders that are not copied: those of the store. */
  readonly closed: readonly string[]
  /** The data folder of the store. */
  readonly dataFolder?: string | undefined
  /** Do other processes use the store at the same time? */
  readonly isShared?: boolean | undefined
  /** True if runs never take over each other's copies. @defaultValue false */
  readonly keepsOwners?: boolean | undefined
}

/** How the copy for a run is made. */
export interface CreateOptions {
  /** May large `node_modules` be mounted read-only? See `Executor.mountsFolders`. */
  readonly mounts: boolean
  /** Are they copied all the same, because something has to write to them? @defaultValue false */
  readonly whole?: boolean | undefined
  /** Another copy of the folder, which is copied in its place. @defaultValue null */
  readonly from?: string | null | undefined
  /**
   * Changes the copy before it can be used: gives it the files of a checkpoint. Resolves with what
   * there is to tell.
   */
  readonly fill?: ((path: string) => Promise<readonly string[]>) | undefined
  /**
   * Rejects when another process works on the run by now. What that one has made since is not
   * removed. @defaultValue nobody else works on it
   */
  readonly confirm?: (() => Promise<void>) | undefined
  /** May the run have taken over the copy of another one? @defaultValue true */
  readonly adopts?: boolean | undefined
  /** Gives all that is copied access time 0; see `touched-files.ts`. @defaultValue false */
  readonly unread?: boolean | undefined
  /**
   * For a sealed check: `.git` is only there to be read, without hooks and settings; bytecode of
   * Python and caches in `node_modules` are left out; packages above the folder are there also when
   * they are mounted. The copy is as private as any other, but no run can work in it.
   * @defaultValue false
   */
  readonly sealed?: boolean | undefined
  /** Relative paths of what is not in a sealed copy, mounted or not. @defaultValue none */
  readonly without?: readonly string[] | undefined
  /** `readOnly` of `cwd`, if that is itself a copy. @defaultValue none */
  readonly mounted?: IsolatedCopy['readOnly'] | undefined
  readonly signal?: AbortSignal | undefined
}

/** A copy that was just made. */
export interface NewCopy extends IsolatedCopy {
  /** What the user has to know, as sentences. */
  readonly notes: readonly string[]
}

/** `copy.json`. */
interface Description {
  /** The run for which it was made, in a version that rewrote the file the one that has it. */
  readonly owner: string
  readonly original: string
  readonly name: string
  /** Relative paths. */
  readonly readOnly: readonly string[]
  /** What else commands see, by absolute paths. */
  readonly mounts?: IsolatedCopy['readOnly']
  /** When it was made, see {@link BOOT}; earlier versions did not write it, nor the mark. */
  readonly boot?: string
  readonly mark?: string
}

/** A copy by its folder. */
interface Found {
  readonly place: string
  readonly owner: string
  /** The name of the description; null when there is none. */
  readonly file: string | null
  /** Null when it cannot be read. */
  readonly description: Description | null
}

/** The names that a description can have. */
const DESCRIPTION = /^copy(?:\.(.+))?\.json$/
const REMOVED = 'copy.-.json'
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/
const OLD = '.old-'
/** Of the names that only this module gives. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

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
  /** Of the store, if its copies are not beside its data. */
  readonly #mark: string
  readonly #new: string
  /** Names of those that this process makes. */
  readonly #making: Set<string> = new Set()
  /** Removals that nobody waits for, by run. */
  readonly #removing: Map<string, Promise<void>> = new Map()

  constructor(options: IsolatedFoldersOptions) {
    this.#options = options
    const { folder, dataFolder } = options
    const isBeside = dataFolder === undefined || isInside(resolve(folder), resolve(dataFolder))
    this.#mark = isBeside ? '' : hash('sha256', resolve(dataFolder)).slice(0, 12)
    this.#new = isBeside ? '.new-' : `.new-${this.#mark}.`
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
   * @throws {@link WorkspaceTooLargeError}; {@link ExhaustedError} when the folder for copies is
   * on a disk that is full or fails, or cannot be used; {@link WorkspaceError} when the folder
   * cannot be copied, or when another run took over the copy of this one; the signal's reason.
   * Nothing is left then.
   */
  async create(runId: string, cwd: string, options: CreateOptions): Promise<NewCopy> {
    checkRunId(runId)
    return await onOwnFiles(`no copy of ${cwd} can be made in ${this.#where}`, async () => {
      const [folder] = await Promise.all([this.#ready(), this.#removeOld(runId, options)])
      return await this.#create(folder, runId, cwd, options)
    })
  }

  /** The folder for copies, in words for errors. */
  get #where(): string {
    return `${this.#options.folder} (option workspaceFolder)`
  }

  /** Looks for a copy: a disk that fails must not make it look as if there was none. */
  async #lookedAt<T>(look: () => Promise<T>): Promise<T> {
    return await onOwnFiles(`copies in ${this.#where} cannot be found`, look)
  }

  /** Does work on what lies in the folder besides the copies themselves. */
  async #inPlace<T>(work: () => Promise<T>): Promise<T> {
    return await inOwnPlace(`copies cannot be kept in ${this.#where}`, work)
  }

  async #create(
    folder: string,
    runId: string,
    cwd: string,
    options: CreateOptions,
  ): Promise<NewCopy> {
    const taken = this.#options.keepsOwners === true ? null : await this.#at(runId)
    if (taken !== null) {
      throw failure(`the copy of run ${runId} was handed on to run ${taken.owner}; fork that one`)
    }
    const name = `${this.#new}${runId}-${randomUUID()}`
    const temporary = join(folder, name)
    this.#making.add(name)
    try {
      await this.#inPlace(() => mkdir(temporary, { mode: 0o700 }))
      const made = await this.#make(folder, temporary, runId, cwd, options)
      await this.#inPlace(() => rename(temporary, join(folder, runId)))
      return made
    } catch (error) {
      await removeFolder(temporary).catch(() => undefined)
      if (codeOf(error) === undefined || RUNWRIGHT.test(codeOf(error)!)) throw error
      throw failure(`the copy of ${cwd} cannot be made in ${folder}`, error)
    } finally {
      this.#making.delete(name)
    }
  }

  /** Removes what the run has before it is certain that no other process works on it. */
  async #removeOld(
    runId: string,
    { adopts = true, confirm }: CreateOptions,
  ): Promise<void> {
    if (this.#options.keepsOwners === true) {
      await confirm?.()
      await this.#removing.get(runId)
      await this.#discard(runId)
      return
    }
    const [found, unfinished] = await Promise.all([
      this.#found(runId, adopts), this.#unfinished(runId),
    ])
    const seen = found && (await identityOf(found.place))
    await confirm?.()
    await this.#removing.get(runId)
    for (const name of unfinished) await this.#discard(name)
    if (found !== null && seen === (await identityOf(found.place))) await this.#discardCopy(found)
  }

  async #make(
    folder: string,
    temporary: string,
    runId: string,
    cwd: string,
    options: CreateOptions,
  ): Promise<NewCopy> {
    const { mounts, whole = false, fill, unread, sealed = false, signal } = options
    const { from: source, without = [], mounted = [] } = options
    if (!mounts && mounted.length > 0) throw failure('its packages would have to be mounted')
    const { maxBytes } = this.#options
    const closed = [...this.#options.closed, folder]
    const place = join(folder, runId)
    const name = nameFor(cwd)
    const original = { from: source ?? cwd, to: join(place, name) }
    // A sandbox does not show what is above the folder, copied or not, unless it is mounted.
    const above = mounts && !sealed ? null : await packagesAbove(cwd, closed)
    const packages = above === null ? [] : [{ from: above, to: join(place, 'node_modules') }]
    const shared = { closed, unread, sealed, mounts: mounts && !whole, signal }
    const [copied, problems] = await Promise.all([
      copyTree(original.from, join(temporary, name), {
        ...shared, maxBytes, without, place: original.to, others: packages,
      }),
      // Sealed checks have no use for these notes.
      mounts || sealed ? [] : problemsAbove(folder),
    ])
    const notes = [...copied.notes, ...problems]
    if (copied.hasPython && !sealed) notes.push(...(await installedElsewhere(cwd)))
    const more: { from: string; to: string }[] = []
    for (const { from, to } of packages) {
      const rest = maxBytes - copied.bytes
      const result = await copyTree(from, join(temporary, 'node_modules'), {
        ...shared, maxBytes: rest, place: to, others: [original],
      })
      notes.push(`The packages in ${from} were copied as well.`, ...result.notes)
      const isMounted = result.readOnly.includes('')
      if (mounts) more.push({ from: isMounted ? from : to, to })
      if (!isMounted) more.push(...result.readOnly.map((path) => ({
        from: join(from, path), to: join(to, path),
      })))
    }
    const { readOnly } = copied
    if (sealed && mounts) {
      const copy = { cwd, temporary, place, name, readOnly, mounted, without }
      more.push(...(await sealedMounts(copy)))
    }
    const description: Description = {
      owner: runId, original: cwd, name, readOnly, mounts: more, boot: BOOT, mark: this.#mark,
    }
    const files = { ...guards, 'copy.json': JSON.stringify(description) }
    const writes = Object.entries(files).map(([file, text]) =>
      this.#inPlace(() => writeFile(join(temporary, file), text)),
    )
    // The folder is removed after an error, and nothing may be written to it then.
    const settled = Promise.allSettled(writes)
    try {
      if (fill !== undefined) notes.push(...(await fill(join(temporary, name))))
    } finally {
      await settled
    }
    await Promise.all(writes)
    signal?.throwIfAborted()
    return { ...copyAt(place, description), notes }
  }

  /** The copy of a run, as it is; null when it has none. */
  async find(runId: string): Promise<IsolatedCopy | null> {
    return (await this.#lookedAt(() => this.#copyOf(runId)))?.copy ?? null
  }

  /**
   * The copy in which a run can go on; null when it has none, when the machine was started since it
   * was made, and when its packages would have to be mounted and are not.
   *
   * @param adopts may it have taken over the copy of another run?
   */
  async usable(runId: string, mounts: boolean, adopts = true): Promise<IsolatedCopy | null> {
    const found = await this.#lookedAt(() => this.#copyOf(runId, adopts))
    if (found === null || found.description.boot !== BOOT) return null
    return found.copy.readOnly.length > 0 && !mounts ? null : found.copy
  }

  /** Hands the copy of a run to another one; null when there is none. */
  async adopt(fromRunId: string, toRunId: string): Promise<IsolatedCopy | null> {
    checkRunId(toRunId)
    const found = await this.#lookedAt(() => this.#copyOf(fromRunId))
    if (found === null) return null
    await this.remove(toRunId)
    return (await this.#take(found, `copy.${toRunId}.json`)) ? found.copy : null
  }

  /** Gives the description another name; false when it has had another one since it was found. */
  async #take({ place, file }: Found, name: string): Promise<boolean> {
    if (file === null) return true
    return await this.#inPlace(() => isRenamed(join(place, file), join(place, name)))
  }

  /**
   * Removes the copy of a run, and what was left of one that was being made. Removing what does not
   * exist is harmless.
   */
  async remove(runId: string): Promise<void> {
    checkRunId(runId)
    // Two copies of a run may not fit on the disk.
    await this.#removing.get(runId)
    await onOwnFiles(`the copy of run ${runId} cannot be removed`, async () => {
      for (const name of await this.#unfinished(runId)) await this.#discard(name)
      const old = await this.#putAwayOwn(runId)
      if (old !== null) await removeFolder(old)
    })
  }

  /** What was left of copies of the run that were being made. */
  async #unfinished(runId: string): Promise<readonly string[]> {
    return (await this.#names()).filter((name) => name.startsWith(`${this.#new}${runId}-`))
  }

  /**
   * Removes the copy of a run without waiting until its files are gone: nobody finds it any more
   * when this resolves. `create` and `close` wait; what cannot be removed, a sweep removes.
   */
  async removeSoon(runId: string): Promise<void> {
    const old = await this.#putAwayOwn(runId)
    if (old === null) return
    const removing = Promise.allSettled([this.#removing.get(runId), removeFolder(old)]).then(() => {
      if (this.#removing.get(runId) === removing) this.#removing.delete(runId)
    })
    this.#removing.set(runId, removing)
  }

  /** Puts the copy of a run away; null when it has none. */
  async #putAwayOwn(runId: string): Promise<string | null> {
    if (this.#options.keepsOwners === true) return await this.#putAway(runId)
    const found = await this.#found(runId)
    if (found === null || !(await this.#take(found, REMOVED))) return null
    return await this.#putAway(basename(found.place))
  }

  /** Waits for what is being removed. */
  async close(): Promise<void> {
    await Promise.all(this.#removing.values())
  }

  async #discardCopy(found: Found): Promise<void> {
    if (await this.#take(found, REMOVED)) await this.#discard(basename(found.place))
  }

  /**
   * Removes the copies of runs that are not wanted any more, and what killed processes have left;
   * what else lies in the folder, because a host uses it for other things too, is kept.
   *
   * @param isWanted must be true for a run from its creation until its copy may be removed,
   * whichever process works on it
   */
  async sweep(isWanted: (runId: string) => Promise<boolean>): Promise<void> {
    let problem: unknown = null
    for (const name of await this.#names()) {
      if (name.startsWith(OLD) && UUID.test(name.slice(OLD.length))) {
        await removeFolder(join(this.#options.folder, name)).catch(() => undefined)
        continue
      }
      try {
        const remove = await this.#lookedAt(() => this.#unwanted(name, isWanted))
        await remove?.()
      } catch (error) {
        // One that cannot be looked at or removed must not keep the others.
        if (error instanceof StoreError) throw error
        problem ??= error
      }
    }
    if (problem !== null) throw problem
  }

  /** What removes an entry of the folder, if a sweep is to do that; see {@link sweep}. */
  async #unwanted(
    name: string,
    isWanted: (runId: string) => Promise<boolean>,
  ): Promise<(() => Promise<void>) | null> {
    const isNew = name.startsWith(this.#new)
    const runId = isNew ? name.slice(this.#new.length, -1 - randomUUID().length) : name
    if (!RUN_ID.test(runId) || this.#making.has(name)) return null
    const found = isNew ? null : await this.#at(runId)
    // A description may be damaged, but what has neither that nor such a name is another's.
    const isCopy = found !== null && (found.description !== null || UUID.test(runId))
    if (isNew ? !UUID.test(name.slice(-randomUUID().length)) : !isCopy) return null
    const isOurs = (found?.description?.mark ?? this.#mark) === this.#mark
    // Its process has ended, unless it shares the store with this one.
    const isDead = isNew ? this.#options.isShared !== true : found?.file === REMOVED
    if (!isOurs || (!isDead && (await isWanted(found?.owner ?? runId)))) return null
    return found === null ? () => this.#discard(name) : () => this.#discardCopy(found)
  }

  async #copyOf(
    runId: string,
    adopts = true,
  ): Promise<(Found & { readonly description: Description; readonly copy: IsolatedCopy }) | null> {
    checkRunId(runId)
    const found = await this.#found(runId, adopts)
    if (found?.description == null || found.file === REMOVED) return null
    const { description } = found
    const place = (await realpath(found.place).catch(unreadable)) ?? found.place
    const copy = copyAt(place, description)
    const stats = await lstat(copy.root).catch(unreadable)
    return stats?.isDirectory() === true ? { ...found, description, copy } : null
  }

  /** The folder of a run's copy: its own, or that of a run from which it took it over. */
  async #found(runId: string, adopts = true): Promise<Found | null> {
    const own = await this.#at(runId)
    if (own?.owner === runId) return own
    // Looks at all copies.
    if (!adopts) return null
    for (const name of await this.#names()) {
      const other = RUN_ID.test(name) ? await this.#at(name) : null
      if (other?.owner === runId) return other
    }
    return null
  }

  /** What has the name of a run; null when there is no folder. */
  async #at(runId: string): Promise<Found | null> {
    const place = join(this.#options.folder, runId)
    const stats = await lstat(place).catch(unreadable)
    // Earlier versions left links for runs that took over a copy.
    const isLink = stats?.isSymbolicLink() === true
    if (isLink && UUID.test(runId)) await unlink(place).catch(() => undefined)
    if (stats?.isDirectory() !== true) return null
    const names = await readdir(place).catch(unreadable)
    if (names === null) return null
    const file = names.find((name) => DESCRIPTION.test(name)) ?? null
    const description = file === null ? null : await describedBy(join(place, file))
    const named = DESCRIPTION.exec(file ?? '')?.[1] ?? description?.owner ?? runId
    return { place, file, description, owner: file === REMOVED ? runId : named }
  }

  async #names(): Promise<readonly string[]> {
    return await readdir(this.#options.folder).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return []
      throw error
    })
  }

  /** Takes a folder away at once, and then removes it. */
  async #discard(name: string): Promise<void> {
    const old = await this.#putAway(name)
    if (old !== null) await removeFolder(old)
  }

  /** Gives a folder a name by which nobody uses it; null when there is none any more. */
  async #putAway(name: string): Promise<string | null> {
    const { folder } = this.#options
    const old = join(folder, `${OLD}${randomUUID()}`)
    return (await this.#inPlace(() => isRenamed(join(folder, name), old))) ? old : null
  }

  async #ready(): Promise<string> {
    const { folder } = this.#options
    try {
      return await this.#inPlace(async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        return await realpath(folder)
      })
    } catch (error) {
      throwIfExhausted(error)
      throw failure(`${folder} cannot be used for copies`, error)
    }
  }
}

/** False when it does not exist any more. */
async function isRenamed(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    return false
  }
}

/** Tells a folder from another one that gets its name later; null when there is none. */
async function identityOf(place: string): Promise<string | null> {
  const stats = await lstat(place, { bigint: true }).catch(unreadable)
  return stats && `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`
}

const RUNWRIGHT = /^ERR_AGENT_/

function copyAt(
  place: string,
  { original, name, readOnly, mounts = [] }: Description,
): IsolatedCopy {
  const root = join(place, name)
  const own = readOnly.map((path) => ({ from: join(original, path), to: join(root, path) }))
  return { root, original, readOnly: [...own, ...mounts] }
}

async function describedBy(file: string): Promise<Description | null> {
  try {
    const value = JSON.parse(await readFile(file, 'utf8')) as JsonValue
    return isDescription(value) ? value : null
  } catch (error) {
    return unreadable(error)
  }
}

function isDescription(value: unknown): value is Description {
  if (typeof value !== 'object' || value === null) return false
  const { owner, original, name, readOnly, mounts = [] } = value as Partial<Description>
  const more = Array.isArray(mounts) ? mounts.flatMap((mount) => [mount?.from, mount?.to]) : [null]
  const texts = [owner, original, name, ...(Array.isArray(readOnly) ? readOnly : [null]), ...more]
  return texts.every((text) => typeof text === 'string')
}

/** Folders that may lie beside a copy. */
const OTHERS: ReadonlySet<string> = new Set(['node_modules', EMPTY])

/** The name of the original, unless a file beside the copy has it. */
function nameFor(cwd: string): string {
  const name = basename(cwd)
  const isTaken = name === '' || DESCRIPTION.test(name) || name in guards || OTHERS.has(name)
  return isTaken ? 'folder' : name
}

function checkRunId(runId: string): void {
  if (!RUN_ID.test(runId)) throw new TypeError(`${runId} is no run id`)
}

/**
 * The start of the machine: what was not on its disk is lost by the next one. Where the system does
 * not tell, every process counts as a start.
 */
const BOOT = bootId() === null ? randomUUID() : `${bootId()}\n`
