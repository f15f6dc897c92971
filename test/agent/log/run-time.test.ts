/** What a log tells of a run's time when the time of day is set. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, StoreError, type RunRecord } from 'runwright/agent'
import type { RecordDraft } from '../../../lib/agent/events.js'
import { RunFeed } from '../../../lib/agent/log/feed.js'
import { Observers } from '../../../lib/agent/log/observer.js'
import { workedMs } from '../../../lib/agent/log/remaining.js'
import { loadState } from '../../../lib/agent/log/state.js'
import { LogWriter } from '../../../lib/agent/log/writer.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'

const RUN = '01999999-0000-7000-8000-000000000001'

const line: RecordDraft = {
  kind: 'log', iteration: 0, payload: { level: 'info', message: 'x' },
}
const gateAt = (deadline: number): RecordDraft => ({
  kind: 'human_check_required',
  iteration: 1,
  payload: {
    iteration: 1,
    summary: '',
    gate_id: 'g',
    kind: 'iteration',
    deadline: new Date(deadline).toISOString(),
  },
})
const approved: RecordDraft = {
  kind: 'human_check_response',
  iteration: 1,
  payload: { gate_id: 'g', decision: 'approve', decided_by: null },
}

/** The log of one run, in one process after another. */
class Logged {
  readonly store: MemoryStore
  clock: ShiftedClock
  log: LogWriter
  /** Refuses appends. */
  isFull = false

  private constructor(store: MemoryStore, clock: ShiftedClock, log: LogWriter) {
    this.store = store
    this.clock = clock
    this.log = log
  }

  /** A run that has just started. */
  static async start(): Promise<Logged> {
    const store = new MemoryStore()
    await store.open()
    const clock = new ShiftedClock()
    const [created] = sampleRun(RUN, { createdAt: clock.now() / 1000 })
    await store.append(RUN, [created!])
    const logged = new Logged(store, clock, await writer(store, clock))
    const { append } = store
    store.append = async (runId, records) => {
      if (logged.isFull) throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the disk is full')
      await append.call(store, runId, records)
    }
    await logged.log.append([
      { kind: 'run_started', iteration: 0, payload: {}, private: { baseline: { files: {} } } },
    ])
    return logged
  }

  /** Another process takes the run over, when the time of day is `gapMs` later. */
  async restart(gapMs: number): Promise<void> {
    this.clock = new ShiftedClock(this.clock.now() + gapMs)
    this.log = await writer(this.store, this.clock)
  }

  /** Milliseconds of work. */
  get worked(): number {
    return Math.round(workedMs(this.log.state, this.log.now()))
  }

  async work(ms: number): Promise<void> {
    this.clock.advance(ms)
    await this.log.append([line])
  }

  /** The records, of which none is earlier than the one before. */
  async records(): Promise<readonly RunRecord[]> {
    const records = await this.store.read(RUN, 0, 1_000)
    for (const [i, { ts }] of records.entries()) assert.ok(ts >= (records[i - 1]?.ts ?? 0))
    return records
  }
}

async function writer(store: MemoryStore, clock: ShiftedClock): Promise<LogWriter> {
  const options = { store, clock, redactor: new Redactor([]), observers: new Observers() }
  const state = await loadState(store, RUN)
  return new LogWriter(options, new RunFeed(RUN, store, state!.head.details.last_seq), state!)
}

