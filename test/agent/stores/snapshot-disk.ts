import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'

/** A disk that copies the whole directory before and between its operations: states that a crash may leave. */
export class SnapshotDisk extends SystemDisk {
  readonly #take: () => void

  constructor(take: () => void) {
    super()
    this.#take = take
  }

  override writeNow(fd: number, data: Buffer, position: number): void {
    this.#take()
    super.writeNow(fd, data, position)
    this.#take()
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    this.#take()
    await super.write(fd, data.subarray(0, data.length >> 1), position)
    this.#take()
    await super.write(fd, data.subarray(data.length >> 1), position + (data.length >> 1))
  }

  override async sync(fd: number): Promise<void> {
    this.#take()
    await super.sync(fd)
  }

  override truncate(fd: number, length: number): void {
    super.truncate(fd, length)
  }

  override syncDirectory(path: string): void {
    this.#take()
    super.syncDirectory(path)
  }
}
