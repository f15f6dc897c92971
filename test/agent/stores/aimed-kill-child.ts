/**
 * Appends to runs and deletes them, with segments so small that the store begins, rewrites and
 * removes files all the time, until it kills itself before or after the n-th operation of a kind.
 * It prints what was acknowledged as kill-child.ts does. See aimed-kills.test.ts.
 */
import { writeSync } from 'node:fs'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { batchAt, RUN_LENGTH } from './kill-plan.js'

const [, , directory = '', operation, moment, count] = process.argv
let left = Number(count)

/** Dies if it is time: `kill` is delivered before it returns. */
function pass(kind: string, now: 'before' | 'after'): void {
  if (kind !== operation || now !== moment || --left > 0) return
  process.kill(process.pid, 'SIGKILL')
}

function around<T>(kind: string, act: () => T): T {
  pass(kind, 'before')
  const result = act()
  pass(kind, 'after')
  return result
}

class DeadlyDisk extends SystemDisk {
  readonly #tails = new Set<number>()
  readonly #drafts = new Set<number>()

  override open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
    const creates = flags === 'wx' || flags === 'w'
    const fd = creates ? around('create', () => super.open(path, flags)) : super.open(path, flags)
    this.#tails.delete(fd)
    this.#drafts.delete(fd)
    if (/[/]tail([.]|$)/.test(path)) this.#tails.add(fd)
    else if (path.endsWith('.new')) this.#drafts.add(fd)
    return fd
  }

  override writeNow(fd: number, data: Buffer, position: number): void {
    if (this.#tails.has(fd)) return around('tail', () => super.writeNow(fd, data, position))
    super.writeNow(fd, data, position)
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    if (!this.#drafts.has(fd)) return super.write(fd, data, position)
    // A process that dies in the middle of a write has written a part.
    await super.write(fd, data.subarray(0, data.length >> 1), position)
    pass('write', 'before')
    await super.write(fd, data, position)
    pass('write', 'after')
  }

  override async sync(fd: number): Promise<void> {
    pass('sync', 'before')
    await super.sync(fd)
    pass('sync', 'after')
  }

  override syncDirectory(path: string): void {
    around('sync directory', () => super.syncDirectory(path))
  }

  override rename(from: string, to: string): void {
    around('rename', () => super.rename(from, to))
  }

  override remove(path: string): void {
    around('remove', () => super.remove(path))
  }
}

const store = new FileStore({ directory, segmentBytes: 2 << 10 }, new DeadlyDisk())
await store.open()
const print = (line: string): void => void writeSync(1, `${line}\n`)
const { heads } = await store.list({ limit: 100_000 })
const ended = heads.map(({ details }) => details.run_id).reverse()

for (let i = 0; ; i++) {
  const runId = `${operation?.replace(' ', '-')}-${moment}-${count}-${i}`
  for (let seq = 0; seq < RUN_LENGTH; ) {
    const batch = batchAt(runId, seq + 1)
    await store.append(runId, batch)
    seq += batch.length
    print(`+ ${runId} ${seq}`)
  }
  ended.push(runId)
  if (ended.length > 4) {
    const old = ended.shift() as string
    print(`? ${old}`)
    await store.delete(old)
    print(`- ${old}`)
  }
  await store.compact()
}
