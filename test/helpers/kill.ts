/**
 * Child processes that die at a step, or are killed from outside, for tests of durability.
 *
 *     // children.ts
 *     export async function drive(args: { readonly directory: string }, life: Life) {
 *       const store = new FileStore(args)
 *       life.countAppends(store)
 *       await life.countFiles()
 *       life.begin()
 *       …
 *     }
 *
 *     // kill.slow.test.ts
 *     const children = new Children<typeof import('./children.js')>(
 *       new URL('children.ts', import.meta.url),
 *     )
 *     const live = (dieAt: number) => children.run('drive', { directory }, { dieAt })
 *     for await (const { dieAt, signal, lines } of deaths(live)) …
 *
 * A module is bundled once per process, with all that it imports (`runwright/...` as well), so that
 * its children start without a loader. `RUNWRIGHT_KILLS` says how many kills a suite makes, about.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync, mkdtempSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync,
  symlinkSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundle, transform } from './bundle.js'
import type { Life, Plan } from './mortal-child.js'

/** How many kills a suite makes, about; with many, there is one at every step. */
export const KILLS: number = Number(process.env['RUNWRIGHT_KILLS'] ?? 40)

/** Milliseconds after which a child that is not killed is hanging. */
const HANGS_MS = 120_000

/** Options of a child: see {@link Plan} for the first three, which are 0, null and false. */
export interface ChildOptions extends Partial<Pick<Plan, 'dieAt' | 'dieOn' | 'waits'>> {
  /** A command with its arguments that runs the program given by more of them. */
  readonly under?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

/** How a child ended that was killed, or succeeded. */
export interface Ending {
  readonly signal: NodeJS.Signals | null
  /** Steps that it counted; 0 if it was killed. */
  readonly steps: number
  /** What it printed. */
  readonly lines: readonly string[]
  readonly stderr: string
}

type Functions<M> = { readonly [K in keyof M]: (args: never, life: Life) => Promise<void> }
type ArgsOf<F> = F extends (args: infer A, life: Life) => unknown ? A : never

/** A child that is alive, or was. */
export class Mortal {
  /** Rejects, with what the child wrote to stderr, if it failed. */
  readonly ended: Promise<Ending>
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  #steps = 0
  #read = 0
  #isClosed = false
  #wake: () => void = () => undefined

  constructor([file = '', ...words]: readonly string[], options: { env?: NodeJS.ProcessEnv }) {
    this.#child = spawn(file, words, options)
    const { stdin, stdout, stderr } = this.#child
    // It may be dead already.
    stdin!.on('error', () => undefined)
    const errors = stderr!.setEncoding('utf8').toArray()
    createInterface({ input: stdout! })
      .on('line', (line) => {
        const [, steps] = /^(\d+) steps$/.exec(line) ?? []
        if (steps === undefined) this.#lines.push(line)
        else this.#steps = Number(steps)
        this.#wake()
      })
      .on('close', () => {
        this.#isClosed = true
        this.#wake()
      })
    this.ended = this.#end(errors)
    this.ended.catch(() => undefined)
  }

