import { AsyncLocalStorage } from 'node:async_hooks'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'
import { StoreError, type Clock, type ObjectStore, type RunStore } from 'runwright/agent'

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown

/** The process whose code is running. */
const current = new AsyncLocalStorage<MortalProcess>()

/** Functions of `node:fs/promises` with which folders are looked at and changed. */
const FILE_CALLS = [
  'chmod', 'link', 'lstat', 'mkdir', 'open', 'readdir', 'rename', 'rmdir', 'stat', 'symlink',
  'unlink', 'writeFile',
]
/** Nothing can be done about a change between these and a last look at the same path. */
const UNGUARDED: ReadonlySet<string> = new Set(['rename', 'unlink'])

/** What {@link hookFiles} has replaced, and how many want that. */
const originals = new Map<string, AnyFunction>()
let hooks = 0

/** Makes every change of a folder a call of its process, until all that asked for it dispose. */
export function hookFiles(): Disposable {
  const functions = promises as unknown as Record<string, AnyFunction>
  hooks += 1
  // A second hook over the first one would make one change two calls.
  if (hooks === 1) {
    for (const name of FILE_CALLS) {
      const original = functions[name]!
      originals.set(name, original)
      functions[name] = function (...args) {
        const work = (): unknown => original.apply(this, args)
        const path = String(args[name === 'rename' ? 1 : 0])
        return current.getStore()?.call(name, work, path) ?? work()
      }
    }
    syncBuiltinESMExports()
  }
  return {
    [Symbol.dispose]: () => {
      hooks -= 1
      if (hooks > 0) return
      for (const [name, original] of originals) functions[name] = original
      syncBuiltinESMExports()
    },
  }
}

/**
 * What a process in this one has of a store, of folders and of its engine. From a given call on it
 * is dead: what it asks for is never answered, so that it does nothing more. The last call may have
 * had its effect.
 */
export class MortalProcess {
  /** The store as the process has it, which survives the process. */
  readonly store: RunStore
  readonly died: Promise<void>
  readonly #keepsLast: () => boolean
  readonly #counts: (name: string) => boolean
  #isDead = false
  #calls = 0
  #dieAt = Infinity
  #dieAfter: { readonly record: string; readonly calls: number } | null = null
  #strangerAt = Infinity
  #strangerAfter = 0
  /** The stranger waits until a path is used again. */
  #afterLook = false
  #stranger: (name: string) => void = () => undefined
  /** What was looked at last. */
  #looked = ''
  /** The last call of each path. */
  readonly #last = new Map<string, string>()
  #die: () => void = () => undefined
  #bury: () => void = () => undefined
  /** What it asks for when it is dead; settles only when the test is over. */
  readonly nothing: Promise<never>

