import type { Candidate } from './candidates.js'

/**
 * Patches that helped at an earlier state of the sources, and were not made since another one was:
 * they are worth a try first for as long as a test fails that they repaired.
 */
export class Promising {
  /** By place and text, with the tests that passed with it; none where they are not known. */
  readonly #repaired = new Map<string, readonly string[]>()

  add(candidate: Candidate, repaired: readonly string[]): void {
    this.#repaired.set(placeAndText(candidate), repaired)
  }

  has(candidate: Candidate, failing: ReadonlySet<string>): boolean {
    const repaired = this.#repaired.get(placeAndText(candidate))
    if (repaired === undefined) return false
    return repaired.length === 0 || repaired.some((name) => failing.has(name))
  }

  clear(): void {
    this.#repaired.clear()
  }
}

/** The same for a patch at two states of its file, when nothing else in its line has changed. */
function placeAndText({ path, key }: Candidate): string {
  return `${path}\0${key.slice(key.lastIndexOf('\0') + 1)}`
}
