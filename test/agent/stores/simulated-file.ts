import type { Random } from '../../helpers/random.js'

/** A disk writes blocks of this size as a whole, in any order. */
const BLOCK_BYTES = 512

/** Contents after a change that is not durable yet. */
interface Version {
  readonly change: number
  readonly content: Buffer
}

/**
 * One file of a {@link SimulatedDisk}: what programs see of it, and what is on the disk. Buffers
 * are never changed in place, so that versions of a file can share them.
 */
export class SimulatedFile {
  readonly ino: number
  /** Epoch milliseconds. */
  mtimeMs: number = Date.now()
  #content: Buffer = Buffer.alloc(0)
  #durable: Buffer = Buffer.alloc(0)
  /** Blocks to be written by the next sync, and the last change of each. */
  #dirty = new Map<number, number>()
  #lengthChanged = 0
  #changes = 0
  /** Since the last sync. */
  #versions: Version[] = []

  constructor(ino: number) {
    this.ino = ino
  }

  /** What programs read. */
  get content(): Buffer {
    return this.#content
  }

  clone(): SimulatedFile {
    const copy = new SimulatedFile(this.ino)
    copy.mtimeMs = this.mtimeMs
    copy.#content = this.#content
    copy.#durable = this.#durable
    copy.#dirty = new Map(this.#dirty)
    copy.#lengthChanged = this.#lengthChanged
    copy.#changes = this.#changes
    copy.#versions = [...this.#versions]
    return copy
  }

  write(data: Buffer, position: number): void {
    const old = this.#content
    const end = position + data.length
    const content = Buffer.alloc(Math.max(old.length, end))
    old.copy(content)
    data.copy(content, position)
    this.#change(content, Math.min(position, old.length), end)
  }

  truncate(length: number): void {
    const old = this.#content
    if (length === old.length) return
    const content = Buffer.alloc(length)
    old.copy(content)
    this.#change(content, Math.min(length, old.length), Math.max(length, old.length))
  }

  #change(content: Buffer, from: number, to: number): void {
    this.#changes += 1
    if (content.length !== this.#content.length) this.#lengthChanged = this.#changes
    for (let block = Math.floor(from / BLOCK_BYTES); block * BLOCK_BYTES < to; block++) {
      this.#dirty.set(block, this.#changes)
    }
    this.#content = content
    this.#versions.push({ change: this.#changes, content })
  }

  /** Begins a sync; the returned function ends it: what was written before is then durable. */
  beginSync(): () => void {
    const change = this.#changes
    const content = this.#content
    return () => {
      const covered = [...this.#dirty].filter(([, last]) => last <= change)
      const blocks = new Set(covered.map(([block]) => block))
      const hasLength = this.#lengthChanged > 0 && this.#lengthChanged <= change
      const length = hasLength ? content.length : this.#durable.length
      this.#durable = merge(this.#durable, length, (block) => (blocks.has(block) ? content : null))
      for (const block of blocks) this.#dirty.delete(block)
      if (hasLength) this.#lengthChanged = 0
      this.#versions = this.#versions.filter((version) => version.change > change)
    }
  }

  /**
   * A sync that fails, as on Linux: some blocks have been written, the others count as clean. They
   * stay readable until they are evicted from memory, and the next sync succeeds without them. A
   * change of the length is not forgotten, since it is not a matter of blocks.
   */
  failSync(random: Random): void {
    this.#durable = this.#imageAfterPowerLoss(random)
    this.#dirty.clear()
    const length = { change: this.#lengthChanged, content: this.#content }
    this.#versions = this.#lengthChanged > 0 ? [length] : []
  }

  /** Evicts clean blocks from memory: they are read from the disk again. */
  evict(): void {
    if (this.#dirty.size > 0 || this.#lengthChanged > 0) return
    this.#content = this.#durable
  }

  losePower(random: Random): void {
    this.#durable = this.#imageAfterPowerLoss(random)
    this.#dirty.clear()
    this.#lengthChanged = 0
    this.#versions = []
    this.#content = this.#durable
  }

  /** Damage: what is on the disk is no longer what was written. */
  damage(content: Buffer): void {
    this.#dirty.clear()
    this.#lengthChanged = 0
    this.#versions = []
    this.#content = content
    this.#durable = content
  }

  /** Of the changes since the last sync any, in any order, by blocks or parts of blocks. */
  #imageAfterPowerLoss(random: Random): Buffer {
    const versions = [this.#durable, ...this.#versions.map(({ content }) => content)]
    const newest = versions.at(-1) as Buffer
    if (versions.length === 1) return newest
    const way = random.integer(0, 9)
    if (way < 3) return this.#durable
    const uniform = way < 6 ? (way < 5 ? newest : random.pick(versions)) : null
    const hasLength = this.#lengthChanged > 0
    const length = hasLength ? (uniform ?? random.pick(versions)).length : this.#durable.length
    const image = merge(this.#durable, length, (block) =>
      this.#dirty.has(block) ? (uniform ?? random.pick(versions)) : null,
    )
    if (way < 8) return image
    // Within a block: one version up to some byte, another one from there on.
    const blocks = [...this.#dirty.keys()]
    if (blocks.length === 0) return image
    const from = random.pick(blocks) * BLOCK_BYTES + random.integer(1, BLOCK_BYTES - 1)
    const end = Math.min((Math.floor(from / BLOCK_BYTES) + 1) * BLOCK_BYTES, image.length)
    const other = random.pick(versions)
    for (let at = from; at < end; at++) image[at] = other[at] ?? 0
    return image
  }
}

/** `base` with the given length, and with blocks of other contents where `of` returns one. */
function merge(base: Buffer, length: number, of: (block: number) => Buffer | null): Buffer {
  const image = Buffer.alloc(length)
  base.copy(image)
  for (let start = 0; start < length; start += BLOCK_BYTES) {
    const source = of(start / BLOCK_BYTES)
    if (source === null) continue
    const end = Math.min(start + BLOCK_BYTES, length)
    image.fill(0, start, end)
    if (source.length > start) source.copy(image, start, start, Math.min(end, source.length))
  }
  return image
}
