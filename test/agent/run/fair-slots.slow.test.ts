import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scheduler } from '../../../lib/agent/run/scheduler.js'

test('ten thousand waiting runs of two trees and of none start in rounds', () => {
  const scheduler = new Scheduler(1, true)
  const started: string[] = []
  const queue = (runId: string, root: string): void =>
    scheduler.queue({ runId, tenant: null, root }, `/${runId}`, () => started.push(root))
  queue('first', 'first')
  for (let n = 0; n < 4_000; n++) queue(`a${n}`, 'a')
  for (let n = 0; n < 4_000; n++) queue(`b${n}`, 'b')
  for (let n = 0; n < 2_000; n++) queue(`c${n}`, `c${n}`)
  const order: string[] = []
  for (let last = 'first'; order.length < 10_000; ) {
    scheduler.leave(last)
    const root = started.at(-1)!
    const turns = order.filter((one) => one === root).length
    order.push(root)
    last = root === 'a' || root === 'b' ? `${root}${turns}` : root
  }
  assert.deepEqual(order.slice(0, 4), ['a', 'b', 'c0', 'c1'])
  assert.deepEqual(order.slice(2_002, 2_006), ['a', 'b', 'a', 'b'])
  assert.equal(started.length, 10_001)
})
