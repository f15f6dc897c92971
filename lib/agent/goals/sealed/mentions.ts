import { posix } from 'node:path'
import { withoutExtension } from './file-kinds.js'
import { nameKey, type References } from './references.js'

/** What several texts refer to. */
export class Mentions {
  readonly #files: Set<string> = new Set()
  readonly #names: Set<string> = new Set()
  readonly #folders: Set<string> = new Set()
  readonly #stems: Set<string> = new Set()
  readonly #extensions: Set<string> = new Set()

  add(refers: References): void {
    for (const one of refers.files) this.#files.add(one)
    for (const one of refers.names) this.#names.add(one)
    for (const one of refers.folders) this.#folders.add(one)
    for (const one of refers.stems) this.#stems.add(one)
    for (const one of refers.extensions) this.#extensions.add(one)
  }

  /** By path, as an import does. */
  refersTo(path: string): boolean {
    return this.#files.has(path)
  }

  /** By path or by name. */
  names(path: string): boolean {
    return this.#files.has(path) || this.#names.has(nameKey(path))
  }

  /** Is there a string that is its name without the extension? */
  hasStem(path: string): boolean {
    return this.#stems.has(posix.basename(withoutExtension(path)))
  }

  /** By path, by name, by a folder that holds it, or by the parts of its name. */
  has(path: string): boolean {
    if (this.names(path)) return true
    const parts = path.split('/').slice(0, -1)
    if (parts.some((name) => this.#folders.has(name))) return true
    if (parts.length > 0 && this.#folders.has(parts.join('/'))) return true
    return this.hasStem(path) && this.#extensions.has(posix.extname(path))
  }
}
