import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import type { Life } from '../../helpers/mortal-child.js'

/** A disk whose operations on the files of a store are steps of a life, before and after each. */
export class DeadlyDisk extends SystemDisk {
  readonly #life: Life
  /** What open files are. */
  readonly #kinds = new Map<number, 'tail' | 'whole'>()

  constructor(life: Life) {
    super()
    this.#life = life
  }

  override open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
    const open = (): number => super.open(path, flags)
    const fd = flags.startsWith('w') ? this.#life.around('create', open) : open()
    this.#kinds.delete(fd)
    if (/[/]tail([.]|$)/.test(path)) this.#kinds.set(fd, 'tail')
    else if (/[.](pack|new)$/.test(path)) this.#kinds.set(fd, 'whole')
    return fd
  }

  override writeNow(fd: number, data: Buffer, position: number): void {
    const write = (): void => super.writeNow(fd, data, position)
    const kind = this.#kinds.get(fd)
    if (kind === undefined) write()
    else this.#life.around(kind === 'tail' ? 'tail' : 'mark', write)
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    if (this.#kinds.get(fd) !== 'whole') return await super.write(fd, data, position)
    // A process that dies in the middle of a write has written a part.
    await super.write(fd, data.subarray(0, data.length >> 1), position)
    await this.#life.around('write', () => super.write(fd, data, position))
  }

  override async sync(fd: number): Promise<void> {
    await this.#life.around('sync', () => super.sync(fd))
  }

  override async syncFolder(path: string): Promise<void> {
    await this.#life.around('sync folder', () => super.syncFolder(path))
  }

  override syncDirectory(path: string): void {
    this.#life.around('sync directory', () => super.syncDirectory(path))
  }

  override rename(from: string, to: string): void {
    this.#life.around('rename', () => super.rename(from, to))
  }

  override remove(path: string): void {
    const name = path.endsWith('.pack') ? 'remove a pack' : 'remove'
    this.#life.around(name, () => super.remove(path))
  }
}
