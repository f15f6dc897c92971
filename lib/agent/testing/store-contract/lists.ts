/** Lists: conditions, order, cursors. @module */
import assert from 'node:assert/strict'
import type { RunQuery, RunStore } from '../../store.js'
import { sampleRun, type SampleRunOptions } from '../sample-records.js'
import { add, idsOf, listAll, type Suite } from './suite.js'

type Sample = SampleRunOptions & { readonly id: string }

/** Runs that a query finds, the newest first. */
interface Case {
  readonly title: string
  readonly query: Partial<RunQuery>
  readonly ids: string
}

const T = 1_700_000_000

const RUNS: readonly Sample[] = [
  { id: 'c', createdAt: T, status: 'achieved', goal: 'npm-test', tenant: 'blue', cwd: '/w/"ü"' },
  { id: 'a', createdAt: T + 2, status: 'running', goal: 'pytest', modelName: 'openai:x' },
  { id: 'd', createdAt: T + 1, status: 'failed', goal: 'npm-test', modelName: 'openai:x' },
  { id: 'b', createdAt: T + 1, status: 'running', goal: 'npm-test', tenant: 'blue' },
  { id: 'e', createdAt: T + 1.001, status: 'aborted', goal: 'pytest', tenant: 'blue', cwd: '' },
]

/** Names and values that JSON, SQL, JavaScript or a pattern may take for something else. */
const ODD = { 'a"}\n\\': '{":,\u0000\ud800}', __proto__x: '', 'team.x': 'ü☃' }
const MARKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  a: { team: 'red', ticket: '1' }, b: { team: 'red' }, c: ODD, e: { ticket: 'red', team: '1' },
}

const CASES: readonly Case[] = [
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
  { title: 'in a folder', query: { cwd: '/work' }, ids: 'adb' },
  { title: 'in a folder with an odd name', query: { cwd: '/w/"ü"' }, ids: 'c' },
  { title: 'without a folder', query: { cwd: '' }, ids: 'e' },
  { title: 'in a folder above', query: { cwd: '/' }, ids: '' },
  { title: 'that ended for a reason', query: { endReason: ['goal_achieved'] }, ids: 'c' },
  {
    title: 'that ended for one of two reasons',
    query: { endReason: ['max_iterations', 'goal_achieved', 'goal_achieved'] },
    ids: 'edc',
  },
  { title: 'that ended for a reason that none has', query: { endReason: ['stuck'] }, ids: '' },
  { title: 'of an empty list of reasons', query: { endReason: [] }, ids: 'aedbc' },
  { title: 'with a name in their metadata', query: { metadata: { team: 'red' } }, ids: 'ab' },
  {
    title: 'with two names in their metadata',
    query: { metadata: { ticket: '1', team: 'red' } },
    ids: 'a',
  },
  { title: 'with part of a value', query: { metadata: { team: 're' } }, ids: '' },
  { title: 'with odd names and values', query: { metadata: ODD }, ids: 'c' },
  {
    title: 'of a folder, a reason, and metadata',
    query: { cwd: '', endReason: ['max_iterations'], metadata: { team: '1' } },
    ids: 'e',
  },
  {
    title: 'that meet several conditions',
    query: { goal: 'npm-test', status: ['running'], tenant: 'blue' },
    ids: 'b',
  },
]

/** A run with two attempts, of which one has a delegate; a retry of it; another tree. */
const TREE: readonly Sample[] = [
  { id: 'r', createdAt: T },
  { id: 'p', createdAt: T + 1, rootRunId: 'r', parentRunId: 'r', status: 'running' },
  { id: 'q', createdAt: T + 1, rootRunId: 'r', parentRunId: 'r', goal: 'pytest' },
  { id: 'd', createdAt: T + 2, rootRunId: 'r', parentRunId: 'p', role: 'delegate' },
  { id: 'y', createdAt: T + 3, parentRunId: 'r' },
  { id: 's', createdAt: T + 4, status: 'running' },
  { id: 'c', createdAt: T + 5, rootRunId: 's', parentRunId: 's', tenant: 'blue' },
]

