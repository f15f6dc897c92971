/**
 * Shows `node_modules` in a sandbox: unchangeable, but with caches that programs can write to.
 *
 * 1. bubblewrap cannot make a mount point in a folder that is mounted read-only. So the folder is
 *    an empty one in memory, with one read-only mount for each entry, and new links for its links.
 * 2. Caches are empty and end with the command. What an earlier program has left in them may be
 *    code that is loaded in place of what it was made from.
 * 3. Entries are opened before they are looked at, and mounted by their descriptors: whatever takes
 *    the place of one afterwards, a link for example, is not shown.
 * 4. The time that bubblewrap takes grows with the square of the number of mounts. With more than
 *    {@link MAX_ENTRIES}, the folder is one mount. Only caches that exist in it are replaced then.
 *
 * @module
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { PACKAGE_CACHES } from '../executor.js'
import { isExhausted } from '../exhaustion.js'

/** Entries that are mounted singly in one sandbox: they take about a quarter of a second. */
const MAX_ENTRIES = 400
/** Opens a file, folder or link itself, without a right to read it. Node has no name for it. */
const O_PATH = 0o10000000
const ENTRY_FLAGS = O_PATH | constants.O_NOFOLLOW
const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** A folder and where it is mounted. */
interface Mount {
  readonly from: string
  readonly to: string
}

/** The mounts of `node_modules` for one command; holds descriptors until it is disposed. */
export class PackageMounts implements Disposable {
  readonly #first: number
  readonly #descriptors: number[] = []
  readonly #caches: string[] = []

  /** @param first what the first of {@link descriptors} is in the process of bubblewrap */
  constructor(first: number) {
    this.#first = first
  }

  /** The descriptors that bubblewrap must get, in this order. */
  get descriptors(): readonly number[] {
    return this.#descriptors
  }

  /**
   * Returns the arguments that mount a folder at a place which is a folder too.
   *
   * @throws when this process can open no more files
   */
  argumentsFor(mount: Mount): readonly string[] {
    if (this.#caches.some((cache) => isInside(mount.to, cache))) return []
    if (basename(mount.from) !== 'node_modules') return ['--ro-bind-try', mount.from, mount.to]
    const folder = opened(mount.from, FOLDER_FLAGS)
    if (folder === null) return []
    try {
      const at = `/proc/self/fd/${folder}`
      return readlinkSync(at) === mount.from ? this.#shown(at, mount.to) : []
    } finally {
      closeSync(folder)
    }
  }

  #shown(at: string, to: string): readonly string[] {
    const count = this.#descriptors.length
    const names = namesIn(at)
    const singly = names && this.#singly(at, names, to)
    if (singly !== null) return singly
    for (const entry of this.#descriptors.splice(count)) closeSync(entry)
    return [...this.#mounted(openSync(at, O_PATH), to), ...this.#emptied(at, to)]
  }

  /** Mounts each entry; null when that cannot be done. */
  #singly(at: string, names: readonly string[], to: string): readonly string[] | null {
    const args = ['--tmpfs', to]
    for (const name of names) {
      const entry = PACKAGE_CACHES.has(name) ? null : opened(`${at}/${name}`, ENTRY_FLAGS)
      if (entry === null) continue
      const stats = fstatSync(entry)
      if (stats.isDirectory() || stats.isFile()) {
        args.push(...this.#mounted(entry, join(to, name)))
        if (this.#descriptors.length > MAX_ENTRIES) return null
        continue
      }
      closeSync(entry)
      const target = stats.isSymbolicLink() ? targetOf(`${at}/${name}`) : ''
      if (target === null) return null
      if (target !== '') args.push('--symlink', target, join(to, name))
    }
    const caches = [...PACKAGE_CACHES].flatMap((name) => this.#empty(join(to, name)))
    return [...args, ...caches, '--remount-ro', to]
  }

  /** Empties the caches of a folder that is mounted as a whole. */
  #emptied(at: string, to: string): readonly string[] {
    return [...PACKAGE_CACHES].flatMap((name) => {
      const cache = opened(`${at}/${name}`, FOLDER_FLAGS)
      if (cache === null) return []
      closeSync(cache)
      return this.#empty(join(to, name))
    })
  }

  #mounted(descriptor: number, to: string): readonly string[] {
    this.#descriptors.push(descriptor)
    return ['--ro-bind-fd', String(this.#first + this.#descriptors.length - 1), to]
  }

  #empty(cache: string): readonly string[] {
    this.#caches.push(cache)
    return ['--tmpfs', cache]
  }

  [Symbol.dispose](): void {
    for (const descriptor of this.#descriptors.splice(0)) closeSync(descriptor)
  }
}

/** Null for what is not there, or is something else. */
function opened(path: string, flags: number): number | null {
  try {
    return openSync(path, flags)
  } catch (error) {
    if (isExhausted(error)) throw error
    return null
  }
}

/** Null when a name is not UTF-8: no argument can have it. */
function namesIn(folder: string): readonly string[] | null {
  const names = readdirSync(folder, { encoding: 'buffer' }).map(textOf)
  return names.every((name) => name !== null) ? names : null
}

/** The target of a link: null if it is not UTF-8, empty if the link is gone or was replaced. */
function targetOf(link: string): string | null {
  let target: Buffer
  try {
    target = readlinkSync(link, { encoding: 'buffer' })
  } catch {
    return ''
  }
  return textOf(target)
}

function textOf(bytes: Buffer): string | null {
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}
