import assert from 'node:assert/strict'
import { test } from 'node:test'
import { frame } from '../../helpers/ws-peer.js'
import { HeldTimers } from '../../helpers/held-timers.js'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

const upTo = (last: number, first = 1): number[] =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i)
const seqs = (events: readonly { seq: number }[]): number[] => events.map(({ seq }) => seq)

test('readers before, during and after a run all see the same events, then 1000', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  const path = `/api/ws/${runId}`
  await using opened = await openService({ engine })
  using early = await opened.socket(path)
  assert.equal(early.status, 101)
  assert.equal((await early.event()).seq, 1)
  engine.log(runId, 300)
  using middle = await opened.socket(path)
  assert.equal((await middle.event()).seq, 1)
  engine.log(runId, 300)
  engine.finish(runId)
  using late = await opened.socket(path)
  const [first, second, third] = await Promise.all([early.rest(), middle.rest(), late.rest()])
  assert.deepEqual(seqs(first.events), upTo(602, 2))
  assert.deepEqual(second.events, first.events)
  assert.deepEqual(third.events.slice(1), first.events)
  assert.deepEqual(third.events, engine.runs.get(runId)!.events)
  assert.deepEqual([first.code, second.code, third.code], [1000, 1000, 1000])
})

for (const { query, gives } of [
  { query: '?after=3', gives: [4, 5] },
  { query: '?after=5', gives: [] },
  { query: '?after=-1', gives: [] },
  { query: '?kinds=run_started,run_end', gives: [1, 5] },
  { query: '?kinds=error', gives: [] },
]) {
  test(`a stream of an ended run with ${query} gives [${gives}] and 1000`, async () => {
    const engine = new FakeEngine()
    const runId = engine.add()
    engine.log(runId, 3)
    engine.finish(runId)
    await using opened = await openService({ engine })
    using client = await opened.socket(`/api/ws/${runId}${query}`)
    const { events, code } = await client.rest()
    assert.deepEqual(seqs(events), gives)
    assert.equal(code, 1000)
  })
}

const unknown = '01930000-0000-7000-8000-00000000ffff'
for (const { path, status, code } of [
  { path: `/api/ws/${unknown}`, status: 404, code: 'run_not_found' },
  { path: '/api/ws/nonsense', status: 404, code: 'run_not_found' },
  { path: '/api/ws/', status: 404, code: 'run_not_found' },
  { path: '/api/ws/{run}/', status: 404, code: 'run_not_found' },
  { path: '/api/ws/..%2fruns', status: 404, code: 'run_not_found' },
  { path: '/api/ws/{run}?after=2', status: 409, code: 'cursor_ahead' },
  { path: '/api/ws/{run}?after=x', status: 422, code: 'invalid_request' },
  { path: '/api/ws/{run}?kinds=nope', status: 422, code: 'invalid_request' },
]) {
  test(`an upgrade of ${path} is answered with ${status} ${code} in place of the 101`, async () => {
    const engine = new FakeEngine()
    const runId = engine.add()
    await using opened = await openService({ engine })
    using client = await opened.socket(path.replace('{run}', runId))
    assert.equal(client.status, status)
    assert.match(client.head, /content-type: application\/problem\+json/i)
    assert.equal((await client.problem()).code, code)
  })
}

test('a plain request for a WebSocket is answered with 426', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const answer = await opened.call('GET', `/api/ws/${runId}`)
  assert.equal(answer.status, 426)
  assert.equal(answer.headers['upgrade'], 'websocket')
  assert.equal(answer.json.code, 'upgrade_required')
})

for (const { end, code } of [
  { end: 'deleted', code: 4404 },
  { end: 'shutdown', code: 1001 },
] as const) {
  test(`a run that is ${end} ends its streams with ${code}`, async () => {
    const engine = new FakeEngine()
    const runId = engine.add()
    await using opened = await openService({ engine })
    using client = await opened.socket(`/api/ws/${runId}`)
    await client.event()
    engine.endReaders(runId, end)
    assert.deepEqual(await client.rest().then(({ events, code }) => [events, code]), [[], code])
  })
}

test('a closing service sends 1001 and accepts no more upgrades', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  using client = await opened.socket(`/api/ws/${runId}`)
  await client.event()
  const closing = opened.service.close()
  assert.equal((await client.rest()).code, 1001)
  client.peer.end()
  await closing
  using late = await opened.socket(`/api/ws/${runId}`)
  assert.notEqual(late.status, 101)
})