const TREE_CASES: readonly Case[] = [
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

async function fill(store: RunStore): Promise<void> {
  for (const { id, ...options } of RUNS) await add(store, id, { ...options, metadata: MARKS[id] })
}

async function grow(store: RunStore): Promise<void> {
  for (const { id, ...options } of TREE) await add(store, id, options)
}

export function testLists(suite: Suite): void {
  testCases(suite, CASES, fill)
  testCases(suite, TREE_CASES, grow)
  testChanges(suite)
  testRefusals(suite)
  testPages(suite)
}

function testCases(
  { test }: Suite,
  cases: readonly Case[],
  prepare: (store: RunStore) => Promise<void>,
): void {
  for (const { title, query, ids } of cases) {
    test(`runs ${title} are listed in both orders, in pages of any size`, async (store) => {
      await prepare(store)
      const oldestFirst = [...ids].reverse().join('')
      for (const limit of [1, 2, 3, 100]) {
        assert.deepEqual((await listAll(store, { ...query, limit })).join(''), ids)
        const sorted = await listAll(store, { ...query, limit, sort: 'created_at' })
        assert.deepEqual(sorted.join(''), oldestFirst)
      }
    })
  }
}

function testChanges({ test }: Suite): void {
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

  test('runs that end are found by their reason, whenever it is asked for', async (store) => {
    const [created, ...others] = sampleRun('run', { metadata: { team: 'red' } })
    const ended = { limit: 1, endReason: ['goal_achieved'] } as const
    await store.append('run', [created!])
    assert.deepEqual(await listAll(store, ended), [])
    await store.append('run', others)
    assert.deepEqual(await listAll(store, ended), ['run'])
    assert.deepEqual(await listAll(store, { limit: 1, metadata: { team: 'red' } }), ['run'])
    await add(store, 'later', { metadata: { team: 'red' }, createdAt: T * 1.1 })
    const red = { metadata: { team: 'red' }, cwd: '/work', ...ended }
    assert.deepEqual(await listAll(store, { ...red, limit: 1 }), ['later', 'run'])
    await store.delete('run')
    assert.deepEqual(await listAll(store, { ...red, limit: 1 }), ['later'])
  })
}

function testRefusals({ test }: Suite): void {
  test('an unknown role is refused', async (store) => {
    await grow(store)
    for (const role of ['attempt', '', 'Root', null]) {
      const query = { limit: 1, role } as unknown as RunQuery
      await assert.rejects(store.list(query), { name: 'TypeError', message: /role must be 'root'/ })
    }
  })

  test('an order, or metadata, that means nothing is refused by name', async (store) => {
    await fill(store)
    const many = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`n${i}`, '']))
    for (const [query, message] of [
      [{ sort: 'status' }, /sort must be '-created_at', 'created_at'/],
      [{ metadata: {} }, /metadata must have 1 to 32 names/],
      [{ metadata: many }, /metadata must have 1 to 32 names/],
      [{ metadata: { team: 1 } }, /metadata\.team must be a string/],
    ] as const) {
      await assert.rejects(store.list({ limit: 1, ...query } as unknown as RunQuery), { message })
    }
  })

  test('an invalid cursor is refused', async (store) => {
    await fill(store)
    for (const cursor of ['', 'x', 'bm90IGpzb24', 'W10']) {
      await assert.rejects(store.list({ limit: 1, cursor }), { code: 'ERR_AGENT_INVALID_REQUEST' })
    }
    // That of one order means other runs in the other.
    const orders = ['created_at', '-created_at'] as const
    for (const [i, sort] of orders.entries()) {
      const { next } = await store.list({ limit: 1, sort })
      const other = { limit: 1, sort: orders[1 - i], cursor: next ?? '' } as const
      await assert.rejects(store.list(other), { code: 'ERR_AGENT_INVALID_REQUEST' })
    }
  })
}

function testPages({ test }: Suite): void {
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
    const upward = await store.list({ limit: 3, sort: 'created_at' })
    assert.deepEqual(idsOf(upward), ['older', 'run-0', 'run-1'])
    await store.delete('run-1')
    await add(store, 'between', { createdAt: T + 1.5 })
    const onward = { limit: 2, sort: 'created_at', cursor: upward.next ?? '' } as const
    assert.deepEqual(idsOf(await store.list(onward)), ['between', 'run-2'])
    await store.delete('between')
    const rest = await listAll(store, { limit: 4 })
    const second = await store.list({ limit: 100, cursor: first.next ?? '' })
    assert.deepEqual(idsOf(second), ['run-5', 'run-3', 'run-2', 'run-0', 'older'])
    assert.equal(rest[0], 'newer')
  })
}
