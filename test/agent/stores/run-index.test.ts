/** The index of MemoryStore and FileStore, compared with an obvious version of a list. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type EndReason, type RunHead, type RunQuery } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { foldHead } from '../../../lib/agent/log/head.js'
import type { IndexedRun } from '../../../lib/agent/stores/indexed-run.js'
import { folderOrder, metadataKeys } from '../../../lib/agent/stores/list-query.js'
import { RunIndex } from '../../../lib/agent/stores/run-index.js'
import { orderOf, RUN_SORTS, type RunSort } from '../../../lib/internal/run-sorts.js'
import { atOnce } from '../../../lib/internal/time.js'
import { Random } from '../../helpers/random.js'

const STATUSES = ['pending', 'running', 'awaiting_human', 'achieved', 'failed', 'aborted'] as const
const UNENDED: readonly string[] = STATUSES.slice(0, 3)
const REASONS = ['goal_achieved', 'max_iterations', 'stuck'] as const
const TENANTS = [null, 'blue', 'red'] as const
const MARKS = [{}, { team: 'x' }, { team: 'x', ticket: '1' }] as const
/** 399 characters, one less than those by which a folder is ordered. */
const LONG = `/${'x'.repeat(398)}`
const FOLDERS = [
  '', '/a', '/a/b', '/a!', '/a"', '/a\\', '/a\u0001', '/ä', '/\uffee', '/\u{1f600}', '/\ud800', '/b',
  LONG, `${LONG}a`, `${LONG}b`, `${LONG}"`, `${LONG}\u{1f600}`, `${LONG}aa`, `${LONG}ab`,
  `/${'\u{1f600}'.repeat(220)}`, `/${'\u{1f600}'.repeat(401)}a`, `/${'\u{1f600}'.repeat(401)}b`,
] as const

/** Runs that come, change and go, and the index of them. */
class World {
  readonly index = new RunIndex<IndexedRun>()
  readonly runs: IndexedRun[] = []
  readonly #random: Random
  #created = 0

  constructor(random: Random) {
    this.#random = random
  }

  add(): void {
    const random = this.#random
    const parent = random.chance(0.3) && this.runs.length > 0 ? random.pick(this.runs) : null
    const status = random.pick(STATUSES)
    const hasEnded = !UNENDED.includes(status)
    const run: IndexedRun = {
      runId: `${random.integer(0, 99)}-${(this.#created += 1)}`,
      createdMs: 1_000 + random.integer(0, 50),
      goal: random.pick(['fix it', 'make the TESTS pass']),
      modelName: random.pick(['one', 'two']),
      cwd: random.pick(FOLDERS),
      ownerId: null,
      tenant: random.pick(TENANTS),
      key: null,
      child: parent && {
        root: parent.child?.root ?? parent.runId, parent: parent.runId, role: 'attempt',
      },
      status,
      endedMs: hasEnded ? 2_000 : 0,
      endReason: hasEnded ? random.pick(REASONS) : null,
      metadata: metadataKeys(random.pick(MARKS)),
      operates: false,
    }
    this.index.add(run)
    this.runs.push(run)
  }

  /** Adds, ends or removes a run. */
  change(): void {
    const run = this.#random.pick(this.runs)
    const kind = this.#random.integer(0, 2)
    if (kind === 0 || this.runs.length < 2) this.add()
    else if (kind === 1) this.remove(run)
    else this.end(run)
  }

