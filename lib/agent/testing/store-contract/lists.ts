/** Lists: conditions, order, cursors. @module */
import assert from 'node:assert/strict'
import type { RunQuery, RunStore } from '../../store.js'
import type { SampleRunOptions } from '../sample-records.js'
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
  for (const { title, query, ids } of cases) {
    test(`runs ${title} are listed newest first, in pages of any size`, async (store) => {
      await fill(store)
      for (const limit of [1, 2, 3, 100]) {
        assert.deepEqual((await listAll(store, { ...query, limit })).join(''), ids)
      }
    })
  }

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
