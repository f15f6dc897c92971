import { systemClock, type Clock, type Timer } from './clock.js'

/**
 * Resolves after `ms` milliseconds of `clock`, even beyond the longest delay of Node's timers.
 *
 * @throws the signal's reason once it aborts, or at once if it has aborted already.
 */
export function sleep(
  ms: number,
  signal: AbortSignal | null = null,
  clock: Clock = systemClock,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error)
      return
    }
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    const onAbort = (): void => {
      timer.cancel()
      reject(signal!.reason as Error)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** The result of {@link within} after a timeout. */
export const LATE: unique symbol = Symbol('late')

/**
 * Settles as `work` does, or resolves with {@link LATE} after `ms` milliseconds of `clock`. `work`
 * then continues, but its result or rejection is ignored.
 */
export async function within<T>(
  ms: number,
  work: Promise<T>,
  clock: Clock = systemClock,
): Promise<T | typeof LATE> {
  let timer: Timer | undefined
  const late = new Promise<typeof LATE>((resolve) => {
    timer = clock.setTimeout(() => resolve(LATE), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    timer?.cancel()
  }
}

/** Blocks the calling thread for `ms` milliseconds. */
export function sleepSync(ms: number): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
