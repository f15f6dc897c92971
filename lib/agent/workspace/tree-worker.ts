/**
 * The worker behind `TrackedFolder`: looks at folders, and remembers what they held. It writes
 * nothing anywhere. One that is started for tasks is that of `task-threads.ts`.
 *
 * @module
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { CopyTask } from './copy-job.js'
import { performCopyTask } from './copy-tasks.js'
import { FolderTracker, type NotStored } from './folder-tracker.js'
import type { Batch } from './tree-batches.js'
import type { FromTreeWorker, ToTreeWorker } from './tree-protocol.js'

/** Entries that are remembered of all folders together: about 100 MB. */
const MAX_REMEMBERED = 400_000

const port = parentPort!
/** By number, least recently used first. */
const trackers = new Map<number, FolderTracker>()
const jobs = new Map<number, Job>()

function post(message: FromTreeWorker, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
}

/** One look at a folder. */
class Job {
  readonly #id: number
  readonly tracked: number
  readonly #abort = new AbortController()
  readonly #batches: Map<number, () => void> = new Map()
  #sent = 0
  #onNotStored: ((found: NotStored) => void) | null = null

  constructor(id: number, tracked: number) {
    this.#id = id
    this.tracked = tracked
  }

  async run(message: ToTreeWorker & { readonly t: 'look' }): Promise<void> {
    const { folder, sends, storeContents, previous } = message
    const tracker = trackers.get(this.tracked) ?? new FolderTracker(message.rules)
    trackers.delete(this.tracked)
    trackers.set(this.tracked, tracker)
    try {
      const found = await tracker.look(folder, {
        signal: this.#abort.signal,
        storeContents,
        previous,
        send: sends ? (batch) => this.#send(batch) : null,
        notStoredIn: (checkpointId) => this.#notStoredIn(checkpointId),
      })
      post({ t: 'done', job: this.#id, ...found })
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException
      post({ t: 'failed', job: this.#id, message, code: String(code ?? '') })
    } finally {
      jobs.delete(this.#id)
      evict()
    }
  }

  stored(batch: number): void {
    this.#batches.get(batch)?.()
    this.#batches.delete(batch)
  }

  notStored(found: NotStored): void {
    this.#onNotStored?.(found)
  }

  abort(): void {
    const reason = new Error('aborted')
    this.#abort.abort(reason)
    // Waiting calls go on, and find the signal aborted.
    for (const resolve of this.#batches.values()) resolve()
    this.#onNotStored?.(new Map())
  }

  async #send(batch: Batch): Promise<void> {
    const number = this.#sent++
    const stored = new Promise<void>((resolve) => this.#batches.set(number, resolve))
    post({ t: 'batch', job: this.#id, number, ...batch }, [batch.buffer])
    await stored
    this.#abort.signal.throwIfAborted()
  }

  async #notStoredIn(checkpointId: string): Promise<NotStored> {
    const answer = new Promise<NotStored>((resolve) => (this.#onNotStored = resolve))
    post({ t: 'not stored', job: this.#id, checkpointId })
    const found = await answer
    this.#abort.signal.throwIfAborted()
    return found
  }
}

/** Forgets folders that were not looked at for longest; they are read anew when needed. */
function evict(): void {
  let remembered = 0
  for (const { size } of trackers.values()) remembered += size
  const busy = new Set([...jobs.values()].map(({ tracked }) => tracked))
  for (const [number, { size }] of [...trackers].slice(0, -1)) {
    if (remembered <= MAX_REMEMBERED) return
    if (busy.has(number)) continue
    trackers.delete(number)
    remembered -= size
  }
}

function receive(message: ToTreeWorker): void {
  switch (message.t) {
    case 'look': {
      const job = new Job(message.job, message.tracked)
      jobs.set(message.job, job)
      void job.run(message)
      return
    }
    case 'stored':
      return jobs.get(message.job)?.stored(message.batch)
    case 'not stored': {
      const found = new Map<string, string>()
      const { pairs } = message
      for (let i = 0; i < pairs.length; i += 2) found.set(pairs[i]!, pairs[i + 1]!)
      return jobs.get(message.job)?.notStored(found)
    }
    case 'abort':
      return jobs.get(message.job)?.abort()
    case 'forget':
      trackers.delete(message.tracked)
  }
}

if (workerData === 'tasks') {
  port.on('message', (task: CopyTask) => port.postMessage(performCopyTask(task)))
} else port.on('message', receive)
