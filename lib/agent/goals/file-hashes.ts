import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'

const MAX_KEPT = 50_000
/** A file changed this short a time ago may change again within one tick of the disk's clock. */
const SETTLED_MS = 2_000n

interface Kept {
  readonly print: string
  readonly hash: string
}

/**
 * Remembers hashes of files by what `lstat` says of them, so that looking again at files that
 * nobody touched reads none of them. Time of change, inode, size and mode are compared; the time of
 * change is the kernel's and cannot be set back by who changes a file.
 */
export class FileHashes {
  /** The one used longest ago first. */
  readonly #kept: Map<string, Kept> = new Map()

  /** The hash that was remembered, or null when the file is another one by now. */
  get(key: string, stats: BigIntStats): string | null {
    const kept = this.#kept.get(key)
    if (kept === undefined || kept.print !== printOf(stats)) return null
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept.hash
  }

  /** Remembers a hash; `stats` were taken before the file was read. */
  set(key: string, stats: BigIntStats, hash: string): void {
    this.#kept.delete(key)
    if (BigInt(Date.now()) - stats.ctimeMs < SETTLED_MS) return
    this.#kept.set(key, { print: printOf(stats), hash })
    if (this.#kept.size <= MAX_KEPT) return
    for (const oldest of this.#kept.keys()) {
      this.#kept.delete(oldest)
      return
    }
  }
}

function printOf({ dev, ino, size, mode, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mode} ${mtimeNs} ${ctimeNs}`
}

/** SHA-256 in hexadecimal. */
export function sha256(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex')
}
