/**
 * Gives the calls of one request their ids on the wire. Providers get their own ids back, except
 * that some give the same id to several calls, in one turn or in each (`call_0`): in one request
 * that would make results ambiguous, and servers refuse it. Taken in the order of the conversation,
 * the ids of its beginning stay what they were in the request before.
 */
export class WireIds {
  readonly #used = new Set<string>()

  /** @param own - the provider's id, or nothing. @param ours - the id of the call in the run. */
  take(own: string, ours: string): string {
    const chosen = own === '' || this.#used.has(own) ? ours : own
    let id = chosen
    for (let n = 2; this.#used.has(id); n++) id = `${chosen}_${n}`
    this.#used.add(id)
    return id
  }
}
