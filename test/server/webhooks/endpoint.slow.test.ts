import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventKind } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { ShiftedClock } from '../../helpers/shifted-clock.js'
import { FakeEngine } from '../fake-engine.js'
import { openReceiver, openWebhooks, progressFolder, SECRET } from './receiver.js'
import { HOUR, DAY, byRun, progressIn, failuresOf, upTo, decide } from './run-deliveries.js'

test('200 refused runs delay no other run, and come again when they are due', async (t) => {
  const refused = new Set<string>()
  let refusing = true
  const { url, received, until } = await openReceiver(
    t,
    byRun((runId) => (refusing && refused.has(runId) ? 503 : 204)),
  )
  const engine = new FakeEngine()
  const clock = new ManualClock()
  await openWebhooks(t, engine, url, { clock, retryMs: HOUR })
  for (let i = 0; i < 200; i++) {
    const runId = engine.add()
    refused.add(runId)
    engine.finish(runId)
  }
  // The clock stands still: each is attempted once, although eight have slots.
  await until(200)
  const healthy = engine.add()
  engine.finish(healthy)
  await until(201)
  assert.equal(received.at(-1)!.id, `${healthy}.2`)
  refusing = false
  await clock.whenPending()
  clock.advance(HOUR)
  await until(401)
  assert.equal(new Set(received.map(({ id }) => id)).size, 201)
})

test('a run with many events lets others have their turns', async (t) => {
  const clock = new ManualClock()
  const { url, received, until } = await openReceiver(t, (_, response) => {
    clock.advance(200)
    response.end()
  })
  const engine = new FakeEngine()
  await openWebhooks(t, engine, url, {
    clock,
    endpoints: [{ url, secret: SECRET, allowPrivate: true, kinds: ['log', 'run_end'] }],
  })
  for (let i = 0; i < 8; i++) engine.log(engine.add(), 50)
  const late = engine.add()
  engine.finish(late)
  await until(401)
  const at = received.findIndex(({ id }) => id === `${late}.2`)
  assert.ok(at < 80, `it was delivery ${at} of 401`)
})

test('attempts, their times and the first of them survive restarts', async (t) => {
  const directory = progressFolder(t)
  const { url, received, until } = await openReceiver(t, byRun(() => 500))
  const engine = new FakeEngine()
  const clock = new ManualClock()
  const began = clock.now()
  const report = failuresOf()
  const options = { directory, clock, retryMs: 8 * HOUR, onFailure: report.onFailure }
  const runId = engine.add()
  await (await openWebhooks(t, engine, url, options)).close()
  let webhooks = await openWebhooks(t, engine, url, options)
  engine.finish(runId)
  for (let count = 1; report.failures.at(-1)?.final !== true; count++) {
    await report.until(count)
    const [line] = progressIn(directory).slice(-1)
    if (report.failures.at(-1)?.final === true) break
    await clock.whenPending()
    await webhooks.close()
    const saved = progressIn(directory).findLast(({ run }) => run === runId)
    assert.equal(saved.first, began, JSON.stringify(line))
    assert.equal(saved.attempts, count)
    assert.ok(saved.next > clock.now() && saved.next <= clock.now() + HOUR)
    webhooks = await openWebhooks(t, engine, url, options)
    assert.equal(received.length, count)
    clock.advance(HOUR)
    await until(count + 1)
  }
  assert.deepEqual(
    report.failures.map(({ attempts }) => attempts),
    report.failures.map((_, index) => index + 1),
  )
  assert.equal(clock.now() - began, 3 * DAY)
})

test('events that follow run_end at any moment of its delivery arrive in order', async (t) => {
  // Each delivery of the run causes the next event, until there are 20.
  const engine = new FakeEngine()
  let runId = ''
  const { url, received, until } = await openReceiver(t, (_, response) => {
    if (engine.runs.get(runId)!.events.length < 20) decide(engine, runId, 'applied')
    response.end()
  })
  const kinds: EventKind[] = ['run_end', 'changes_decided']
  await openWebhooks(t, engine, url, {
    endpoints: [{ url, secret: SECRET, allowPrivate: true, kinds }],
  })
  for (const runs of [1, 2, 3]) {
    runId = engine.add()
    engine.finish(runId)
    await until(19 * runs)
    assert.deepEqual(
      received.slice(-19).map(({ id }) => id),
      upTo(20).slice(1).map((seq) => `${runId}.${seq}`),
    )
  }
})

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`an event is retried for three days, with the time of day set by ${jump / HOUR} h`, async (t) => {
    const { url } = await openReceiver(t, byRun(() => 500))
    const engine = new FakeEngine()
    const clock = new ShiftedClock()
    const report = failuresOf()
    const options = { clock, retryMs: 8 * HOUR, onFailure: report.onFailure }
    await openWebhooks(t, engine, url, options)
    engine.finish(engine.add())
    let hours = 0
    for (; ; hours++) {
      await report.until(hours + 1)
      if (report.failures.at(-1)?.final === true) break
      await clock.whenPending()
      // To the other side each time.
      clock.shiftMs = hours % 2 === 0 ? jump : 0
      clock.advance(HOUR)
    }
    assert.equal(hours, 72)
  })
}

for (const { gap, waits } of [
  { gap: HOUR / 4, waits: 0.75 * HOUR },
  { gap: 48 * HOUR, waits: 0 },
  { gap: -48 * HOUR, waits: 0 },
]) {
  test(`a retry in an hour waits ${waits} ms after a restart, ${gap} ms later`, async (t) => {
    const directory = progressFolder(t)
    const { url } = await openReceiver(t, byRun(() => 500))
    const engine = new FakeEngine()
    const before = new ShiftedClock()
    const report = failuresOf()
    const options = { directory, retryMs: HOUR, onFailure: report.onFailure }
    t.mock.method(Math, 'random', () => 1)
    const first = await openWebhooks(t, engine, url, { ...options, clock: before })
    engine.finish(engine.add())
    await report.until(1)
    await before.whenPending()
    await first.close()
    const clock = new ShiftedClock(before.now() + gap)
    await openWebhooks(t, engine, url, { ...options, clock })
    await clock.whenPending()
    clock.advance(Math.max(0, waits - 1))
    if (waits > 0) assert.equal(report.failures.length, 1)
    clock.advance(1)
    await report.until(2)
  })
}
