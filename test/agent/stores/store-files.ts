import assert from 'node:assert/strict'
import { accessSync, constants, cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunRecord } from '../../../lib/agent/events.js'
import type { Disk } from '../../../lib/agent/stores/file/disk.js'
import { FileStore, type FileStoreOptions } from '../../../lib/agent/stores/file/file-store.js'

/** A folder that is gone with the test; in memory where that can be had and is asked for. */
export function temporaryFolder(
  t: { after(cleanup: () => void): void },
  place: 'on disk' | 'in memory' = 'on disk',
): string {
  const base = place === 'in memory' && isWritable('/dev/shm') ? '/dev/shm' : tmpdir()
  const path = mkdtempSync(join(base, 'runwright-store-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Opens a store at a folder. */
export async function openStore(
  directory: string,
  options: Omit<FileStoreOptions, 'directory'> = {},
  disk?: Disk,
): Promise<FileStore> {
  const store = new FileStore({ ...options, directory }, disk)
  await store.open()
  return store
}

/** Copies the data of a store (not its lock) to a new folder. */
export function copyStore(from: string, to: string): string {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('/lock') })
  return to
}

/** Paths of the journal's files, in order. */
export function journalFiles(directory: string): string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
  return names.sort().map((name) => join(directory, name))
}

/** All records of a run. */
export function readAll(store: FileStore, runId: string): Promise<readonly RunRecord[]> {
  return store.read(runId, 0, 1_000_000)
}

/** Numbers from 0 to 1 that are the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = Math.imul(state ^ (state >>> 15), state | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Asserts that a store holds exactly these runs, whole. */
export async function assertHolds(
  store: FileStore,
  logs: ReadonlyMap<string, readonly RunRecord[]>,
): Promise<void> {
  const { heads } = await store.list({ limit: 1_000_000 })
  const listed = heads.map(({ details }) => details.run_id).sort()
  assert.deepEqual(listed, [...logs.keys()].sort())
  for (const [runId, records] of logs) {
    assert.deepEqual(await readAll(store, runId), records)
    assert.equal((await store.head(runId))?.details.last_seq, records.length)
  }
}
