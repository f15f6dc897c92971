import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scheduler } from '../../../lib/agent/run/scheduler.js'
import { single } from './single.js'

const never = new AbortController().signal

/** Enters runs and lists those that got a slot, in order. */
function entering(scheduler: Scheduler): {
  enter(runId: string, cwd: string): Promise<void>
  readonly order: string[]
} {
  const order: string[] = []
  return {
    order,
    enter: async (runId, cwd) => {
      await scheduler.enter(single(runId), cwd, never)
      order.push(runId)
    },
  }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('only runs that wait for their first slot, and that no run has started, are queued', () => {
  const scheduler = new Scheduler(1, true)
  const queue = (runId: string, tenant: string, root = runId): void =>
    scheduler.queue({ runId, tenant, root }, `/${runId}`, () => undefined)
  queue('first', 't')
  queue('second', 't')
  queue('child', 't', 'second')
  queue('third', 'u')
  scheduler.pause('first')
  queue('first', 't') // it has begun
  assert.deepEqual(scheduler.queued('t'), { all: 1, ofTenant: 0 })
  scheduler.leave('second')
  assert.deepEqual(scheduler.queued('u'), { all: 1, ofTenant: 1 })
})

test('runs get slots in the order in which they came', async () => {
  const scheduler = new Scheduler(2, true)
  const { enter, order } = entering(scheduler)
  for (const name of ['a', 'b', 'c', 'd']) void enter(name, `/${name}`)
  await turn()
  assert.deepEqual(order, ['a', 'b'])
  assert.equal(scheduler.queued(null).all, 2)
  scheduler.leave('b')
  await turn()
  assert.deepEqual(order, ['a', 'b', 'c'])
})

test('a run whose folder is busy is skipped, and keeps its position in the queue', async () => {
  const scheduler = new Scheduler(2, true)
  const { enter, order } = entering(scheduler)
  for (const [name, cwd] of [['a', '/x'], ['b', '/x'], ['c', '/y']] as const) void enter(name, cwd)
  await turn()
  assert.deepEqual(order, ['a', 'c'])
  void enter('d', '/z')
  scheduler.leave('a')
  await turn()
  assert.deepEqual(order, ['a', 'c', 'b'])
})

test('a paused run frees its slot, keeps its folder, and returns before the queue', async () => {
  const scheduler = new Scheduler(1, true)
  const { enter, order } = entering(scheduler)
  for (const [name, cwd] of [
    ['a', '/x'],
    ['b', '/x'],
    ['c', '/y'],
    ['d', '/z'],
  ] as const)
    void enter(name, cwd)
  scheduler.pause('a')
  await turn()
  assert.deepEqual(order, ['a', 'c'])
  void enter('a', '/x')
  scheduler.leave('c')
  await turn()
  assert.deepEqual(order, ['a', 'c', 'a'])
  scheduler.leave('a')
  await turn()
  assert.deepEqual(order, ['a', 'c', 'a', 'b'])
})

test('a run that is aborted while it waits leaves the queue', async () => {
  const scheduler = new Scheduler(1, true)
  const stop = new AbortController()
  await scheduler.enter(single('a'), '/x', never)
  const waiting = scheduler.enter(single('b'), '/y', stop.signal)
  stop.abort(new Error('gone'))
  await assert.rejects(waiting, /gone/)
  assert.equal(scheduler.queued(null).all, 0)
  scheduler.leave('a')
  await scheduler.enter(single('c'), '/x', never)
  assert.equal(scheduler.isWorking('c'), true)
})

test('runs share folders unless they are exclusive; the last one to leave frees them', async () => {
  const scheduler = new Scheduler(3, false)
  await Promise.all(['a', 'b'].map((name) => scheduler.enter(single(name), '/x', never)))
  scheduler.leave('a')
  scheduler.leave('b')
  await scheduler.enter(single('c'), '/x', never)
  assert.equal(scheduler.isWorking('c'), true)
})
