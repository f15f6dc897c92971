import { showPath } from '../../internal/text.js'

/** Paths named in one note, and their bytes together. */
const MAX_NAMED = 8
const MAX_NAMED_BYTES = 400

/** What a listing has passed over: counted, with the first paths named in one line. */
export class PassedOver {
  readonly #named: string[] = []
  #bytes = 0
  #more = 0

  readonly add = (path: string): void => {
    const shown = showPath(path)
    const bytes = this.#bytes + Buffer.byteLength(shown)
    if (this.#named.length === MAX_NAMED || bytes > MAX_NAMED_BYTES) {
      this.#more += 1
      return
    }
    this.#named.push(shown)
    this.#bytes = bytes
  }

  /** The line for the model, if anything was passed over. */
  notes(): readonly string[] {
    const parts = [
      ...(this.#named.length > 0 ? [this.#named.join(', ')] : []),
      ...(this.#more > 0 ? [this.#named.length > 0 ? `${this.#more} more` : `${this.#more}`] : []),
    ]
    if (parts.length === 0) return []
    return [`[… passed over: ${parts.join(' and ')}; give a folder as path to see it …]`]
  }
}
