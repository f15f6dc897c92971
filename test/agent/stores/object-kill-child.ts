/**
 * Stores and removes objects until it kills itself around the n-th operation of a kind. It prints
 * `+ i` for an object that is stored, `? i` for one that is to be removed and `- i` for one that
 * is, which its parent keeps in a file. First it checks what earlier processes have printed.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeSync } from 'node:fs'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { blob } from '../../../lib/agent/testing/object-contract/suite.js'

const [, , directory = '', operation, moment, count] = process.argv
let left = Infinity
const numbers = new Set<number>()

function pass(kind: string, now: 'before' | 'after'): void {
  if (kind === operation && now === moment && --left <= 0) process.kill(process.pid, 'SIGKILL')
}

function around<T>(kind: string, act: () => T): T {
  pass(kind, 'before')
  const result = act()
  pass(kind, 'after')
  return result
}

class DeadlyDisk extends SystemDisk {
  override open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
    const open = (): number => super.open(path, flags)
    const fd = flags === 'w' ? around('create', open) : open()
    if (/[.](pack|new)$/.test(path)) numbers.add(fd)
    return fd
  }

  override close(fd: number): void {
    numbers.delete(fd)
    super.close(fd)
  }

  override writeNow(fd: number, data: Buffer, position: number): void {
    if (!numbers.has(fd)) return super.writeNow(fd, data, position)
    around('mark', () => super.writeNow(fd, data, position))
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    if (!numbers.has(fd)) return await super.write(fd, data, position)
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

  override async syncFolder(path: string): Promise<void> {
    pass('sync folder', 'before')
    await super.syncFolder(path)
    pass('sync folder', 'after')
  }

  override rename(from: string, to: string): void {
    around('rename', () => super.rename(from, to))
  }

  override remove(path: string): void {
    if (path.endsWith('.pack')) around('remove', () => super.remove(path))
    else super.remove(path)
  }
}

const objectAt = (i: number) => blob(`object ${i} `.repeat(1 + (i % 7) * 50))
const hashAt = (i: number): string => objectAt(i).hash
const print = (sign: string, some: readonly number[]): void =>
  void writeSync(1, some.map((i) => `${sign} ${i}\n`).join(''))

const store = new FileStore({ directory }, new DeadlyDisk())
await store.open()
const { objects } = store
const told = new Map<number, string>()
const log = `${directory}.log`
for (const line of existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []) {
  const [sign = '', i] = line.split(' ')
  if (i !== undefined) told.set(Number(i), sign)
}
for (const [i, sign] of told) {
  const content = await objects.get(hashAt(i))
  if (sign === '+') assert.deepEqual(content && Buffer.from(content), objectAt(i).content, `${i}`)
  // A removal that a crash cut off may or may not have happened; no power was lost.
  if (sign === '-') assert.equal(content, null, `${i} is back`)
}
const there = await objects.has([...told.keys()].map(hashAt))
for (const [i, sign] of told) if (sign === '+') assert.ok(there.has(hashAt(i)), `${i} is not found`)
assert.deepEqual(store.damage().files, [])

const held = [...told].filter(([, sign]) => sign === '+').map(([i]) => i)
left = Number(count)
for (let i = Math.max(0, ...told.keys()) + 1; ; i += 3) {
  const some = [i, i + 1, i + 2]
  await objects.put(some.map(objectAt))
  print('+', some)
  held.push(...some)
  if (held.length < 60) continue
  const old = held.splice(0, 45)
  print('?', old)
  await objects.delete(old.map(hashAt), 0)
  print('-', old)
}