  end(run: IndexedRun): void {
    if (!UNENDED.includes(run.status)) return
    const details = { status: 'failed', ended_at: null, end_reason: this.#random.pick(REASONS) }
    this.index.update(run, { operation: null, details } as RunHead)
  }

  remove(run: IndexedRun): void {
    this.index.remove(run)
    this.runs.splice(this.runs.indexOf(run), 1)
  }

  query(): RunQuery {
    const random = this.#random
    const some = random.pick(this.runs)
    const all: Partial<RunQuery> = {
      tenant: random.pick(TENANTS),
      status: [random.pick(STATUSES), random.pick(STATUSES)],
      goal: 'fix it',
      modelName: 'two',
      cwd: random.pick(FOLDERS),
      endReason: [random.pick(REASONS), random.pick(REASONS)],
      metadata: random.pick(MARKS.slice(1)),
      search: random.pick(['tests ONE', '9', ' ']),
      root: some.child?.root ?? some.runId,
      parent: some.child?.parent ?? some.runId,
      role: 'root',
      createdAfter: (1_000 + random.integer(0, 50)) / 1_000,
      createdBefore: (1_000 + random.integer(0, 50)) / 1_000,
    }
    const conditions = Object.fromEntries(Object.entries(all).filter(() => random.chance(0.15)))
    return { ...conditions, sort: random.pick(RUN_SORTS), limit: random.pick([1, 2, 7, 60, 5_000]) }
  }
}

function textOf({ cwd, endReason, child }: IndexedRun, sort: RunSort): string {
  const { field } = orderOf(sort)
  if (field === null) return ''
  return { cwd: folderOrder(cwd ?? ''), end_reason: endReason ?? '', parent: child?.parent ?? '' }[
    field
  ]
}

function matches(run: IndexedRun, query: RunQuery): boolean {
  const { status, endReason, metadata = {}, search = '', createdAfter, createdBefore } = query
  const text = `${run.goal} ${run.modelName} ${run.runId}`.toLowerCase()
  const keys = metadataKeys(metadata)
  return [
    query.tenant === undefined || query.tenant === run.tenant,
    status === undefined || status.includes(run.status),
    query.goal === undefined || query.goal === run.goal,
    query.modelName === undefined || query.modelName === run.modelName,
    query.cwd === undefined || query.cwd === run.cwd,
    endReason === undefined || endReason.includes(run.endReason as EndReason),
    keys.every((key) => run.metadata?.includes(key)),
    search.toLowerCase().split(' ').every((word) => text.includes(word)),
    query.root === undefined || query.root === (run.child?.root ?? run.runId),
    query.parent === undefined || query.parent === run.child?.parent,
    query.role === undefined || run.child === null,
    createdAfter === undefined || run.createdMs > Math.round(createdAfter * 1_000),
    createdBefore === undefined || run.createdMs < Math.round(createdBefore * 1_000),
  ].every(Boolean)
}

/** The obvious version of a list. */
function listed(runs: readonly IndexedRun[], query: RunQuery): IndexedRun[] {
  const { sort = '-created_at' } = query
  const found = runs.filter((run) => matches(run, query))
  const texts = new Map(found.map((run) => [run, Buffer.from(textOf(run, sort))]))
  return found.sort((a, b) => {
    const order = Buffer.compare(texts.get(a)!, texts.get(b)!) || a.createdMs - b.createdMs
    return (order || (a.runId < b.runId ? -1 : 1)) * orderOf(sort).step
  })
}

const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)

test(`pages are those of a filter and a sort of all runs, with RUNWRIGHT_SEED=${seed}`, () => {
  const random = new Random(seed)
  for (const size of [3, 60, 1_500]) {
    const world = new World(random)
    for (let i = 0; i < size; i++) world.add()
    for (let round = 0; round < 60; round++) {
      world.change()
      const query = world.query()
      const ids: string[] = []
      let cursor: string | undefined
      const expected = listed(world.runs, query)
      do {
        const { runs, next } = atOnce(world.index.page({ ...query, cursor }))
        ids.push(...runs.map(({ runId }) => runId))
        cursor = next ?? undefined
      } while (cursor !== undefined && ids.length < 5 * query.limit)
      const wanted = expected.slice(0, Math.max(ids.length, query.limit))
      assert.deepEqual(ids, wanted.map(({ runId }) => runId), JSON.stringify(query))
    }
  }
})

test(`pages are right while runs change during pauses, with RUNWRIGHT_SEED=${seed}`, () => {
  const random = new Random(seed)
  let paused = 0
  for (let round = 0; round < 60; round++) {
    const world = new World(random)
    for (let i = 0; i < 1_500; i++) world.add()
    const query = world.query()
    const scan = world.index.page(query)
    const before = new Map(world.runs.map((run) => [run, run.status]))
    let step = scan.next()
    for (; step.done !== true; step = scan.next()) {
      paused += 1
      for (let i = 0; i < 5; i++) world.change()
      // The run that is most likely to be on the page.
      const [first] = random.chance(0.1) ? listed(world.runs, query) : []
      if (first !== undefined) world.end(first)
    }
    const { runs, next } = step.value
    const name = JSON.stringify(query)
    assert.deepEqual(runs, listed(runs, query), name)
    assert.equal(new Set(runs).size, runs.length, name)
    assert.ok(runs.every((run) => world.runs.includes(run)), name)
    assert.ok(next === null || runs.length === query.limit, name)
    // What was there all the time and is before the end of the page is on it.
    const still = world.runs.filter((run) => before.get(run) === run.status)
    const inOrder = listed([...still, ...runs.filter((run) => !still.includes(run))], query)
    const end = next === null ? inOrder.length : inOrder.indexOf(runs.at(-1)!)
    const missing = inOrder.slice(0, end).filter((run) => !runs.includes(run))
    assert.deepEqual(missing, [], name)
  }
  assert.ok(paused > 100, `only ${paused} pauses`)
})

