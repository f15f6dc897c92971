import assert from 'node:assert/strict'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { FileStore, RunRecord } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { SnapshotDisk } from './snapshot-disk.js'
import {
  assertHolds, copyStore, INDEX_FILE, journalFiles, openStore, readAll,
} from './store-files.js'

function sizeOf(directory: string): number {
  return journalFiles(directory).reduce((sum, path) => sum + statSync(path).size, 0)
}

/** Adds runs whose records are interleaved in the journal. */
async function addRuns(
  store: FileStore,
  ids: readonly string[],
  length = 10,
): Promise<Map<string, RunRecord[]>> {
  const logs = new Map(ids.map((id) => [id, sampleRun(id, { records: length })]))
  for (let at = 0; at < length; at += 2) {
    await Promise.all([...logs].map(([id, records]) => store.append(id, records.slice(at, at + 2))))
  }
  return logs
}

const names = (count: number, prefix = 'run'): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

test('the space of deleted runs is reclaimed, and other runs stay unchanged', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory, { segmentBytes: 16_384 })
  const logs = await addRuns(store, names(40))
  const before = sizeOf(directory)
  for (let i = 0; i < 36; i++) {
    await store.delete(`run-${i}`)
    logs.delete(`run-${i}`)
  }
  await store.compact()
  await store.compact()
  assert.ok(sizeOf(directory) < before / 4, `${sizeOf(directory)} of ${before} bytes are left`)
  await assertHolds(store, logs)
  await store.close()
  for (const lost of ['nothing', INDEX_FILE]) {
    rmSync(join(directory, lost), { force: true })
    const again = await openStore(directory, { segmentBytes: 16_384 })
    assert.deepEqual(again.quarantined, [])
    await assertHolds(again, logs)
    await again.close()
  }
})

test('a store that creates and drops runs reclaims space by itself', async (t) => {
  const directory = scratch(t, 'in memory')
  const options = { segmentBytes: 16_384, retain: { runs: 10 }, sync: 'none' } as const
  const store = await openStore(directory, options)
  for (let round = 0; round < 40; round++) await addRuns(store, names(10, `round-${round}`))
  await store.compact()
  assert.equal((await store.list({ limit: 1000 })).heads.length, 10)
  assert.ok(sizeOf(directory) < 40 * 16_384, `${sizeOf(directory)} bytes`)
  assert.ok(journalFiles(directory).length < 20, `${journalFiles(directory).length} files`)
  await store.close()
})

test('runs are read, written and deleted correctly while segments are rewritten', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory, { segmentBytes: 8192 })
  const logs = await addRuns(store, names(30))
  for (let i = 0; i < 15; i++) {
    await store.delete(`run-${i}`)
    logs.delete(`run-${i}`)
  }
  const live = sampleRun('live', { records: 60, status: 'running' })
  await store.append('live', live.slice(0, 30))
  const work = [
    store.compact(),
    store.delete('run-20'),
    ...live.slice(30).map((record) => store.append('live', [record])),
    // Not run-25, which may or may not be deleted before it is read.
    ...names(30)
      .filter((_, i) => i > 20 && i !== 25)
      .map(async (id) => assert.deepEqual(await readAll(store, id), logs.get(id))),
    new Promise((resolve) => setImmediate(resolve)).then(() => store.delete('run-25')),
    store.compact(),
  ]
  await Promise.all(work)
  logs.delete('run-20')
  logs.delete('run-25')
  logs.set('live', live)
  await assertHolds(store, logs)
  await store.close()
  rmSync(join(directory, INDEX_FILE))
  const again = await openStore(directory, { segmentBytes: 8192 })
  await assertHolds(again, logs)
  await again.close()
})

