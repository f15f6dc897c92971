/**
 * Trees of folders, and following a folder from checkpoint to checkpoint. A worker looks at the
 * folder (see `folder-tracker.ts`); here is what it stores.
 *
 * @module
 */
import { WorkspaceError, type WorkspaceErrorCode } from '../errors.js'
import { exhausted, isExhausted, threadFailure } from '../exhaustion.js'
import type { ObjectStore } from '../object-store.js'
import type { LeftOut, Tree } from '../tree.js'
import { abortListeners, LongWork } from '../../internal/time.js'
import { allRules, type AllTreeRules, type TreeRules } from './left-out.js'
import { readTree } from './read-tree.js'
import type { FromTreeWorker } from './tree-protocol.js'
import { treeWorkerThread, type TreeJob } from './tree-worker-thread.js'

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
  readonly #tracked: number
  /** The look that runs or ran last; they do not overlap. */
  #last: Promise<unknown> = Promise.resolve()
  /** Does the worker remember anything? */
  #isKnown = false
  #isClosed = false

  constructor(rules: TreeRules = {}) {
    this.#rules = allRules(rules)
    this.#tracked = treeWorkerThread.track()
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
    treeWorkerThread.forget(this.#tracked, this.#isKnown)
  }

  async #look(
    folder: string,
    previous: string | null,
    target: Target | null,
    signal: AbortSignal | undefined,
  ): Promise<Done> {
    const look = this.#last.then(async () => {
      await treeWorkerThread.load()
      signal?.throwIfAborted()
      if (this.#isClosed) throw new TypeError('this TrackedFolder is closed')
      this.#isKnown = true
      return await new LookJob(target, signal).run({
        tracked: this.#tracked, folder, previous, rules: this.#rules,
        storeContents: target?.storeContents ?? false, sends: target !== null,
      })
    })
    this.#last = look.catch(() => undefined)
    return await look
  }
}

function capturedBy({ checkpointId, files, bytes, leftOut }: Done, newBytes: number): Captured {
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

type Done = FromTreeWorker & { readonly t: 'done' }

interface LookRequest {
  readonly tracked: number
  readonly folder: string
  readonly previous: string | null
  readonly rules: AllTreeRules
  readonly storeContents: boolean
  readonly sends: boolean
}

/**
 * One look by the worker. It settles only when the worker does not use the folder any more, because
 * the number of a descriptor may soon be another folder's.
 */
class LookJob implements TreeJob {
  readonly #target: Target | null
  readonly #signal: AbortSignal | undefined
  readonly #done: Promise<Done>
  #resolve: (found: Done) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #id = 0
  /** Why the worker was told to stop. */
  #reason: { readonly error: unknown } | null = null

  /** @param target null: only what is found counts */
  constructor(target: Target | null, signal: AbortSignal | undefined) {
    this.#target = target
    this.#signal = signal
    this.#done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  async run(request: LookRequest): Promise<Done> {
    const onAbort = (): void => this.#stop(this.#signal?.reason)
    const listeners = this.#signal && abortListeners(this.#signal)
    listeners?.add(onAbort)
    try {
      this.#id = treeWorkerThread.start(this)
      treeWorkerThread.post({ t: 'look', job: this.#id, ...request })
      return await this.#done
    } finally {
      listeners?.delete(onAbort)
      treeWorkerThread.finish(this.#id)
    }
  }

  receive(message: FromTreeWorker): void {
    switch (message.t) {
      case 'batch':
        return void this.#put(message).catch((error: unknown) => this.#stop(error))
      case 'not stored':
        return void this.#answer(message.checkpointId).catch((error: unknown) => this.#stop(error))
      case 'done':
        if (this.#reason === null) return this.#resolve(message)
        return this.#reject(this.#reason.error)
      case 'failed':
        this.#reject(this.#reason === null ? errorOf(message) : this.#reason.error)
    }
  }

  lose(error: Error): void {
    if (this.#reason !== null) return this.#reject(this.#reason.error)
    this.#reject(threadFailure('the thread that looks at folders ended', error))
  }

  #stop(error: unknown): void {
    if (this.#reason !== null) return
    this.#reason = { error }
    treeWorkerThread.post({ t: 'abort', job: this.#id })
  }

  async #put(message: FromTreeWorker & { readonly t: 'batch' }): Promise<void> {
    if (this.#reason !== null) return
    const { buffer, ends, hashes, isTree, number } = message
    const contents = ends.map((end, i) => {
      const from = i === 0 ? 0 : ends[i - 1]!
      return new Uint8Array(buffer, from, end - from)
    })
    await this.#target!.put(hashes, contents, isTree)
    treeWorkerThread.post({ t: 'stored', job: this.#id, batch: number })
  }

  /** Tells the worker what the checkpoint before did not store. */
  async #answer(checkpointId: string): Promise<void> {
    const { entries } = await readTree(this.#target!, checkpointId)
    const work = new LongWork()
    const pairs: string[] = []
    for (const [path, { sha256, stored }] of entries) {
      if (work.isDue) await work.next()
      if (stored === false) pairs.push(path, sha256)
    }
    treeWorkerThread.post({ t: 'not stored', job: this.#id, pairs })
  }
}

const WORKSPACE_CODES: ReadonlySet<string> = new Set<WorkspaceErrorCode>([
  'ERR_AGENT_WORKSPACE', 'ERR_AGENT_WORKSPACE_LOST', 'ERR_AGENT_OUTSIDE_WORKSPACE',
])

function errorOf({ message, code }: { message: string; code: string | undefined }): Error {
  if (WORKSPACE_CODES.has(code ?? '')) {
    return new WorkspaceError(code as WorkspaceErrorCode, message)
  }
  const error = Object.assign(new Error(message), { code })
  return isExhausted(error) ? exhausted('the folder cannot be looked at', error) : error
}