test('messages from the client are ignored up to 4 KiB; a larger one is 1009', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  using client = await opened.socket(`/api/ws/${runId}`)
  client.send('hello')
  client.send('x'.repeat(4096))
  await client.event()
  engine.log(runId, 1)
  assert.equal((await client.event()).seq, 2)
  client.send('x'.repeat(4097))
  assert.equal((await client.rest()).code, 1009)
})

test('a flood of messages is 1008', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  using client = await opened.socket(`/api/ws/${runId}`)
  // Whatever second boundary falls into it, one of the two seconds has more than 20.
  for (let i = 0; i < 60; i++) client.send('{}')
  assert.equal((await client.rest()).code, 1008)
})

for (const [name, opcode] of [['pings', 9], ['pongs', 10]] as const) {
  test(`a flood of ${name} is 1008`, async () => {
    const engine = new FakeEngine()
    const runId = engine.add()
    await using opened = await openService({ engine })
    using client = await opened.socket(`/api/ws/${runId}`)
    client.peer.write(Buffer.concat(Array.from({ length: 60 }, () => frame(opcode))))
    assert.equal((await client.rest()).code, 1008)
  })
}

test('pings are sent, and a client that never answers is disconnected', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  using beats = new HeldTimers(1_001)
  await using opened = await openService({ engine, streams: { pingMs: 8 * 1_001 } })
  using client = await opened.socket(`/api/ws/${runId}?after=1`)
  const [socket] = opened.served.sockets
  const closed = new Promise((resolve) => socket!.once('close', resolve))
  for (let i = 0; i < 8; i++) beats.fire()
  assert.equal((await client.frame()).opcode, 9)
  for (let i = 0; i < 3 * 8; i++) beats.fire()
  await closed
  assert.equal(engine.runs.get(runId)!.readers.size, 0)
})

test('a reader that does not read gets 1013, and reconnects without loss', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine, streams: { stuckMs: 50 } })
  using stuck = await opened.socket(`/api/ws/${runId}`)
  const { seq } = await stuck.event()
  stuck.peer.socket.pause()
  const { readers } = engine.runs.get(runId)!
  const [reader] = readers
  const letGo = new Promise<void>((resolve) => {
    const close = reader!.close.bind(reader)
    reader!.close = () => {
      close()
      resolve()
    }
  })
  engine.log(runId, 600, 'x'.repeat(20_000))
  engine.finish(runId)
  await letGo
  stuck.peer.socket.resume()
  const { events, code } = await stuck.rest()
  assert.equal(code, 1013)
  const last = events.at(-1).seq
  assert.deepEqual(seqs(events), upTo(last, seq + 1))
  assert.ok(last < 602)
  await using again = await openService({ engine })
  using back = await again.socket(`/api/ws/${runId}?after=${last}`)
  assert.deepEqual(seqs((await back.rest()).events), upTo(602, last + 1))
})

test('a reader that does not read does not delay others', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  using stuck = await opened.socket(`/api/ws/${runId}`)
  stuck.peer.socket.pause()
  using quick = await opened.socket(`/api/ws/${runId}`)
  engine.log(runId, 600, 'x'.repeat(20_000))
  engine.finish(runId)
  assert.deepEqual(seqs((await quick.rest()).events), upTo(602))
})

test('a reader that disconnects releases its subscription', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const client = await opened.socket(`/api/ws/${runId}`)
  await client.event()
  const { readers } = engine.runs.get(runId)!
  assert.equal(readers.size, 1)
  const [socket] = opened.served.sockets
  const closed = new Promise((resolve) => socket!.once('close', resolve))
  client.peer.reset()
  await closed
  assert.equal(readers.size, 0)
})

test('a log that cannot be read is 1011 and is reported to the host', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  const subscribe = engine.subscribe
  Object.assign(engine, {
    subscribe: async (...args: Parameters<typeof subscribe>) => {
      const subscription = await subscribe(...args)
      subscription.next = () => Promise.reject(new Error('disk'))
      return subscription
    },
  })
  await using opened = await openService({ engine })
  using client = await opened.socket(`/api/ws/${runId}`)
  assert.equal((await client.rest()).code, 1011)
  assert.match(String(opened.errors[0]), /disk/)
})