test('a crash at any step of a rewrite or an index file leaves the same runs', async (t) => {
  const folder = scratch(t, 'in memory')
  const directory = join(folder, 'data')
  const snapshots: string[] = []
  let taking = false
  const disk = new SnapshotDisk(() => {
    if (taking) snapshots.push(copyStore(directory, join(folder, `snapshot-${snapshots.length}`)))
  })
  const options = { segmentBytes: 4096, sync: 'group' } as const
  const store = await openStore(directory, options, disk)
  const logs = await addRuns(store, names(12))
  await store.compact()
  // Deletions in other segments than the records of their runs, and a run that is created again.
  for (const i of [0, 1, 2, 3, 5, 6, 7, 8, 9]) {
    await store.delete(`run-${i}`)
    logs.delete(`run-${i}`)
  }
  await store.append('run-3', sampleRun('run-3', { records: 7 }))
  logs.set('run-3', sampleRun('run-3', { records: 7 }))
  taking = true
  await store.compact()
  await store.compact()
  taking = false
  await assertHolds(store, logs)
  await store.close()
  assert.ok(snapshots.length > 12, `only ${snapshots.length} steps were copied`)
  for (const snapshot of snapshots) {
    for (const lost of ['nothing', INDEX_FILE]) {
      const copy = copyStore(snapshot, join(folder, 'copy'))
      rmSync(join(copy, lost), { force: true })
      for (const round of ['first', 'second']) {
        const again = await openStore(copy, { ...options, sync: 'none' })
        assert.deepEqual(again.quarantined, [], `${snapshot} without ${lost}, ${round}`)
        await assertHolds(again, logs)
        await again.compact()
        await again.close()
      }
      rmSync(copy, { recursive: true })
    }
  }
})

test('after any sequence of operations a store equals a map of lists', async (t) => {
  const folder = scratch(t, 'in memory')
  for (let seed = 1; seed <= 12; seed++) {
    const random = new Random(seed)
    const below = (limit: number): number => random.integer(0, limit - 1)
    const directory = join(folder, String(seed))
    const options = { segmentBytes: 1024 << below(5), sync: 'none' } as const
    let store = await openStore(directory, options)
    const model = new Map<string, RunRecord[]>()
    const pending: Promise<unknown>[] = []
    for (let step = 0; step < 250; step++) {
      const runId = `run-${below(12)}`
      const known = model.get(runId) ?? []
      const action = random.next()
      if (action < 0.7) {
        const text = 'y'.repeat(below(400))
        const createdAt = 1_700_000_000 + below(9)
        const whole = sampleRun(runId, { records: 30, text, createdAt })
        const batch = whole.slice(known.length, known.length + 1 + below(4))
        if (batch.length === 0) continue
        model.set(runId, [...known, ...batch])
        pending.push(store.append(runId, batch))
      } else if (action < 0.82) {
        model.delete(runId)
        pending.push(store.delete(runId))
      } else if (action < 0.9) pending.push(store.compact())
      else if (action < 0.95) await Promise.all(pending.splice(0))
      else {
        await Promise.all(pending.splice(0))
        await store.close()
        if (random.chance(0.5)) rmSync(join(directory, INDEX_FILE), { force: true })
        store = await openStore(directory, options)
        assert.deepEqual(store.quarantined, [], `seed ${seed}, step ${step}`)
        await assertHolds(store, model)
      }
    }
    await Promise.all(pending)
    await assertHolds(store, model)
    await store.close()
  }
})

/** Bytes of a directory's files; those that disappear meanwhile count as none. */
function bytesIn(directory: string): number {
  let sum = 0
  for (const name of readdirSync(directory)) {
    sum += statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0
  }
  return sum
}

test('a journal that is never idle stays within three times what it retains', async (t) => {
  const directory = scratch(t, 'in memory')
  const store = await openStore(directory, { retain: { runs: 200 } })
  let created = 0
  let peak = 0
  const work = async (): Promise<void> => {
    while (created < 3_000) {
      const runId = `run-${created++}`
      const records = sampleRun(runId, { records: 12, text: 'x'.repeat(500) })
      for (let at = 0; at < records.length; at += 3) {
        await store.append(runId, records.slice(at, at + 3))
      }
      peak = Math.max(peak, bytesIn(directory))
    }
  }
  await Promise.all(Array.from({ length: 16 }, work))
  // Its segment may be mostly dead; the first round begins another one, the second rewrites it.
  await store.compact()
  await store.compact()
  const retained = bytesIn(directory)
  const written = 3_000 * 12 * 500
  assert.ok(retained * 6 < written, `${retained} bytes are retained`)
  assert.ok(peak <= 3 * retained + (1 << 20), `${peak} bytes for ${retained} that are retained`)
  await store.close()
})

test('many short lives of a process do not leave many files', async (t) => {
  const directory = scratch(t, 'in memory')
  const logs = new Map<string, RunRecord[]>()
  for (let i = 0; i < 80; i++) {
    const store = await openStore(directory)
    const records = sampleRun(`run-${i}`, { records: 6 })
    logs.set(`run-${i}`, records)
    await store.append(`run-${i}`, records)
    await store.close()
  }
  assert.ok(journalFiles(directory).length <= 40, `${journalFiles(directory).length} files`)
  const store = await openStore(directory)
  await assertHolds(store, logs)
  await store.close()
})
