/**
 * A disk that fails for a while: from a given call on, functions of `node:fs/promises` reject with
 * the code of an error of the system, as far as that error makes sense for them.
 */
import promises from 'node:fs/promises'
import { constants } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import type { Random } from './random.js'

export interface Fault {
  readonly code: string
  /** The number of the first call that fails, from 1, among those that the code concerns. */
  readonly at: number
  /** How many calls fail; Infinity until {@link FailingDisk.heal}. */
  readonly calls: number
}

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>
type Functions = Record<string, AnyFunction>

const GROW = ['link', 'mkdir', 'rename', 'symlink', 'datasync', 'sync', 'truncate', 'write']
const CHANGE = [...GROW, 'chmod', 'chown', 'rmdir', 'unlink']
const LOOK = ['lstat', 'read', 'readdir', 'readlink', 'stat']

/** The calls that fail with a code; `open` stands for opening anything, `create` for a new file. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  ENOSPC: [...GROW, 'create'],
  // Where names are removed by adding others, such as whiteouts.
  EDQUOT: [...GROW, 'create', 'rmdir', 'unlink'],
  EMFILE: ['open', 'readdir'],
  EIO: [...CHANGE, ...LOOK, 'open'],
  EROFS: [...CHANGE, 'create'],
}
export const FAULT_CODES: readonly string[] = Object.keys(CALLS)

const PATHS = [
  'chmod', 'link', 'lstat', 'mkdir', 'open', 'readdir', 'readlink', 'rename', 'rmdir', 'stat',
  'symlink', 'unlink',
]
const HANDLES = ['chmod', 'chown', 'datasync', 'read', 'stat', 'sync', 'truncate', 'write']

/** Fails the calls of this process until it is disposed of; there is one at a time. */
export class FailingDisk implements Disposable {
  #fault: Fault | null = null
  #calls = 0
  /** Calls that have failed since {@link FailingDisk.fail}. */
  failed = 0
  readonly #undo: (() => void)[] = []

  static async open(): Promise<FailingDisk> {
    const handle = await promises.open(tmpdir())
    await handle.close()
    return new FailingDisk(Object.getPrototypeOf(handle) as Functions)
  }

  private constructor(handles: Functions) {
    this.#hook(promises as unknown as Functions, PATHS)
    this.#hook(handles, HANDLES)
    syncBuiltinESMExports()
  }

  #hook(target: Functions, names: readonly string[]): void {
    for (const name of names) {
      const original = target[name]!
      const call = (args: readonly unknown[]): void => this.#call(name, args)
      target[name] = async function (...args) {
        call(args)
        return await original.apply(this, args)
      }
      this.#undo.push(() => (target[name] = original))
    }
  }

  #call(name: string, args: readonly unknown[]): void {
    const { at = Infinity, calls = 0, code = '' } = this.#fault ?? {}
    const concerned = CALLS[code] ?? []
    const creates = name === 'open' && (Number(args[1]) & constants.O_CREAT) !== 0
    if (!concerned.includes(name) && !(creates && concerned.includes('create'))) return
    this.#calls += 1
    if (this.#calls < at || this.#calls >= at + calls) return
    this.failed += 1
    throw Object.assign(new Error(`${code}: a fault of the test, ${name}`), { code, syscall: name })
  }

  fail(fault: Fault): void {
    this.#fault = fault
    this.#calls = this.failed = 0
  }

  heal(): void {
    this.#fault = null
  }

  [Symbol.dispose](): void {
    for (const undo of this.#undo) undo()
    syncBuiltinESMExports()
  }
}

/** A fault at any of the first `most` calls, for a few calls or for ever. */
export function randomFault(random: Random, most: number): Fault {
  const calls = random.pick([1, 2, 3, 4, 8, 16, Infinity, Infinity, Infinity])
  return { code: random.pick(FAULT_CODES), at: random.integer(1, most), calls }
}
