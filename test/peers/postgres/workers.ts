/** Worker processes that a test starts, kills, pauses and replaces. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bundleWithWorkers } from '../../helpers/bundle.js'
import { scratch } from '../../helpers/engine.js'
import type { Random } from '../../helpers/random.js'
import type { WorkerOptions } from './worker.js'

export class Workers<Options extends WorkerOptions = WorkerOptions> {
  readonly #script: string
  readonly #options: Options
  readonly #running: ChildProcess[] = []
  /** Those that have not said yet that they are ready: paused, they would hold up their starter. */
  readonly #starting = new Set<ChildProcess>()
  readonly #paused = new Set<ChildProcess>()
  readonly #fail: (error: Error) => void
  /** Rejects when a worker ends that was not killed. */
  readonly failure: Promise<never>

  /** `script`: of this folder; it gets the options as JSON, and prints a line once it is ready. */
  constructor(t: TestContext, options: Options, script = 'worker.ts') {
    this.#script = childScript(t, script)
    this.#options = options
    let fail: (error: Error) => void = () => undefined
    this.failure = new Promise((_, reject) => (fail = reject))
    this.failure.catch(() => undefined)
    this.#fail = fail
  }

  async start(count: number, more: Partial<Options> = {}): Promise<readonly ChildProcess[]> {
    return await Promise.all(Array.from({ length: count }, () => this.#start(more)))
  }

  /** Kills a worker; resolves when it is gone. */
  async kill(child: ChildProcess): Promise<void> {
    this.#forget(child)
    await end(child)
  }

  /** Kills a worker and starts another one. */
  async replace(random: Random): Promise<void> {
    await this.kill(random.pick(this.#running))
    await this.#start()
  }

  /** The same for the worker with this process id, if it runs. */
  async replaceProcess(pid: number): Promise<void> {
    const child = this.#running.find((one) => one.pid === pid)
    if (child === undefined) return
    await this.kill(child)
    await this.#start()
  }

  /** Pauses a worker; when two are paused already, resumes the first instead. */
  pauseOrResume(random: Random): void {
    if (this.#paused.size >= 2) this.#resumeFirst()
    else this.#pause(random.pick(this.#running))
  }

  /** Pauses the worker with this process id; when two are paused already, resumes the first. */
  pauseProcess(pid: number): void {
    const child = this.#running.find((one) => one.pid === pid)
    if (child === undefined || this.#paused.has(child)) return
    if (this.#paused.size >= 2) this.#resumeFirst()
    this.#pause(child)
  }

  #pause(child: ChildProcess): void {
    if (this.#starting.has(child)) return
    this.#paused.add(child)
    child.kill('SIGSTOP')
  }

  #resumeFirst(): void {
    const [first] = this.#paused
    if (first === undefined) return
    this.#paused.delete(first)
    first.kill('SIGCONT')
  }

  resumeAll(): void {
    for (const child of this.#paused) child.kill('SIGCONT')
    this.#paused.clear()
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#running.splice(0).map(end))
  }

  #forget(child: ChildProcess): void {
    this.#running.splice(this.#running.indexOf(child), 1)
    this.#paused.delete(child)
  }

  async #start(more: Partial<Options> = {}): Promise<ChildProcess> {
    const options = JSON.stringify({ ...this.#options, ...more })
    const child = spawn(process.execPath, [this.#script, options], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#running.push(child)
    this.#starting.add(child)
    child.once('exit', (code, signal) => {
      if (this.#running.includes(child))
        this.#fail(new Error(`a worker ended unexpectedly: ${code ?? signal}`))
    })
    await Promise.race([once(child.stdout, 'data'), this.failure])
    this.#starting.delete(child)
    return child
  }
}

/** Bundles a script of this folder, and the worker thread of the library beside it. */
function childScript(t: TestContext, name: string): string {
  const target = scratch(t)
  const modules = fileURLToPath(new URL('../node_modules', import.meta.url))
  symlinkSync(modules, join(target, 'node_modules'))
  return bundleWithWorkers(new URL(name, import.meta.url), target)
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
