import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { RunRecord } from 'runwright/agent'
import { sampleRun, type SampleRunOptions } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { testFileStore } from './file-contract.js'
import {
  assertHolds, copyStore, INDEX_FILE, journalFiles, openStore, readAll,
} from './store-files.js'

testFileStore('FileStore', {})

test('a tail torn at any byte is cut off, and appends continue', async (t) => {
  const directory = scratch(t, 'in memory')
  const store = await openStore(directory)
  const running = (records: number): SampleRunOptions => ({ records, status: 'running' })
  const logs = new Map([['a', sampleRun('a', running(3))], ['b', sampleRun('b', running(3))]])
  for (const [runId, records] of logs) await store.append(runId, records)
  const [journal = ''] = journalFiles(directory)
  const durable = statSync(journal).size
  const witness = readFileSync(join(directory, 'tail'))
  // One group: its own line, two of run a, the second with two records, and one of run b.
  const more = sampleRun('a', running(6)).slice(3)
  const other = sampleRun('b', running(4)).slice(3)
  await Promise.all([
    store.append('a', more.slice(0, 1)),
    store.append('b', other),
    store.append('a', more.slice(1)),
  ])
  const end = statSync(journal).size
  await store.close()
  const text = readFileSync(journal)
  const lineEnds = [...text.keys()].filter((i) => i >= durable && text[i] === 10).map((i) => i + 1)
  assert.deepEqual(lineEnds.length, 4)
  for (let cut = durable; cut <= end; cut++) {
    for (const later of journalFiles(directory).slice(1)) rmSync(later)
    writeFileSync(join(directory, 'tail'), witness)
    writeFileSync(journal, text.subarray(0, cut))
    const again = await openStore(directory, { sync: 'none' })
    assert.deepEqual(again.quarantined, [])
    const whole = lineEnds.filter((at) => at <= cut).length
    const expected = new Map(logs)
    const ofA = [0, 0, 1, 1, 3][whole] ?? 0
    expected.set('a', [...(logs.get('a') ?? []), ...more.slice(0, ofA)])
    if (whole >= 3) expected.set('b', [...(logs.get('b') ?? []), ...other])
    await assertHolds(again, expected)
    const next = { ...more[0], seq: 4 + ofA } as RunRecord
    await again.append('a', [next])
    assert.deepEqual((await readAll(again, 'a')).at(-1), next)
    await again.close()
    assert.equal(readFileSync(journal).at(-1), 10)
  }
})

test('a large journal is verified after the store is opened', async (t) => {
  const directory = scratch(t, 'in memory')
  const store = await openStore(directory, { sync: 'none' })
  const text = 'z'.repeat(1 << 20)
  const ids = Array.from({ length: 12 }, (_, i) => `run-${i}`)
  // Two megabytes each, which is more than open() verifies.
  for (const id of ids) await store.append(id, sampleRun(id, { records: 4, text }))
  await store.compact()
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const data = readFileSync(journal)
  data.write('#', data.indexOf('zzz', data.indexOf('"run":"run-3"')) + 1_000)
  writeFileSync(journal, data)
  const again = await openStore(directory)
  await again.verified()
  assert.deepEqual(again.quarantined.map(({ runId }) => runId), ['run-3'])
  await assert.rejects(readAll(again, 'run-3'), { code: 'ERR_AGENT_STORE_CORRUPT' })
  assert.equal((await readAll(again, 'run-4')).length, 4)
  await again.close()
})

