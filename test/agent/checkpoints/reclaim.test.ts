import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type RunStore } from 'runwright/agent'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { Reclaimer, type ReclaimerParts } from '../../../lib/agent/checkpoints/reclaim.js'
import { useTree } from '../../../lib/agent/checkpoints/fork-files.js'
import { HashSet } from '../../../lib/agent/checkpoints/hash-set.js'
import { blob, HOUR_MS, listAll } from '../../../lib/agent/testing/object-contract/suite.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { withCalls } from '../../helpers/faulty-store.js'
import { Random } from '../../helpers/random.js'
import { objectsOfFiles, TestProcess, type Files } from './reclaim-process.js'

test('a set of hashes holds what was added', () => {
  const set = new HashSet()
  const hashes = Array.from({ length: 5_000 }, (_, i) => blob(`${i}`).hash)
  for (const hash of [...hashes, ...hashes]) set.add(hash)
  assert.equal(set.size, hashes.length)
  assert.ok(hashes.every((hash) => set.has(hash)))
  assert.ok(!set.has(blob('x').hash) && !new HashSet().has(blob('x').hash))
  assert.deepEqual([...set].sort(), hashes.sort())
})

interface Open {
  readonly store: MemoryStore
  readonly process: TestProcess
  readonly files: Files
}

/** A store with a run `a` that has one checkpoint, and a blob that nothing refers to. */
async function openWorld(): Promise<Open> {
  const store = new MemoryStore()
  await store.open()
  await store.append('a', sampleRun('a', { status: 'running' }))
  const process = new TestProcess(store, store.objects, new Random(1))
  const files = new Map([['folder/file', 'text']])
  await process.checkpoint('a', files)
  await store.objects.put([blob('garbage')])
  return { store, process, files }
}

test('while a run cannot be read nothing is removed, and it is named', async () => {
  const { store, process } = await openWorld()
  await process.checkpoint('a', new Map([['folder/file', 'other']]))
  await store.append('b', sampleRun('b'))
  const problems: Error[] = []
  let bad: string | null = null
  const runs: RunStore = Object.create(store, {
    list: {
      value: async (query: Parameters<RunStore['list']>[0]) => {
        const { heads, next } = await store.list(query)
        const mark = heads.map((head) =>
          head.details.run_id === bad ? { ...head, problem: 'it is damaged' } : head)
        return { heads: mark, next }
      },
    },
    ...Object.fromEntries(
      (['counts', 'head', 'read'] as const).map((name) => {
        return [name, { value: store[name].bind(store) }]
      }),
    ),
  })
  const use = new ObjectUse(store.objects, false)
  const onProblem = (problem: Error): void => void problems.push(problem)
  const reclaimer = new Reclaimer({ store: runs, use, onProblem })
  const before = await listAll(store.objects)
  bad = 'b'
  await assert.rejects(reclaimer.sweep(), { message: /run b cannot be read: it is damaged/ })
  const { objects } = store
  assert.deepEqual(await listAll(objects), before)
  bad = null
  const folder = objectsOfFiles(new Map([['folder/file', 'text']])).at(-1)?.hash
  await objects.delete([folder as string], 0)
  const missing = { code: 'ERR_AGENT_STORE_CORRUPT', message: /is missing/ }
  await assert.rejects(reclaimer.sweep(), missing)
  assert.equal((await listAll(objects)).length, before.length - 1, 'nothing was removed')
  await store.delete('a')
  assert.deepEqual(await reclaimer.sweep(), { kept: 0, removed: before.length - 1 })
})

test('contents that are missing are named, and swept is all the same', async () => {
  const { store, process } = await openWorld()
  const { hash } = blob('text')
  await store.objects.delete([hash], 0)
  assert.deepEqual(await process.reclaimer.sweep(), { kept: 2, removed: 1 })
  assert.deepEqual(process.reclaimer.problems, [
    `object ${hash}, to which checkpoints refer, is missing`,
  ])
})

test('a store that lists the same hashes again and again is not listed for ever', async () => {
  const { store, process } = await openWorld()
  store.objects.list = () => Promise.resolve([blob('text').hash])
  await assert.rejects(process.reclaimer.sweep(), /list\(\) must go on after/)
})

const MINUTE_MS = 60_000

/** A schedule that a test moves. */
class TestSchedule {
  now = 0
  #timers: { readonly at: number; readonly callback: () => void }[] = []

  get next(): number | undefined {
    return this.#timers[0]?.at
  }

