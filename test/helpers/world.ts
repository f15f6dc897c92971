import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  MemoryStore, type AgentEvent, type EngineOptions, type JsonObject, type ModelRequest,
  type RunDetails, type RunEngine,
} from 'runwright/agent'
import { follow, openEngine, scratch, testProvider, type Cleanups, type Said } from './engine.js'
import { writeFiles, type Files } from './files.js'

export interface WorldOptions {
  /** What the project begins with. */
  readonly files?: Files
  /** The turns of the model of all runs, in order; by default and afterwards, it says `done`. */
  readonly turns?: readonly Said[] | ((request: ModelRequest, call: number) => Said)
  /** Options of every engine. */
  readonly engine?: Partial<EngineOptions>
}

/** How a run ended, or how far it was followed. */
export interface Run {
  readonly runId: string
  readonly details: RunDetails
  readonly events: readonly AgentEvent[]
}

/**
 * A project in a scratch folder, a store, and engines whose runs work on the project. The store is
 * in memory and outlives its engines. Clean-up happens after the test, or by `await using`.
 */
export class World implements AsyncDisposable {
  readonly top: string
  /** The folder of the project. */
  readonly cwd: string
  /** Where isolated runs have their copies. */
  readonly copies: string
  /** A place for a store of files. */
  readonly data: string
  readonly store: MemoryStore = new MemoryStore()
  /** What the model was sent. */
  readonly requests: ModelRequest[] = []
  readonly #options: WorldOptions
  readonly #ends: (() => void | Promise<void>)[] = []
  #engine: RunEngine | null = null

  constructor(t: Cleanups | null, options: WorldOptions = {}) {
    t?.after(() => this[Symbol.asyncDispose]())
    this.#options = options
    this.store.close = () => Promise.resolve()
    this.top = scratch(this)
    this.cwd = join(this.top, 'work')
    this.copies = join(this.top, 'copies')
    this.data = join(this.top, 'data')
    mkdirSync(this.cwd)
    this.write(options.files ?? {})
  }

  after(end: () => void | Promise<void>): void {
    this.#ends.push(end)
  }

  /** Closes the engines, the last one first, and removes the folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.splice(0).reverse()) await end()
  }

  /** Opens an engine, which later calls of {@link World.run} use. */
  async open(options: Partial<EngineOptions> = {}): Promise<RunEngine> {
    const { engine } = await openEngine(this, {
      cwd: this.cwd,
      store: this.store,
      workspaceFolder: this.copies,
      checkpoints: 'auto',
      providers: [testProvider((request, call) => this.#answer(request, call))],
      ...this.#options.engine,
      ...options,
    })
    this.#engine = engine
    return engine
  }

  #answer(request: ModelRequest, call: number): Said {
    this.requests.push(request)
    const { turns = [] } = this.#options
    return typeof turns === 'function' ? turns(request, call) : (turns[call] ?? { text: 'done' })
  }

  /** Creates a run and follows it to its end, or to the first event that `until` accepts. */
  async run(request: JsonObject, until?: (event: AgentEvent) => boolean): Promise<Run> {
    const engine = this.#engine ?? (await this.open())
    const { details } = await engine.create({ cwd: this.cwd, ...request })
    const runId = details.run_id
    const events = await follow(engine, runId, until)
    return { runId, events, details: await engine.get(runId) }
  }

  write(files: Files, folder: string = this.cwd): void {
    writeFiles(folder, files)
  }

  read(path: string, folder: string = this.cwd): string {
    return readFileSync(join(folder, path), 'utf8')
  }

  has(path: string, folder: string = this.cwd): boolean {
    return existsSync(join(folder, path))
  }

  /** The folder in which an isolated run works. */
  copyOf(runId: string): string {
    return join(this.copies, runId, 'work')
  }
}
