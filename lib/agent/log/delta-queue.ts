import type { EncodedDelta } from './subscription.js'

/** Bounds of what waits for one reader. */
const MAX_WAITING = 256
const MAX_WAITING_CHARACTERS = 65_536

/** The deltas that wait for one reader, each with the last event that was published before it. */
export class DeltaQueue {
  #waiting: { readonly after: number; readonly delta: EncodedDelta }[] = []
  #characters = 0

  /** Adds a delta; a full queue drops it. One delta always fits into an empty queue. */
  push(after: number, delta: EncodedDelta): void {
    const characters = this.#characters + delta.json.length
    const hasRoom = this.#waiting.length === 0 || characters <= MAX_WAITING_CHARACTERS
    if (!hasRoom || this.#waiting.length >= MAX_WAITING) return
    this.#waiting.push({ after, delta })
    this.#characters = characters
  }

  /** Takes the deltas that follow event `position`, and drops those that came before it. */
  take(position: number): readonly EncodedDelta[] {
    const later = this.#waiting.findIndex(({ after }) => after > position)
    const due = later < 0 ? this.#waiting : this.#waiting.slice(0, later)
    if (due.length === 0) return []
    this.#waiting = later < 0 ? [] : this.#waiting.slice(later)
    this.#characters = this.#waiting.reduce((sum, { delta }) => sum + delta.json.length, 0)
    return due.filter(({ after }) => after === position).map(({ delta }) => delta)
  }

  /** The last event before the first waiting delta; Infinity when none waits. */
  get nextAfter(): number {
    return this.#waiting[0]?.after ?? Infinity
  }
}
