import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import { ToolStop, ToolTimeout } from '../../../lib/agent/tools/tool-stop.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'

const never = (): Promise<never> => new Promise(() => undefined)

test('a tool that ends in time leaves no timer; the tools of a run share a listener', async () => {
  const clock = new ManualClock()
  const { signal } = new AbortController()
  for (let i = 0; i < 3; i++) {
    const stop = new ToolStop(signal, clock, 1_000, 0)
    assert.equal(await stop.race(Promise.resolve('done')), 'done')
    stop.end()
    assert.equal(stop.timedOut, false)
  }
  assert.equal(clock.pending, 0)
  assert.equal(getEventListeners(signal, 'abort').length, 1)
})

test('the signal aborts when the time is up; after the grace period race() rejects', async () => {
  const clock = new ManualClock()
  const stop = new ToolStop(new AbortController().signal, clock, 1_000, 500)
  const { signal } = stop
  const outcome = stop.race(never())
  clock.advance(999)
  assert.equal(signal.aborted, false)
  clock.advance(1)
  assert.ok(signal.reason instanceof ToolTimeout)
  assert.equal(stop.timedOut, true)
  clock.advance(500)
  await assert.rejects(outcome, /did not end within 1 s/)
  stop.end()
  assert.equal(clock.pending, 0)
})

test('a tool that ends within the grace period still returns its result', async () => {
  const clock = new ManualClock()
  const run = new AbortController()
  const stop = new ToolStop(run.signal, clock, 1_000, 500)
  let finish: (output: string) => void = () => undefined
  const outcome = stop.race(new Promise<string>((resolve) => (finish = resolve)))
  run.abort(new Error('over'))
  clock.advance(499)
  finish('cleaned up')
  assert.equal(await outcome, 'cleaned up')
  assert.equal(stop.timedOut, false)
  stop.end()
})

test('a signal first read, or a race begun, after the stop still sees it', async () => {
  const clock = new ManualClock()
  const run = new AbortController()
  const stop = new ToolStop(run.signal, clock, 1_000, 0)
  const why = new Error('the run was aborted')
  run.abort(why)
  assert.equal(stop.signal.reason, why)
  clock.advance(0)
  await assert.rejects(stop.race(never()), why)
  stop.end()
})

test('waits at the same time stop the clock once, and leave no timer', async () => {
  const clock = new ManualClock()
  const stop = new ToolStop(new AbortController().signal, clock, 1_000, 0)
  const over: (() => void)[] = []
  const wait = (): Promise<void> =>
    stop.pauseFor(new Promise((resolve) => over.push(() => resolve())))
  const [first, second] = [wait(), wait()]
  clock.advance(5_000)
  over[0]?.()
  await first
  clock.advance(5_000)
  assert.equal(clock.pending, 0, 'the second one still waits')
  over[1]?.()
  await second
  clock.advance(999)
  assert.equal(stop.timedOut, false)
  stop.end()
  assert.equal(clock.pending, 0)
  await stop.pauseFor(Promise.resolve())
  assert.equal(clock.pending, 0, 'nor after the end')
})

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`the time of day does not count after a wait: set by ${jump / HOUR} h`, async () => {
    const clock = new ShiftedClock()
    const stop = new ToolStop(new AbortController().signal, clock, 1_000, 0)
    clock.advance(400)
    clock.shiftMs = jump
    await stop.pauseFor(Promise.resolve())
    clock.advance(599)
    assert.equal(stop.timedOut, false)
    clock.advance(1)
    assert.equal(stop.timedOut, true)
    stop.end()
  })
}
