/**
 * Faults of disks where the engine keeps files of its own: the functions of `node:fs` that it
 * calls, the threads in which it works on folders, and the disk of a `FileStore` fail at one kind
 * of place with one operation, for as long as a test wants.
 */
import fs from 'node:fs'
import promises, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { constants } from 'node:os'
import { Worker } from 'node:worker_threads'
import { SystemDisk, type Disk } from '../../lib/agent/stores/file/disk.js'

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown
type Functions = Record<string, AnyFunction>

const PATH_CALLS = [
  'access', 'chmod', 'lstat', 'mkdir', 'mkdtemp', 'open', 'opendir', 'readFile', 'readdir',
  'readlink', 'realpath', 'rename', 'rm', 'rmdir', 'stat', 'symlink', 'unlink', 'utimes',
  'writeFile',
]
const HANDLE_CALLS = ['chmod', 'read', 'readFile', 'stat', 'sync', 'utimes', 'writeFile']
/** Tasks of threads, and where each works. */
const TASKS: Readonly<Record<string, (task: Task) => string>> = {
  copy: ({ job }) => job!.to,
  remove: ({ folder }) => folder!,
  touched: ({ folder }) => folder!,
}

interface Task {
  readonly t: string
  readonly job?: { readonly to: string }
  readonly folder?: string
}

/** An error as Node makes it: some codes it has no name for. */
export function systemError(code: string, syscall: string, path: string): Error {
  const number = constants.errno[code as keyof typeof constants.errno] ?? 0
  const unnamed = ['EDQUOT', 'ESTALE'].includes(code)
  return Object.assign(new Error(`${code}: injected, ${syscall} '${path}'`), {
    code: unnamed ? `Unknown system error ${-number}` : code, errno: -number, syscall, path,
  })
}

/** Watches the engine's own files, and makes calls for them fail. */
export class OwnFiles implements Disposable {
  /** Operation and place of each call, such as `mkdir tmp/runwright-check-*`. */
  readonly seen: Set<string> = new Set()
  /** Calls that were refused since the fault began. */
  refused = 0
  #fault: { readonly call: string; readonly code: string } | null = null
  readonly #roots: Readonly<Record<string, string>>
  readonly #undo: (() => void)[] = []

  /** @param roots the folders of the engine's own files, by the names that places begin with */
  constructor(roots: Readonly<Record<string, string>>) {
    this.#roots = roots
    this.#hookFiles()
    this.#hookThreads()
    syncBuiltinESMExports()
  }

  /** Makes calls of this kind fail until {@link heal} is called. */
  fail(call: string, code: string): void {
    this.refused = 0
    this.#fault = { call, code }
  }

  heal(): void {
    this.#fault = null
  }

  /** The error of a call; null when it succeeds. */
  #errorOf(operation: string, path: string): Error | null {
    const place = this.#placeOf(path)
    if (place === null) return null
    const call = `${operation} ${place}`
    this.seen.add(call)
    if (this.#fault?.call !== call) return null
    this.refused += 1
    return systemError(this.#fault.code, operation, path)
  }

  /** The kind of a place: without ids, and without what is below a copy; null for others' files. */
  #placeOf(path: string): string | null {
    for (const [name, root] of Object.entries(this.#roots)) {
      if (path !== root && !path.startsWith(`${root}/`)) continue
      return (name + path.slice(root.length))
        .replace(/(\/runwright-\w+)-[\w-]+/, '$1-*')
        .replace(/(?:try-\d+-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '*')
        .replace(/\.new-[^/]*/, '.new-*')
        .replace(/[0-9a-f]{2}\/[0-9a-f]{62}$|[0-9a-f]{16,}/g, '*')
        .replace(/\*-\d+(?=\.(new|pack)$)|\d{5,}(-\d+)*/g, '*')
        .replace(/(\/folder)\/.*/, '$1/…')
        // Programs would find these in the folders above.
        .replace(/^(copies(?:\/\.sealed)?)\/\w[\w.]*$/, '$1/…')
    }
    return null
  }

  #replace(target: object, name: string, by: (original: AnyFunction) => AnyFunction): void {
    const functions = target as Functions
    const original = functions[name]!
    functions[name] = by(original)
    this.#undo.push(() => (functions[name] = original))
  }

  #hookFiles(): void {
    const errorOf = this.#errorOf.bind(this)
    const paths = new WeakMap<object, string>()
    for (const name of PATH_CALLS) {
      this.#replace(promises, name, (original) => async function (...args) {
        const path = String(args[name === 'rename' || name === 'symlink' ? 1 : 0])
        const error = errorOf(name, path)
        if (error !== null) throw error
        const result: unknown = await original.apply(this, args)
        if (name === 'open') paths.set(result as FileHandle, path)
        return result
      })
    }
    const handle = fs.openSync('/dev/null', 'r')
    fs.closeSync(handle)
    void promises.open('/dev/null').then(async (one) => {
      const prototype = Object.getPrototypeOf(one) as object
      await one.close()
      for (const name of HANDLE_CALLS) {
        this.#replace(prototype, name, (original) => async function (...args) {
          const error = errorOf(`handle.${name}`, paths.get(this as object) ?? '')
          if (error !== null) throw error
          return await original.apply(this, args)
        })
      }
    })
    this.#replace(fs, 'open', (original) => function (...args) {
      const error = errorOf('open', String(args[0]))
      if (error === null) return original.apply(this, args)
      const callback = args.at(-1) as (error: Error) => void
      setImmediate(() => callback(error))
      return undefined
    })
  }

  /** Threads do the same work with other functions: the whole task fails. */
  #hookThreads(): void {
    const errorOf = this.#errorOf.bind(this)
    this.#replace(Worker.prototype, 'postMessage', (original) => function (...args) {
      const { job, task } = args[0] as { readonly job: number; readonly task?: Task }
      const placeOf = task && TASKS[task.t]
      const error = placeOf && errorOf(`thread.${task.t}`, placeOf(task))
      if (!error) return original.apply(this, args)
      const { message, code } = error as NodeJS.ErrnoException
      const report = { error: message, code }
      setImmediate(() => (this as Worker).emit('message', { job, report }))
      return undefined
    })
  }

  /** The disk of a `FileStore`. */
  disk(): Disk {
    const errorOf = this.#errorOf.bind(this)
    const real = new SystemDisk(false)
    const paths = new Map<number, string>()
    return new Proxy<Disk>(real, {
      get: (_, name: keyof Disk) => (...args: unknown[]): unknown => {
        const [first] = args
        const path = typeof first === 'number' ? (paths.get(first) ?? '') : String(first)
        const error = name === 'close' ? null : errorOf(`store.${name}`, path)
        const isAsync = ['read', 'sync', 'syncFolder', 'write'].includes(name)
        if (error !== null && isAsync) return Promise.reject(error)
        if (error !== null) throw error
        const result: unknown = (real[name] as AnyFunction).apply(real, args)
        if (name === 'open') paths.set(result as number, path)
        return result
      },
    })
  }

  [Symbol.dispose](): void {
    for (const undo of this.#undo.reverse()) undo()
    syncBuiltinESMExports()
  }
}
