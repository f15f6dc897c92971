import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { Schedule, type TurnEnd } from '../../../lib/server/webhooks/schedule.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'

/** A schedule whose turns end when the test says so. */
class Turns {
  readonly clock = new ShiftedClock()
  /** Runs whose turns have begun, in order. */
  readonly begun: string[] = []
  readonly #open = new Map<string, (end: TurnEnd) => void>()
  readonly schedule: Schedule = new Schedule(
    (runId) => {
      this.begun.push(runId)
      return new Promise((resolve) => this.#open.set(runId, resolve))
    },
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
  const runs = names('r', 20)
  for (const run of runs) turns.schedule.add(run)
  for (const run of runs) await turns.end(run, 5_000)
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
  for (const run of names('old', 100)) schedule.retryIn(run, 0)
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
    schedule.retryIn(run, 1_000 + (index * 7_919) % (HOUR - 1_000))
  }
  assert.equal(clock.pending, 1)
  clock.advance(5_000)
  assert.equal(clock.pending, 1)
  assert.equal(turns.open.length, 4)
})

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`a retry is due in its time, with the time of day set by ${jump / HOUR} h`, async () => {
    const turns = new Turns()
    const { schedule, clock } = turns
    schedule.retryIn('r', 5_000)
    clock.shiftMs = jump
    schedule.retryIn('later', 10_000)
    clock.advance(4_999)
    assert.deepEqual(turns.open, [])
    clock.advance(1)
    assert.deepEqual(turns.open, ['r'])
    clock.advance(5_000)
    assert.deepEqual(turns.open, ['r', 'later'])
  })
}

test('a closed schedule starts nothing and leaves no timer', async () => {
  const turns = new Turns()
  const { schedule, clock } = turns
  schedule.add('r')
  schedule.retryIn('waiting', 1)
  const closing = schedule.close()
  await turns.end('r', 1)
  await closing
  schedule.add('s')
  clock.advance(HOUR)
  assert.deepEqual(turns.begun, ['r'])
  assert.equal(clock.pending, 0)
})
