import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import { Schedule, type TurnEnd } from '../../../lib/server/webhooks/schedule.js'

const HOUR = 3_600_000

/** A schedule whose turns end when the test says so. */
class Turns {
  readonly clock = new ManualClock()
  /** Runs whose turns have begun, in order. */
  readonly begun: string[] = []
  readonly #open = new Map<string, (end: TurnEnd) => void>()
  readonly schedule: Schedule = new Schedule(
    (runId) => {
      this.begun.push(runId)
      return new Promise((resolve) => this.#open.set(runId, resolve))
    },
    HOUR,
    this.clock,
  )

  get open(): string[] {
    return [...this.#open.keys()]
  }

  async end(runId: string, end: TurnEnd): Promise<void> {
    this.#open.get(runId)!(end)
    this.#open.delete(runId)
    await turn()
  }
}

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)

test('runs have their turns in order of arrival, eight at once, each one at a time', async () => {
  const turns = new Turns()
  const runs = names('r', 10)
  for (const run of [...runs, ...runs]) turns.schedule.add(run)
  assert.deepEqual(turns.open, runs.slice(0, 8))
  await turns.end('r3', 'idle')
  assert.deepEqual(turns.begun.slice(8), ['r8'])
  // What arrived during a turn gets another one, behind those that wait.
  await turns.end('r0', 'idle')
  await turns.end('r1', 'idle')
  assert.deepEqual(turns.begun.slice(8), ['r8', 'r9', 'r0'])
})

test('a run with more to do goes behind the others', async () => {
  const turns = new Turns()
  for (const run of names('r', 9)) turns.schedule.add(run)
  await turns.end('r0', 'more')
  await turns.end('r1', 'more')
  assert.deepEqual(turns.begun.slice(8), ['r8', 'r0'])
})

test('a run that waits for a retry holds no slot, and gets no earlier turn', async () => {
  const turns = new Turns()
  const at = turns.clock.now() + 5_000
  const runs = names('r', 20)
  for (const run of runs) turns.schedule.add(run)
  for (const run of runs) await turns.end(run, at)
  for (const run of runs) turns.schedule.add(run)
  turns.schedule.add('new')
  assert.deepEqual(turns.open, ['new'])
  turns.clock.advance(4_999)
  assert.deepEqual(turns.open, ['new'])
  turns.clock.advance(1)
  assert.deepEqual(turns.open, ['new', 'r0', 'r1', 'r2', 'r3'])
})

test('retries leave slots to new runs, and new runs leave slots to retries', async () => {
  const turns = new Turns()
  const { schedule, clock } = turns
  for (const run of names('old', 100)) schedule.retryAt(run, clock.now())
  clock.advance(1)
  for (const run of names('new', 100)) schedule.add(run)
  assert.deepEqual(turns.open, [...names('old', 4), ...names('new', 4)])
  await turns.end('new0', 'idle')
  await turns.end('old0', 'idle')
  assert.deepEqual(turns.begun.slice(8), ['new4', 'old4'])
})

test('a hundred thousand waiting runs share one timer', async () => {
  const turns = new Turns()
  const { schedule, clock } = turns
  for (const [index, run] of names('r', 100_000).entries()) {
    schedule.retryAt(run, clock.now() + 1_000 + (index * 7_919) % (HOUR - 1_000))
  }
  assert.equal(clock.pending, 1)
  clock.advance(5_000)
  assert.equal(clock.pending, 1)
  assert.equal(turns.open.length, 4)
})

test('a clock that is set back delays retries by the longest wait at most', async () => {
  const turns = new Turns()
  const { schedule, clock } = turns
  schedule.retryAt('r', clock.now() + 10 * HOUR)
  clock.advance(60_000)
  assert.deepEqual(turns.open, ['r'])
})

test('a closed schedule starts nothing and leaves no timer', async () => {
  const turns = new Turns()
  const { schedule, clock } = turns
  schedule.add('r')
  schedule.retryAt('waiting', clock.now() + 1)
  const closing = schedule.close()
  await turns.end('r', clock.now() + 1)
  await closing
  schedule.add('s')
  clock.advance(HOUR)
  assert.deepEqual(turns.begun, ['r'])
  assert.equal(clock.pending, 0)
})