  readonly schedule = (callback: () => void, ms: number): { cancel(): void } => {
    const timer = { at: this.now + ms, callback }
    this.#timers = [...this.#timers, timer].sort((a, b) => a.at - b.at)
    return { cancel: () => void (this.#timers = this.#timers.filter((one) => one !== timer)) }
  }

  fire(): void {
    const [first, ...rest] = this.#timers
    assert.ok(first !== undefined)
    this.#timers = rest
    this.now = first.at
    first.callback()
  }

  async whenScheduled(): Promise<void> {
    while (this.#timers.length === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

test('a sweep comes soon after a deletion, but rests 20 times as long as it takes', async () => {
  const { store } = await openWorld()
  const time = new TestSchedule()
  const { objects } = store
  const slow = withCalls(objects, {
    exclusive: true,
    list: (after, limit) => {
      time.now += 1_000
      return objects.list(after, limit)
    },
  })
  const reclaimer = new Reclaimer({
    store, use: new ObjectUse(slow, false), onProblem: assert.fail,
    schedule: time.schedule, now: () => time.now,
  })
  reclaimer.start()
  assert.equal(time.next, 60_000)
  await store.delete('a')
  reclaimer.deleted()
  reclaimer.deleted()
  assert.equal(time.next, 1_000)
  time.fire()
  await time.whenScheduled()
  assert.deepEqual(await listAll(objects), [])
  const ended = time.now
  assert.ok(ended >= 3_000)
  reclaimer.deleted()
  assert.ok((time.next ?? 0) >= ended + 20 * (ended - 1_000), 'it rests')
  await reclaimer.close()
  assert.equal(time.next, undefined)
})

test('runs of whose removal nobody tells are noticed within the hour, and idle costs a look', async () => {
  const { store } = await openWorld()
  const time = new TestSchedule()
  let lists = 0
  const counted = withCalls(store.objects, {
    exclusive: true,
    list: (after, limit) => {
      lists += 1
      return store.objects.list(after, limit)
    },
  })
  const reclaimer = new Reclaimer({
    store, use: new ObjectUse(counted, false), onProblem: assert.fail,
    schedule: time.schedule, now: () => time.now,
  })
  reclaimer.start()
  time.fire()
  await time.whenScheduled()
  const [afterStart, left] = [lists, (await listAll(store.objects)).length]
  assert.equal(left, 3)
  for (let hour = 0; hour < 3; hour++) {
    assert.equal(time.next, time.now + HOUR_MS)
    time.fire()
    await time.whenScheduled()
  }
  assert.equal(lists, afterStart)
  await store.delete('a')
  time.fire()
  await time.whenScheduled()
  assert.deepEqual(await listAll(store.objects), [])
  await reclaimer.close()
})

test('in a shared store one process sweeps at a time, what was used lately stays', async () => {
  const { store } = await openWorld()
  const calls: unknown[] = []
  let mine = true
  const shared = withCalls(store.objects, {
    delete: (hashes, unusedMs) => {
      calls.push([hashes.length, unusedMs])
      return Promise.resolve()
    },
    claimSweep: (everyMs) => {
      calls.push(everyMs)
      return Promise.resolve(mine)
    },
  })
  const time = new TestSchedule()
  const reclaimer = new Reclaimer({
    store, use: new ObjectUse(shared, true), onProblem: assert.fail,
    schedule: time.schedule, now: () => time.now,
  })
  reclaimer.deleted()
  time.fire()
  await time.whenScheduled()
  assert.deepEqual(calls.splice(0), [MINUTE_MS, [1, HOUR_MS]])
  // What it found may have been used too lately: it looks again, whether runs were removed or not.
  assert.equal(time.next, time.now + HOUR_MS)
  time.fire()
  await time.whenScheduled()
  assert.deepEqual(calls.splice(0), [HOUR_MS, [1, HOUR_MS]])
  reclaimer.deleted()
  assert.equal(time.next, time.now + MINUTE_MS)
  mine = false
  time.fire()
  await time.whenScheduled()
  assert.deepEqual(calls.splice(0), [MINUTE_MS])
  assert.equal(time.next, time.now + MINUTE_MS)
  await reclaimer.close()
})

test('a process that has made no sweep of a shared store takes it for a long one', async () => {
  const { store } = await openWorld()
  for (const [runs, everyMs] of [[10, MINUTE_MS], [1_000, 100_000], [1e6, HOUR_MS]] as const) {
    const calls: number[] = []
    const shared = withCalls(store.objects, {
      claimSweep: (every) => Promise.resolve(calls.push(every) < 0),
    })
    const many: ReclaimerParts['store'] = {
      counts: async () => ({ ...(await store.counts()), running: 0, achieved: runs }),
      head: (runId) => store.head(runId),
      list: (query) => store.list(query),
      read: (...page) => store.read(...page),
    }
    const time = new TestSchedule()
    const reclaimer = new Reclaimer({
      store: many, use: new ObjectUse(shared, true), onProblem: assert.fail,
      schedule: time.schedule, now: () => time.now,
    })
    reclaimer.deleted()
    time.fire()
    await time.whenScheduled()
    assert.deepEqual(calls, [everyMs])
    await reclaimer.close()
  }
})

test('closing ends a sweep that is under way', async () => {
  const { store, process } = await openWorld()
  await store.delete('a')
  const sweep = assert.rejects(process.reclaimer.sweep(), { name: 'AbortError' })
  await process.reclaimer.close()
  await sweep
  await assert.rejects(process.reclaimer.sweep(), { name: 'AbortError' })
  process.reclaimer.deleted()
})

test('what a sweep is removing is not found by a capture meanwhile', async () => {
  const { store } = await openWorld()
  const { hash } = blob('garbage')
  let begun = (): void => {}
  let go = (): void => {}
  const removing = new Promise<void>((resolve) => (begun = resolve))
  const gate = new Promise<void>((resolve) => (go = resolve))
  const objects = withCalls(store.objects, {
    exclusive: true,
    delete: async (hashes, unusedMs) => {
      begun()
      await gate
      await store.objects.delete(hashes, unusedMs)
    },
  })
  const use = new ObjectUse(objects, false)
  const reclaimer = new Reclaimer({ store, use, onProblem: assert.fail })
  const sweep = reclaimer.sweep()
  await removing
  const found = use.capturing(async (held) => await held.has([hash]))
  const stored = use.capturing(async (held) => await held.put([blob('garbage')]))
  go()
  assert.deepEqual([...(await found)], [])
  await Promise.all([sweep, stored])
  assert.deepEqual([...(await objects.has([hash]))], [hash])
})

test('a tree of which a part is gone cannot be used anew', async () => {
  const { store, files } = await openWorld()
  const top = objectsOfFiles(files).at(-1)?.hash ?? ''
  await useTree(store.objects, top)
  await store.objects.delete([blob('text').hash], 0)
  const refused = { code: 'ERR_AGENT_CHECKPOINT', problem: 'not_kept' }
  await assert.rejects(useTree(store.objects, top), refused)
})
