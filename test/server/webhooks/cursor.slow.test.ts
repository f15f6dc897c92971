import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from 'runwright/agent/testing'
import { WebhookCursor } from '../../../lib/server/webhooks/cursor.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { noSmallDisk, runOnSmallDisk } from '../../helpers/small-disk.js'

/** What a cursor knows, to be compared. */
function stateOf(cursor: WebhookCursor): object {
  const { start, known } = cursor
  return structuredClone({ start, known, runs: [...cursor.runs].sort() })
}

test('whatever is cut off the file, the rest is an earlier state', async (t) => {
  const path = join(scratch(t), 'progress.json')
  const random = new Random(15)
  const clock = new ManualClock()
  const cursor = await WebhookCursor.open(path, clock)
  const states = [stateOf(cursor)]
  let runs = 0
  for (let step = 0; step < 200; step++) {
    clock.advance(random.integer(0, 2_000))
    const known = [...cursor.runs.keys()]
    const run = known[random.integer(0, Math.max(0, known.length - 1))]
    const what = random.integer(0, 3)
    if (run === undefined || what === 0) cursor.add(`run${runs++}`, clock.now())
    else if (what === 1) cursor.advance(run, random.integer(1, 100))
    else if (what === 2) cursor.update(run, { first: clock.now(), attempts: step, next: step })
    else cursor.finish(run)
    await cursor.save()
    states.push(stateOf(cursor))
  }
  const whole = readFileSync(path)
  const header = whole.indexOf('\n') + 1
  for (let cut = header; cut <= whole.length; cut += random.integer(1, 150)) {
    const copy = `${path}.copy`
    writeFileSync(copy, whole.subarray(0, cut))
    const reopened = stateOf(await WebhookCursor.open(copy, clock))
    assert.ok(states.some((state) => isSame(state, reopened)), `cut at ${cut}`)
  }
  assert.deepEqual(stateOf(await WebhookCursor.open(path, clock)), states.at(-1))
})

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

test('the file stays in proportion to what it holds', async (t) => {
  const path = join(scratch(t), 'progress.json')
  const clock = new ManualClock()
  const cursor = await WebhookCursor.open(path, clock)
  let largest = 0
  for (let run = 0; run < 800; run++) {
    cursor.add(`run${run}`, clock.now())
    clock.advance(1_000)
    cursor.update(`run${run}`, { first: clock.now(), attempts: 1, next: clock.now() })
    await cursor.save()
    cursor.finish(`run${run}`)
    await cursor.save()
    largest = Math.max(largest, statSync(path).size)
  }
  assert.ok(largest < 100_000, `${largest} bytes`)
})

test('on a full disk nothing that was saved is lost', { skip: noSmallDisk() }, () => {
  const { stdout, stderr, status } = runOnSmallDisk('test/server/webhooks/full-disk.ts')
  assert.equal(status, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), {
    whileFull: { first: 7, attempts: 1, next: 8 },
    later: ['saved', 'unsaved'],
    warnings: 1,
  })
})