test('after damage at any offset each run is either whole or quarantined', async (t) => {
  const folder = scratch(t, 'in memory')
  const directory = join(folder, 'whole')
  const store = await openStore(directory, { segmentBytes: 8192 })
  const ids = Array.from({ length: 12 }, (_, i) => `run-${i}`)
  const logs = new Map(ids.map((id) => [id, sampleRun(id, { records: 12 })]))
  for (let at = 0; at < 12; at += 3) {
    await Promise.all([...logs].map(([id, records]) => store.append(id, records.slice(at, at + 3))))
  }
  // Damage to the last line counts as a torn tail, so this run is not among those checked.
  await store.append('last', sampleRun('last'))
  await store.close()
  const random = new Random(20_240_601)
  for (let round = 0; round < 120; round++) {
    const copy = copyStore(directory, join(folder, 'copy'))
    if (round % 2 === 0) rmSync(join(copy, INDEX_FILE), { force: true })
    const files = journalFiles(copy)
    const path = random.pick(files)
    const data = readFileSync(path)
    const at = random.integer(0, data.length - 2)
    const length = Math.min(random.pick([1, 1, 3, 700]), data.length - at)
    for (let i = at; i < at + length; i++) data[i] = random.chance(0.3) ? 0 : random.integer(0, 255)
    writeFileSync(path, data)
    const again = await openStore(copy, { sync: 'none' })
    const quarantined = new Set(again.quarantined.map(({ runId }) => runId))
    for (const [runId, records] of logs) {
      if (quarantined.has(runId)) {
        await assert.rejects(readAll(again, runId), { code: 'ERR_AGENT_STORE_CORRUPT' })
      } else {
        assert.deepEqual(await readAll(again, runId), records, `round ${round}: ${runId}`)
      }
    }
    await again.append('new', sampleRun('new'))
    assert.deepEqual(await readAll(again, 'new'), sampleRun('new'))
    await again.close()
    rmSync(copy, { recursive: true })
  }
})

test('a damaged or stale index file is not used', async (t) => {
  const folder = scratch(t, 'in memory')
  const directory = join(folder, 'whole')
  const store = await openStore(directory, { segmentBytes: 4096 })
  const logs = new Map(Array.from({ length: 30 }, (_, i) => [`run-${i}`, sampleRun(`run-${i}`)]))
  for (const [id, records] of logs) await store.append(id, records)
  await store.compact()
  const stale = readFileSync(join(directory, INDEX_FILE))
  for (const id of ['run-3', 'run-4', 'run-5', 'run-6', 'run-7', 'run-8']) {
    await store.delete(id)
    logs.delete(id)
  }
  await store.compact()
  await store.append('more', sampleRun('more'))
  logs.set('more', sampleRun('more'))
  await store.close()
  const good = readFileSync(join(directory, INDEX_FILE))
  const random = new Random(7)
  const variants: Buffer[] = [stale, Buffer.alloc(0), Buffer.alloc(300, 65)]
  variants.push(good.subarray(0, good.length >> 1))
  for (let i = 0; i < 40; i++) {
    const copy = Buffer.from(good)
    const at = random.integer(0, copy.length - 1)
    copy[at] = (copy[at] ?? 0) ^ random.integer(1, 255)
    variants.push(copy)
  }
  for (const content of variants) {
    const copy = copyStore(directory, join(folder, 'copy'))
    writeFileSync(join(copy, INDEX_FILE), content)
    const again = await openStore(copy, { sync: 'none' })
    assert.deepEqual(again.quarantined, [])
    await assertHolds(again, logs)
    await again.compact()
    await assertHolds(again, logs)
    await again.close()
    rmSync(copy, { recursive: true })
  }
})

test('bytes that name no run are one damage, however many lines they look like', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  await store.append('before', sampleRun('before', { records: 3, status: 'running' }))
  await store.append('lost', sampleRun('lost', { text: 'x'.repeat(400_000) }))
  await store.append('after', sampleRun('after', { records: 3, status: 'running' }))
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const text = readFileSync(journal)
  const start = text.indexOf('"run":"lost"')
  text.fill('\n', start, start + 300_000)
  writeFileSync(journal, text)
  rmSync(join(directory, INDEX_FILE))
  for (const round of ['from the journal', 'from the index file']) {
    const warnings: string[] = []
    const onWarning = ({ message }: Error): void => void warnings.push(message)
    const again = await openStore(directory, { onWarning })
    assert.ok(again.damage().files.length <= 2, round)
    assert.ok(warnings.length <= 5, `${round}: ${warnings.length} warnings`)
    const quarantined = again.quarantined.map(({ runId }) => runId)
    assert.deepEqual(quarantined.sort(), ['before', 'lost'], round)
    await again.compact()
    await again.close()
  }
})
