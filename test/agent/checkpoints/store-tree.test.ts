/** Trees that are stored without a folder, and the start that checks compare with. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { composeStart } from '../../../lib/agent/checkpoints/check-start.js'
import { Reclaimer } from '../../../lib/agent/checkpoints/reclaim.js'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { storeTree } from '../../../lib/agent/checkpoints/store-tree.js'
import { MemoryObjects } from '../../../lib/agent/stores/memory-store.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { readContent, readTree } from '../../../lib/agent/workspace/read-tree.js'
import type { RunRecord } from '../../../lib/agent/events.js'
import { Captures } from '../workspace/captures.js'

test('a tree that is stored again has its id', async (t) => {
  const folder = new Captures(t, { neverStore: ['own.txt'] })
  const raw = Buffer.concat([Buffer.from(folder.root), Buffer.from('/raw\xff', 'latin1')])
  fs.writeFileSync(raw, 'raw')
  const paths = ['a/b/c.txt', 'a-b', 'a.b', 'é/\u{1f600}', '.env', 'own.txt']
  for (const path of paths) folder.write(path)
  fs.mkdirSync(join(folder.root, 'empty'), { mode: 0o700 })
  fs.symlinkSync('a-b', join(folder.root, 'link'))
  const { checkpoint_id: id } = await folder.capture()
  const tree = await readTree(folder.objects, id)
  const objects = new MemoryObjects()
  assert.equal(await storeTree(objects, tree), id)
  assert.deepEqual(await readTree(objects, id), tree)
})

/** Captures after each step, the last of which finds the folder as a new run does. */
async function captured(folder: Captures, steps: readonly (() => void)[]): Promise<string[]> {
  const ids: string[] = []
  for (const step of steps) {
    step()
    ids.push((await folder.capture()).checkpoint_id)
  }
  return ids
}

test('paths that an earlier run has left are as at its start, all others as they are', async (t) => {
  const folder = new Captures(t)
  const remove = (path: string): void => fs.rmSync(join(folder.root, path), { recursive: true })
  const [start, last, now] = await captured(folder, [
    () => {
      for (const path of ['edited', 'edited twice', 'gone/a', 'back', 'same'])
        folder.write(path, 'old')
    },
    () => {
      for (const path of ['edited', 'edited twice', 'added/a', 'added/b']) folder.write(path, 'run')
      for (const path of ['gone', 'back']) remove(path)
    },
    () => {
      folder.write('edited twice', 'person')
      folder.write('back', 'person')
      folder.write('added/c', 'person')
      remove('added/b')
    },
  ] as const) as [string, string, string]
  const left = { runId: 'a', start, last }
  const id = await composeStart(folder.objects, { ...left, isAccepted: () => false }, now)
  const { entries, folders } = await readTree(folder.objects, id!)
  const texts: Record<string, string> = {}
  for (const [path, entry] of entries)
    texts[path] = Buffer.from(await readContent(folder.objects, entry)).toString()
  assert.deepEqual(texts, {
    'added/c': 'person', back: 'person', edited: 'old', 'edited twice': 'person', 'gone/a': 'old',
    same: 'old',
  })
  assert.deepEqual([...folders!.keys()], ['added', 'gone'])
  const accepted = { ...left, isAccepted: (path: string) => path !== 'gone/a' }
  const other = await readTree(folder.objects, (await composeStart(folder.objects, accepted, now))!)
  assert.ok(other.entries.has('gone/a') && other.entries.has('added/a'))
  const all = { ...left, isAccepted: () => true }
  assert.equal(await composeStart(folder.objects, all, now), null)
  const undone = { ...left, isAccepted: () => false }
  assert.equal(await composeStart(folder.objects, undone, start), null)
})

test('what the start of checks refers to stays as long as its run', async (t) => {
  const folder = new Captures(t)
  const store = new MemoryStore()
  await store.open()
  const run = sampleRun('a', { status: 'running' })
  await store.append('a', run)
  folder.write('test.js', 'old')
  const { checkpoint_id: start } = await folder.capture(store.objects)
  folder.write('test.js', 'new')
  const { checkpoint_id: now } = await folder.capture(store.objects)
  const seq = run.length + 1
  const payload = { checkpoint_id: now, reason: 'start', files: 1, bytes: 3, new_bytes: 3 }
  const record = {
    v: 4, run_id: 'a', seq, iteration: 0, ts: 1_800_000_000, kind: 'checkpoint',
    payload: { ...payload, left_out: [] }, private: { previous: null, check_start: start },
  }
  await store.append('a', [record as unknown as RunRecord])
  const onProblem = (problem: Error): void => assert.fail(problem)
  const use = new ObjectUse(store.objects, false)
  const reclaimer = new Reclaimer({ store, use, onProblem })
  assert.deepEqual(await reclaimer.sweep(), { kept: 4, removed: 0 })
  await store.delete('a')
  assert.deepEqual(await reclaimer.sweep(), { kept: 0, removed: 4 })
  await reclaimer.close()
})
