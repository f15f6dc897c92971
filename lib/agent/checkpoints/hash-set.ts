import type { SeenObjects } from '../workspace/read-tree.js'

const HASH_BYTES = 32
const SHARDS = 256
const FIRST_SLOTS = 16

/**
 * A set of SHA-256 hashes, in hexadecimal, that takes about 50 bytes for each. It grows in small
 * parts, so that adding one never takes long.
 */
export class HashSet {
  readonly #shards: (Shard | undefined)[] = []
  readonly #scratch = Buffer.alloc(HASH_BYTES)
  #size = 0

  get size(): number {
    return this.#size
  }

  has(hash: string): boolean {
    this.#scratch.write(hash, 'hex')
    return this.#shards[this.#scratch[0] as number]?.has(this.#scratch) ?? false
  }

  add(hash: string): void {
    this.#scratch.write(hash, 'hex')
    const shard = (this.#shards[this.#scratch[0] as number] ??= new Shard())
    if (shard.add(this.#scratch)) this.#size += 1
  }

  /** In no particular order. */
  *[Symbol.iterator](): Generator<string> {
    for (let i = 0; i < SHARDS; i++) yield* this.#shards[i] ?? []
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

/** Hashes with one first byte, by the bytes after it: those of a hash are as good as random. */
class Shard {
  #bytes = Buffer.alloc(FIRST_SLOTS * HASH_BYTES)
  #isUsed = new Uint8Array(FIRST_SLOTS)
  #size = 0

  has(hash: Buffer): boolean {
    return this.#isUsed[this.#slotOf(hash)] === 1
  }

  /** False when it is there already. */
  add(hash: Buffer): boolean {
    if (this.#size * 4 >= this.#isUsed.length * 3) this.#grow()
    const slot = this.#slotOf(hash)
    if (this.#isUsed[slot] === 1) return false
    hash.copy(this.#bytes, slot * HASH_BYTES)
    this.#isUsed[slot] = 1
    this.#size += 1
    return true
  }

  *[Symbol.iterator](): Generator<string> {
    for (let slot = 0; slot < this.#isUsed.length; slot++) {
      if (this.#isUsed[slot] === 1) yield this.#at(slot).toString('hex')
    }
  }

  #grow(): void {
    const [bytes, isUsed] = [this.#bytes, this.#isUsed]
    this.#bytes = Buffer.alloc(bytes.length * 2)
    this.#isUsed = new Uint8Array(isUsed.length * 2)
    for (let slot = 0; slot < isUsed.length; slot++) {
      if (isUsed[slot] === 0) continue
      const hash = bytes.subarray(slot * HASH_BYTES, (slot + 1) * HASH_BYTES)
      const to = this.#slotOf(hash)
      hash.copy(this.#bytes, to * HASH_BYTES)
      this.#isUsed[to] = 1
    }
  }

  /** Where the hash is, or the free slot for it. */
  #slotOf(hash: Buffer): number {
    const mask = this.#isUsed.length - 1
    let slot = hash.readUInt32LE(1) & mask
    while (this.#isUsed[slot] === 1 && !this.#at(slot).equals(hash)) slot = (slot + 1) & mask
    return slot
  }

  #at(slot: number): Buffer {
    return this.#bytes.subarray(slot * HASH_BYTES, (slot + 1) * HASH_BYTES)
  }
}
