import type { Clock } from './clock.js'

/** Who listens to a signal. An event listener that comes and goes costs more than a whole step. */
const listeners = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back once when the signal fires, unless the function that is returned was called before. A
 * signal gets one event listener, which stays, however many listen to it this way.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let waiting = listeners.get(signal)
  if (waiting === undefined) {
    const all = new Set<() => void>()
    waiting = all
    listeners.set(signal, all)
    signal.addEventListener('abort', () => {
      for (const call of all) call()
      all.clear()
    })
  }
  waiting.add(callback)
  return () => waiting.delete(callback)
}

/**
 * Settles as `work` does, or rejects with the signal's reason when that fires first. `work` is then
 * left to itself and its rejection, if any, is swallowed.
 */
export function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => undefined)
    return Promise.reject(signal.reason as Error)
  }
  return new Promise<T>((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason as Error))
    work.then(
      (value) => {
        forget()
        resolve(value)
      },
      (error: Error) => {
        forget()
        reject(error)
      },
    )
  })
}

/** Resolves after `ms` milliseconds of `clock`. @throws the signal's reason when that fires first. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error)
      return
    }
    const timer = clock.setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    const onAbort = (): void => {
      timer.cancel()
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
