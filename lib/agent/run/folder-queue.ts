/**
 * Who may have which folder, first come, first served. Folders that are equal or nested exclude
 * each other.
 *
 * 1. A run queues for its folder, and passes through every folder above it. Within one folder, runs
 *    that pass do not exclude each other; a run that wants the folder itself excludes all.
 * 2. In each folder the order is that of arrival, so a folder waits for no run that came later, and
 *    a run waits only for runs whose folders overlap with its own.
 * 3. A run queues in all of its folders at once, so two runs never wait for each other.
 *
 * @module
 */
import { foldersTo } from '../../internal/folder-index.js'

/** A run and its folders, from the file system's root to its own. */
interface Visit {
  readonly runId: string
  readonly folders: readonly string[]
  /** The number of folders that it waits at. */
  waitsAt: number
}

/** One folder: the runs that have been let in, and those that wait, in their order. */
interface Folder {
  /** Runs that have the folder itself. */
  own: number
  /** Runs that pass through. */
  passing: number
  readonly waiting: Set<Visit>
}

/** The folders of one engine; the rules are in the comment of this file. */
export class FolderQueue {
  readonly #onFree: (runId: string) => void
  readonly #visits = new Map<string, Visit>()
  readonly #folders = new Map<string, Folder>()

  /** `onFree` is called once for each run that queues, when it has its folder. */
  constructor(onFree: (runId: string) => void) {
    this.#onFree = onFree
  }

  /** Queues for a folder. */
  enter(runId: string, path: string): void {
    const visit = { runId, folders: foldersTo(path), waitsAt: 0 }
    this.#visits.set(runId, visit)
    for (const name of visit.folders) {
      const folder = this.#folder(name)
      if (folder.waiting.size === 0 && isFree(folder, visit, name)) letIn(folder, visit, name)
      else {
        folder.waiting.add(visit)
        visit.waitsAt += 1
      }
    }
    if (visit.waitsAt === 0) this.#onFree(runId)
  }

  /** Gives a run its folder even if another run has it: it had begun there before a restart. */
  take(runId: string, path: string): void {
    if (this.#visits.has(runId)) return
    const visit = { runId, folders: foldersTo(path), waitsAt: 0 }
    this.#visits.set(runId, visit)
    for (const name of visit.folders) letIn(this.#folder(name), visit, name)
  }

  /**
   * Gives a visitor its folder if no one has it or waits for it; null then, else who has or wants
   * the folder, one above or one below.
   */
  tryTake(runId: string, path: string): string | null {
    if (!this.isFree(path)) {
      const folders = foldersTo(path)
      for (const other of this.#visits.values()) if (overlap(folders, other)) return other.runId
    }
    this.take(runId, path)
    return null
  }

  /** Does no one have the folder, one above or one below, or wait for it? */
  isFree(path: string): boolean {
    const visit = { runId: '', folders: foldersTo(path), waitsAt: 0 }
    return visit.folders.every((name) => {
      const folder = this.#folders.get(name)
      return folder === undefined || (folder.waiting.size === 0 && isFree(folder, visit, name))
    })
  }

  /** Frees the run's folder, or gives up its position. */
  leave(runId: string): void {
    const visit = this.#visits.get(runId)
    if (visit === undefined) return
    this.#visits.delete(runId)
    for (const name of visit.folders) {
      const folder = this.#folder(name)
      if (!folder.waiting.delete(visit)) {
        if (isOwn(visit, name)) folder.own -= 1
        else folder.passing -= 1
      }
      this.#letNextIn(folder, name)
    }
  }

  #letNextIn(folder: Folder, name: string): void {
    for (const visit of folder.waiting) {
      if (!isFree(folder, visit, name)) return
      folder.waiting.delete(visit)
      letIn(folder, visit, name)
      visit.waitsAt -= 1
      if (visit.waitsAt === 0) this.#onFree(visit.runId)
    }
    if (folder.own + folder.passing === 0) this.#folders.delete(name)
  }

  #folder(name: string): Folder {
    const known = this.#folders.get(name)
    if (known !== undefined) return known
    const folder = { own: 0, passing: 0, waiting: new Set<Visit>() }
    this.#folders.set(name, folder)
    return folder
  }
}

function isOwn({ folders }: Visit, name: string): boolean {
  return folders.at(-1) === name
}

function overlap(a: readonly string[], { folders: b }: Visit): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a]
  return long.includes(short.at(-1) ?? '')
}

/** May this run be let in beside those that have been? */
function isFree({ own, passing }: Folder, visit: Visit, name: string): boolean {
  return own === 0 && (passing === 0 || !isOwn(visit, name))
}

function letIn(folder: Folder, visit: Visit, name: string): void {
  if (isOwn(visit, name)) folder.own += 1
  else folder.passing += 1
}
