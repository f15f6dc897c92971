import assert from 'node:assert/strict'
import { createServer, type Server, type ServerOptions } from 'node:http'
import { test, type TestContext } from 'node:test'
import { createRunService, type RunService } from 'runwright/server'
import { RawPeer } from '../helpers/raw-peer.js'
import { listen } from '../helpers/serve.js'
import { FakeEngine } from './fake-engine.js'
import { openService } from './open-service.js'

interface Contained {
  readonly engine: FakeEngine
  readonly service: RunService
  readonly server: Server
  readonly port: number
  readonly errors: unknown[]
}

/** A service on a server of its own. */
async function open(t: TestContext, options: ServerOptions = {}): Promise<Contained> {
  const engine = new FakeEngine()
  const errors: unknown[] = []
  const service = await createRunService({ engine, onError: (error) => errors.push(error) })
  const served = await listen(createServer(options, service.handler))
  service.attach(served.server)
  t.after(async () => {
    await service.close({ graceMs: 0 })
    await served.close()
  })
  return { engine, service, server: served.server, port: served.port, errors }
}

const GET = 'GET /api/models HTTP/1.1\r\nHost: localhost\r\n'

/** One whole exchange on a connection of its own. */
async function ask(port: number): Promise<string> {
  using peer = await RawPeer.connect(port)
  peer.write(`${GET}Connection: close\r\n\r\n`)
  return (await peer.takeAll()).toString('latin1')
}

/** Resolves once the run has no readers left. */
function readersGone(engine: FakeEngine, runId: string): Promise<void> {
  const { readers } = engine.runs.get(runId)!
  return new Promise((resolve) => {
    const remove = readers.delete.bind(readers)
    readers.delete = (reader) => {
      const had = remove(reader)
      if (readers.size === 0) resolve()
      return had
    }
  })
}

for (const { what, sent } of [
  { what: 'unfinished request heads', sent: 'GET /api/runs HTTP/1.1\r\nHost: loc' },
  {
    what: 'missing request bodies',
    sent: 'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
  },
]) {
  test(`a hundred peers with ${what} do not delay others, and are disconnected`, async (t) => {
    const { engine, server, port, errors } = await open(t, { connectionsCheckingInterval: 50 })
    const { headersTimeout, requestTimeout } = server
    const slow = await Promise.all(Array.from({ length: 100 }, () => RawPeer.connect(port)))
    for (const peer of slow) peer.write(sent)
    assert.match(await ask(port), /^HTTP\/1\.1 200 /)
    // Node reads the limits at each check; they are short only while no request is served.
    Object.assign(server, { headersTimeout: 100, requestTimeout: 100 })
    await Promise.all(slow.map((peer) => peer.ended()))
    Object.assign(server, { headersTimeout, requestTimeout })
    for (const peer of slow) {
      assert.match(peer.received.toString('latin1'), /^(HTTP\/1\.1 408 |$)/)
      peer[Symbol.dispose]()
    }
    assert.match(await ask(port), /^HTTP\/1\.1 200 /)
    assert.ok(!engine.calls.some(([name]) => name === 'create'))
    assert.deepEqual(errors, [])
  })
}

test('more than 1000 requests of one connection without a reply end it', async () => {
  let release!: (principal: { id: string }) => void
  const principal = new Promise<{ id: string }>((resolve) => (release = resolve))
  await using opened = await openService({ authorize: () => principal })
  const request = 'GET /api/goals HTTP/1.1\r\nHost: localhost\r\n\r\n'
  using patient = await RawPeer.connect(opened.port)
  using hasty = await RawPeer.connect(opened.port)
  patient.write(request.repeat(1_000))
  hasty.write(request.repeat(1_001))
  await hasty.ended()
  release({ id: 'a' })
  for (let i = 0; i < 1_000; i++) assert.match(await patient.takeUntil('"}]'), /HTTP\/1.1 200/)
})

