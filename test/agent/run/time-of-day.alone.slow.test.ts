/** Runs by the clocks of the machine, which are moved: the time of day, or the steady one. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type ModelProvider } from 'runwright/agent'
import { untilAborted } from '../../helpers/abort.js'
import { follow, keepOpen, openEngine, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { HOUR } from '../../helpers/shifted-clock.js'

/** Moves the clocks of this process, in milliseconds. */
function movable(t: TestContext): { date: number; steady: number } {
  const moved = { date: 0, steady: 0 }
  const { now } = Date
  const steadyNow = performance.now.bind(performance)
  t.mock.method(Date, 'now', () => now() + moved.date)
  t.mock.method(performance, 'now', () => steadyNow() + moved.steady)
  return moved
}

/** A model that calls `step` in each turn, and does nothing. */
function stepping(step: (n: number) => void): ModelProvider {
  return testProvider((_, n) => {
    step(n)
    return {}
  })
}

for (const { date, steady, reason } of [
  { date: 5 * HOUR, steady: 0, reason: 'max_iterations' },
  { date: -5 * HOUR, steady: 0, reason: 'max_iterations' },
  { date: 0, steady: 5 * HOUR, reason: 'time_budget' },
  { date: 5 * HOUR, steady: 5 * HOUR, reason: 'time_budget' },
  { date: -5 * HOUR, steady: 5 * HOUR, reason: 'time_budget' },
]) {
  const moved = `time of day by ${date / HOUR} h, steady clock by ${steady / HOUR} h`
  test(`a budget of an hour ends with ${reason}: ${moved}`, async (t) => {
    const clocks = movable(t)
    const provider = stepping((n) => {
      if (n === 0) Object.assign(clocks, { date, steady })
      if (n === 1) clocks.date = 0
    })
    const { engine } = await openEngine(t, { providers: [provider], detectStuck: false })
    const { details } = await engine.create({
      goal: 'shell: false', max_seconds: 3_600, max_iterations: 3,
    })
    const events = await follow(engine, details.run_id)
    assertInvariants(events)
    const { end_reason } = await engine.get(details.run_id)
    assert.equal(end_reason, reason)
    const spent = events.at(-1)!.ts - events[0]!.ts
    assert.ok(date < 0 || spent * 1000 < Math.max(date, steady) + HOUR, `${spent} s`)
  })
}

for (const gap of [48 * HOUR, -48 * HOUR]) {
  for (const { more, reason } of [
    { more: 0.4 * HOUR, reason: 'max_iterations' },
    { more: 0.6 * HOUR, reason: 'time_budget' },
  ]) {
    const work = `half an hour and ${more / HOUR} h`
    test(`a budget of an hour, work of ${work} around ${gap / HOUR} h: ${reason}`, async (t) => {
      const clocks = movable(t)
      const store = keepOpen(new MemoryStore())
      let onCall = (): void => undefined
      const called = new Promise<void>((resolve) => (onCall = resolve))
      const hanging = testProvider(({ signal }, n): Said | Promise<Said> => {
        if (n === 0) {
          clocks.steady += HOUR / 2
          return {}
        }
        onCall()
        return untilAborted(signal)
      })
      const options = { store, detectStuck: false }
      const first = await openEngine(t, { ...options, providers: [hanging] })
      const { details } = await first.engine.create({
        goal: 'shell: false', max_seconds: 3_600, max_iterations: 3,
      })
      await called
      await first.engine.close()
      // The steady clock of a new process begins at 0.
      clocks.steady -= performance.now()
      clocks.date += gap
      const provider = stepping((n) => (clocks.steady += n === 0 ? more : 0))
      const { cwd } = first
      const second = await openEngine(t, { ...options, cwd, providers: [provider] })
      assertInvariants(await follow(second.engine, details.run_id))
      assert.equal((await second.engine.get(details.run_id)).end_reason, reason)
    })
  }
}
