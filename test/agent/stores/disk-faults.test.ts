import assert from 'node:assert/strict'
import { writeSync } from 'node:fs'
import { test } from 'node:test'
import type { RunRecord } from 'runwright/agent'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { assertHolds, openStore } from './store-files.js'

type Operation = 'write' | 'sync' | 'truncate'

/** A disk whose operations fail while `fault` is set. */
class FaultyDisk extends SystemDisk {
  fault: { readonly on: readonly Operation[]; readonly code: string } | null = null

  #check(operation: Operation): void {
    if (this.fault?.on.includes(operation) !== true) return
    throw Object.assign(new Error(`${this.fault.code}: injected`), { code: this.fault.code })
  }

  override writeNow(fd: number, data: Buffer, position: number): void {
    if (this.fault?.on.includes('write') === true) {
      // A full disk writes a part of the data.
      writeSync(fd, data, 0, data.length >> 1, position)
    }
    this.#check('write')
    super.writeNow(fd, data, position)
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    this.#check('write')
    await super.write(fd, data, position)
  }

  override async sync(fd: number): Promise<void> {
    this.#check('sync')
    await super.sync(fd)
  }

  override truncate(fd: number, length: number): void {
    this.#check('truncate')
    super.truncate(fd, length)
  }

  override syncDirectory(path: string): void {
    this.#check('sync')
    super.syncDirectory(path)
  }
}

for (const { code, on, problem } of [
  { code: 'ENOSPC', on: ['write'], problem: /the disk is full; free some space/ },
  { code: 'EIO', on: ['sync'], problem: /the disk reports an error/ },
  { code: 'EACCES', on: ['write'], problem: /access is denied/ },
  { code: 'ENOSPC', on: ['write', 'truncate'], problem: /the disk is full/ },
  { code: 'EIO', on: ['sync', 'truncate'], problem: /the disk reports an error/ },
] as const) {
  for (const sync of ['group', 'none'] as const) {
    if (sync === 'none' && on.some((operation) => operation === 'sync')) continue
    const title = `${code} on ${on.join(' and ')} refuses only the affected appends, sync ${sync}`
    test(title, async (t) => {
      const directory = scratch(t)
      const disk = new FaultyDisk()
      const store = await openStore(directory, { sync, segmentBytes: 4096 }, disk)
      const logs = new Map(['a', 'b', 'c'].map((id) => [id, sampleRun(id, { records: 30 })]))
      for (const [id, records] of logs) await store.append(id, records.slice(0, 10))
      disk.fault = { on, code }
      const refused = { code: 'ERR_AGENT_STORE_UNAVAILABLE', message: problem }
      for (let i = 0; i < 3; i++) {
        await Promise.all(
          [...logs].map(([id, records]) =>
            Promise.all([
              assert.rejects(store.append(id, records.slice(10, 12)), refused),
              // Queued behind the first append, and refused with it.
              assert.rejects(store.append(id, records.slice(12, 14)), refused),
            ]),
          ),
        )
        await assert.rejects(store.delete('a'), refused)
        for (const id of logs.keys()) assert.equal((await store.head(id))?.details.last_seq, 10)
      }
      disk.fault = null
      for (const [id, records] of logs) {
        await store.append(id, records.slice(10, 20))
        await store.append(id, records.slice(20))
      }
      await assertHolds(store, logs)
      await store.close()
      const again = await openStore(directory)
      assert.deepEqual(again.quarantined, [])
      await assertHolds(again, logs)
      await again.close()
    })
  }
}

test('refused records do not reappear after a store is closed on a full disk', async (t) => {
  const directory = scratch(t)
  const disk = new FaultyDisk()
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  const store = await openStore(directory, { onWarning }, disk)
  const records = sampleRun('a', { records: 900 })
  await store.append('a', records.slice(0, 800))
  disk.fault = { on: ['write', 'sync'], code: 'ENOSPC' }
  await assert.rejects(store.append('a', records.slice(800)), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
  await store.close()
  assert.match(warnings.join(), /the disk is full/)
  const again = await openStore(directory)
  await assertHolds(again, new Map([['a', records.slice(0, 800)]]))
  await again.close()
})

test('a failed index file or rewrite is reported and loses nothing', async (t) => {
  const directory = scratch(t)
  const disk = new FaultyDisk()
  const store = await openStore(directory, { segmentBytes: 4096 }, disk)
  const logs = new Map<string, RunRecord[]>()
  for (let i = 0; i < 20; i++) {
    logs.set(`run-${i}`, sampleRun(`run-${i}`))
    await store.append(`run-${i}`, sampleRun(`run-${i}`))
  }
  for (let i = 0; i < 15; i++) {
    await store.delete(`run-${i}`)
    logs.delete(`run-${i}`)
  }
  for (const on of ['write', 'sync'] as const) {
    disk.fault = { on: [on], code: 'ENOSPC' }
    const refused = { code: 'ERR_AGENT_STORE_UNAVAILABLE', message: /the disk is full/ }
    await assert.rejects(store.compact(), refused)
    await assertHolds(store, logs)
  }
  disk.fault = null
  await store.compact()
  await assertHolds(store, logs)
  await store.close()
  const again = await openStore(directory)
  await assertHolds(again, logs)
  await again.close()
})

for (const code of ['EBADF', 'EINVAL']) {
  test(`${code} is a bug: nobody waits for it to pass, and nothing is lost`, async (t) => {
    const disk = new FaultyDisk()
    const store = await openStore(scratch(t), {}, disk)
    t.after(() => store.close())
    const records = sampleRun('a')
    disk.fault = { on: ['write'], code }
    await assert.rejects(store.append('a', records), { code: 'ERR_AGENT_STORE' })
    await assert.rejects(store.check(), { code: 'ERR_AGENT_STORE' })
    disk.fault = null
    await store.append('a', records)
    await assertHolds(store, new Map([['a', records]]))
  })
}

test('check() rejects while the disk is full, and resolves once there is space', async (t) => {
  const disk = new FaultyDisk()
  const store = await openStore(scratch(t), {}, disk)
  t.after(() => store.close())
  await store.check()
  for (const on of ['write', 'sync'] as const) {
    disk.fault = { on: [on], code: 'ENOSPC' }
    await assert.rejects(store.check(), {
      code: 'ERR_AGENT_STORE_UNAVAILABLE',
      message: /cannot write to .*ENOSPC/,
    })
  }
  disk.fault = null
  await store.check()
})
