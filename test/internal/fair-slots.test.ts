import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairSlots } from '../../lib/internal/queues.js'
import { Random } from '../helpers/random.js'

/** Work that lasts until it is ended. */
class Works {
  readonly slots: FairSlots
  /** What has started and not ended, by its name, with what ends it. */
  readonly open = new Map<string, () => void>()
  /** Names in the order in which they started. */
  readonly started: string[] = []

  constructor(slots: number) {
    this.slots = new FairSlots(slots)
  }

  add(caller: string, name: string, signal?: AbortSignal): Promise<string> {
    const work = (): Promise<string> => {
      this.started.push(name)
      return new Promise((resolve) => this.open.set(name, () => resolve(name)))
    }
    return this.slots.run(caller, work, signal)
  }

  async end(name: string): Promise<void> {
    const end = this.open.get(name)
    assert.ok(end !== undefined, `${name} has not started`)
    this.open.delete(name)
    end()
    await settled()
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('work starts at once while slots are free, and then in the order of its caller', async () => {
  const works = new Works(2)
  for (const name of ['a1', 'a2', 'a3', 'a4']) void works.add('a', name)
  await settled()
  assert.deepEqual(works.started, ['a1', 'a2'])
  assert.equal(works.slots.waitingOf('a'), 2)
  await works.end('a2')
  await works.end('a1')
  assert.deepEqual(works.started, ['a1', 'a2', 'a3', 'a4'])
  assert.equal(works.slots.waiting, 0)
})

test('callers that wait have their turns in rounds', async () => {
  const works = new Works(1)
  for (const name of ['a1', 'a2', 'a3', 'a4']) void works.add('a', name)
  for (const name of ['b1', 'b2']) void works.add('b', name)
  void works.add('c', 'c1')
  await settled()
  while (works.open.size > 0) await works.end(works.started.at(-1)!)
  assert.deepEqual(works.started, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
})

test('a caller gets no more than half of the slots while others wait', async () => {
  const works = new Works(4)
  for (let i = 1; i <= 9; i++) void works.add('a', `a${i}`)
  for (const name of ['b1', 'b2', 'b3']) void works.add('b', name)
  await settled()
  assert.deepEqual([...works.open.keys()], ['a1', 'a2', 'a3', 'a4'])
  await works.end('a1')
  await works.end('a2')
  assert.deepEqual([...works.open.keys()], ['a3', 'a4', 'b1', 'b2'])
  await works.end('b1')
  assert.deepEqual([...works.open.keys()], ['a3', 'a4', 'b2', 'b3'])
  // Nobody else waits any more.
  await works.end('b2')
  await works.end('b3')
  assert.deepEqual([...works.open.keys()], ['a3', 'a4', 'a5', 'a6'])
})

test('work that is aborted while it waits leaves its place and is never done', async () => {
  const works = new Works(1)
  const [first, second] = [new AbortController(), new AbortController()]
  void works.add('a', 'a1', first.signal)
  const left = assert.rejects(works.add('a', 'a2', second.signal), /no more/)
  void works.add('a', 'a3')
  await settled()
  second.abort(new Error('no more'))
  await left
  assert.equal(works.slots.waitingOf('a'), 1)
  // Work that has begun knows its signal itself.
  first.abort()
  await works.end('a1')
  assert.deepEqual(works.started, ['a1', 'a3'])
  await assert.rejects(works.add('a', 'a4', AbortSignal.abort(new Error('before'))), /before/)
})

test('work that fails frees its slot', async () => {
  const slots = new FairSlots(1)
  await assert.rejects(slots.run('a', () => Promise.reject(new Error('failed'))), /failed/)
  assert.equal(await slots.run('b', () => Promise.resolve('done')), 'done')
})

test('slots are never exceeded, idle or unfair in random loads', async () => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  const random = new Random(seed)
  for (let round = 0; round < 40; round++) {
    const count = random.integer(1, 6)
    const works = new Works(count)
    const waiting = new Map<string, { caller: string; stop: AbortController }>()
    const callerOf = (name: string): string => name.split(' ')[0]!
    for (let step = 0; step < 120; step++) {
      const what = random.next()
      if (what < 0.5) {
        const name = `${random.pick(['a', 'a', 'a', 'b', 'c'])} ${step}`
        const stop = new AbortController()
        waiting.set(name, { caller: callerOf(name), stop })
        works.add(callerOf(name), name, stop.signal).catch(() => undefined)
      } else if (what < 0.9 && works.open.size > 0) {
        await works.end(random.pick([...works.open.keys()]))
      } else if (waiting.size > 0) {
        const name = random.pick([...waiting.keys()])
        waiting.get(name)!.stop.abort()
        waiting.delete(name)
      }
      await settled()
      for (const name of works.started) waiting.delete(name)
      const context = `seed ${seed}, round ${round}, step ${step}`
      assert.ok(works.open.size <= count, context)
      assert.ok(works.open.size === count || waiting.size === 0, `${context}: a slot is idle`)
      assert.equal(works.slots.waiting, waiting.size, context)
    }
    const last: Record<string, number> = {}
    for (const name of works.started) {
      const at = Number(name.split(' ')[1])
      assert.ok(at > (last[callerOf(name)] ?? -1), `seed ${seed}: ${name} was overtaken`)
      last[callerOf(name)] = at
    }
  }
})
