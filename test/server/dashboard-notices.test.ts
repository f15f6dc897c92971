/** Of which runs the user is told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

interface Run {
  run_id: string
  status: string
  role: string
  problem: string | null
}
interface Found {
  notices: readonly { run: Run; needsUser: boolean }[]
  known: ReadonlyMap<string, { status: string }>
}
const folder = fileURLToPath(new URL('../../lib/server/dashboard/static/', import.meta.url))
const { noticesOf, REMEMBERED } = (await import(`${folder}notice-rules.js`)) as {
  noticesOf(known: Found['known'] | null, runs: readonly Run[]): Found
  REMEMBERED: number
}

function run(run_id: string, status: string, more: Partial<Run> = {}): Run {
  return { run_id, status, role: 'root', problem: null, ...more }
}

function told(before: readonly Run[] | null, runs: readonly Run[]): string[] {
  const known = before === null ? null : noticesOf(null, before).known
  return noticesOf(known, runs).notices.map(
    ({ run, needsUser }) => `${run.run_id} ${needsUser ? 'needs you' : 'has ended'}`,
  )
}

for (const { title, before, runs, expected } of [
  { title: 'the first list', before: null, runs: [run('a', 'awaiting_human')], expected: [] },
  {
    title: 'a run that comes to a gate',
    before: [run('a', 'running')],
    runs: [run('a', 'awaiting_human')],
    expected: ['a needs you'],
  },
  {
    title: 'a new run that is at a gate already',
    before: [],
    runs: [run('a', 'awaiting_human')],
    expected: ['a needs you'],
  },
  {
    title: 'a run that still waits',
    before: [run('a', 'awaiting_human')],
    runs: [run('a', 'awaiting_human')],
    expected: [],
  },
  ...['achieved', 'failed', 'aborted'].map((status) => ({
    title: `a run that has ${status}`,
    before: [run('a', 'running')],
    runs: [run('a', status)],
    expected: ['a has ended'],
  })),
  { title: 'an old run', before: [], runs: [run('a', 'failed')], expected: [] },
  {
    title: 'an attempt that ends',
    before: [run('a', 'running', { role: 'attempt' })],
    runs: [run('a', 'failed', { role: 'attempt' })],
    expected: [],
  },
  {
    title: 'an attempt at a gate',
    before: [],
    runs: [run('a', 'awaiting_human', { role: 'attempt' })],
    expected: ['a needs you'],
  },
  {
    title: 'a damaged run',
    before: [run('a', 'running')],
    runs: [run('a', 'failed', { problem: 'its log is damaged' })],
    expected: [],
  },
  {
    title: 'a run that is listed twice',
    before: [run('a', 'running')],
    runs: [run('a', 'awaiting_human'), run('b', 'running')],
    expected: ['a needs you'],
  },
]) {
  test(`of ${title} is told: ${expected.join(', ') || 'nothing'}`, () => {
    assert.deepEqual(told(before, runs), expected)
  })
}

test('a run in two pages of one list is told of once', () => {
  const { known } = noticesOf(null, [run('a', 'running')])
  const both = [run('a', 'awaiting_human'), run('a', 'awaiting_human')]
  assert.equal(noticesOf(known, both).notices.length, 1)
})

test('what is known of runs is bounded, and the oldest is forgotten', () => {
  const many = Array.from({ length: REMEMBERED + 5 }, (_, i) => run(`r${i}`, 'running'))
  const { known } = noticesOf(null, many)
  assert.equal(known.size, REMEMBERED)
  assert.equal(known.has('r0'), false)
})
