/** Held-out tests, for a store with `holdouts`: without it, an engine refuses them. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { HoldoutStore } from '../../holdout-store.js'
import type { RunStore } from '../../store.js'
import { add, type Suite } from './suite.js'

const CONTENT = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * 31) % 256))

export function testHoldouts({ test }: Suite): void {
  test('held-out tests come back as they were stored, and only for their run', async (store) => {
    await withHoldouts(store, async (holdouts) => {
      await holdouts.put('a', CONTENT)
      await holdouts.put('b', Buffer.from('b'))
      await add(store, 'a')
      await add(store, 'b')
      assert.deepEqual(Buffer.from((await holdouts.get('a'))!).equals(CONTENT), true)
      assert.deepEqual(Buffer.from((await holdouts.get('b'))!), Buffer.from('b'))
      assert.equal(await holdouts.get('c'), null)
    })
  })

  test('the held-out tests of a run are deleted with it, or taken back', async (store) => {
    await withHoldouts(store, async (holdouts) => {
      for (const runId of ['a', 'b', 'c']) await holdouts.put(runId, Buffer.from(runId))
      await add(store, 'a')
      await add(store, 'b')
      await store.delete('a')
      await holdouts.remove('c')
      await holdouts.remove('unknown')
      assert.deepEqual(await Promise.all(['a', 'c'].map((id) => holdouts.get(id))), [null, null])
      assert.deepEqual(Buffer.from((await holdouts.get('b'))!), Buffer.from('b'))
    })
  })
}

export function testDurableHoldouts(
  { test }: Suite,
  reopen: (store: RunStore, t: TestContext) => Promise<RunStore>,
): void {
  test('held-out tests are still there after a restart', async (store, t) => {
    await withHoldouts(store, async (holdouts) => {
      await holdouts.put('a', CONTENT)
      await add(store, 'a', { status: 'running' })
      const again = await reopen(store, t)
      try {
        assert.equal(Buffer.from((await again.holdouts!.get('a'))!).equals(CONTENT), true)
      } finally {
        await again.close()
      }
    })
  })
}

async function withHoldouts(
  { holdouts }: RunStore,
  work: (holdouts: HoldoutStore) => Promise<void>,
): Promise<void> {
  if (holdouts !== undefined) await work(holdouts)
}
