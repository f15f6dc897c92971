import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { SnapshotDisk } from './snapshot-disk.js'
import { copyStore, openStore } from './store-files.js'
import { settled, addTree, idsOf } from './stored-trees.js'

test('a crash at any step of retention leaves no child without its root', async (t) => {
  const folder = scratch(t, 'in memory')
  const directory = join(folder, 'data')
  const snapshots: string[] = []
  let taking = false
  const disk = new SnapshotDisk(() => {
    if (taking) snapshots.push(copyStore(directory, join(folder, `snapshot-${snapshots.length}`)))
  })
  const store = await openStore(directory, { retain: { runs: 1 }, sync: 'group' }, disk)
  await addTree(store, 'a', 1)
  taking = true
  await addTree(store, 'b', 2)
  await settled(store)
  taking = false
  assert.equal(await idsOf(store, {}), 'b2 b1 b')
  await store.close()
  const left = new Set<string>()
  for (const snapshot of snapshots) {
    const copy = await openStore(copyStore(snapshot, join(folder, 'copy')))
    const { heads } = await copy.list({ limit: 100 })
    const ids = new Set(heads.map(({ details }) => details.run_id))
    for (const { details } of heads)
      assert.ok(ids.has(details.root_run_id), `${details.run_id} has lost its root`)
    left.add(await idsOf(copy, { root: 'a' }))
    await copy.close()
    // The next start ends what has begun.
    const next = await openStore(join(folder, 'copy'), { retain: { runs: 1 } })
    await settled(next)
    const hasEnded = (await next.head('b'))?.details.ended_at !== null && ids.has('b')
    assert.equal(await idsOf(next, { root: 'a' }), hasEnded ? '' : 'a2 a1 a')
    await next.close()
    rmSync(join(folder, 'copy'), { recursive: true })
  }
  assert.ok(left.has('a2 a1 a') && left.has('a') && left.has(''), [...left].join(', '))
})
