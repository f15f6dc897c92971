import { Worker } from 'node:worker_threads'
import { threadFailure } from '../exhaustion.js'
import type { CopyReport, CopyTask } from './copy-job.js'

/** Milliseconds for which a thread without a task stays: the next one is often not far. */
const IDLE_MS = 5_000
/** Threads without a task that stay. */
const MAX_IDLE = 2

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
    if (idle.length >= MAX_IDLE) return void this.#worker.terminate()
    idle.push(this)
    this.#end = setTimeout(() => {
      this.#leave()
      void this.#worker.terminate()
    }, IDLE_MS).unref()
  }

  #leave(): void {
    clearTimeout(this.#end)
    const at = idle.indexOf(this)
    if (at !== -1) idle.splice(at, 1)
  }
}

/** Performs a task in a thread of its own; its files are closed when this resolves. */
export async function performInThread(task: CopyTask): Promise<CopyReport> {
  const { workerCode } = await import('./tree-worker-code.js')
  return await (idle.pop() ?? new TaskThread(workerCode())).perform(task)
}
