import { LongWork } from '../../../internal/time.js'
import type { StoredObject } from '../../object-store.js'
import { pack } from '../packed.js'
import type { PackedBlob } from './object-pack.js'

/** Blobs of one pack, and bytes of them, as long as there are others. */
const GROUP_BLOBS = 2_048
const GROUP_BYTES = 32 << 20

interface Waiting {
  readonly object: StoredObject
  readonly done: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

/**
 * Stores blobs in groups: what is to be stored while one group is written forms the next one. A
 * group succeeds or fails as a whole.
 */
export class ObjectWriter {
  readonly #store: (group: readonly PackedBlob[]) => Promise<void>
  /** By hash; those of the group in hand included. */
  readonly #waiting = new Map<string, Waiting>()
  #running: Promise<void> | null = null

  constructor(store: (group: readonly PackedBlob[]) => Promise<void>) {
    this.#store = store
  }

  /** Stores blobs. @throws what `store` throws. */
  async write(objects: readonly StoredObject[]): Promise<void> {
    const outcomes = objects.map((object) => this.#add(object).done)
    if (outcomes.length > 0) this.#running ??= this.#run()
    await Promise.allSettled(outcomes)
    await Promise.all(outcomes)
  }

  isWriting(hash: string): boolean {
    return this.#waiting.has(hash)
  }

  /** Resolves once a blob that is being written is stored, or is not. */
  async finished(hash: string): Promise<void> {
    await Promise.allSettled([this.#waiting.get(hash)?.done])
  }

  #add(object: StoredObject): Waiting {
    const known = this.#waiting.get(object.hash)
    if (known !== undefined) return known
    const { promise, resolve, reject } = deferred()
    const waiting = { object, done: promise, resolve, reject }
    this.#waiting.set(object.hash, waiting)
    return waiting
  }

  async #run(): Promise<void> {
    // All that is stored in one turn of the event loop forms one group.
    await Promise.resolve()
    while (this.#waiting.size > 0) {
      const group = this.#next()
      let failure: unknown = null
      try {
        await this.#writeGroup(group.map(({ object }) => object))
      } catch (error) {
        failure = error
      }
      for (const { object, resolve, reject } of group) {
        this.#waiting.delete(object.hash)
        if (failure === null) resolve()
        else reject(failure)
      }
    }
    this.#running = null
  }

  #next(): Waiting[] {
    const group: Waiting[] = []
    let bytes = 0
    for (const waiting of this.#waiting.values()) {
      const { length } = waiting.object.content
      if (group.length === GROUP_BLOBS || (bytes > 0 && bytes + length > GROUP_BYTES)) break
      group.push(waiting)
      bytes += length
    }
    return group
  }

  async #writeGroup(group: readonly StoredObject[]): Promise<void> {
    const blobs: PackedBlob[] = []
    const work = new LongWork()
    for (const { hash, content } of group) {
      if (work.isDue) await work.next()
      blobs.push({ hash, data: await pack(content) })
    }
    await this.#store(blobs)
  }
}

function deferred(): Omit<Waiting, 'object' | 'done'> & { readonly promise: Promise<void> } {
  let resolve!: () => void
  let reject!: (error: unknown) => void
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}
