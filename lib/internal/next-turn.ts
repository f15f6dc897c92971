/** Resolves in the next turn of the event loop, after all I/O callbacks that are ready. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Milliseconds of one turn that long work may take. */
const MAX_TURN_MS = 10

/** Divides work on long input, so that everything else in the process is done in between. */
export class LongWork {
  #since = performance.now()

  /** True when the work should wait for the {@link next} turn. */
  get isDue(): boolean {
    return performance.now() - this.#since > MAX_TURN_MS
  }

  async next(): Promise<void> {
    await nextTurn()
    this.#since = performance.now()
  }
}

/** Does work that yields often, and other work of this process in between. */
export async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  const slices = new LongWork()
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
    if (slices.isDue) await slices.next()
  }
}

/** Does the same work at once: for input that is known to be short. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}
