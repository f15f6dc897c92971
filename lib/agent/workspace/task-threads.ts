import os from 'node:os'
import { Worker } from 'node:worker_threads'
import { FairSlots } from '../../internal/queues.js'
import { threadFailure } from '../exhaustion.js'
import type { CopyReport, CopyTask } from './copy-job.js'

/** Milliseconds for which a thread without a task stays: the next one is often not far. */
const IDLE_MS = 5_000

/**
 * One for each thread of this process that works for runs, however many runs there are: for tasks
 * on folders and searches by regular expressions.
 */
const slots = new FairSlots(Math.min(os.availableParallelism(), 4))

/** Those without a task; the last one is the last that had one. */
const idle: TaskThread[] = []

/** A thread that does one task at a time, and keeps the process running only meanwhile. */
class TaskThread {
  readonly #worker: Worker
  #end: NodeJS.Timeout | undefined
  #settle: ((report: CopyReport | Error) => void) | null = null

  constructor(code: string) {
    const options = { eval: true, workerData: 'tasks', env: {}, execArgv: [] }
    this.#worker = new Worker(code, options)
    this.#worker.on('message', (report: CopyReport) => {
      this.#rest()
      this.#settle?.(report)
    })
    this.#worker.on('error', (error) => {
      this.#leave()
      this.#settle?.(threadFailure('the thread of a copy ended', error))
    })
    this.#worker.on('exit', () => {
      this.#leave()
      this.#settle?.({ error: 'its thread ended', code: undefined })
    })
  }

  async perform(task: CopyTask): Promise<CopyReport> {
    clearTimeout(this.#end)
    this.#worker.ref()
    const report = await new Promise<CopyReport | Error>((resolve) => {
      this.#settle = resolve
      this.#worker.postMessage(task)
    })
    if (report instanceof Error) throw report
    return report
  }

  #rest(): void {
    this.#worker.unref()
    idle.push(this)
    this.#end = setTimeout(() => this.end(), IDLE_MS).unref()
  }

  end(): void {
    this.#leave()
    void this.#worker.terminate()
  }

  #leave(): void {
    clearTimeout(this.#end)
    const at = idle.indexOf(this)
    if (at !== -1) idle.splice(at, 1)
  }
}

/**
 * Performs a task in a thread, in rounds over the callers that wait for one; its files are closed
 * when this resolves.
 *
 * @throws the signal's reason if it aborts before the task has a thread.
 */
export async function performInThread(
  task: CopyTask,
  caller: string,
  signal?: AbortSignal,
): Promise<CopyReport> {
  const { workerCode } = await import('./tree-worker-code.js')
  const perform = (): Promise<CopyReport> =>
    (idle.pop() ?? new TaskThread(workerCode())).perform(task)
  return await slots.run(caller, perform, signal)
}

/** Does work that has a thread of its own, as {@link performInThread} does. */
export async function withOwnThread<T>(
  caller: string,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const perform = (): Promise<T> => {
    idle.shift()?.end()
    return work()
  }
  return await slots.run(caller, perform, signal)
}