for (const live of [5 * HOUR, -5 * HOUR]) {
  for (const gap of [48 * HOUR, -48 * HOUR]) {
    const set = `${live / HOUR} h live and ${gap / HOUR} h over a restart`
    test(`work counts as long as it took, with the time of day set by ${set}`, async () => {
      const logged = await Logged.start()
      const { clock } = logged
      await logged.work(10_000)
      clock.shiftMs = live
      assert.equal(logged.worked, 10_000)
      clock.advance(5_000)
      assert.equal(logged.worked, 15_000, 'without a record')
      await logged.work(5_000)
      assert.equal(logged.worked, 20_000)
      clock.shiftMs = 0
      await logged.work(10_000)
      assert.equal(logged.worked, 30_000)
      await logged.restart(gap)
      assert.equal(logged.worked, 30_000)
      await logged.work(7_000)
      assert.equal(logged.worked, 37_000)
      await logged.restart(0)
      assert.equal(logged.worked, 37_000, 'the log has it')
    })
  }

  test(`\`ts\` goes on with the time of day set by ${live / HOUR} h`, async () => {
    const logged = await Logged.start()
    const { clock, log } = logged
    await logged.work(10_000)
    const began = clock.now()
    clock.shiftMs = live
    for (const _ of [1, 2, 3]) await logged.work(1_000)
    const expected = [1_000, 2_000, 3_000].map((ms) => (began + Math.max(0, live) + ms) / 1000)
    const shown = (await logged.records()).slice(-3).map(({ ts }) => ts.toFixed(3))
    assert.deepEqual(shown, expected.map((ts) => ts.toFixed(3)))
    clock.advance(500)
    assert.equal(log.ts.toFixed(3), (expected[2]! + 0.5).toFixed(3), 'without a record')
  })

  test(`a wait is no work, with the time of day set by ${live / HOUR} h meanwhile`, async () => {
    const logged = await Logged.start()
    const { clock, log } = logged
    await logged.work(10_000)
    let over = (): void => undefined
    const waiting = log.idleWhile(new Promise<void>((resolve) => (over = resolve)))
    clock.advance(60_000)
    clock.shiftMs = live
    await logged.work(60_000)
    clock.advance(60_000)
    over()
    await waiting
    assert.equal(logged.worked, 10_000)
    await logged.work(1_000)
    await logged.restart(0)
    assert.equal(logged.worked, 11_000)
  })

  test(`a gate expires in its time, with the time of day set by ${live / HOUR} h`, async () => {
    const logged = await Logged.start()
    const { clock, log } = logged
    await logged.work(10_000)
    const opening = log.append([gateAt(clock.now() + HOUR)])
    clock.shiftMs = live
    await opening
    clock.advance(HOUR - 1)
    assert.equal(log.untilExpiry(), 1)
    assert.equal(logged.worked, 10_000)
    await log.append([approved])
    assert.equal(log.untilExpiry(), null)
    await logged.work(5_000)
    await logged.restart(-48 * HOUR)
    assert.equal(logged.worked, 15_000)
  })

  test(`over a restart, the time of day counts for a gate: ${live / HOUR} h`, async () => {
    const logged = await Logged.start()
    await logged.log.append([gateAt(logged.clock.now() + 6 * HOUR)])
    await logged.restart(live)
    logged.clock.shiftMs = live
    assert.equal(logged.log.untilExpiry(), 6 * HOUR - live)
  })
}

const suspended: RecordDraft = { kind: 'run_suspended', iteration: 0, payload: {} }
const recovered: RecordDraft = {
  kind: 'run_recovered', iteration: 0, payload: { attempt: 1, in_doubt: [] },
}
for (const gap of [48 * HOUR, -48 * HOUR]) {
  for (const [last, first] of [[suspended, line], [line, recovered]] as const) {
    const records = `${last.kind}, ${gap / HOUR} h, ${first.kind}`
    test(`work before the first record of a new process counts: ${records}`, async () => {
      const logged = await Logged.start()
      await logged.work(10_000)
      await logged.log.append([last])
      await logged.restart(gap)
      logged.clock.advance(3_000)
      await logged.log.append([first])
      assert.equal(logged.worked, 13_000)
      await logged.restart(0)
      assert.equal(logged.worked, 13_000)
    })
  }
}

test('a wait before an offer that is refused is still no work', async () => {
  const logged = await Logged.start()
  const { clock, log } = logged
  let over = (): void => undefined
  const waiting = log.idleWhile(new Promise<void>((resolve) => (over = resolve)))
  clock.advance(60_000)
  over()
  await waiting
  logged.isFull = true
  await assert.rejects(log.offer([line]), { code: 'ERR_AGENT_STORE_UNAVAILABLE' })
  logged.isFull = false
  await logged.work(1_000)
  assert.equal(logged.worked, 1_000)
  await logged.restart(0)
  assert.equal(logged.worked, 1_000)
})