  /**
   * @param keepsLast whether the call at which the process dies has its effect
   * @param counts the names of calls at which it may die; null: every call
   */
  constructor(
    store: RunStore,
    keepsLast: () => boolean,
    counts: readonly string[] | null = null,
  ) {
    this.#keepsLast = keepsLast
    this.#counts = (name) => counts?.includes(name) ?? true
    this.died = new Promise((resolve) => (this.#die = resolve))
    const buried = new StoreError('ERR_AGENT_STORE_LOCKED', 'the process is dead')
    this.nothing = new Promise((_, reject) => (this.#bury = () => reject(buried)))
    this.nothing.catch(() => undefined)
    this.store = this.#mortal(store)
  }

  /**
   * A process that dies at an append, from 1; 0 for never. When the test ends it lets go of its
   * threads, which would keep the process of the tests alive.
   */
  static ofAppends(
    t: TestContext,
    store: RunStore,
    dieAt: number,
    keepsLast: boolean,
  ): MortalProcess {
    const process = new MortalProcess(store, () => keepsLast, ['append'])
    t.after(() => process.bury())
    if (dieAt > 0) process.dieAfter(dieAt)
    return process
  }

  #mortal<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (name === 'close') return () => Promise.resolve()
        if (name === 'objects') return this.#mortal(value as ObjectStore)
        if (typeof value !== 'function') return value
        // The disk does not die with the process.
        const work = (args: readonly unknown[]): unknown =>
          current.exit(() => Reflect.apply(value, target, args))
        return (...args: readonly unknown[]): unknown => {
          if (name === 'append') this.#notice(args)
          const own = args.map((arg) => (typeof arg === 'function' ? this.#listener(arg) : arg))
          return this.call(String(name), () => work(own))
        }
      },
    })
  }

  /** Runs a listener in this process, whoever calls it, and ignores calls after its death. */
  #listener(listener: Function): AnyFunction {
    return (...args) =>
      this.#isDead ? undefined : this.run(() => Reflect.apply(listener, undefined, args) as unknown)
  }

  /** Does work in this process. */
  run<T>(work: () => T): T {
    return current.run(this, work)
  }

  /** An object all of whose methods run in this process. */
  inside<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (name === 'workspaces') return this.inside(value as object)
        if (typeof value !== 'function') return value
        return (...args: readonly unknown[]): unknown =>
          this.run(() => Reflect.apply(value, target, args) as unknown)
      },
    })
  }

  /** The stranger waits for an operation to begin, and death for a record. */
  #notice(records: readonly unknown[]): void {
    const has = (kind: string): boolean => JSON.stringify(records).includes(`"${kind}"`)
    if (this.#strangerAfter > 0 && has('files_changing')) {
      this.#strangerAt = this.#calls + this.#strangerAfter
      this.#strangerAfter = 0
    }
    if (this.#dieAfter !== null && has(this.#dieAfter.record)) {
      this.dieAfter(this.#dieAfter.calls)
      this.#dieAfter = null
    }
  }

  /** One call of the system, with what happens before and after it. */
  call(name: string, work: () => unknown, path = ''): unknown {
    if (this.#isDead) return this.nothing
    if (!this.#counts(name)) return work()
    this.#calls += 1
    const last = this.#last.get(path)
    this.#last.set(path, name)
    const isGuarded = !UNGUARDED.has(name) || last !== 'lstat'
    const isRight = !this.#afterLook || last !== undefined
    if (this.#calls >= this.#strangerAt && isGuarded && isRight) {
      this.#strangerAt = Infinity
      current.exit(this.#stranger, this.#looked)
    }
    if (name === 'lstat') this.#looked = path.slice(path.lastIndexOf('/') + 1)
    if (this.#calls < this.#dieAt) return work()
    this.#isDead = true
    if (!this.#keepsLast()) this.#die()
    else void Promise.resolve(work()).then(this.#die, this.#die)
    return this.nothing
  }

  /** Calls at which it could have died. */
  get calls(): number {
    return this.#calls
  }

  /** True from its last call on. */
  get isOver(): boolean {
    return this.#isDead
  }

  /** Also when the next call would be the last. */
  get isDead(): boolean {
    return this.#isDead || this.#calls >= this.#dieAt
  }

  /** @param record counts from when such a record is written */
  dieAfter(calls: number, record?: string): void {
    if (record === undefined) this.#dieAt = this.#calls + calls
    else this.#dieAfter = { record, calls }
  }

  /**
   * Lets somebody else act before one of the next calls, or of those that change a folder.
   *
   * @param stranger is told the name that was looked at last
   */
  meet(calls: number, isChanging: boolean, stranger: (name: string) => void): void {
    this.#afterLook = isChanging && calls % 4 !== 0
    if (isChanging) this.#strangerAfter = calls
    else this.#strangerAt = this.#calls + calls
    this.#stranger = stranger
    this.#last.clear()
  }

  /** Neither dies nor meets anybody. */
  live(): void {
    this.#dieAt = this.#strangerAt = Infinity
    this.#strangerAfter = 0
    this.#dieAfter = null
  }

  /** Lets go of what a dead one holds, such as threads. */
  bury(): void {
    this.#bury()
  }
}

/** A clock whose timers end with the process that set them. */
export function mortalClock(died: Promise<void>): Clock {
  const timers = new Set<NodeJS.Timeout>()
  let dead = false
  void died.then(() => {
    dead = true
    for (const timer of timers) clearTimeout(timer)
  })
  return {
    now: () => Date.now(),
    setTimeout: (callback, ms) => {
      if (dead) return { cancel: () => undefined }
      const timer = setTimeout(() => {
        timers.delete(timer)
        callback()
      }, ms)
      timers.add(timer)
      return {
        cancel: () => {
          timers.delete(timer)
          clearTimeout(timer)
        },
      }
    },
  }
}
