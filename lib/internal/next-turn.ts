/** Resolves in the next turn of the event loop, after all I/O callbacks that are ready. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
