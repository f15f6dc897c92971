/**
 * Threads that work on folders, so that the program is never kept waiting; see `folder-tasks.ts`.
 *
 * 1. There are few, however many runs there are: those for tasks, and one that looks at folders and
 *    remembers them. They keep the process running only while they work.
 * 2. Small folders are worked on without a thread: starting one takes longer.
 *
 * @module
 */
import os from 'node:os'
import type { Worker } from 'node:worker_threads'
import { FairSlots } from '../../internal/queues.js'
import { abortListeners } from '../../internal/time.js'
import { WorkspaceError } from '../errors.js'
import { elsewhereNow, exhausted, isExhausted, threadFailure } from '../exhaustion.js'
import type {
  Answer, FolderTask, FromFolderThread, Question, TaskReport, ToFolderThread, TrackingTask,
} from './folder-tasks.js'
import { failure } from './paths.js'

/** Milliseconds for which a thread without work stays: the next task is often not far. */
const IDLE_MS = 5_000
/** What a thread remembers takes a tenth of that. */
const RESOURCES = { maxOldGenerationSizeMb: 1_024 }

/** How a task is accompanied. */
interface Accompanied {
  readonly signal?: AbortSignal | undefined
  readonly answer?: ((question: Question) => Promise<Answer>) | undefined
}

/** A task in a thread. It settles when the thread does not use its folder any more. */
class Job {
  readonly done: Promise<TaskReport>
  readonly aborted = new Int32Array(new SharedArrayBuffer(4))
  /** Why the task was stopped. */
  reason: { readonly error: unknown } | null = null
  settle: (report: TaskReport) => void = () => undefined
  fail: (error: Error) => void = () => undefined
  readonly #answer: Accompanied['answer']
  readonly #post: (question: number, answer: Answer) => void
  readonly #open: Set<number> = new Set()

  constructor(answer: Accompanied['answer'], post: (question: number, answer: Answer) => void) {
    this.#answer = answer
    this.#post = post
    this.done = new Promise((resolve, reject) => {
      this.settle = resolve
      this.fail = reject
    })
  }

  ask(question: number, asks: Question): void {
    this.#open.add(question)
    if (this.reason !== null) return this.#reply(question, null)
    this.#answer!(asks).then(
      (answer) => this.#reply(question, answer),
      (error: unknown) => this.stop(error),
    )
  }

  /** Stops the task, which goes on from what it waits for. */
  stop(error: unknown): void {
    this.reason ??= { error }
    Atomics.store(this.aborted, 0, 1)
    for (const question of this.#open) this.#reply(question, null)
  }

  #reply(question: number, answer: Answer): void {
    if (this.#open.delete(question)) this.#post(question, answer)
  }
}

let numbers = 0

class FolderThread {
  readonly #worker: Worker
  readonly #jobs: Map<number, Job> = new Map()
  #end: NodeJS.Timeout | undefined
  #isEnded = false

