import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import type { AgentEvent, EventKind } from 'runwright/agent'
import { bearerKeys, RunServiceClient, type FollowOptions } from 'runwright/server'
import { WebSocketServer, type WebSocketConnection } from 'runwright/ws'
import { listen, stop } from '../../helpers/ws-peer.js'
import { random } from '../../ws/random.js'
import { FakeEngine } from '../fake-engine.js'
import { openService } from '../open-service.js'

const RUN = '01930000-0000-7000-8000-000000000001'
const BY_SOCKET = { transport: 'websocket', reconnectMs: 0 } as const

const clientOf = (port: number, key?: string): RunServiceClient =>
  new RunServiceClient({ baseUrl: `http://127.0.0.1:${port}`, key, trustEnv: false, retry: null })

async function collect(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const list: AgentEvent[] = []
  for await (const event of events) list.push(event)
  return list
}
const seqs = (events: readonly AgentEvent[]): number[] => events.map(({ seq }) => seq)
const upTo = (last: number, first = 1): number[] =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i)

/** A TCP proxy whose connections are reset after as many bytes from the server as `limit` says. */
async function cuttingProxy(
  port: number,
  limit: () => number,
): Promise<{ port: number; connections: number } & AsyncDisposable> {
  const open = new Set<Socket>()
  const proxy = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    let left = limit()
    result.connections += 1
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far)
    far.on('data', (chunk: Buffer) => {
      near.write(chunk.subarray(0, left))
      left -= chunk.length
      if (left > 0) return
      far.destroy()
      // By FIN in half of the cases.
      if (result.connections % 2 === 0) near.resetAndDestroy()
      else near.end()
    })
  })
  const result = {
    port: await listen(proxy as never),
    connections: 0,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
  return result
}

test('connections cut at random bytes lose and repeat no event', async () => {
  const dice = random(15)
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  const runId = engine.add()
  await using proxy = await cuttingProxy(opened.port, () => Math.floor(dice() * 3_000))
  await using runs = clientOf(proxy.port)
  const seen: number[] = []
  engine.log(runId, 3, 'x'.repeat(200))
  const options = { ...BY_SOCKET, maxFailures: 10_000 }
  for await (const { seq } of runs.events(runId, options)) {
    seen.push(seq)
    if (seen.length < 100) engine.log(runId, 1 + Math.floor(dice() * 2), 'x'.repeat(dice() * 300))
    else if (seen.length === 100) engine.finish(runId)
  }
  assert.deepEqual(seen, upTo(engine.runs.get(runId)!.events.length))
  assert.ok(proxy.connections > 10, `only ${proxy.connections} connections`)
  assert.equal(engine.runs.get(runId)!.readers.size, 0)
})

for (const { name, options, gives } of [
  { name: 'from its first event', options: {}, gives: upTo(5) },
  { name: 'behind an event', options: { after: 3 }, gives: [4, 5] },
  { name: 'behind the last one', options: { after: 5 }, gives: [] },
  { name: 'from now on', options: { after: -1 }, gives: [] },
  { name: 'by kind', options: { kinds: ['run_started' as EventKind] }, gives: [1] },
] satisfies { name: string; options: FollowOptions; gives: number[] }[]) {
  test(`an ended run is read by WebSocket ${name}`, async () => {
    const engine = new FakeEngine()
    const runId = engine.add()
    engine.log(runId, 3)
    engine.finish(runId)
    await using opened = await openService({ engine, basePath: '/agents' })
    await using runs = new RunServiceClient({
      baseUrl: `http://127.0.0.1:${opened.port}/agents/`, trustEnv: false,
    })
    assert.deepEqual(seqs(await collect(runs.events(runId, { ...BY_SOCKET, ...options }))), gives)
    const sse = await collect(runs.events(runId, { reconnectMs: 0, ...options }))
    assert.deepEqual(seqs(sse), gives)
  })
}

test('the key is a subprotocol, and a refusal is the problem of the service', async () => {
  const engine = new FakeEngine()
  const key = 'sixteen-or-more-characters~+/='
  await using opened = await openService({ engine, authorize: bearerKeys({ me: key }) })
  const upgrades: (string | undefined)[] = []
  opened.served.server.on('upgrade', ({ headers }) => {
    upgrades.push(headers['sec-websocket-protocol'])
    assert.equal(headers.authorization, undefined)
    assert.equal(headers.origin, undefined)
  })
  await using runs = clientOf(opened.port, key)
  const runId = engine.add()
  engine.finish(runId)
  assert.deepEqual(seqs(await collect(runs.events(runId, BY_SOCKET))), [1, 2])
  const encoded = Buffer.from(key).toString('base64url')
  assert.deepEqual(upgrades, [`runwright.v1, bearer.${encoded}`])
  for (const [wrong, problem] of [
    [clientOf(opened.port), { status: 401 }],
    [clientOf(opened.port, 'another-key-of-enough-characters'), { status: 401 }],
  ] as const) {
    await assert.rejects(collect(wrong.events(runId, BY_SOCKET)), problem)
    await wrong.close()
  }
  const gone = { name: 'RunServiceError', code: 'run_not_found', status: 404 }
  const unknown = '01930000-0000-7000-8000-00000000ffff'
  await assert.rejects(collect(runs.events(unknown, BY_SOCKET)), gone)
  const live = engine.add()
  await assert.rejects(collect(runs.events(live, { ...BY_SOCKET, after: 99 })), {
    code: 'cursor_ahead',
  })
})