test('pipelined requests are answered in order', async (t) => {
  const { engine, port } = await open(t)
  const ids = Array.from({ length: 30 }, () => engine.add())
  using peer = await RawPeer.connect(port)
  const paths = ids.flatMap((id) => [`/api/runs/${id}`, '/api/health', `/api/runs/${id}/nonsense`])
  peer.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''))
  for (const id of ids) {
    for (const [status, holds] of [
      [200, id],
      [200, '"status":"ok"'],
      [404, 'not_found'],
    ] as const) {
      const head = await peer.takeUntil('\r\n\r\n')
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `))
      const length = Number(/content-length: (\d+)/i.exec(head)![1])
      assert.ok((await peer.take(length)).toString().includes(holds))
    }
  }
})

test('a request behind a stream on the same connection waits for its end', async (t) => {
  const { engine, port } = await open(t)
  const runId = engine.add()
  using peer = await RawPeer.connect(port)
  peer.write(
    `GET /api/runs/${runId}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`,
  )
  await peer.takeUntil('data: ')
  peer.write(`${GET}\r\n`)
  assert.match(await ask(port), /^HTTP\/1\.1 200 /)
  engine.finish(runId)
  await peer.takeUntil('run_end')
  await peer.takeUntil('\r\n0\r\n\r\n')
  assert.match(await peer.takeUntil('\r\n\r\n'), /^HTTP\/1\.1 200 /)
})

for (const { what, head, status } of [
  { what: 'a header of 64 KiB', head: `${GET}X-Large: ${'x'.repeat(65_536)}\r\n\r\n`, status: 431 },
  { what: 'ten thousand headers', head: `${GET}${'X-A: b\r\n'.repeat(10_000)}\r\n`, status: 431 },
  {
    what: 'a path of 64 KiB',
    head: `GET /${'a'.repeat(65_536)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 431,
  },
  {
    what: 'two different content lengths',
    head: 'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    status: 400,
  },
  { what: 'a header without a name', head: `${GET}: x\r\n\r\n`, status: 400 },
]) {
  test(`${what} is ${status}, and the next caller is served`, async (t) => {
    const { port, errors } = await open(t)
    using peer = await RawPeer.connect(port)
    peer.write(head)
    assert.match((await peer.takeAll()).toString('latin1'), new RegExp(`^HTTP/1\\.1 ${status} `))
    assert.match(await ask(port), /^HTTP\/1\.1 200 /)
    assert.deepEqual(errors, [])
  })
}

for (const how of ['reset', 'ended'] as const) {
  test(`an upload that is ${how} halfway starts nothing and reports no error`, async (t) => {
    const { engine, port, errors } = await open(t)
    for (let i = 0; i < 20; i++) {
      using peer = await RawPeer.connect(port)
      peer.write(
        'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
          'Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n',
      )
      await peer.takeUntil('100 Continue\r\n\r\n')
      peer.write('{"goal": "')
      if (how === 'reset') peer.reset()
      else peer.end()
    }
    assert.match(await ask(port), /^HTTP\/1\.1 200 /)
    assert.ok(!engine.calls.some(([name]) => name === 'create'))
    assert.deepEqual(errors, [])
  })
}

for (const kind of ['sse', 'websocket'] as const) {
  test(`readers over ${kind} that reset are forgotten, and the others continue`, async (t) => {
    const { engine, port, errors } = await open(t)
    const runId = engine.add()
    const other = engine.add()
    const request =
      kind === 'sse'
        ? `GET /api/runs/{id}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`
        : `GET /api/ws/{id} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
    using patient = await RawPeer.connect(port)
    patient.write(request.replace('{id}', other))
    await patient.takeUntil('run_started')
    const gone = readersGone(engine, runId)
    for (let i = 0; i < 20; i++) {
      using peer = await RawPeer.connect(port)
      peer.write(request.replace('{id}', runId))
      await peer.takeUntil('run_started')
      engine.log(runId, 50)
      peer.reset()
    }
    await gone
    engine.finish(other)
    await patient.takeUntil('run_end')
    assert.deepEqual(errors, [])
  })
}
