import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type RunRecord } from 'runwright/agent'
import { DeltaWriter } from '../../../lib/agent/log/deltas.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { RunFeed } from '../../../lib/agent/log/feed.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { deltaOf } from './parse-delta.js'

const RUN = '01999999-0000-7000-8000-000000000001'

/** A feed over a store, and a function that appends a log line to both. */
async function openFeed(): Promise<{ feed: RunFeed; log: () => Promise<void> }> {
  const store = new MemoryStore()
  await store.open()
  const feed = new RunFeed(RUN, store, 0)
  const [created] = sampleRun(RUN) as [RunRecord]
  let seq = 0
  const log = async (): Promise<void> => {
    seq += 1
    const { ts } = created
    const line: RunRecord = {
      v: 1,
      seq,
      run_id: RUN,
      kind: 'log',
      iteration: 0,
      ts,
      payload: { level: 'info', message: 'x' },
    }
    const record = seq === 1 ? created : line
    await store.append(RUN, [record])
    feed.publish([record])
  }
  return { feed, log }
}

const writerOf = (feed: RunFeed): DeltaWriter =>
  new DeltaWriter(feed, () => 5, new Redactor([]), {
    iteration: 2,
    turn: 3,
    attempt: 1,
  })

test('deltas arrive between the events between which they were written', async () => {
  const { feed, log } = await openFeed()
  const reader = feed.subscribe(0, true)
  const plain = feed.subscribe(0)
  const writer = writerOf(feed)
  await log()
  await log()
  writer.write('Hel')
  writer.write('lo')
  await log()
  writer.write('!')
  feed.finish()
  const seen: unknown[] = []
  for await (const items of reader) {
    for (const item of items) seen.push(item.seq ?? deltaOf(item).payload.text)
  }
  assert.deepEqual(seen, [1, 2, 'Hel', 'lo', 3, '!'])
  const events: number[] = []
  for await (const items of plain) events.push(...items.map(({ seq }) => seq))
  assert.deepEqual(events, [1, 2, 3])
})

test('a delta has its run, iteration, turn, attempt and offset, but no seq', async () => {
  const { feed } = await openFeed()
  const reader = feed.subscribe(0, true)
  const writer = writerOf(feed)
  writer.write('Hé')
  writer.write('llo')
  const items = (await reader.next()) ?? []
  assert.deepEqual(items.map(deltaOf), [
    {
      kind: 'model_delta',
      run_id: RUN,
      iteration: 2,
      ts: 5,
      payload: { turn: 3, attempt: 1, offset: 0, text: 'Hé' },
    },
    {
      kind: 'model_delta',
      run_id: RUN,
      iteration: 2,
      ts: 5,
      payload: { turn: 3, attempt: 1, offset: 2, text: 'llo' },
    },
  ])
  assert.deepEqual(items.map(({ seq }) => seq), [null, null])
})

test('text written before a reader subscribed is missing, as the offset shows', async () => {
  const { feed } = await openFeed()
  const writer = writerOf(feed)
  writer.write('12345')
  const reader = feed.subscribe(0, true)
  writer.write('6')
  assert.deepEqual((await reader.next())?.map((item) => deltaOf(item).payload.offset), [5])
})

test('a slow reader misses deltas beyond 64 Ki characters, but no events', async () => {
  const { feed, log } = await openFeed()
  const reader = feed.subscribe(0, true)
  const writer = writerOf(feed)
  await log()
  for (let n = 0; n < 100; n++) writer.write('x'.repeat(1_000))
  await log()
  feed.finish()
  const seqs: number[] = []
  let characters = 0
  for await (const items of reader) {
    for (const { seq, json } of items) {
      if (seq === null) characters += json.length
      else seqs.push(seq)
    }
  }
  assert.deepEqual(seqs, [1, 2])
  assert.ok(characters > 60_000 && characters <= 65_536, `${characters}`)
})

test('a long piece of text is split', async () => {
  const { feed } = await openFeed()
  const reader = feed.subscribe(0, true)
  const text = 'ab😀'.repeat(10_000)
  writerOf(feed).write(text)
  const pieces = ((await reader.next()) ?? []).map((item) => deltaOf(item).payload)
  assert.ok(pieces.length > 1)
  assert.ok(pieces.every((piece) => piece.text.length <= 16_384))
  assert.equal(pieces.map((piece) => piece.text).join(''), text)
})

test('a closed reader gets no deltas, and a writer publishes none after its call', async () => {
  const { feed } = await openFeed()
  const reader = feed.subscribe(0, true)
  assert.equal(feed.wantsDeltas, true)
  reader.close()
  assert.equal(feed.wantsDeltas, false)
  const another = feed.subscribe(0, true)
  const writer = writerOf(feed)
  writer.close()
  writer.write('late')
  feed.finish('shutdown')
  assert.equal(await another.next(), null)
  assert.equal(feed.wantsDeltas, false)
})
