/** Data of this version in the hands of the one before it, which knew nothing of checkpoints. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { FileStore, type RunRecord } from 'runwright/agent'
import { blob } from '../../../lib/agent/testing/object-contract/suite.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { INDEX_FILE } from './store-files.js'

async function open(directory: string): Promise<FileStore> {
  const store = new FileStore({ directory, onWarning: (error) => assert.fail(error) })
  await store.open()
  return store
}

function checkpoint(runId: string, seq: number, id: string): RunRecord {
  const payload = { checkpoint_id: id, reason: 'start', files: 0, bytes: 0, new_bytes: 0 } as const
  return {
    v: 1, run_id: runId, seq, iteration: 1, ts: 1_800_000_000 + seq, kind: 'checkpoint',
    payload: { ...payload, left_out: [] }, private: { previous: null },
  }
}

/** Writes an index file as the version before would have: without what it did not know. */
function makeOld(path: string): void {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n').slice(0, -1)
  const footer = JSON.parse(lines.pop() ?? '') as Record<string, unknown>
  const parts: string[] = []
  const rows: unknown[][] = []
  let size = 0
  const add = (text: string): [offset: number, length: number, crc: number] => {
    parts.push(`${text}\n`)
    size += Buffer.byteLength(text) + 1
    return [size - Buffer.byteLength(text) - 1, Buffer.byteLength(text), crc32(text)]
  }
  for (const line of lines) {
    const value = JSON.parse(line) as
      | unknown[]
      | { head: Record<string, unknown>; places: number[] }
    if (Array.isArray(value)) {
      rows.push(...(value as unknown[][]))
      continue
    }
    const { details, checkpointSeq: _, operation: __, ...head } = value.head
    const { workspace, checkpoint_id, changes, forked_from, ...known } = details as object as
      Record<string, unknown>
    assert.ok([workspace, checkpoint_id, changes, forked_from].every((one) => one !== undefined))
    const place = add(JSON.stringify({ head: { details: known, ...head }, places: value.places }))
    rows[rows.length] = [known['run_id'], ...place]
  }
  const places = new Map(rows.filter((row) => row.length === 4).map(([id, ...at]) => [id, at]))
  const old = rows.filter((row) => row.length > 4).map((row) => [
    ...row.slice(0, 11), ...(places.get(row[0]) ?? []), ...row.slice(14, 15),
  ])
  const [offset, length] = add(JSON.stringify(old))
  const text = `${JSON.stringify(old)}\n`
  footer['rows'] = [offset, length + 1, crc32(text)]
  footer['records'] = 1
  const [at] = add(JSON.stringify(footer))
  const trailer = JSON.stringify({ at, crc: crc32(`${JSON.stringify(footer)}\n`) })
  writeFileSync(path, `${parts.join('')}${trailer.padEnd(63)}\n`)
}

test('heads of an earlier version get the fields that it did not know', async (t) => {
  const directory = scratch(t)
  const before = await open(directory)
  await before.append('ended', sampleRun('ended'))
  await before.append('live', sampleRun('live', { status: 'running' }))
  const heads = [await before.head('ended'), await before.head('live')]
  await before.compact()
  await before.close()
  makeOld(join(directory, INDEX_FILE))
  const after = await open(directory)
  assert.deepEqual([await after.head('ended'), await after.head('live')], heads)
  const listed = await after.list({ limit: 10 })
  assert.deepEqual(listed.heads.find(({ details }) => details.run_id === 'ended'), heads[0])
  await after.close()
})

test('an index file that the version before wrote meanwhile hides no checkpoint', async (t) => {
  const directory = scratch(t)
  const { hash } = blob('tree')
  const before = await open(directory)
  for (const runId of ['live', 'ended']) {
    await before.append(runId, sampleRun(runId, { status: 'running', records: 3 }))
    await before.append(runId, [checkpoint(runId, 4, hash)])
  }
  await before.append('ended', [{ ...(sampleRun('ended')[3] as RunRecord), seq: 5 }])
  await before.objects.put([blob('tree')])
  await before.compact()
  await before.close()
  makeOld(join(directory, INDEX_FILE))
  for (const round of [1, 2]) {
    const after = await open(directory)
    for (const runId of ['live', 'ended']) {
      const head = await after.head(runId)
      assert.equal(head?.checkpointSeq, 4, `${runId}, round ${round}`)
      assert.equal(head?.details.checkpoint_id, hash)
    }
    assert.deepEqual(await after.objects.list(null, 10), [hash])
    await after.close()
  }
})

test('a run that an earlier version could not read is not refused for that', async (t) => {
  const directory = scratch(t)
  const records = sampleRun('new', { status: 'running', records: 3 })
  const before = await open(directory)
  await before.append('new', [records[0]!, { ...records[1]!, v: 4 }])
  await before.compact()
  await before.close()
  // As version 2 leaves it: it has quarantined the run because of the record of version 4.
  const path = join(directory, INDEX_FILE)
  const text = readFileSync(path, 'utf8')
  const { at } = JSON.parse(text.slice(-64)) as { readonly at: number }
  const footer = JSON.parse(text.slice(at, -64)) as Record<string, unknown>
  assert.deepEqual([footer['records'], footer['quarantine']], [4, []])
  footer['records'] = 2
  footer['quarantine'] = [['new', 'ERR_AGENT_STORE_VERSION', 'was written by a newer version', [1]]]
  const old = `${JSON.stringify(footer)}\n`
  const trailer = JSON.stringify({ at, crc: crc32(old) })
  writeFileSync(path, `${text.slice(0, at)}${old}${trailer.padEnd(63)}\n`)
  const after = await open(directory)
  assert.deepEqual(after.quarantined, [])
  await after.append('new', [records[2]!])
  assert.equal((await after.read('new', 0, 10)).length, 3)
  await after.close()
})