test('a list that has to look at every run pauses often', () => {
  const world = new World(new Random(1))
  for (let i = 0; i < 10_000; i++) world.add()
  for (const query of [{ goal: 'none' }, { search: 'none' }, { sort: 'cwd' }] as const) {
    let pauses = 0
    for (const _ of pausesOf(world.index, { limit: 50, ...query })) pauses += 1
    assert.ok(pauses >= 30, `${pauses} pauses`)
  }
})

test('a list of one folder looks at the runs in it alone', () => {
  const world = new World(new Random(1))
  for (let i = 0; i < 10_000; i++) world.add()
  const some = { ...world.runs[0]!, createdMs: 1_000, cwd: '/some' }
  const known = { ...some, runId: 'known' }
  // In the index of an earlier version, the folder is missing.
  const unknown: IndexedRun = { ...some, runId: 'unknown', createdMs: 2_000, cwd: null }
  for (const run of [known, unknown]) world.index.add(run)
  const ids = (): readonly string[] => {
    const scan = world.index.page({ limit: 50, cwd: '/some' }).next()
    assert.equal(scan.done, true, 'it paused')
    return scan.value?.runs.map(({ runId }) => runId) ?? []
  }
  assert.deepEqual(ids(), ['known'])
  const [created] = sampleRun('unknown', { createdAt: 2, cwd: '/some' })
  world.index.complete(unknown, foldHead(null, created!))
  assert.deepEqual(ids(), ['unknown', 'known'])
  world.index.remove(known)
  world.index.remove(unknown)
  assert.deepEqual(ids(), [])
})

function* pausesOf(index: RunIndex<IndexedRun>, query: RunQuery): Generator<void> {
  yield* index.page(query)
}

test('a list whose runs change during every pause is returned nevertheless', () => {
  const world = new World(new Random(1))
  for (let i = 0; i < 2_000; i++) world.add()
  const query = { limit: 50, sort: 'end_reason' } as const
  const scan = world.index.page(query)
  let step = scan.next()
  for (let i = 0; step.done !== true; step = scan.next()) {
    assert.ok((i += 1) < 100)
    world.remove(listed(world.runs, query)[0]!)
  }
  assert.deepEqual(step.value.runs, listed(world.runs, query).slice(0, 50))
})

/** Clients keep cursors, so their form never changes. */
const CURSORS: Readonly<Record<RunSort, readonly unknown[]>> = {
  '-created_at': [1_700_000_001_000, 'b'],
  created_at: [1_700_000_000_000, 'a', 'created_at'],
  '-cwd': [1_700_000_001_000, 'b', '-cwd', '/b\u0001Rtd_0nk89hQsA_thl87voz'],
  cwd: [1_700_000_000_000, 'a', 'cwd', '/a\\"\u0001Mmcg3XjnxioBu2bTtfThbJ'],
  '-end_reason': [1_700_000_001_000, 'b', '-end_reason', 'max_iterations'],
  end_reason: [1_700_000_000_000, 'a', 'end_reason', 'goal_achieved'],
  '-parent': [1_700_000_001_000, 'b', '-parent', 'a'],
  parent: [1_700_000_000_000, 'a', 'parent', ''],
}

for (const sort of RUN_SORTS) {
  test(`the cursor of a page in the order ${sort} has its form`, async () => {
    await using store = new MemoryStore()
    await store.open()
    const T = 1_700_000_000
    await store.append('a', sampleRun('a', { createdAt: T, cwd: '/a"' }))
    const child = { createdAt: T + 1, cwd: '/b', rootRunId: 'a', parentRunId: 'a' }
    await store.append('b', sampleRun('b', { ...child, status: 'failed' }))
    const { next } = await store.list({ limit: 1, sort })
    assert.deepEqual(JSON.parse(String(Buffer.from(next!, 'base64url'))), CURSORS[sort])
  })
}
