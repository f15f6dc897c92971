/**
 * Where the copies of sealed checks are made: in `.sealed` of the folder for isolated runs, where
 * there is one, and otherwise in a temporary folder of this process. What a killed process has
 * left, reports of checks included, the next one removes.
 *
 * @module
 */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { abandonedFolders, makeTemporaryFolder } from '../../internal/processes.js'
import { inOwnPlace } from '../exhaustion.js'
import { removeFolder } from '../workspace/copy.js'
import { IsolatedFolders, type IsolatedFoldersOptions } from './isolated-folders.js'

/** As for {@link IsolatedFolders}; `folder` is that of isolated runs, null for none. */
export type SealedFoldersOptions = Omit<IsolatedFoldersOptions, 'folder'> & {
  readonly folder: string | null
}

/** Of the copies in which a run tries patches, before its id. */
const TRIAL = /^try-\d+-/

/** The copies of one engine; nothing is on the disk before the first is made. */
export class SealedFolders {
  readonly #options: SealedFoldersOptions
  /** Runs of which this engine makes or uses a copy. */
  readonly #inUse = new Set<string>()
  #temporary: Promise<string> | undefined
  #folders: Promise<IsolatedFolders> | undefined
  #sweep: Promise<void> = Promise.resolve()

  constructor(options: SealedFoldersOptions) {
    this.#options = options
  }

  /** Where copies are made; each is in use until it is removed. */
  async open(): Promise<
    Pick<IsolatedFolders, 'assertFits' | 'create' | 'removeSoon' | 'remove'>
  > {
    const folders = await this.#opened()
    return {
      assertFits: (cwd, mounts) => folders.assertFits(cwd, mounts),
      create: async (runId, cwd, options) => {
        this.#inUse.add(runId)
        // It could take the new copy for that of a dead process, which it is about to remove.
        await this.#sweep
        try {
          return await folders.create(runId, cwd, options)
        } catch (error) {
          this.#inUse.delete(runId)
          throw error
        }
      },
      removeSoon: async (runId) => {
        await folders.removeSoon(runId).finally(() => this.#inUse.delete(runId))
      },
      remove: async (runId) => {
        await folders.remove(runId).finally(() => this.#inUse.delete(runId))
      },
    }
  }

  async #opened(): Promise<IsolatedFolders> {
    this.#folders ??= this.#open().catch((error: unknown) => {
      this.#folders = undefined
      throw error
    })
    return await this.#folders
  }

  async #open(): Promise<IsolatedFolders> {
    const { folder, ...given } = this.#options
    const options = { ...given, keepsOwners: true }
    if (folder !== null) return new IsolatedFolders({ ...options, folder: beside(folder) })
    const what = 'no folder for the copies of checks can be made'
    this.#temporary = inOwnPlace(what, async () =>
      await realpath(await makeTemporaryFolder('sealed')),
    )
    return new IsolatedFolders({ ...options, folder: await this.#temporary })
  }

  /**
   * Removes what killed processes have left, also in temporary folders: copies that are not in use.
   *
   * @param isLive of stores that processes share: may another process use the copy of this run?
   */
  async sweep(isLive: (runId: string) => Promise<boolean>): Promise<void> {
    const sweep = this.#sweep.then(() => this.#sweepNow(isLive))
    this.#sweep = sweep.catch(() => undefined)
    await sweep
  }

  async #sweepNow(isLive: (runId: string) => Promise<boolean>): Promise<void> {
    for (const path of await abandonedFolders()) await removeFolder(path).catch(() => undefined)
    const { folder, isShared = false } = this.#options
    if (folder === null) return
    // By the one that makes copies: it knows which are being made.
    const folders = await this.#opened()
    const isAnothers = async (runId: string): Promise<boolean> =>
      (await isLive(runId)) || (TRIAL.test(runId) && (await isLive(runId.replace(TRIAL, ''))))
    await folders.sweep(async (runId) => this.#inUse.has(runId) || (isShared && isAnothers(runId)))
  }

  /** Waits for what is being removed, and removes the temporary folder. */
  async close(): Promise<void> {
    await (await this.#folders?.catch(() => undefined))?.close()
    const folder = await this.#temporary?.catch(() => undefined)
    if (folder !== undefined) await removeFolder(folder).catch(() => undefined)
  }
}

function beside(folder: string): string {
  return join(folder, '.sealed')
}
