/** Who listens to a signal. An event listener that comes and goes costs more than a whole step. */
const listeners = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>()

/**
 * Those who are called once, with its reason, when the signal fires: add a function to be one of
 * them, delete it when the work is done. A signal gets one event listener, which stays, however many
 * listen to it this way.
 */
export function abortListeners(signal: AbortSignal): Set<(reason: unknown) => void> {
  const known = listeners.get(signal)
  if (known !== undefined) return known
  const waiting = new Set<(reason: unknown) => void>()
  listeners.set(signal, waiting)
  signal.addEventListener('abort', () => {
    for (const call of waiting) call(signal.reason)
    waiting.clear()
  })
  return waiting
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
    const waiting = abortListeners(signal).add(reject)
    work.then(
      (value) => {
        waiting.delete(reject)
        resolve(value)
      },
      (error: Error) => {
        waiting.delete(reject)
        reject(error)
      },
    )
  })
}
