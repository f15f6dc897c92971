import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type RunRecord } from 'runwright/agent'
import { RunFeed } from '../../../lib/agent/log/feed.js'
import type { SubscriptionEnd } from '../../../lib/agent/log/subscription.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { Random } from '../../helpers/random.js'

const RUN = '01999999-0000-7000-8000-000000000001'

/** The log of a run with `count` records, most of them log lines. */
function records(count: number): RunRecord[] {
  const [created] = sampleRun(RUN)
  assert.ok(created !== undefined)
  const rest = Array.from({ length: count - 1 }, (_, index): RunRecord => ({
    v: 1,
    seq: index + 2,
    run_id: RUN,
    kind: 'log',
    iteration: 0,
    ts: created.ts,
    payload: { level: 'info', message: `line ${index} ${'x'.repeat(index % 300)}` },
  }))
  return [created, ...rest]
}

async function stored(list: readonly RunRecord[]): Promise<MemoryStore> {
  const store = new MemoryStore()
  await store.open()
  if (list.length > 0) await store.append(RUN, list)
  return store
}

async function seqs(reader: ReturnType<RunFeed['subscribe']>): Promise<number[]> {
  const seen: number[] = []
  for await (const batch of reader) seen.push(...batch.map(({ seq }) => seq))
  return seen
}

const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n)

test('readers that subscribe anywhere, at any time, get each event once and in order', async () => {
  const random = new Random(7)
  const all = records(5_000)
  const store = await stored([])
  const feed = new RunFeed(RUN, store, 0)
  const readers: { from: number; seen: Promise<number[]> }[] = []
  for (let at = 0; at < all.length; ) {
    const group = all.slice(at, at + random.integer(1, 40))
    await store.append(RUN, group)
    feed.publish(group)
    at += group.length
    if (random.chance(0.1)) {
      const from = random.integer(0, at)
      readers.push({ from, seen: seqs(feed.subscribe(from)) })
    }
    if (random.chance(0.3)) await new Promise((resolve) => setImmediate(resolve))
  }
  feed.finish()
  assert.ok(readers.length > 5)
  for (const { from, seen } of readers) assert.deepEqual(await seen, upTo(from + 1, all.length))
})

test('a batch has at most 256 events and about 1 MiB', async () => {
  const all = records(600)
  const large = all.slice(1, 5).map((record): RunRecord =>
    record.kind === 'log'
      ? { ...record, payload: { level: 'info', message: 'x'.repeat(400_000) } }
      : record,
  )
  const list = [all[0] as RunRecord, ...large, ...all.slice(5)]
  const replayed = new RunFeed(RUN, await stored(list), 600)
  const store = await stored([])
  const live = new RunFeed(RUN, store, 0)
  const reader = live.subscribe(0)
  await store.append(RUN, list)
  live.publish(list)
  live.finish()
  replayed.finish()
  for (const each of [reader, replayed.subscribe(0)]) {
    const sizes: number[] = []
    const seen: number[] = []
    for await (const batch of each) {
      sizes.push(batch.length)
      seen.push(...batch.map(({ seq }) => seq))
    }
    assert.deepEqual(seen, upTo(1, 600))
    assert.equal(sizes[0], 3, 'two large events and a small one')
    assert.ok(Math.max(...sizes) <= 256)
  }
})

test('events that are stored but not published are not delivered', async () => {
  const all = records(10)
  const feed = new RunFeed(RUN, await stored(all), 4)
  const reader = feed.subscribe(0)
  assert.deepEqual((await reader.next())?.map(({ seq }) => seq), [1, 2, 3, 4])
  const more = reader.next()
  feed.publish(all.slice(4))
  assert.deepEqual((await more)?.map(({ seq }) => seq), [5, 6, 7, 8, 9, 10])
})

test('closing a subscription ends its wait', async () => {
  const feed = new RunFeed(RUN, await stored([]), 0)
  const reader = feed.subscribe(0)
  const waiting = reader.next()
  reader.close()
  assert.equal(await waiting, null)
  assert.equal(reader.end, 'closed')
})

test('the subscription of a run that is deleted ends as deleted', async () => {
  const store = await stored(records(600))
  const feed = new RunFeed(RUN, store, 600)
  const reader = feed.subscribe(0)
  await reader.next()
  await store.delete(RUN)
  assert.equal(await reader.next(), null)
  assert.equal(reader.end, 'deleted')
})

test('an event is encoded once for all readers', async () => {
  const all = records(3)
  const store = await stored([])
  const feed = new RunFeed(RUN, store, 0)
  const [one, two] = [feed.subscribe(0), feed.subscribe(0)]
  await store.append(RUN, all)
  feed.publish(all)
  const [a, b] = [await one.next(), await two.next()]
  assert.equal(a?.[0], b?.[0])
})

test('idle feeds drop their caches, and their readers continue from the store', async () => {
  const large = records(40).map((record): RunRecord =>
    record.kind === 'log'
      ? { ...record, payload: { level: 'info', message: 'x'.repeat(12_000) } }
      : record,
  )
  const store = await stored(large)
  let reads = 0
  const read = store.read.bind(store)
  store.read = async (...page) => {
    reads += 1
    return read(...page)
  }
  // Each caches about 1 MiB; the bound of all together is 32 MiB.
  const feeds = Array.from({ length: 60 }, () => new RunFeed(RUN, store, 0))
  const late = feeds.map((feed) => feed.subscribe(0))
  for (const feed of feeds) feed.publish(large)
  for (const reader of late) {
    const seen: number[] = []
    while (seen.length < large.length)
      seen.push(...((await reader.next()) ?? []).map(({ seq }) => seq))
    assert.deepEqual(seen, upTo(1, large.length))
  }
  assert.ok(reads > 20 && reads < 40, `${reads} of 60 readers had to go to the store`)
  for (const feed of feeds) feed.finish('shutdown')
})

test('a feed ends with run_end only after that record was published, or is known stored', async () => {
  const log = records(4)
  const end = sampleRun(RUN, { records: 5, status: 'failed' }).at(-1) as RunRecord
  assert.equal(end.kind, 'run_end')
  const all = [...log, { ...end, seq: 5 }]
  const table: [published: number, isComplete: boolean, end: SubscriptionEnd][] = [
    [0, false, 'shutdown'],
    [4, false, 'shutdown'],
    [5, false, 'run_end'],
    [0, true, 'run_end'],
  ]
  for (const [published, isComplete, expected] of table) {
    const from = isComplete ? 5 : 0
    const feed = new RunFeed(RUN, await stored(all), from, isComplete)
    feed.publish(all.slice(0, published))
    feed.finish()
    const reader = feed.subscribe(0)
    assert.deepEqual(await seqs(reader), upTo(1, Math.max(from, published)))
    assert.equal(reader.end, expected)
  }
})
