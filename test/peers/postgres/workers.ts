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

export class Workers {
  readonly #script: string
  readonly #options: WorkerOptions
  readonly #running: ChildProcess[] = []
  readonly #paused = new Set<ChildProcess>()
  readonly #fail: (error: Error) => void
  /** Rejects when a worker ends that was not killed. */
  readonly failure: Promise<never>

  constructor(t: TestContext, options: WorkerOptions) {
    this.#script = childScript(t, 'worker.ts')
    this.#options = options
    let fail: (error: Error) => void = () => undefined
    this.failure = new Promise((_, reject) => (fail = reject))
    this.failure.catch(() => undefined)
    this.#fail = fail
  }

  async start(count: number, more: Partial<WorkerOptions> = {}): Promise<readonly ChildProcess[]> {
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

  /** Pauses a worker; when two are paused already, resumes the first instead. */
  pauseOrResume(random: Random): void {
    const [first] = this.#paused
    if (this.#paused.size >= 2 && first !== undefined) {
      this.#paused.delete(first)
      first.kill('SIGCONT')
      return
    }
    const child = random.pick(this.#running)
    this.#paused.add(child)
    child.kill('SIGSTOP')
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

  async #start(more: Partial<WorkerOptions> = {}): Promise<ChildProcess> {
    const options = JSON.stringify({ ...this.#options, ...more })
    const child = spawn(process.execPath, [this.#script, options], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#running.push(child)
    child.once('exit', (code, signal) => {
      if (this.#running.includes(child))
        this.#fail(new Error(`a worker ended unexpectedly: ${code ?? signal}`))
    })
    await Promise.race([once(child.stdout, 'data'), this.failure])
    return child
  }
}

/** Bundles a script of this folder, and the worker thread of the library beside it. */
export function childScript(t: TestContext, name: string): string {
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
