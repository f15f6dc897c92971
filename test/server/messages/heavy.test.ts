import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { HeavyCalls } from '../../../lib/server/messages/heavy.js'
import type { HttpRequest } from '../../../lib/server/messages/reply.js'
import { untilAborted } from '../../helpers/abort.js'

const GET = { method: 'GET' } as HttpRequest
const MIB = 1024 * 1024

/** A request; `socket` closes its connection. */
function requestOn(socket = new EventEmitter()): HttpRequest {
  return { httpVersionMajor: 1, socket } as unknown as HttpRequest
}

test('four calls are at work at a time; others follow in their order, failures or not', async () => {
  const calls = new HeavyCalls(1_000)
  const order: number[] = []
  let atWork = 0
  let most = 0
  const work = async (n: number): Promise<number> => {
    atWork += 1
    most = Math.max(most, atWork)
    order.push(n)
    await new Promise((resolve) => setImmediate(resolve))
    atWork -= 1
    if (n % 3 === 0) throw new Error(`failed ${n}`)
    return n
  }
  const all = Array.from({ length: 20 }, (_, n) => calls.limited('a', requestOn(), () => work(n)))
  const settled = await Promise.allSettled(all)
  assert.equal(most, 4)
  assert.deepEqual(order, order.map((_, n) => n))
  assert.equal(settled.filter(({ status }) => status === 'rejected').length, 7)
  assert.equal(await calls.limited('a', requestOn(), () => work(1)), 1)
})

test('many calls of one account do not keep those of others waiting, and have a bound', async () => {
  const calls = new HeavyCalls(1_000)
  const order: string[] = []
  const ends: (() => void)[] = []
  const start = (id: string, n: number): Promise<void> =>
    calls.limited(id, requestOn(), async () => {
      order.push(`${id}${n}`)
      await new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = Array.from({ length: 104 }, (_, n) => start('a', n))
  await assert.rejects(start('a', 104), ({ status, code, headers }: any) => {
    assert.deepEqual([status, code, headers['Retry-After']], [429, 'too_many_at_once', '5'])
    return true
  })
  for (let n = 0; n < 3; n++) all.push(start('b', n))
  all.push(start('c', 0))
  assert.deepEqual(order, ['a0', 'a1', 'a2', 'a3'])
  for (let n = 0; n < 107; n++) {
    ends[n]!()
    while (ends.length < Math.min(108, n + 5)) await new Promise(setImmediate)
  }
  ends[107]!()
  await Promise.all(all)
  // While others wait, the first account has no more than two of the four slots.
  assert.deepEqual(order.slice(4, 10), ['b0', 'c0', 'a4', 'b1', 'a5', 'b2'])
})

test('a call whose connection closes leaves the queue, and its work ends', async () => {
  const calls = new HeavyCalls(1_000)
  const socket = new EventEmitter()
  const isGone = ({ status, code }: any): boolean => status === 499 && code === 'client_gone'
  const worked: string[] = []
  const work = async (name: string, signal: AbortSignal): Promise<never> => {
    worked.push(name)
    return await untilAborted(signal)
  }
  const closing = Array.from({ length: 20 }, (_, n) =>
    calls.limited('a', requestOn(socket), (signal) => work(`a${n}`, signal)),
  )
  const next = calls.limited('a', requestOn(), async () => 'done')
  socket.emit('close')
  for (const call of closing) await assert.rejects(call, isGone)
  assert.equal(await next, 'done')
  assert.deepEqual(worked, ['a0', 'a1', 'a2', 'a3'])
  // One listener for all calls of a connection, and none afterwards.
  assert.equal(socket.listenerCount('close'), 0)
})

/** A response that takes what it is given, or nothing. */
class FakeResponse extends EventEmitter {
  destroyed = false
  writableEnded = false
  taken = 0

  write(piece: Uint8Array): boolean {
    this.taken += piece.length
    return false
  }

  end(): void {
    this.writableEnded = true
    this.emit('close')
  }

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

test('what is being sent has a bound, which frees itself when a response closes', async () => {
  const calls = new HeavyCalls(60_000)
  const content = new Uint8Array(32 * MIB)
  const open: FakeResponse[] = []
  const start = (): void => {
    const response = new FakeResponse()
    calls.reply(GET, {}, content).stream!(response as unknown as ServerResponse)
    open.push(response)
  }
  for (let i = 0; i < 8; i++) start()
  const isFull = ({ status, code, headers }: any): boolean =>
    status === 429 && code === 'too_many_at_once' && headers['Retry-After'] === '5'
  assert.throws(start, isFull)
  // Small replies and those without content are like any other.
  assert.equal(calls.reply(GET, {}, new Uint8Array(MIB)).stream, undefined)
  assert.equal(calls.reply({ method: 'HEAD' } as HttpRequest, {}, content).stream, undefined)
  const [first] = open
  for (let i = 0; i < 32 * 16; i++) {
    assert.equal(first!.taken, (i + 1) * 65_536)
    first!.emit('drain')
  }
  assert.ok(first!.writableEnded)
  start()
  assert.throws(start, isFull)
  for (const response of open) if (!response.writableEnded) response.destroy()
  start()
  open.at(-1)!.destroy()
})

test('a response that closed before it began is not counted', () => {
  const calls = new HeavyCalls(60_000)
  for (let i = 0; i < 20; i++) {
    const response = new FakeResponse()
    response.destroyed = true
    const { stream } = calls.reply(GET, {}, new Uint8Array(32 * MIB))
    stream!(response as unknown as ServerResponse)
    assert.equal(response.taken, 0)
  }
})
