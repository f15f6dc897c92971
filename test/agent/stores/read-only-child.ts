/**
 * Appends while its data directory is read-only for everything but files that are open, then goes
 * on; see disk-faults.test.ts. A kernel refuses to remount a file system on which a file is open
 * for writing, so a read-only mount of the directory is laid over it.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { assertHolds, journalFiles, openStore } from './store-files.js'

function mount(...args: string[]): void {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
}

const directory = join(process.argv[2] ?? '', 'data')
const warnings: string[] = []
const onWarning = ({ message }: Error): void => void warnings.push(message)
const store = await openStore(directory, { segmentBytes: 4 << 10, onWarning })
const logs = new Map(['a', 'b', 'c', 'd'].map((id) => [id, sampleRun(id, { records: 40 })]))
const append = async (from: number, to: number): Promise<void> => {
  for (const [id, records] of logs) await store.append(id, records.slice(from, to))
}
await append(0, 10)
const before = journalFiles(directory).length
mount('--bind', directory, directory)
mount('-o', 'remount,bind,ro', directory)
const refused = { code: 'ERR_AGENT_STORE_UNAVAILABLE', message: /read-only/ }
await assert.rejects(store.check(), refused)
await assert.rejects(store.compact(), refused)
// The segment in use goes on; no other one can be begun.
await append(10, 30)
assert.equal(journalFiles(directory).length, before)
assert.equal(spawnSync('umount', [directory]).status, 0)
await store.check()
await append(30, 40)
await store.compact()
assert.ok(journalFiles(directory).length > 0)
await assertHolds(store, logs)
await store.close()
const again = await openStore(directory)
assert.deepEqual(again.damage(), { runs: [], files: [] })
await assertHolds(again, logs)
await again.close()
console.log('all there')