for (const end of ['shutdown', 'deleted'] as const) {
  test(`a stream that the service ends because of ${end} is followed up`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({ engine })
    await using runs = clientOf(opened.port)
    const runId = engine.add()
    const events = runs.events(runId, BY_SOCKET)
    assert.equal((await events.next()).value?.seq, 1)
    const next = events.next()
    engine.endReaders(runId, end)
    if (end === 'deleted') {
      engine.runs.delete(runId)
      await assert.rejects(next, { code: 'run_not_found', status: 404 })
      return
    }
    engine.runs.get(runId)!.end = undefined
    engine.finish(runId)
    assert.equal((await next).value?.seq, 2)
    assert.deepEqual(await collect(events), [])
  })
}

/** A server of WebSockets that is not a run service. */
async function impostor(
  serve: (connection: WebSocketConnection, count: number) => void,
): Promise<{ port: number; count: number } & AsyncDisposable> {
  const server = createHttp((_request, response) => response.writeHead(503).end())
  const sockets = new WebSocketServer({
    protocols: ['runwright.v1'],
    onConnection: (connection) => {
      connection.onMessage = () => {}
      serve(connection, (result.count += 1))
    },
  })
  sockets.attach(server, { path: `/api/ws/${RUN}` })
  const result = {
    port: await listen(server),
    count: 0,
    async [Symbol.asyncDispose]() {
      await sockets.close()
      await stop(server)
    },
  }
  return result
}
const event = (seq: number, kind = 'log'): string => JSON.stringify({ seq, kind, payload: {} })

for (const { what, serve, error } of [
  {
    what: 'a stream with a missing event',
    serve: (connection) => {
      connection.send(event(1))
      connection.send(event(3))
    },
    error: /event 3 came after 1/,
  },
  { what: 'data that is no event', serve: (c) => void c.send('{'), error: /not an event/ },
  {
    what: 'a Close with 1000 before the end',
    serve: (connection) => void connection.close(1000),
    error: /the stream has ended; whether the run has is unknown/,
  },
] satisfies { what: string; serve: (c: WebSocketConnection) => void; error: object }[]) {
  test(`${what} fails after maxFailures`, async () => {
    await using server = await impostor(serve)
    await using runs = clientOf(server.port)
    const events = runs.events(RUN, { ...BY_SOCKET, maxFailures: 3 })
    await assert.rejects(collect(events), error)
    assert.equal(server.count, 4)
  })
}

test('an unreachable service fails after maxFailures, with the reason', async () => {
  const server = createServer((socket) => void socket.destroy())
  const port = await listen(server as never)
  await using runs = clientOf(port)
  const lost = runs.events(RUN, { ...BY_SOCKET, maxFailures: 1 })
  await assert.rejects(collect(lost), { code: 'ERR_WS_HANDSHAKE' })
  server.close()
  await once(server, 'close')
  const refused = runs.events(RUN, { ...BY_SOCKET, maxFailures: 1 })
  await assert.rejects(collect(refused), { code: 'ERR_WS_CONNECT' })
})

test('a silent WebSocket is reopened at the cursor', async () => {
  const afters: unknown[] = []
  const server = createHttp()
  const sockets = new WebSocketServer({
    keepAlive: null,
    onConnection: (connection, request) => {
      connection.onMessage = () => {}
      afters.push(new URL(request.url!, 'http://a').searchParams.get('after'))
      connection.send(afters.length === 1 ? event(1) : event(2, 'run_end'))
    },
  })
  // Pongs of this server are what would keep the first connection alive.
  const proxy = createServer({ pauseOnConnect: true }, (near) => {
    const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
    far.pipe(near).on('error', () => far.destroy())
    let bytes = 0
    near.on('data', (chunk: Buffer) => {
      // Only the request goes through.
      if (bytes === 0) far.write(chunk)
      bytes += chunk.length
    })
    near.resume()
    near.on('close', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  sockets.attach(server)
  await listen(server)
  await using runs = clientOf(await listen(proxy as never))
  const events = await collect(runs.events(RUN, { ...BY_SOCKET, silenceMs: 40 }))
  assert.deepEqual(seqs(events), [1, 2])
  assert.deepEqual(afters, ['0', '1'])
  await runs.close()
  await sockets.close()
  await stop(server)
  proxy.close()
})

test('a signal, leaving the loop and close() end the stream', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  const readersGone = async (runId: string): Promise<void> => {
    while (engine.runs.get(runId)!.readers.size > 0) await new Promise(setImmediate)
  }
  const runs = clientOf(opened.port)
  const runId = engine.add()
  const stopping = new AbortController()
  const reason = new Error('enough')
  const events = runs.events(runId, { ...BY_SOCKET, signal: stopping.signal })
  await events.next()
  const next = events.next()
  stopping.abort(reason)
  await assert.rejects(next, (error) => error === reason)
  await readersGone(runId)
  for await (const { seq } of runs.events(runId, BY_SOCKET)) {
    assert.equal(seq, 1)
    break
  }
  await readersGone(runId)
  const open = runs.events(runId, BY_SOCKET)
  await open.next()
  const last = open.next()
  await runs.close()
  await assert.rejects(last, { code: 'ERR_HTTP_CLIENT_STATE' })
  await readersGone(runId)
})

test('a transport that cannot carry it, or is unknown, is refused at once', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  assert.throws(() => runs.events(RUN, { transport: 'websocket' }), /'sse' only/)
  assert.throws(() => runs.events(RUN, { transport: 'socket' as never }), /'sse' or 'websocket'/)
})
