/** Resolves in the next turn of the event loop: everything else that is ready comes first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
