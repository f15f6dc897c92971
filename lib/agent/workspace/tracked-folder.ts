/**
 * Trees of folders, and following a folder from checkpoint to checkpoint. A thread looks at the
 * folder unless it is small (see `folder-tracker.ts`); here is what it stores.
 *
 * @module
 */
import { describeError, systemCode } from '../../internal/errors.js'
import { LongWork, raceAbort } from '../../internal/time.js'
import { WorkspaceError, type WorkspaceErrorCode } from '../errors.js'
import { elsewhere, exhausted, isExhausted } from '../exhaustion.js'
import type { ObjectStore } from '../object-store.js'
import type { LeftOut, Tree } from '../tree.js'
import type { Answer, Question } from './folder-tasks.js'
import { forgetFolder, lookAt, trackFolder } from './folder-threads.js'
import { FolderTracker, type Look } from './folder-tracker.js'
import { allRules, type AllTreeRules, type TreeRules } from './left-out.js'
import { readTree } from './read-tree.js'
import type { Batch } from './tree-batches.js'
import { WorkStopped } from './walk-folder.js'

/** A larger folder is looked at by a thread. */
const SMALL = { entries: 200, bytes: 1024 * 1024 }

/** What a capture found and stored. */
export interface Captured {
  readonly checkpoint_id: string
  /** Files and links. */
  readonly files: number
  /** Bytes of all files, and of the contents that were not stored before. */
  readonly bytes: number
  readonly new_bytes: number
  readonly left_out: readonly LeftOut[]
}

export interface CaptureOptions {
  /**
   * The last checkpoint of the run that is durable in its log; null for its first one. What that
   * one refers to is taken as stored.
   */
  readonly previous: string | null
  readonly signal?: AbortSignal | undefined
}

/** A folder whose content is stored again and again. What is unchanged is not read again. */
export class TrackedFolder implements AsyncDisposable {
  readonly #rules: AllTreeRules
  /** Null once the folder was too large. */
  #here: FolderTracker | null
  /** By which a thread knows the folder; null while none does. */
  #tracked: number | null = null
  /** The look that runs or ran last; they do not overlap. */
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(rules: TreeRules = {}) {
    this.#rules = allRules(rules)
    this.#here = new FolderTracker(this.#rules, SMALL)
  }

  /**
   * Stores the content of the folder.
   *
   * @param folder its path, which may lead through a descriptor; it is not used after this settles
   * @throws {@link WorkspaceError} when the folder cannot be entered; {@link ExhaustedError} for
   * faults of the machine; what the store throws; the signal's reason. The same may be tried again.
   */
  async capture(folder: string, objects: ObjectStore, options: CaptureOptions): Promise<Captured> {
    const { previous, signal } = options
    const target = new StoreTarget(objects)
    const found = await this.#look(folder, previous, target, signal)
    return capturedBy(found, target.newBytes)
  }

  /** What {@link capture} would resolve with if all was stored already. Throws as that does. */
  async find(folder: string, signal?: AbortSignal): Promise<Captured> {
    return capturedBy(await this.#look(folder, null, null, signal), 0)
  }

  /** The content of the folder as a tree; nothing is stored. Throws as {@link capture} does. */
  async manifest(folder: string, signal?: AbortSignal): Promise<Tree> {
    const target = new MemoryTarget()
    const { checkpointId } = await this.#look(folder, null, target, signal)
    return await readTree(target, checkpointId)
  }

  /** Frees what is remembered; what runs, ends. Calling it twice is harmless. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#last
    if (this.#tracked !== null) forgetFolder(this.#tracked)
  }

  async #look(
    folder: string,
    previous: string | null,
    target: Target | null,
    signal: AbortSignal | undefined,
  ): Promise<Look> {
    const look = this.#last.then(async () => {
      signal?.throwIfAborted()
      if (this.#isClosed) throw new TypeError('this TrackedFolder is closed')
      const asked = { folder, previous, target, signal }
      return (await this.#lookHere(asked)) ?? (await this.#lookInThread(asked))
    })
    this.#last = look.catch(() => undefined)
    return await look
  }

  /** Looks without a thread; null if the folder is too large for that. */
  async #lookHere({ folder, previous, target, signal }: Asked): Promise<Look | null> {
    const tracker = this.#here
    if (tracker === null) return null
    /** True once a question was not answered: why, is thrown as it is. */
    let isUnanswered = false
    const answered = async <T>(work: Promise<T>): Promise<T> => {
      try {
        return await (signal === undefined ? work : raceAbort(work, signal))
      } catch (error) {
        isUnanswered = true
        throw error
      }
    }
    try {
      // Faults are told as those of a thread.
      return await elsewhere(() => tracker.look(folder, {
        check: () => signal?.throwIfAborted(),
        storeContents: target?.storeContents ?? false,
        previous,
        send: target && ((batch) => answered(put(target, batch))),
        notStoredIn: (checkpointId) => answered(notStoredIn(target!, checkpointId)),
      }))
    } catch (error) {
      signal?.throwIfAborted()
      if (isUnanswered) throw error
      if (error instanceof WorkStopped) {
        this.#here = null
        return null
      }
      if (systemCode(error) === undefined) throw error
      throw errorOf({ error: describeError(error), code: systemCode(error) })
    }
  }

