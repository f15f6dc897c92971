import assert from 'node:assert/strict'
import { closeSync, cpSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileStore, type FileStoreOptions, type RunRecord } from 'runwright/agent'
import { SystemDisk, type Disk } from '../../../lib/agent/stores/file/disk.js'
import { DirectoryLock, type LockHolder } from '../../../lib/agent/stores/file/lock.js'
import { Pack } from '../../../lib/agent/stores/file/object-pack.js'

/** The index file's name on disk. */
export const INDEX_FILE = 'checkpoint'

/** Opens a store, on a faulty disk if given; the caller closes it. */
export async function openStore(
  directory: string,
  options: Omit<FileStoreOptions, 'directory'> = {},
  disk?: Disk,
): Promise<FileStore> {
  const store = new FileStore({ ...options, directory }, disk)
  await store.open()
  return store
}

/** Copies the data of a store, without its lock, to `to` and returns that path. */
export function copyStore(from: string, to: string): string {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('/lock') })
  return to
}

/** Writes the lock of this process with some fields changed; returns its path. */
export function forgeLock(directory: string, changes: Partial<LockHolder>): string {
  const lock = DirectoryLock.acquire(directory)
  const path = join(directory, 'lock')
  const mine = JSON.parse(readFileSync(path, 'utf8')) as LockHolder
  lock.release()
  writeFileSync(path, JSON.stringify({ ...mine, token: 'forged', ...changes }))
  return path
}

/** The paths of the journal's files, in order of their ids. */
export function journalFiles(directory: string): string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
  return names.sort().map((name) => join(directory, name))
}

export function readAll(store: FileStore, runId: string): Promise<readonly RunRecord[]> {
  return store.read(runId, 0, 1_000_000)
}

/** Asserts that a store holds exactly these usable runs with all of their records. */
export async function assertHolds(
  store: FileStore,
  logs: ReadonlyMap<string, readonly RunRecord[]>,
): Promise<void> {
  const { heads } = await store.list({ limit: 1_000_000 })
  const usable = heads.filter(({ problem }) => problem === undefined)
  const listed = usable.map(({ details }) => details.run_id).sort()
  assert.deepEqual(listed, [...logs.keys()].sort())
  for (const [runId, records] of logs) {
    assert.deepEqual(await readAll(store, runId), records)
    assert.equal((await store.head(runId))?.details.last_seq, records.length)
  }
}

/** Packs in the folder `objects` of a store. */
export function packFiles(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.pack'))
  return names.map((name) => join(folder, name))
}

/** Changes one bit in the middle of a blob, wherever it lies in packs. */
export async function damagePacked(folder: string, hash: string): Promise<void> {
  const disk = new SystemDisk()
  for (const path of packFiles(folder)) {
    const pack = await Pack.read(disk, path, 0)
    const fd = openSync(path, 'r+')
    const place = pack?.locate(disk, fd, hash)
    if (place != null) {
      const at = place.at + (place.bytes >> 1)
      const byte = disk.readNow(fd, 1, at)
      byte[0] = (byte[0] ?? 0) ^ 1
      disk.writeNow(fd, byte, at)
    }
    closeSync(fd)
  }
}
