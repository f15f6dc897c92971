import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, StoreError, type RunRecord } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { nextTurn, systemClock } from '../../../lib/internal/time.js'
import type { RecordDraft } from '../../../lib/agent/events.js'
import { Observers } from '../../../lib/agent/log/observer.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { RunFeed } from '../../../lib/agent/log/feed.js'
import { BACKOFF } from '../../../lib/agent/exhaustion.js'
import { LogWriter } from '../../../lib/agent/log/writer.js'
import { workedMs } from '../../../lib/agent/log/remaining.js'
import { foldState, loadState } from '../../../lib/agent/log/state.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { FaultyStore } from '../../helpers/faulty-store.js'

const RUN = '01999999-0000-7000-8000-000000000001'

/** A store that counts the records of each append. */
class CountingStore extends MemoryStore {
  readonly appends: number[] = []

  override append(runId: string, records: readonly RunRecord[]): Promise<void> {
    this.appends.push(records.length)
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

const baseline = { files: {} }
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

/** A log whose clock moves only when the test advances it. */
async function manualLog(): Promise<{
  readonly log: LogWriter
  readonly store: FaultyStore
  readonly clock: ManualClock
  readonly taken: () => LogWriter
}> {
  const createdAt = 1_800_000_000
  const store = new FaultyStore()
  await store.open()
  const [created] = sampleRun(RUN, { createdAt })
  assert.ok(created !== undefined)
  await store.append(RUN, [created])
  store.tried.length = 0
  store.stored.length = 0
  const clock = new ManualClock(createdAt * 1000)
  const options = { store, clock, redactor: new Redactor([]), observers: new Observers() }
  const feed = new RunFeed(RUN, store, 1)
  const log = new LogWriter(options, feed, foldState(null, created))
  const taken = (): LogWriter => new LogWriter(options, feed, log.state)
  return { log, store, clock, taken }
}

/** Lets every pause between attempts end until `done` settles. */
async function pass(clock: ManualClock, done: Promise<unknown>): Promise<void> {
  let isOver = false
  const over = (): boolean => (isOver = true)
  done.then(over, over)
  while (!isOver) {
    clock.advance(BACKOFF.maxMs)
    await nextTurn()
  }
}

const messages = (groups: readonly (readonly RunRecord[])[]): string[] =>
  groups.map((group) =>
    group.map((record) => (record.kind === 'log' ? record.payload.message : '?')).join(' '),
  )

test('refused records are passed to the store again, the same and in order', async () => {
  const { log, store, clock } = await manualLog()
  let refusals = 5
  store.refuses = () => refusals-- > 0
  const first = log.append([line('a'), line('b')])
  log.note(line('c'))
  const second = log.append([line('d')])
  await nextTurn()
  assert.match(log.refusal?.message ?? '', /the disk is full/)
  const third = log.append([line('e')])
  assert.equal(log.feed.lastSeq, 1, 'nothing is visible before it is durable')
  await pass(clock, Promise.all([first, second, third]))
  assert.deepEqual(messages(store.stored), ['a b', 'c d', 'e'])
  const [group = []] = store.stored
  const same = store.tried.filter(([record]) => record?.seq === 2)
  assert.ok(same.length > 1 && same.every((records) => records[0] === group[0]))
  assert.equal(log.refusal, null)
  assert.equal(log.feed.lastSeq, 6)
})

test('records in flight behind refused ones follow them, though they were out of sequence', async () => {
  const { log, store, clock } = await manualLog()
  let refusals = 1
  store.refuses = () => refusals-- > 0
  const both = [log.append([line('a')]), log.append([line('b')])]
  assert.deepEqual(messages(store.tried), ['a', 'b'])
  await pass(clock, Promise.all(both))
  assert.deepEqual(messages(store.stored), ['a', 'b'])
})

test('behind records that are refused, nothing is passed to the store', async () => {
  const { log, store, clock } = await manualLog()
  store.refuses = () => true
  void log.append([line('a')])
  await nextTurn()
  void log.append([line('b')])
  log.note(line('c'))
  await nextTurn()
  assert.deepEqual(messages(store.tried), ['a'])
  store.refuses = () => false
  await pass(clock, log.flush())
  assert.deepEqual(messages(store.stored), ['a', 'b', 'c'])
})

test('confirm() rejects as soon as the store refuses; the records are still stored', async () => {
  const { log, store, clock } = await manualLog()
  store.refuses = () => true
  void log.append([line('a')])
  await assert.rejects(log.confirm(), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
  const tried = store.tried.length
  await assert.rejects(log.confirm(), /the disk is full/)
  assert.equal(store.tried.length, tried + 1, 'the caller need not wait for the next attempt')
  store.refuses = () => false
  await log.confirm()
  assert.deepEqual(messages(store.stored), ['a'])
  assert.equal(clock.pending, 0)
})

test('a refused offer leaves no trace; an accepted one is folded when it is durable', async () => {
  const { log, store } = await manualLog()
  store.refuses = () => true
  await assert.rejects(log.offer([line('a')]), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
  assert.equal(log.state.head.details.last_seq, 1)
  store.refuses = () => false
  await log.offer([line('b'), line('c')])
  assert.deepEqual(messages(store.stored), ['b c'])
  assert.equal(log.state.head.details.last_seq, 3)
  assert.equal(log.feed.lastSeq, 3)
  await log.append([line('d')])
  assert.deepEqual(messages(store.stored), ['b c', 'd'])
})

test('after giveUp() one last attempt is made, and then everything fails', async () => {
  const { log, store } = await manualLog()
  store.refuses = () => true
  const first = log.append([line('a')])
  await nextTurn()
  log.giveUp()
  await assert.rejects(first, /the disk is full/)
  assert.equal(store.tried.length, 2)
  assert.ok(log.hasFailed)
  store.refuses = () => false
  await assert.rejects(log.append([line('b')]), /the disk is full/)
  assert.deepEqual(store.stored, [])
})

test('after giveUp() records that the store takes are stored', async () => {
  const { log, store } = await manualLog()
  store.refuses = () => true
  const first = log.append([line('a')])
  await nextTurn()
  store.refuses = () => false
  log.giveUp()
  await first
  await log.append([line('b')])
  assert.deepEqual(messages(store.stored), ['a', 'b'])
})

test('after any other failure nothing more is written, and every caller gets it', async () => {
  const { log, store } = await manualLog()
  store.lose()
  const first = log.append([line('a')])
  log.note(line('b'))
  await assert.rejects(first, { code: 'ERR_AGENT_STORE_LOCKED' })
  await assert.rejects(log.append([line('c')]), { code: 'ERR_AGENT_STORE_LOCKED' })
  await assert.rejects(log.flush(), { code: 'ERR_AGENT_STORE_LOCKED' })
  await nextTurn()
  assert.deepEqual(messages(store.tried), ['a'])
})

test('an abandoned log passes nothing to the store, noted or refused before', async () => {
  const { log, store } = await manualLog()
  store.refuses = () => true
  const first = log.append([line('a')])
  await nextTurn()
  log.note(line('b'))
  store.refuses = () => false
  log.abandon(new Error('gone'))
  await assert.rejects(first, /gone/)
  await assert.rejects(log.append([line('c')]), /gone/)
  await nextTurn()
  assert.deepEqual(messages(store.tried), ['a'])
})

test('verify() asks the store, unless it has just taken records', async () => {
  const { log, store } = await manualLog()
  let checks = 0
  store.check = async () => void (checks += 1)
  await log.verify()
  assert.equal(checks, 1)
  log.note(line('a'))
  await log.verify()
  assert.deepEqual([messages(store.stored), checks], [['a'], 1])
})

test('verify() waits for an unavailable store, and rejects for a lost one', async () => {
  const { log, store, clock } = await manualLog()
  let refusals = 3
  store.check = async () => {
    if (refusals-- > 0) throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the disk is full')
  }
  await pass(clock, log.verify())
  assert.ok(refusals < 0)
  store.check = async () => store.lost.throwIfAborted()
  store.lose()
  await assert.rejects(log.verify(), { code: 'ERR_AGENT_STORE_LOCKED' })
})

test('the time without a process does not count as work, the time after it does', async () => {
  const { log, store, clock, taken } = await manualLog()
  await log.append([{ kind: 'run_started', iteration: 0, payload: {}, private: { baseline } }])
  clock.advance(10_000)
  await log.append([line('worked for ten seconds')])
  assert.equal(workedMs(log.state, log.now()), 10_000)
  clock.advance(60_000)
  const next = taken()
  assert.equal(workedMs(next.state, next.now()), 10_000)
  clock.advance(5_000)
  assert.equal(workedMs(next.state, next.now()), 15_000, 'without a record, too')
  await next.append([line('back')])
  assert.equal(workedMs(next.state, next.now()), 15_000)
  const again = await loadState(store, RUN)
  assert.ok(again !== null)
  assert.equal(workedMs(again, clock.now()), 15_000, 'the log has it')
})

test('waiting for the store is no work, also after a restart', async () => {
  const { log, store, clock } = await manualLog()
  await log.append([{ kind: 'run_started', iteration: 0, payload: {}, private: { baseline } }])
  store.refuses = () => true
  clock.advance(1_000)
  const waiting = log.append([line('a')])
  await nextTurn()
  for (let minutes = 0; minutes < 60; minutes++) {
    clock.advance(60_000)
    await nextTurn()
  }
  assert.equal(workedMs(log.state, log.now()), 1_000)
  store.refuses = () => false
  await pass(clock, waiting)
  assert.equal(workedMs(log.state, log.now()), 1_000)
  await log.append([line('b')])
  const again = await loadState(store, RUN)
  assert.ok(again !== null)
  assert.equal(workedMs(again, clock.now()), 1_000)
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
