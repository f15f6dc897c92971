import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, StoreError, type RunRecord } from 'runwright/agent'
import { systemClock } from '../../../lib/internal/clock.js'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import type { RecordDraft } from '../../../lib/agent/events.js'
import { Observers } from '../../../lib/agent/log/observer.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { RunFeed } from '../../../lib/agent/log/feed.js'
import { LogWriter } from '../../../lib/agent/log/writer.js'
import { foldState } from '../../../lib/agent/log/state.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

const RUN = '01999999-0000-7000-8000-000000000001'

/** A store that counts the records of each append, and can refuse further ones. */
class CountingStore extends MemoryStore {
  readonly appends: number[] = []
  refuses = false

  override append(runId: string, records: readonly RunRecord[]): Promise<void> {
    this.appends.push(records.length)
    if (this.refuses) return Promise.reject(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the disk is full'))
    return super.append(runId, records)
  }
}

async function newLog(): Promise<{ readonly log: LogWriter; readonly store: CountingStore }> {
  const store = new CountingStore()
  await store.open()
  const [created] = sampleRun(RUN, { createdAt: Date.now() / 1000 })
  assert.ok(created !== undefined)
  await store.append(RUN, [created])
  store.appends.length = 0
  const feed = new RunFeed(RUN, store, 1)
  const options = {
    store,
    clock: systemClock,
    redactor: new Redactor([]),
    observers: new Observers(),
  }
  return { log: new LogWriter(options, feed, foldState(null, created)), store }
}

const line = (message: string): RecordDraft => ({
  kind: 'log',
  iteration: 0,
  payload: { level: 'info', message },
})

test('noted records are folded at once and written with the next append, in order', async () => {
  const { log, store } = await newLog()
  log.note(line('a'))
  log.note(line('b'))
  assert.equal(log.state.head.details.last_seq, 3)
  assert.deepEqual(store.appends, [])
  await log.append([line('c')])
  assert.deepEqual(store.appends, [3])
  assert.equal(log.feed.lastSeq, 4)
  const stored = await store.read(RUN, 1, 10)
  assert.deepEqual(
    stored.map((record) => record.kind === 'log' && record.payload.message),
    ['a', 'b', 'c'],
  )
})

test('noted records are written at the end of the turn if no append follows', async () => {
  const { log, store } = await newLog()
  log.note(line('a'))
  await nextTurn()
  assert.deepEqual(store.appends, [1])
  log.note(line('b'))
  await log.flush()
  assert.deepEqual(store.appends, [1, 1])
  assert.equal(log.feed.lastSeq, 3)
})

test('after a failed append nothing more is written, and every caller gets the error', async () => {
  const { log, store } = await newLog()
  store.refuses = true
  const first = log.append([line('a')])
  log.note(line('b'))
  await assert.rejects(first, /the disk is full/)
  store.refuses = false
  await assert.rejects(log.append([line('c')]), /the disk is full/)
  await assert.rejects(log.flush(), /the disk is full/)
  await nextTurn()
  assert.deepEqual(store.appends, [1])
  assert.equal(log.feed.lastSeq, 1)
})

test('after a takeover, budget time stands still until the first append', async () => {
  const { log, store } = await newLog()
  const { last_ts } = log.state.head
  const clock = { ...systemClock, now: () => last_ts * 1000 + 60_000 }
  const options = { store, clock, redactor: new Redactor([]), observers: new Observers() }
  const taken = new LogWriter(options, log.feed, log.state, true)
  assert.equal(taken.now(), last_ts * 1000)
  await taken.append([line('back')])
  assert.equal(taken.now(), clock.now())
})

test('a log begins with its first record once that is durable', async () => {
  const store = new CountingStore()
  await store.open()
  const [created] = sampleRun(RUN, { createdAt: Date.now() / 1000 })
  assert.ok(created?.kind === 'run_created')
  const observers = new Observers()
  const seen: number[] = []
  observers.add(({ events }) => seen.push(events.length))
  const feed = new RunFeed(RUN, store, 0)
  const options = { store, clock: systemClock, redactor: new Redactor([]), observers }
  const log = LogWriter.begin(options, feed, created)
  assert.deepEqual([store.appends.length, feed.lastSeq, seen.length], [0, 0, 0])
  await log.flush()
  assert.deepEqual([store.appends, feed.lastSeq, seen], [[1], 1, [1]])
})

test('nothing of a group that cannot be folded is written, and nothing after it', async () => {
  const { log, store } = await newLog()
  log.note(line('before'))
  const result: RecordDraft = {
    kind: 'tool_result',
    iteration: 0,
    payload: { tool: 'x', output: '', exit_code: 0, call_id: 'unknown', duration_ms: 0 },
  }
  assert.throws(() => log.append([line('of the group'), result]), /unknown tool call/)
  assert.throws(() => log.append([line('after')]), { code: 'ERR_AGENT_STORE' })
  assert.throws(() => log.note(line('after')), { code: 'ERR_AGENT_STORE' })
  await log.flush()
  const stored = await store.read(RUN, 1, 10)
  assert.deepEqual(
    stored.map(({ payload }) => payload),
    [line('before').payload],
  )
})
