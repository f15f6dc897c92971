/**
 * Where the copies of sealed checks are made: in `.sealed` of the folder for isolated runs, where
 * there is one, and otherwise in a temporary folder of this process. What a killed process has
 * left, reports of checks included, the next one removes.
 *
 * @module
 */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { abandonedFolders, makeTemporaryFolder } from '../../internal/temporary-folders.js'
import { removeFolder } from '../workspace/copy.js'
import { IsolatedFolders, type IsolatedFoldersOptions } from './isolated-folders.js'

/** As for {@link IsolatedFolders}; `folder` is that of isolated runs, null for none. */
export type SealedFoldersOptions = Omit<IsolatedFoldersOptions, 'folder'> & {
  readonly folder: string | null
}

/** The copies of one engine; nothing is on the disk before the first is made. */
export class SealedFolders {
  readonly #options: SealedFoldersOptions
  #temporary: Promise<string> | undefined
  #folders: Promise<IsolatedFolders> | undefined

  constructor(options: SealedFoldersOptions) {
    this.#options = options
  }

  /** The folders in which copies are made. */
  async open(): Promise<IsolatedFolders> {
    this.#folders ??= this.#open()
    return await this.#folders
  }

  async #open(): Promise<IsolatedFolders> {
    const { folder, ...options } = this.#options
    if (folder !== null) return new IsolatedFolders({ ...options, folder: beside(folder) })
    this.#temporary ??= makeTemporaryFolder('sealed').then((path) => realpath(path))
    return new IsolatedFolders({ ...options, folder: await this.#temporary })
  }

  /**
   * Removes copies of runs that do not need them, and what killed processes have left, also in
   * temporary folders.
   */
  async sweep(isWanted: (runId: string) => Promise<boolean>): Promise<void> {
    for (const path of await abandonedFolders()) await removeFolder(path).catch(() => undefined)
    // By the one that makes copies: it knows which are being made.
    if (this.#options.folder !== null) await (await this.open()).sweep(isWanted)
  }

  /** Removes the temporary folder. */
  async close(): Promise<void> {
    const folder = await this.#temporary?.catch(() => undefined)
    if (folder !== undefined) await removeFolder(folder).catch(() => undefined)
  }
}

function beside(folder: string): string {
  return join(folder, '.sealed')
}
