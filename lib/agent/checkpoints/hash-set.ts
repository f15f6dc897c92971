import type { SeenObjects } from '../workspace/read-tree.js'

/**
 * A set of SHA-256 hashes, in hexadecimal,, about 70 bytes each. It is split into small sets:
 * these grow quickly, and a set of JavaScript holds at most 16 million.
 */
export class HashSet {
  /** By the first byte; a character for each byte. */
  readonly #sets: readonly Set<string>[] = Array.from({ length: 256 }, () => new Set())

  get size(): number {
    return this.#sets.reduce((sum, { size }) => sum + size, 0)
  }

  has(hash: string): boolean {
    const bytes = Buffer.from(hash, 'hex')
    return this.#sets[bytes[0]!]!.has(bytes.toString('latin1'))
  }

  add(hash: string): void {
    const bytes = Buffer.from(hash, 'hex')
    this.#sets[bytes[0]!]!.add(bytes.toString('latin1'))
  }

  /** In no particular order. */
  *[Symbol.iterator](): Generator<string> {
    for (const set of this.#sets) {
      for (const bytes of set) yield Buffer.from(bytes, 'latin1').toString('hex')
    }
  }
}

/** What `objectsOf` has seen: hashes of objects, and with a slash those of folders it looked at. */
export class SeenHashes implements SeenObjects {
  readonly objects: HashSet = new HashSet()
  readonly #folders = new HashSet()

  has(key: string): boolean {
    return this.#setOf(key).has(key)
  }

  add(key: string): void {
    this.#setOf(key).add(key)
  }

  #setOf(key: string): HashSet {
    return key.endsWith('/') ? this.#folders : this.objects
  }
}