  async #lookInThread({ folder, previous, target, signal }: Asked): Promise<Look> {
    this.#tracked ??= trackFolder()
    const task = {
      t: 'look', tracked: this.#tracked, folder, previous, rules: this.#rules,
      storeContents: target?.storeContents ?? false, sends: target !== null,
    } as const
    const answer = async (question: Question): Promise<Answer> => {
      if (question.t === 'not stored') return await notStoredIn(target!, question.checkpointId)
      await put(target!, question.batch)
      return null
    }
    const report = await lookAt<Look>(task, { answer, signal })
    if ('result' in report) return report.result
    throw 'error' in report ? errorOf(report) : signal?.reason
  }
}

/** One look, and where its objects go; null: only what is found counts. */
interface Asked {
  readonly folder: string
  readonly previous: string | null
  readonly target: Target | null
  readonly signal: AbortSignal | undefined
}

async function put(target: Target, { buffer, ends, hashes, isTree }: Batch): Promise<void> {
  const contents = ends.map((end, i) => {
    const from = i === 0 ? 0 : ends[i - 1]!
    return new Uint8Array(buffer, from, end - from)
  })
  await target.put(hashes, contents, isTree)
}

/** What a checkpoint did not store, as path and hash in turns. */
async function notStoredIn(target: Target, checkpointId: string): Promise<string[]> {
  const { entries } = await readTree(target, checkpointId)
  const work = new LongWork()
  const pairs: string[] = []
  for (const [path, { sha256, stored }] of entries) {
    if (work.isDue) await work.next()
    if (stored === false) pairs.push(path, sha256)
  }
  return pairs
}

function capturedBy({ checkpointId, files, bytes, leftOut }: Look, newBytes: number): Captured {
  return { checkpoint_id: checkpointId, files, bytes, new_bytes: newBytes, left_out: leftOut }
}

/** The content of a folder as a tree. Throws as {@link TrackedFolder.capture} does. */
export async function manifestOf(
  folder: string,
  rules: TreeRules = {},
  signal?: AbortSignal,
): Promise<Tree> {
  await using tracked = new TrackedFolder(rules)
  return await tracked.manifest(folder, signal)
}

/** Where the worker's batches go. */
interface Target {
  readonly storeContents: boolean
  put(hashes: readonly string[], contents: readonly Uint8Array[], isTree: boolean): Promise<void>
  get(hash: string): Promise<Uint8Array | null>
}

class StoreTarget implements Target {
  readonly storeContents = true
  newBytes = 0
  readonly #objects: ObjectStore

  constructor(objects: ObjectStore) {
    this.#objects = objects
  }

  async put(hashes: readonly string[], contents: readonly Uint8Array[], isTree: boolean) {
    const stored = await this.#objects.has(hashes)
    const missing = new Map<string, Uint8Array>()
    for (const [i, hash] of hashes.entries()) {
      if (!stored.has(hash)) missing.set(hash, contents[i]!)
    }
    if (missing.size === 0) return
    await this.#objects.put([...missing].map(([hash, content]) => ({ hash, content })))
    if (isTree) return
    for (const content of missing.values()) this.newBytes += content.length
  }

  async get(hash: string): Promise<Uint8Array | null> {
    return await this.#objects.get(hash)
  }
}

/** Keeps the objects of one tree. */
class MemoryTarget implements Target {
  readonly storeContents = false
  readonly #objects: Map<string, Uint8Array> = new Map()

  async put(hashes: readonly string[], contents: readonly Uint8Array[]): Promise<void> {
    for (const [i, hash] of hashes.entries()) this.#objects.set(hash, contents[i]!)
  }

  async get(hash: string): Promise<Uint8Array | null> {
    return this.#objects.get(hash) ?? null
  }
}

const WORKSPACE_CODES: ReadonlySet<string> = new Set<WorkspaceErrorCode>([
  'ERR_AGENT_WORKSPACE', 'ERR_AGENT_WORKSPACE_LOST', 'ERR_AGENT_OUTSIDE_WORKSPACE',
])

function errorOf({ error: message, code }: { error: string; code: string | undefined }): Error {
  if (WORKSPACE_CODES.has(code ?? '')) {
    return new WorkspaceError(code as WorkspaceErrorCode, message)
  }
  const error = Object.assign(new Error(message), { code })
  return isExhausted(error) ? exhausted('the folder cannot be looked at', error) : error
}