  constructor(code: string) {
    const options = { eval: true, env: {}, execArgv: [], stdin: false, resourceLimits: RESOURCES }
    // Loaded for large folders only.
    const threads = process.getBuiltinModule('node:worker_threads')
    this.#worker = new threads.Worker(code, options)
    let failure: Error | null = null
    this.#worker.on('message', (message: FromFolderThread) => {
      const job = this.#jobs.get(message.job)
      if ('report' in message) job?.settle(message.report)
      else job?.ask(message.question, message.asks)
    })
    this.#worker.on('error', (error) => (failure = error))
    this.#worker.on('exit', (code) => {
      this.#isEnded = true
      const error = failure ?? new Error(`its thread ended with exit code ${code}`)
      for (const job of this.#jobs.values()) {
        job.fail(threadFailure('the thread that works on folders ended', error))
      }
    })
    this.#worker.unref()
  }

  /** False once it has ended. */
  get isAlive(): boolean {
    return !this.#isEnded
  }

  post(message: ToFolderThread): void {
    this.#worker.postMessage(message)
  }

  /** @throws why the task was stopped */
  async perform(
    task: FolderTask | TrackingTask,
    { answer, signal }: Accompanied,
  ): Promise<TaskReport> {
    const id = ++numbers
    const reply = (question: number, answer: Answer): void =>
      this.post({ job: id, question, answer })
    const job = new Job(answer, reply)
    const abort = (): void => job.stop(signal?.reason)
    const listeners = signal && abortListeners(signal)
    listeners?.add(abort)
    clearTimeout(this.#end)
    this.#jobs.set(id, job)
    this.#worker.ref()
    try {
      signal?.throwIfAborted()
      this.post({ job: id, task, aborted: job.aborted })
      const report = await job.done
      if (job.reason !== null) throw job.reason.error
      return report
    } catch (error) {
      throw job.reason === null ? error : job.reason.error
    } finally {
      listeners?.delete(abort)
      this.#jobs.delete(id)
      if (this.#jobs.size === 0) this.#worker.unref()
    }
  }

  /** Ends it when it has had nothing to do for a while, as far as `isUnused` says. */
  rest(isUnused: () => boolean): void {
    clearTimeout(this.#end)
    this.#end = setTimeout(() => {
      if (this.#jobs.size === 0 && isUnused()) void this.end()
    }, IDLE_MS).unref()
  }

  async end(): Promise<void> {
    this.#isEnded = true
    clearTimeout(this.#end)
    await this.#worker.terminate()
  }
}

/** Threads for tasks on folders and searches by regular expressions, in rounds over the callers. */
const slots = new FairSlots(Math.min(os.availableParallelism(), 4))
/** Those without a task; the last one is the last that had one. */
let idle: FolderThread[] = []

/** Loads the program of the threads. */
async function loadCode(): Promise<() => string> {
  return (await import('./tree-worker-code.js')).workerCode
}

/**
 * Does a task, in a thread unless the folder is small; resolves when its files are closed.
 *
 * @throws the signal's reason
 */
export async function performTask<Result>(
  task: FolderTask,
  signal?: AbortSignal,
): Promise<TaskReport<Result>> {
  const { performSmall } = await import('./folder-tasks.js')
  signal?.throwIfAborted()
  // Its own faults are told as in a thread.
  const done = elsewhereNow(() => performSmall(task))
  if (done !== null) return done as TaskReport<Result>
  const perform = async (): Promise<TaskReport> => {
    const workerCode = await loadCode()
    idle = idle.filter(({ isAlive }) => isAlive)
    const thread = idle.pop() ?? new FolderThread(workerCode())
    try {
      return await thread.perform(task, { signal })
    } finally {
      if (thread.isAlive) idle.push(thread)
      thread.rest(() => true)
    }
  }
  return (await slots.run(task.folder, perform, signal)) as TaskReport<Result>
}

/** Does work that has a thread of its own, in turns with what {@link performTask} does. */
export async function withOwnThread<T>(
  caller: string,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const perform = (): Promise<T> => {
    void idle.shift()?.end()
    return work()
  }
  return await slots.run(caller, perform, signal)
}

/** The thread that remembers folders. */
let looking: FolderThread | null = null
const tracked = new Set<number>()

/** A number for a folder that is remembered until {@link forgetFolder}. */
export function trackFolder(): number {
  tracked.add(++numbers)
  return numbers
}

export function forgetFolder(number: number): void {
  if (!tracked.delete(number) || looking?.isAlive !== true) return
  looking.post({ job: 0, task: { t: 'forget', tracked: number }, aborted: new Int32Array(1) })
  looking.rest(() => tracked.size === 0)
}

/** Looks at a folder that is tracked. @throws as {@link performTask} does; what `answer` throws. */
export async function lookAt<Result>(
  task: TrackingTask & { readonly t: 'look' },
  accompanied: Accompanied,
): Promise<TaskReport<Result>> {
  const workerCode = await loadCode()
  if (looking?.isAlive !== true) looking = new FolderThread(workerCode())
  return (await looking.perform(task, accompanied)) as TaskReport<Result>
}

/** The error of a task that failed; `what` says what was not done. */
export function taskError(
  what: string,
  failed: { readonly error: string; readonly code: string | undefined },
): Error {
  const { error, code } = failed
  const cause = Object.assign(new Error(error), { code })
  if (isExhausted(cause)) return exhausted(what, cause)
  if (code === 'ERR_AGENT_WORKSPACE_LOST') return new WorkspaceError(code, `${what}: ${error}`)
  return failure(`${what}: ${error}`, cause)
}
