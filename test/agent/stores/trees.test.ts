/** Trees of runs in the stores of one process: what is listed after a restart, what is dropped. */
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { MemoryStore, type FileStore, type RunQuery, type RunRecord } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { INDEX_FILE, journalFiles, openStore } from './store-files.js'
import { testTreeRetention } from './tree-retention.js'
import { settled, addTree, idsOf } from './stored-trees.js'

const NOW_S = 1_800_000_000

testTreeRetention('MemoryStore', async (t, retain) => {
  const store = new MemoryStore({ retain, clock: new ManualClock(NOW_S * 1000) })
  await store.open()
  t.after(() => store.close())
  return { store, nowS: NOW_S }
})

testTreeRetention('FileStore', async (t, retain) => {
  const clock = new ManualClock(NOW_S * 1000)
  const store = await openStore(scratch(t), { retain, clock, onWarning: assert.fail })
  t.after(() => store.close())
  // Its deletions have left when what comes after them in the journal has arrived.
  return { store, nowS: NOW_S, sweep: () => settled(store) }
})

const LISTED: readonly (readonly [Partial<RunQuery>, string])[] = [
  [{ root: 'a' }, 'a2 a1 a'],
  [{ parent: 'a' }, 'a1'],
  [{ parent: 'a1' }, 'a2'],
  [{ role: 'root' }, 'b a'],
  [{ root: 'b', role: 'root' }, 'b'],
]

test('trees are listed as before after a restart, with and without an index file', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  await addTree(store, 'a', 1)
  await addTree(store, 'b', 2)
  await store.compact()
  await store.close()
  for (const lost of ['nothing', INDEX_FILE]) {
    rmSync(join(directory, lost), { force: true })
    const again = await openStore(directory, { onWarning: assert.fail })
    for (const [query, ids] of LISTED) assert.equal(await idsOf(again, query), ids)
    // Written again, from the index file that was read.
    await again.compact()
    await again.close()
  }
})

/** Adds `m2` the first time. */
async function addWithMetadata(store: FileStore, times: number): Promise<void> {
  const options = { createdAt: 1_800_000_000, metadata: { team: 'red' } }
  if (times === 2) await store.append('m2', sampleRun('m2', options))
}

/** The rows of an index file, replaced by what `change` makes of them. */
function changeRows(path: string, change: (row: unknown[]) => unknown[]): void {
  const text = readFileSync(path, 'utf8')
  const { at } = JSON.parse(text.slice(-64)) as { readonly at: number }
  const footer = JSON.parse(text.slice(at, -64)) as { rows: [number, number, number] }
  const [offset] = footer.rows
  const rows = text.slice(offset, at).trimEnd().split('\n')
    .flatMap((line) => JSON.parse(line) as unknown[][])
  const changed = `${JSON.stringify(rows.map(change))}\n`
  footer.rows = [offset, Buffer.byteLength(changed), crc32(changed)]
  const last = `${JSON.stringify(footer)}\n`
  const end = { at: offset + Buffer.byteLength(changed), crc: crc32(last) }
  writeFileSync(path, text.slice(0, offset) + changed + last)
  appendFileSync(path, `${JSON.stringify(end).padEnd(63)}\n`)
}

test('rows begin as those of earlier versions, which are listed in all ways as well', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  await addTree(store, 'a', 1)
  await store.compact()
  await store.close()
  const rows: unknown[][] = []
  changeRows(join(directory, INDEX_FILE), (row) => {
    rows.push(row)
    return row
  })
  const trailing = rows.map((row) => [row[0], ...row.slice(15)])
  assert.deepEqual(trailing, [
    ['a', false, null, 'goal_achieved', []],
    ['a1', false, ['a', 'a', 'attempt'], 'goal_achieved', []],
    ['a2', false, ['a', 'a1', 'delegate'], 'goal_achieved', []],
  ])
  // As an earlier version writes it, which knows none of them.
  changeRows(join(directory, INDEX_FILE), (row) => row.slice(0, 15))
  const again = await openStore(directory, { onWarning: assert.fail })
  assert.equal(await idsOf(again, { role: 'root' }), 'a2 a1 a')
  assert.equal(await idsOf(again, { root: 'a' }), 'a')
  await again.close()
  changeRows(join(directory, INDEX_FILE), (row) => row.slice(0, 14))
  // The second time from what the first has learnt, the last time from the index file made anew.
  for (const times of [2, 1]) {
    const third = await openStore(directory, { onWarning: assert.fail })
    await addWithMetadata(third, times)
    for (let i = 0; i < times; i++) {
      assert.equal(await idsOf(third, { cwd: '/work', endReason: ['goal_achieved'] }), 'm2 a2 a1 a')
      assert.equal(await idsOf(third, { metadata: { team: 'red' } }), 'm2')
      assert.equal(await idsOf(third, { endReason: ['stuck'] }), '')
    }
    await third.compact()
    await third.close()
  }
})

