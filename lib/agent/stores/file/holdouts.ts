/**
 * Held-out tests in the folder `holdouts` of a file store's directory, one file per run. A file is
 * complete before its run is created, so one without a run, whole or not, is what a crash or a
 * deletion has left.
 *
 * @module
 */
import { join } from 'node:path'
import { StoreError } from '../../errors.js'
import type { HoldoutStore } from '../../holdout-store.js'
import { isMissing, operationError } from './disk-errors.js'
import { makeDurableDirectory, type Disk } from './disk.js'
import type { DirectoryLock } from './lock.js'

/** Its name in the data directory. */
export const HOLDOUTS_FOLDER = 'holdouts'
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

/** See the comment of this file. */
export class FileHoldouts implements HoldoutStore {
  readonly #folder: string
  readonly #disk: Disk
  #lock: DirectoryLock | null = null

  constructor(directory: string, disk: Disk) {
    this.#folder = join(directory, HOLDOUTS_FOLDER)
    this.#disk = disk
  }

  /** Removes what belongs to no run; what cannot be removed now, the next start removes. */
  open(lock: DirectoryLock, hasRun: (runId: string) => boolean): void {
    for (const name of this.#names()) {
      if (hasRun(name)) continue
      lock.check()
      this.#discard(join(this.#folder, name))
    }
    this.#lock = lock
  }

  close(): void {
    this.#lock = null
  }

  async put(runId: string, content: Uint8Array): Promise<void> {
    const path = this.#path(runId)
    try {
      makeDurableDirectory(this.#disk, this.#folder)
      const fd = this.#disk.open(path, 'wx')
      try {
        await this.#disk.write(fd, Buffer.from(content), 0)
        await this.#disk.sync(fd)
      } finally {
        this.#disk.close(fd)
      }
      await this.#disk.syncFolder(this.#folder)
    } catch (error) {
      this.#discard(path)
      throw operationError(`cannot write to ${this.#folder}`, error)
    }
  }

  async get(runId: string): Promise<Uint8Array | null> {
    const path = this.#path(runId)
    let fd: number | null = null
    try {
      fd = this.#disk.open(path, 'r')
      return await this.#disk.read(fd, this.#disk.size(fd), 0)
    } catch (error) {
      if (isMissing(error)) return null
      throw operationError(`cannot read from ${this.#folder}`, error)
    } finally {
      if (fd !== null) this.#disk.close(fd)
    }
  }

  async remove(runId: string): Promise<void> {
    if (this.#lock !== null && RUN_ID.test(runId)) this.#discard(this.#path(runId))
  }

  #names(): readonly string[] {
    try {
      return this.#disk.list(this.#folder)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  #discard(path: string): void {
    try {
      this.#disk.remove(path)
    } catch {
      // The next start does.
    }
  }

  /** @throws {@link StoreError} while the store is not open, or once another process has it. */
  #path(runId: string): string {
    if (this.#lock === null) throw new StoreError('ERR_AGENT_STORE', 'the store is not open')
    this.#lock.lost.throwIfAborted()
    if (RUN_ID.test(runId)) return join(this.#folder, runId)
    throw new StoreError('ERR_AGENT_STORE', `${runId} is no run id`)
  }
}
