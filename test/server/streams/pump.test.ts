import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EncodedEvent } from 'runwright/agent'
import { pieces, pump, type EventSink } from '../../../lib/server/streams/pump.js'
import { FakeEngine } from '../fake-engine.js'

const event = (seq: number, size: number): EncodedEvent => ({
  seq,
  kind: 'log',
  json: 'x'.repeat(size),
})

for (const { sizes, cut } of [
  { sizes: [], cut: [] },
  { sizes: [10, 10], cut: [[1, 2]] },
  { sizes: [65_536], cut: [[1]] },
  { sizes: [65_537], cut: [[1]] },
  { sizes: [40_000, 40_000, 10], cut: [[1], [2, 3]] },
  { sizes: [1, 200_000, 1], cut: [[1], [2], [3]] },
  { sizes: [32_768, 32_768, 1], cut: [[1, 2], [3]] },
]) {
  test(`events of ${JSON.stringify(sizes)} are written as ${JSON.stringify(cut)}`, () => {
    const events = sizes.map((size, i) => event(i + 1, size))
    assert.deepEqual(
      [...pieces(events)].map((piece) => piece.map(({ seq }) => seq)),
      cut,
    )
  })
}

/** A reader whose transport is full after each write until the test drains it. */
class FullSink implements EventSink {
  pending = 1_000
  readonly written: number[] = []
  asked: () => void = () => {}
  readonly #waiting: (() => void)[] = []

  write(events: readonly EncodedEvent[]): boolean {
    this.written.push(...events.map(({ seq }) => seq))
    return false
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.asked()
    })
  }

  drain(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  whenAsked(): Promise<void> {
    return new Promise((resolve) => (this.asked = resolve))
  }
}

test('taking a little in each period is enough; taking nothing is stuck', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const engine = new FakeEngine()
  const runId = engine.add()
  const subscription = await engine.subscribe(runId)
  const sink = new FullSink()
  const asked = sink.whenAsked()
  const end = pump(subscription, sink, { kinds: undefined, stuckMs: 60_000 })
  await asked
  for (const pending of [900, 899, 500]) {
    sink.pending = pending
    t.mock.timers.tick(60_000)
  }
  t.mock.timers.tick(59_999)
  assert.equal(subscription.end, undefined)
  t.mock.timers.tick(1)
  assert.equal(await end, 'stuck')
  assert.equal(subscription.end, 'closed')
  assert.deepEqual(sink.written, [1])
})

test('a full reader is written to again only when it has room', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.log(runId, 2, 'x'.repeat(50_000))
  engine.finish(runId)
  const sink = new FullSink()
  let asked = sink.whenAsked()
  const end = pump(await engine.subscribe(runId), sink, { kinds: undefined, stuckMs: 60_000 })
  await asked
  assert.deepEqual(sink.written, [1, 2])
  asked = sink.whenAsked()
  sink.drain()
  await asked
  assert.deepEqual(sink.written, [1, 2, 3, 4])
  sink.drain()
  assert.equal(await end, 'run_end')
})

test('a transport that fails while it is full ends the stream with its error', async () => {
  const engine = new FakeEngine()
  const sink = new FullSink()
  sink.drained = () => Promise.reject(new Error('gone'))
  const subscription = await engine.subscribe(engine.add())
  await assert.rejects(pump(subscription, sink, { kinds: undefined, stuckMs: 60_000 }), /gone/)
})
