/** Appends until its file system is full, frees space and continues; see disk-faults.test.ts. */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { openStore, readAll } from './store-files.js'

const mount = process.argv[2] ?? ''
const directory = join(mount, 'data')
const ballast = join(mount, 'ballast')
writeFileSync(ballast, Buffer.alloc(400_000))
const store = await openStore(directory, { segmentBytes: 100_000, sync: 'group' })
const records = sampleRun('a', { records: 4_000, text: 'x'.repeat(200) })
let at = 0
let refusal: unknown = null
while (refusal === null) {
  try {
    await store.append('a', records.slice(at, at + 7))
    at += 7
  } catch (error) {
    refusal = error
  }
}
assert.ok(refusal instanceof StoreError && refusal.code === 'ERR_AGENT_STORE_UNAVAILABLE')
console.log(`refused: ${refusal.message}`)
const unavailable = { code: 'ERR_AGENT_STORE_UNAVAILABLE' }
await assert.rejects(store.append('a', records.slice(at, at + 200)), unavailable)
assert.deepEqual(await readAll(store, 'a'), records.slice(0, at))
rmSync(ballast)
await store.append('a', records.slice(at, at + 7))
await store.close()
const again = await openStore(directory)
assert.deepEqual(again.quarantined, [])
assert.deepEqual(await readAll(again, 'a'), records.slice(0, at + 7))
await again.close()
console.log('all there')
