/** Rejects with the signal's reason once it is aborted, which it may be already. */
export async function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  signal?.throwIfAborted()
  return await new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
