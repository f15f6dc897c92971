/** Counts everything that happens in a turn of its process, so it has a process of its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inSlices, LongWork, nextTurn } from '../../lib/internal/time.js'

test('long works that run at once share each turn, and none of them starves', async (t) => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  let steps = 0
  const done: number[] = []
  function* work(number: number): Generator<void, void> {
    for (let i = 0; i < 40; i++) {
      now++
      steps++
      done.push(number)
      yield
    }
  }
  let isRunning = true
  const counting = (async () => {
    const turns: number[] = []
    while (isRunning) {
      turns.push(steps)
      await nextTurn()
    }
    return turns
  })()
  // What follows in the same turn has no turn of its own either.
  const both = async (number: number): Promise<void> => {
    await inSlices(work(number))
    await inSlices(work(number))
  }
  await Promise.all([both(1), both(2), both(3)])
  isRunning = false
  const turns = await counting
  const longest = Math.max(...turns.slice(1).map((count, i) => count - turns[i]!))
  assert.ok(longest <= 12, `${longest} steps in one turn`)
  const firstHalf = done.slice(0, done.length / 2)
  for (const number of [1, 2, 3]) {
    const part = firstHalf.filter((one) => one === number).length / firstHalf.length
    assert.ok(part > 0.2, `work ${number} had ${part} of the first turns`)
  }
})

test('a new work in a turn that is used up waits for the next one', async (t) => {
  // The turn of another test, by its clock, is over then.
  await nextTurn()
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const first = new LongWork()
  assert.equal(first.isDue, false)
  now = 100
  assert.equal(new LongWork().isDue, true)
  await first.next()
  assert.equal(first.isDue, false)
})