test('a damaged child that can be read no more is still listed in its tree', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  await addTree(store, 'a', 1)
  await store.compact()
  await store.close()
  // Heads are in the index file, records in the journal: both are damaged.
  for (const path of [join(directory, INDEX_FILE), ...journalFiles(directory)]) {
    const text = readFileSync(path, 'latin1')
    const damaged = text.replaceAll('"run_id":"a1","goal"', '"run_id":"a1","gaol"')
      .replaceAll('"run_id":"a1","seq"', '"run_id":"a1","sqe"')
    writeFileSync(path, damaged, 'latin1')
  }
  const again = await openStore(directory, { onWarning: () => undefined })
  await again.verified()
  const { heads } = await again.list({ root: 'a', limit: 9 })
  const found = heads.map(({ details, problem }) => [details.run_id, problem !== undefined])
  assert.deepEqual(found, [['a2', false], ['a1', true], ['a', false]])
  const { role, root_run_id, parent_run_id } = heads[1]!.details
  assert.deepEqual([role, root_run_id, parent_run_id], ['attempt', 'a', 'a'])
  await again.close()
})

/** A disk without space for the deletions of children. */
class FullDisk extends SystemDisk {
  isFull = true

  override writeNow(fd: number, data: Buffer, position: number): void {
    this.#check(data)
    super.writeNow(fd, data, position)
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    this.#check(data)
    await super.write(fd, data, position)
  }

  #check(data: Buffer): void {
    if (!this.isFull || !/"run":"a\d","deleted"/.test(data.toString())) return
    throw Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: 'write' })
  }
}

test('a root stays when its children cannot be deleted, and goes with them later', async (t) => {
  const disk = new FullDisk()
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  const options = { retain: { runs: 1 }, sync: 'group', onWarning } as const
  const store = await openStore(scratch(t), options, disk)
  await addTree(store, 'a', 1)
  await addTree(store, 'b', 2)
  // It shares a write, and its failure, with the deletions.
  await settled(store).catch(() => undefined)
  await settled(store)
  assert.match(warnings.join('\n'), /the disk is full/)
  assert.equal(await idsOf(store, { role: 'root' }), 'b a')
  disk.isFull = false
  await addTree(store, 'c', 3)
  await settled(store)
  assert.equal(await idsOf(store, {}), 'c2 c1 c')
  await store.close()
})

test('damage to a line that names the children of its run affects no other run', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  const [created, started] = sampleRun('a', { status: 'running' }) as [RunRecord, RunRecord]
  const payload = { attempt: 1, run_id: 'a1', model_name: 'the model' }
  await store.append('a', [created, started])
  await store.append('a', [{ ...started, v: 4, seq: 3, kind: 'attempt_started', payload }])
  const child = { parentRunId: 'a', rootRunId: 'a', status: 'running' } as const
  for (const [id, place] of [['a1', child], ['b', { status: 'running' as const }]] as const)
    await store.append(id, sampleRun(id, place))
  await store.close()
  const [path = ''] = journalFiles(directory)
  writeFileSync(path, readFileSync(path, 'utf8').replace('the model', 'tha model'))
  const again = await openStore(directory, { onWarning: () => undefined })
  assert.deepEqual(again.quarantined.map(({ runId }) => runId), ['a'])
  await again.close()
})
