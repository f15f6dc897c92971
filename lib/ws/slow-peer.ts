/** Counted for each waiting frame besides its bytes, so that a queue of empty ones is bounded. */
export const FRAME_OVERHEAD_BYTES = 64

/** The part of a sender's state that is only created once the peer falls behind. */
export class SlowPeer {
  readonly waiters: ((drained: boolean) => void)[] = []
  readonly #latest: Map<string, Buffer> = new Map()
  pong: Buffer | null = null
  latestBytes = 0

  get latestCount(): number {
    return this.#latest.size
  }

  /** Replaces the message under `key`; false if that would take more than `room` further bytes. */
  keepLatest(key: string, frame: Buffer, room: number): boolean {
    const before = this.#latest.get(key)?.length ?? -FRAME_OVERHEAD_BYTES
    if (frame.length - before > room) return false
    this.#latest.delete(key)
    this.#latest.set(key, frame)
    this.latestBytes += frame.length - Math.max(0, before)
    return true
  }

  /** Removes and returns the Pong and the messages. */
  takeKept(): Buffer[] {
    const kept = [...this.#latest.values()]
    if (this.pong !== null) kept.unshift(this.pong)
    this.#latest.clear()
    this.latestBytes = 0
    this.pong = null
    return kept
  }
}
