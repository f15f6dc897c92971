import assert from 'node:assert/strict'
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ManualClock } from 'runwright/agent/testing'
import { WebhookCursor } from '../../../lib/server/webhooks/cursor.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'

const VERSION_1 = fileURLToPath(
  new URL('../../fixtures/webhooks/progress-v1.json', import.meta.url),
)

/** What a cursor knows, to be compared. */
function stateOf(cursor: WebhookCursor): object {
  const { start, known } = cursor
  return structuredClone({ start, known, runs: [...cursor.runs].sort() })
}

function warningsOf(t: TestContext): string[] {
  const warnings: string[] = []
  const listen = (warning: Error): void => void warnings.push(warning.message)
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  return warnings
}

/** Warnings are emitted in the next tick. */
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a file of the first version opens with all its runs', async (t) => {
  const path = join(scratch(t), 'progress.json')
  copyFileSync(VERSION_1, path)
  const { since, runs } = JSON.parse(readFileSync(VERSION_1, 'utf8'))
  const clock = new ManualClock()
  for (const _ of ['as it was', 'as it is written now']) {
    const cursor = await WebhookCursor.open(path, clock)
    const seqs = [...cursor.runs].map(([run, { seq }]) => [run, seq])
    assert.deepEqual(Object.fromEntries(seqs), runs)
    // Runs finished in the first version were not noted, so nothing older is listed again.
    assert.equal(cursor.known, since - 1)
    await cursor.close()
  }
})

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

test('a damaged line is told, and what is before it still counts', async (t) => {
  const path = join(scratch(t), 'progress.json')
  const warnings = warningsOf(t)
  const clock = new ManualClock()
  const cursor = await WebhookCursor.open(path, clock)
  cursor.add('a', clock.now())
  await cursor.close()
  appendFileSync(path, '{"run":"b","se\n{"run":"c","seq":1}\n')
  const reopened = await WebhookCursor.open(path, clock)
  assert.deepEqual([...reopened.runs.keys()], ['a'])
  await tick()
  assert.match(warnings.join(), /progress\.json is damaged from line 3 on/)
})

for (const { what, text, named } of [
  { what: 'an empty file', text: '', named: /is damaged; restore it, or remove it/ },
  { what: 'a newer version', text: '{"version":3}\n', named: /written by a newer version/ },
]) {
  test(`${what} is refused, and kept`, async (t) => {
    const path = join(scratch(t), 'progress.json')
    writeFileSync(path, text)
    await assert.rejects(WebhookCursor.open(path, new ManualClock()), named)
    assert.equal(readFileSync(path, 'utf8'), text)
  })
}

test('runs that are known in another order than they were created are listed again', async (t) => {
  const clock = new ManualClock()
  const path = join(scratch(t), 'progress.json')
  const cursor = await WebhookCursor.open(path, clock)
  clock.advance(100_000)
  const created = clock.now()
  cursor.add('later', created)
  cursor.add('finished', created)
  cursor.finish('finished')
  await cursor.close()
  // The process was killed when it had not yet saved this run, which was created earlier.
  const earlier = created - 50
  const reopened = await WebhookCursor.open(path, clock)
  assert.ok(reopened.known < earlier)
  for (const run of ['later', 'finished', 'earlier']) reopened.add(run, created)
  assert.deepEqual([...reopened.runs.keys()], ['later', 'earlier'])
})

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

test('saves that wait share one write', async (t) => {
  const path = join(scratch(t), 'progress.json')
  const clock = new ManualClock()
  const cursor = await WebhookCursor.open(path, clock)
  const saves = Array.from({ length: 100 }, (_, index) => {
    cursor.add('run', clock.now())
    cursor.advance('run', index)
    return cursor.save()
  })
  assert.ok(new Set(saves).size <= 2)
  await Promise.all(saves)
  assert.equal(readFileSync(path, 'utf8').trimEnd().split('\n').length, 2)
})

test('while the file cannot be written, saving does not wait, is repeated, and warns once', async (t) => {
  const folder = scratch(t)
  const path = join(folder, 'progress.json')
  const warnings = warningsOf(t)
  const clock = new ManualClock()
  const cursor = await WebhookCursor.open(path, clock)
  // Neither can be opened for writing, by root either.
  rmSync(path)
  mkdirSync(`${path}.new`)
  for (const run of ['a', 'b', 'c']) {
    cursor.add(run, clock.now())
    await cursor.save()
    clock.advance(5_000)
  }
  await cursor.save()
  await tick()
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /progress of deliveries cannot be stored; they go on/)
  await clock.whenPending()
  rmdirSync(`${path}.new`)
  clock.advance(5_000)
  await cursor.save()
  const reopened = await WebhookCursor.open(path, clock)
  assert.deepEqual([...reopened.runs.keys()], ['a', 'b', 'c'])
})

test('a new endpoint whose file cannot be made is refused', async (t) => {
  const path = join(scratch(t), 'progress.json')
  mkdirSync(`${path}.new`)
  await assert.rejects(WebhookCursor.open(path, new ManualClock()))
})
