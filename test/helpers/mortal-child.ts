/**
 * The program of every child process that a test kills; see kill.ts, which starts it. It loads a
 * module, calls one of its functions with the given arguments and a {@link Life}, and kills itself
 * with SIGKILL at a step of that life. When it ends otherwise, its last line is `N steps`.
 */
import { constants, writeSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { createInterface } from 'node:readline'
import type { RunStore } from '../../lib/agent/store.js'

/** The program's argument, as JSON. */
export interface Plan {
  /** URL of the module, and the name of the function in it. */
  readonly module: string
  readonly run: string
  readonly args: unknown
  /** Loads the module, then waits for a line on standard input before it calls the function. */
  readonly waits: boolean
  /** The step at which to die, from 1; 0 for never. Only steps called `dieOn` count, if given. */
  readonly dieAt: number
  readonly dieOn: string | null
}

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>

/** Functions that change files, and the methods of file handles that do. */
const FILE_CALLS = [
  'chmod', 'link', 'mkdir', 'open', 'rename', 'rm', 'rmdir', 'symlink', 'unlink', 'writeFile',
]
const HANDLE_CALLS = ['chmod', 'datasync', 'write', 'writeFile']

/** What the function of a child module gets: it decides which steps count, and from when on. */
export class Life {
  readonly #dieAt: number
  readonly #dieOn: string | null
  #lines: AsyncIterator<string> | null = null
  #steps = 0
  #counts = false

  constructor({ dieAt, dieOn }: Pick<Plan, 'dieAt' | 'dieOn'>) {
    this.#dieAt = dieAt
    this.#dieOn = dieOn
  }

  /** Starts the count of steps; earlier ones are ignored. */
  begin(): void {
    this.#counts = true
    this.#steps = 0
  }

  get steps(): number {
    return this.#steps
  }

  /** Counts a step, and dies if it is the one. SIGKILL is delivered before this returns. */
  step(name: string): void {
    if (!this.#counts || (this.#dieOn !== null && name !== this.#dieOn)) return
    this.#steps += 1
    if (this.#steps === this.#dieAt) this.die()
  }

  /** Makes the moments before and after a call two steps: `before NAME` and `after NAME`. */
  around<T>(name: string, call: () => T): T {
    this.step(`before ${name}`)
    const result = call()
    if (!(result instanceof Promise)) return this.step(`after ${name}`), result
    return result.then((value: unknown) => (this.step(`after ${name}`), value)) as T
  }

  /** Makes each append of a store two steps: `before append` and `after append`. */
  countAppends(store: RunStore): void {
    const append = store.append.bind(store)
    store.append = (...given) => this.around('append', () => append(...given))
    // In a store that processes share, the first append is that of the admission.
    const { shared } = store
    if (shared === undefined) return
    const admit = shared.admit.bind(shared)
    shared.admit = (given) => this.around('append', () => admit(given))
  }

  /** Makes each change of a file by `node:fs/promises` a step with the name of the function. */
  async countFiles(): Promise<void> {
    const handle = await promises.open('.')
    await handle.close()
    this.#countCalls(promises, FILE_CALLS)
    this.#countCalls(Object.getPrototypeOf(handle) as object, HANDLE_CALLS)
    syncBuiltinESMExports()
  }

  #countCalls(target: object, names: readonly string[]): void {
    const functions = target as Record<string, AnyFunction>
    const step = (name: string): void => this.step(name)
    for (const name of names) {
      const original = functions[name]!
      functions[name] = async function (...args) {
        if (name !== 'open' || creates(args[1])) step(name)
        return await original.apply(this, args)
      }
    }
  }

  die(): never {
    process.kill(process.pid, 'SIGKILL')
    throw new Error('it is dead')
  }

  /** Prints a line at once: it is out when this returns. */
  say(line: string): void {
    writeSync(1, `${line}\n`)
  }

  /** Resolves with the next line of standard input; undefined at its end. */
  async line(): Promise<string | undefined> {
    this.#lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    const { done, value } = await this.#lines.next()
    return done === true ? undefined : value
  }

  /** Closes standard input if it was read: it would keep the process alive. */
  end(): void {
    if (this.#lines !== null) process.stdin.destroy()
  }
}

/** True if a file that is opened with these flags is made when it does not exist. */
function creates(flags: unknown): boolean {
  if (typeof flags === 'string') return /[aw]/.test(flags)
  return (Number(flags) & constants.O_CREAT) !== 0
}

const plan = JSON.parse(process.argv[2] ?? '{}') as Plan
const life = new Life(plan)
process.on('exit', () => life.say(`${life.steps} steps`))
const functions = (await import(plan.module)) as Record<
  string,
  (args: unknown, life: Life) => Promise<void>
>
if (plan.waits) await life.line()
await functions[plan.run]!(plan.args, life)
life.end()
