/**
 * Calls a function of the host's whose failure must not end the process: what it throws, and what
 * its promise is rejected with, goes to `failed`.
 */
export function callHost(call: () => unknown, failed: (error: unknown) => void): void {
  try {
    const result = call()
    if (typeof (result as PromiseLike<unknown> | null | undefined)?.then !== 'function') return
    Promise.resolve(result).catch(failed)
  } catch (error) {
    failed(error)
  }
}
