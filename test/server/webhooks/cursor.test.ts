import assert from 'node:assert/strict'
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ManualClock } from 'runwright/agent/testing'
import { WebhookCursor } from '../../../lib/server/webhooks/cursor.js'
import { scratch } from '../../helpers/engine.js'

const VERSION_1 = fileURLToPath(
  new URL('../../fixtures/webhooks/progress-v1.json', import.meta.url),
)

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
