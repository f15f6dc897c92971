/**
 * Where the copies of sealed checks are made: in `.sealed` of the folder for isolated runs, where
 * there is one, and otherwise in a temporary folder of this process. What a killed process has
 * left, the next one removes.
 *
 * @module
 */
import { mkdtemp, lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
    this.#temporary ??= temporaryFolder()
    return new IsolatedFolders({ ...options, folder: await this.#temporary })
  }

  /** Removes copies of runs that do not need them, and what killed processes have left. */
  async sweep(isWanted: (runId: string) => Promise<boolean>): Promise<void> {
    // By the one that makes copies: it knows which are being made.
    if (this.#options.folder !== null) await (await this.open()).sweep(isWanted)
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

const PREFIX = 'runwright-sealed-'

/** A folder named by this process, after those of processes that have died were removed. */
async function temporaryFolder(): Promise<string> {
  const temporary = await realpath(tmpdir())
  const own = `${PREFIX}${await processNamespace()}-`
  for (const name of await readdir(temporary).catch(() => [])) {
    const pid = name.startsWith(own) ? Number.parseInt(name.slice(own.length), 10) : NaN
    if (Number.isNaN(pid) || isAlive(pid)) continue
    const path = join(temporary, name)
    const stats = await lstat(path).catch(() => null)
    // Another user could name a folder so.
    const isOurs = stats?.isDirectory() === true && stats.uid === process.geteuid?.()
    if (isOurs) await removeFolder(path).catch(() => undefined)
  }
  return await mkdtemp(join(temporary, `${own}${process.pid}-`))
}

/** Containers may share a folder, and number their processes each for itself. */
async function processNamespace(): Promise<string> {
  const link = await readlink('/proc/self/ns/pid').catch(() => '')
  return /\d+/.exec(link)?.[0] ?? '0'
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
