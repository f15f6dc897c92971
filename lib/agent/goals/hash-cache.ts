import type { BigIntStats } from 'node:fs'

const MAX_ENTRIES = 50_000
/** A file changed more recently than this may change again within one tick of the disk's clock. */
const SETTLED_MS = 2_000n

interface CachedHash {
  readonly fingerprint: string
  readonly hash: string
}

/**
 * Remembers hashes of files by what `lstat` reports, so that an unchanged file is not read
 * again. Change time, inode, size and mode are compared; a program that edits a file cannot set its
 * change time back, because the kernel sets it.
 */
export class HashCache {
  /** Least recently used first. */
  readonly #entries: Map<string, CachedHash> = new Map()

  /** The remembered hash, or null when the file has changed since or is unknown. */
  get(key: string, stats: BigIntStats): string | null {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.fingerprint !== fingerprintOf(stats)) return null
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.hash
  }

  /** Remembers a hash; `stats` must have been taken before the file was read. */
  set(key: string, stats: BigIntStats, hash: string): void {
    this.#entries.delete(key)
    if (BigInt(Date.now()) - stats.ctimeMs < SETTLED_MS) return
    this.#entries.set(key, { fingerprint: fingerprintOf(stats), hash })
    if (this.#entries.size <= MAX_ENTRIES) return
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest)
      return
    }
  }
}

function fingerprintOf({ dev, ino, size, mode, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mode} ${mtimeNs} ${ctimeNs}`
}
