/** Lists: conditions, order, cursors. @module */
import assert from 'node:assert/strict'
import type { RunQuery, RunStore } from '../../store.js'
import { sampleRun, type SampleRunOptions } from '../sample-records.js'
import { add, listAll, type Suite } from './suite.js'

export function testLists({ test }: Suite): void {
  const T = 1_700_000_000
  const runs: readonly (SampleRunOptions & { readonly id: string })[] = [
    { id: 'c', createdAt: T, status: 'achieved', goal: 'npm-test', tenant: 'blue' },
    { id: 'a', createdAt: T + 2, status: 'running', goal: 'pytest', modelName: 'openai:x' },
    { id: 'd', createdAt: T + 1, status: 'failed', goal: 'npm-test', modelName: 'openai:x' },
    { id: 'b', createdAt: T + 1, status: 'running', goal: 'npm-test', tenant: 'blue' },
    { id: 'e', createdAt: T + 1.001, status: 'aborted', goal: 'pytest', tenant: 'blue' },
  ]
  const fill = async (store: RunStore): Promise<void> => {
    for (const { id, ...options } of runs) await add(store, id, options)
  }

  interface Case {
    readonly title: string
    readonly query: Partial<RunQuery>
    readonly ids: string
  }
  const cases: readonly Case[] = [
    { title: 'of all kinds', query: {}, ids: 'aedbc' },
    { title: 'of one status', query: { status: ['running'] }, ids: 'ab' },
    { title: 'of one of two statuses', query: { status: ['failed', 'aborted'] }, ids: 'ed' },
    { title: 'of an empty list of statuses', query: { status: [] }, ids: 'aedbc' },
    { title: 'with a goal', query: { goal: 'npm-test' }, ids: 'dbc' },
    { title: 'with part of a goal', query: { goal: 'npm' }, ids: '' },
    { title: 'with a model', query: { modelName: 'openai:x' }, ids: 'ad' },
    { title: 'with words of their goal in any case', query: { search: 'Npm TEST' }, ids: 'dbc' },
    { title: 'with words of their goal and model', query: { search: 'test openai:' }, ids: 'ad' },
    { title: 'with words that no run has', query: { search: 'npm %' }, ids: '' },
    { title: 'found by a search for blanks', query: { search: ' ' }, ids: 'aedbc' },
    { title: 'of a tenant', query: { tenant: 'blue' }, ids: 'ebc' },
    { title: 'without a tenant', query: { tenant: null }, ids: 'ad' },
    { title: 'created after a time', query: { createdAfter: T + 1 }, ids: 'ae' },
    { title: 'created before a time', query: { createdBefore: T + 1 }, ids: 'c' },
    { title: 'from a time span', query: { createdAfter: T, createdBefore: T + 2 }, ids: 'edb' },
    {
      title: 'that meet several conditions',
      query: { goal: 'npm-test', status: ['running'], tenant: 'blue' },
      ids: 'b',
    },
  ]
  const testCases = (
    which: readonly Case[],
    prepare: (store: RunStore) => Promise<void>,
  ): void => {
    for (const { title, query, ids } of which) {
      test(`runs ${title} are listed newest first, in pages of any size`, async (store) => {
        await prepare(store)
        for (const limit of [1, 2, 3, 100]) {
          assert.deepEqual((await listAll(store, { ...query, limit })).join(''), ids)
        }
      })
    }
  }
  testCases(cases, fill)

  // A run with two attempts, of which one has a delegate; a retry of it; another tree.
  const tree: readonly (SampleRunOptions & { readonly id: string })[] = [
    { id: 'r', createdAt: T },
    { id: 'p', createdAt: T + 1, rootRunId: 'r', parentRunId: 'r', status: 'running' },
    { id: 'q', createdAt: T + 1, rootRunId: 'r', parentRunId: 'r', goal: 'pytest' },
    { id: 'd', createdAt: T + 2, rootRunId: 'r', parentRunId: 'p', role: 'delegate' },
    { id: 'y', createdAt: T + 3, parentRunId: 'r' },
    { id: 's', createdAt: T + 4, status: 'running' },
    { id: 'c', createdAt: T + 5, rootRunId: 's', parentRunId: 's', tenant: 'blue' },
  ]
  const grow = async (store: RunStore): Promise<void> => {
    for (const { id, ...options } of tree) await add(store, id, options)
  }
  const treeCases: readonly Case[] = [
    { title: 'of a tree', query: { root: 'r' }, ids: 'dqpr' },
    { title: 'of a tree without children', query: { root: 'y' }, ids: 'y' },
    { title: 'of a tree whose root is a child', query: { root: 'p' }, ids: '' },
    { title: 'of an unknown tree', query: { root: 'nobody' }, ids: '' },
    { title: 'that a run has started', query: { parent: 'r' }, ids: 'qp' },
    { title: 'that a child has started', query: { parent: 'p' }, ids: 'd' },
    { title: 'that a run without children has started', query: { parent: 'd' }, ids: '' },
    { title: 'that no other has started', query: { role: 'root' }, ids: 'syr' },
    { title: 'of a tree that no other has started', query: { root: 'r', role: 'root' }, ids: 'r' },
    { title: 'of a tree with a parent', query: { root: 'r', parent: 'p' }, ids: 'd' },
    { title: 'of one tree with a parent in another', query: { root: 's', parent: 'r' }, ids: '' },
    { title: 'started by a run and by none', query: { parent: 'r', role: 'root' }, ids: '' },
    { title: 'of a tree and a status', query: { root: 'r', status: ['running'] }, ids: 'p' },
    { title: 'of a tree and a tenant', query: { root: 's', tenant: null }, ids: 's' },
    { title: 'with a parent and a goal', query: { parent: 'r', goal: 'pytest' }, ids: 'q' },
    {
      title: 'of a tree from a time span',
      query: { root: 'r', createdAfter: T, createdBefore: T + 2 },
      ids: 'qp',
    },
  ]
  testCases(treeCases, grow)

  test('the children of a run that was deleted are still listed', async (store) => {
    await grow(store)
    await store.delete('r')
    assert.deepEqual(await listAll(store, { root: 'r', limit: 2 }), ['d', 'q', 'p'])
    assert.deepEqual(await listAll(store, { parent: 'r', limit: 2 }), ['q', 'p'])
    assert.deepEqual(await listAll(store, { role: 'root', limit: 2 }), ['s', 'y'])
    for (const id of ['d', 'q', 'p']) await store.delete(id)
    assert.deepEqual(await listAll(store, { root: 'r', limit: 2 }), [])
  })

  test('a child stays listed where it is while it goes on', async (store) => {
    await add(store, 'root', { createdAt: T })
    const place = { createdAt: T + 1, rootRunId: 'root', parentRunId: 'root' }
    const records = sampleRun('child', place)
    for (const record of records) {
      await store.append('child', [record])
      assert.deepEqual(await listAll(store, { root: 'root', limit: 1 }), ['child', 'root'])
      assert.deepEqual(await listAll(store, { parent: 'root', limit: 1 }), ['child'])
    }
  })

  test('an unknown role is refused', async (store) => {
    await grow(store)
    for (const role of ['attempt', '', 'Root', null]) {
      const query = { limit: 1, role } as unknown as RunQuery
      await assert.rejects(store.list(query), { name: 'TypeError', message: /role must be 'root'/ })
    }
  })

  test('a list contains the current heads of its runs', async (store) => {
    await fill(store)
    const { heads } = await store.list({ limit: 100 })
    for (const head of heads) assert.deepEqual(head, await store.head(head.details.run_id))
  })

  test('an empty store lists nothing', async (store) => {
    assert.deepEqual(await store.list({ limit: 10 }), { heads: [], next: null })
  })

  test('a cursor remains correct while runs are added and deleted', async (store) => {
    for (let i = 0; i < 10; i++) await add(store, `run-${i}`, { createdAt: T + i })
    const first = await store.list({ limit: 4 })
    await add(store, 'newer', { createdAt: T + 100 })
    await add(store, 'older', { createdAt: T - 100 })
    await store.delete('run-6') // the last of the first page
    await store.delete('run-4')
    const rest = await listAll(store, { limit: 4 })
    const second = await store.list({ limit: 100, cursor: first.next ?? '' })
    assert.deepEqual(
      second.heads.map(({ details }) => details.run_id),
      ['run-5', 'run-3', 'run-2', 'run-1', 'run-0', 'older'],
    )
    assert.equal(rest[0], 'newer')
  })

  test('an invalid cursor is refused', async (store) => {
    await fill(store)
    for (const cursor of ['', 'x', 'bm90IGpzb24', 'W10']) {
      await assert.rejects(store.list({ limit: 1, cursor }), { code: 'ERR_AGENT_INVALID_REQUEST' })
    }
  })
}
