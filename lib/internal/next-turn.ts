/** Resolves in the next turn of the event loop, after all I/O callbacks that are ready. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Milliseconds of one turn that all long work of this thread may take together. An iteration of the
 * event loop has two such turns: after its I/O, and after its immediates.
 */
const MAX_TURN_MS = 5

/** What long work there is in one turn began then; the turn lasts until `endTurn` is called. */
let turnBegan: number | null = null
const waiting: (() => void)[] = []

function beginTurn(): number {
  setImmediate(endTurn)
  return (turnBegan = performance.now())
}

/** One work goes on in each turn, the one that waits longest, so that none starves. */
function endTurn(): void {
  turnBegan = null
  const goOn = waiting.shift()
  if (goOn === undefined) return
  beginTurn()
  goOn()
}

/**
 * Divides work on long input, so that everything else in the process is done in between. Works that
 * run at the same time, or one after the other in the same turn, share it.
 */
export class LongWork {
  /** True when the work should wait for the {@link next} turn. */
  get isDue(): boolean {
    return performance.now() - (turnBegan ?? beginTurn()) > MAX_TURN_MS
  }

  next(): Promise<void> {
    if (turnBegan === null) beginTurn()
    return new Promise((resolve) => waiting.push(resolve))
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
