/** Milliseconds of a slice: what is counted in it leaves the window as a whole. */
const SLICE_MS = 1_000
const WINDOW_MS = 60_000

/**
 * Counts what happened within the last 60 seconds. Pure: the time is a parameter, which never goes
 * back. It keeps one number a second, however much happens, and lets each of them leave a little
 * late, so that no 60 seconds have more than the limit.
 */
export class MinuteWindow {
  readonly #limit: number
  /** Oldest first; `at` (ms) is where the slice begins. */
  readonly #slices: { readonly at: number; amount: number }[] = []
  #sum = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Milliseconds until `amount` has room. More than the limit has room in an empty window. */
  untilRoom(amount: number, nowMs: number): number {
    this.#advance(nowMs)
    const most = this.#limit - Math.min(amount, this.#limit)
    let sum = this.#sum
    for (const { at, amount: leaves } of this.#slices) {
      if (sum <= most) break
      sum -= leaves
      if (sum <= most) return at + SLICE_MS + WINDOW_MS - nowMs
    }
    return 0
  }

  add(amount: number, nowMs: number): void {
    this.#advance(nowMs)
    const at = Math.floor(nowMs / SLICE_MS) * SLICE_MS
    const last = this.#slices.at(-1)
    if (last?.at === at) last.amount += amount
    else this.#slices.push({ at, amount })
    this.#sum += amount
  }

  /** Takes back what was added at `atMs` and did not happen; what has left the window is gone. */
  takeBack(amount: number, atMs: number, nowMs: number): void {
    this.#advance(nowMs)
    const at = Math.floor(atMs / SLICE_MS) * SLICE_MS
    const slice = this.#slices.find((one) => one.at === at)
    if (slice === undefined) return
    const less = Math.min(amount, slice.amount)
    slice.amount -= less
    this.#sum -= less
  }

  #advance(nowMs: number): void {
    while (this.#slices.length > 0 && this.#slices[0]!.at + SLICE_MS + WINDOW_MS <= nowMs)
      this.#sum -= this.#slices.shift()!.amount
  }
}