  async #end(errors: Promise<string[]>): Promise<Ending> {
    type End = [code: number | null, signal: NodeJS.Signals | null]
    const [code, signal] = (await once(this.#child, 'close')) as End
    const stderr = (await errors).join('')
    assert.ok(code === 0 || signal !== null, `exit code ${code}: ${stderr}`)
    return { signal, steps: this.#steps, lines: this.#lines, stderr }
  }

  get pid(): number {
    return this.#child.pid!
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Writes a line to standard input; the first one is what a child that `waits` waits for. */
  send(line: string): void {
    this.#child.stdin!.write(`${line}\n`)
  }

  /** Ends standard input. */
  sendEnd(): void {
    this.#child.stdin!.end()
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.#child.kill(signal)
  }

  /** Resolves with the next line; undefined once there is none. */
  async line(): Promise<string | undefined> {
    while (this.#read === this.#lines.length && !this.#isClosed)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    return this.#lines[this.#read++]
  }

  /** The lines from the next one to the last one. */
  async *lines(): AsyncGenerator<string> {
    for (let line = await this.line(); line !== undefined; line = await this.line()) yield line
  }
}

/** The functions of a module, each of which runs in a child of its own. */
export class Children<M extends Functions<M>> {
  readonly #source: URL
  #bundled: string | undefined

  constructor(source: URL) {
    this.#source = source
  }

  /** The words that start a child. */
  command<K extends keyof M & string>(
    run: K,
    args: ArgsOf<M[K]>,
    { dieAt = 0, dieOn = null, waits = false, under = [] }: ChildOptions = {},
  ): readonly string[] {
    this.#bundled ??= bundleChild(this.#source)
    const module = pathToFileURL(this.#bundled).href
    const plan: Plan = { module, run, args, waits, dieAt, dieOn }
    return [...under, process.execPath, join(home(), 'mortal-child.js'), JSON.stringify(plan)]
  }

  /** Starts a child, which is killed after the test. */
  start<K extends keyof M & string>(
    t: TestContext,
    run: K,
    args: ArgsOf<M[K]>,
    options: ChildOptions = {},
  ): Mortal {
    const { env = process.env } = options
    const child = new Mortal(this.command(run, args, options), { env })
    t.after(() => child.kill())
    return child
  }

  /** Starts a child and resolves once it has ended; rejects if it failed or hangs. */
  async run<K extends keyof M & string>(
    run: K,
    args: ArgsOf<M[K]>,
    options: ChildOptions = {},
  ): Promise<Ending> {
    const { env = process.env } = options
    const child = new Mortal(this.command(run, args, options), { env })
    const timer = setTimeout(() => child.kill('SIGTERM'), HANGS_MS)
    const ending = await child.ended.finally(() => clearTimeout(timer))
    assert.notEqual(ending.signal, 'SIGTERM', `${run} hangs`)
    return ending
  }
}

/**
 * Lets a child live to its end, then others until they die at one of its steps: about `kills` of
 * them, spread evenly. `live` starts one that dies at a step, or at none if it is 0.
 */
export async function* deaths(
  live: (dieAt: number) => Promise<Ending>,
  kills: number = KILLS,
): AsyncGenerator<Ending & { readonly dieAt: number }> {
  const whole = await live(0)
  yield { ...whole, dieAt: 0 }
  for (const dieAt of pointsOf(whole.steps, kills)) yield { ...(await live(dieAt)), dieAt }
}

/** Steps from 1 to `steps`, spread evenly; at most `most`. */
export function pointsOf(steps: number, most: number = KILLS): readonly number[] {
  const count = Math.min(steps, Math.ceil(most))
  return Array.from({ length: count }, (_, i) => 1 + Math.floor((i * steps) / count))
}

let folder: string | undefined

/** The folder of the program and of all bundled modules, which goes with this process. */
function home(): string {
  if (folder !== undefined) return folder
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-children-')))
  process.once('exit', () => rmSync(path, { recursive: true, force: true }))
  writeFileSync(join(path, 'package.json'), '{ "type": "module" }')
  // The worker that looks at folders and copies them is started from beside the library.
  const worker = new URL('../../lib/agent/workspace/tree-worker.ts', import.meta.url)
  renameSync(bundle(worker, path), join(path, 'tree-worker.js'))
  // What a module `programs.ts` reads lies beside the bundle that has it.
  const programs = new URL('../../lib/repair/trace/', import.meta.url)
  for (const name of readdirSync(programs).filter((one) => /\.(?:cjs|py)$/.test(one)))
    copyFileSync(new URL(name, programs), join(path, name))
  const program = readFileSync(new URL('mortal-child.ts', import.meta.url), 'utf8')
  writeFileSync(join(path, 'mortal-child.js'), transform(program))
  const peers = fileURLToPath(new URL('../peers/node_modules', import.meta.url))
  symlinkSync(peers, join(path, 'node_modules'))
  return (folder = path)
}

let bundles = 0

function bundleChild(source: URL): string {
  const path = join(home(), `child-${(bundles += 1)}.js`)
  renameSync(bundle(source, home()), path)
  return path
}

const MOUNT = 'mount -t tmpfs -o size=1m none /mnt'

/** Runs a child with `/mnt`, a file system of one megabyte: see {@link ChildOptions.under}. */
export const SMALL_DISK: readonly string[] = [
  'unshare', '-Urm', 'sh', '-c', `${MOUNT} && exec "$@"`, 'sh',
]

/** Why {@link SMALL_DISK} cannot be used here; false if it can. */
export function noSmallDisk(): string | false {
  if (spawnSync('unshare', ['-Urm', 'sh', '-c', MOUNT]).status === 0) return false
  return 'this kernel does not let ordinary users mount a file system (unshare -Urm)'
}
