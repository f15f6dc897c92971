import { Worker } from 'node:worker_threads'
import type { FromTreeWorker, ToTreeWorker } from './tree-protocol.js'

/** Milliseconds for which the thread stays when no folder is tracked any more. */
const IDLE_MS = 10_000
/** What it remembers takes a tenth of that. */
const RESOURCES = { maxOldGenerationSizeMb: 1_024 }

/** Gets what the worker has to say of a job, or why there is no worker any more. */
export interface TreeJob {
  receive(message: FromTreeWorker): void
  lose(error: Error): void
}

/**
 * The one thread of this process that looks at folders. It is started by the first job, ends when
 * nothing is tracked, and keeps the process running only while there are jobs.
 */
class TreeWorkerThread {
  #worker: Worker | null = null
  #code: string | null = null
  readonly #jobs: Map<number, TreeJob> = new Map()
  readonly #tracked: Set<number> = new Set()
  #numbers = 0
  #idle: NodeJS.Timeout | undefined

  /** A number for something that is tracked until {@link TreeWorkerThread.forget}. */
  track(): number {
    clearTimeout(this.#idle)
    this.#tracked.add(++this.#numbers)
    return this.#numbers
  }

  /** @param isKnown does the worker know of it? */
  forget(tracked: number, isKnown: boolean): void {
    if (!this.#tracked.delete(tracked)) return
    if (isKnown && this.#worker !== null) this.post({ t: 'forget', tracked })
    if (this.#tracked.size > 0) return
    this.#idle = setTimeout(() => void this.#end(), IDLE_MS)
    this.#idle.unref()
  }

  /** Loads the program of the thread, before the first job. */
  async load(): Promise<void> {
    this.#code ??= (await import('./tree-worker-code.js')).workerCode()
  }

  /** Starts a job, and the thread if need be. */
  start(job: TreeJob): number {
    const id = ++this.#numbers
    this.#worker ??= this.#begin(this.#code!)
    this.#jobs.set(id, job)
    this.#worker.ref()
    return id
  }

  post(message: ToTreeWorker): void {
    this.#worker?.postMessage(message)
  }

  finish(id: number): void {
    this.#jobs.delete(id)
    if (this.#jobs.size === 0) this.#worker?.unref()
  }

  #begin(code: string): Worker {
    const worker = new Worker(code, {
      eval: true, execArgv: [], stdin: false, resourceLimits: RESOURCES,
    })
    let failure: Error | null = null
    worker.on('message', (message: FromTreeWorker) => this.#jobs.get(message.job)?.receive(message))
    worker.on('error', (error) => (failure = error))
    worker.on('exit', (code) => {
      if (this.#worker !== worker) return
      this.#worker = null
      const error = failure ?? new Error(`its thread ended with exit code ${code}`)
      const jobs = [...this.#jobs.values()]
      this.#jobs.clear()
      for (const job of jobs) job.lose(error)
    })
    worker.unref()
    return worker
  }

  async #end(): Promise<void> {
    if (this.#tracked.size > 0 || this.#jobs.size > 0) return
    const worker = this.#worker
    this.#worker = null
    await worker?.terminate()
  }
}

export const treeWorkerThread: TreeWorkerThread = new TreeWorkerThread()
