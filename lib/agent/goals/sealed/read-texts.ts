import { constants } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, posix } from 'node:path'

import { unreadable } from '../../exhaustion.js'
import { isInside } from '../../workspace/paths.js'
import { readRegularFile } from '../small-file.js'

/** Longer texts are programs that others made, such as bundles. */
const MAX_BYTES = 256 * 1024
const MAX_TOTAL_BYTES = 32 * 1024 * 1024

/** Reads texts of a folder in which anybody may have put anything; never outside of it. */
export class TextReader {
  readonly #root: string
  readonly #folders: Map<string, Promise<boolean>> = new Map()
  #real: Promise<string> | null = null
  #bytes = 0

  constructor(root: string) {
    this.#root = root
  }

  /** Null for what is no text, a link, too large, or too much with what was read before. */
  async read(path: string): Promise<string | null> {
    if (this.#bytes >= MAX_TOTAL_BYTES || !(await this.#isInside(posix.dirname(path)))) return null
    const content = await readRegularFile(
      join(this.#root, path),
      Math.min(MAX_BYTES, MAX_TOTAL_BYTES - this.#bytes),
      constants.O_NOFOLLOW,
    )
    if (typeof content === 'string' || content.includes(0)) return null
    this.#bytes += content.length
    return content.toString('utf8')
  }

  #isInside(folder: string): Promise<boolean> | true {
    if (folder === '.') return true
    let inside = this.#folders.get(folder)
    if (inside === undefined) {
      inside = this.#leadsInside(folder)
      this.#folders.set(folder, inside)
    }
    return inside
  }

  async #leadsInside(folder: string): Promise<boolean> {
    this.#real ??= realpath(this.#root)
    const path = await realpath(join(this.#root, folder)).catch(unreadable)
    return path !== null && isInside(path, await this.#real)
  }
}
