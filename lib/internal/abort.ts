/** Per signal, because adding and removing an event listener costs more than a whole step. */
const listeners = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>()

/**
 * The functions to call, once and with its reason, when `signal` aborts: add one, and delete it
 * when the work is done. However many there are, the signal has one event listener, which stays.
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
 * Settles as `work` does, or rejects with the signal's reason if that aborts first. `work` then
 * continues, but its result or rejection is ignored.
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
