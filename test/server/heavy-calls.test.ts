/** Calls that read files share few places: one caller does not keep the others waiting. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { request, type ClientRequest } from 'node:http'
import { connect, createServer } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { bearerKeys, createRunService } from 'runwright/server'
import { FakeEngine } from './fake-engine.js'
import { openService } from './open-service.js'

const KEYS = { ann: 'ann-key-0123456789', bob: 'bob-key-0123456789' }
const ANN = { authorization: 'Bearer ann-key-0123456789' }
const BOB = { authorization: 'Bearer bob-key-0123456789' }

/** Routes that read files. */
const ROUTES: readonly (readonly [method: string, path: (run: string) => string])[] = [
  ['GET', (run) => `/api/runs/${run}/changes`],
  ['GET', (run) => `/api/runs/${run}/files`],
  ['GET', (run) => `/api/runs/${run}/files/readme.md`],
  ['GET', (run) => `/api/runs/${run}/images?event=1`],
  ['GET', () => '/api/folders?path=/work'],
  ['POST', () => '/api/resolve'],
]

/** An engine whose reads last until the signals of their callers abort, while `isStuck`. */
class SlowEngine extends FakeEngine {
  isStuck = true
  reading = 0
  ended = 0

  constructor() {
    super()
    const { workspaces, offers } = this
    const slow =
      <A extends readonly unknown[], R>(read: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        if (!this.isStuck) return await read(...args)
        this.reading += 1
        counted.emit('change')
        const { signal } = args.at(-1) as { signal: AbortSignal }
        await new Promise<never>((_, reject) =>
          signal.addEventListener('abort', () => {
            this.ended += 1
            counted.emit('change')
            reject(signal.reason as Error)
          }),
        )
        throw new Error('unreachable')
      }
    Object.assign(this, { images: slow(this.images) })
    for (const name of ['changes', 'list', 'read'] as const)
      Object.assign(workspaces, { [name]: slow(workspaces[name] as () => Promise<unknown>) })
    for (const name of ['folders', 'resolve'] as const)
      Object.assign(offers, { [name]: slow(offers[name] as () => Promise<unknown>) })
  }
}

/** Reports each change of what the tests count. */
const counted = new EventEmitter()

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await once(counted, 'change')
}

for (const [method, pathOf] of ROUTES) {
  test(`${method} ${pathOf('{run_id}')}: forty calls whose caller goes leave no trace`, async () => {
    const engine = new SlowEngine()
    const run = engine.add()
    await using opened = await openService({ engine, authorize: bearerKeys(KEYS) })
    const { port, served } = opened
    const send = (): ClientRequest => {
      const headers = { ...ANN, 'content-type': 'application/json' }
      const one = request({ port, method, path: pathOf(run), headers, agent: false })
      return one.on('error', () => undefined).end(method === 'POST' ? '{"goal":"x"}' : undefined)
    }
    const sockets = new Set<Socket>()
    served.server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('close', () => {
        sockets.delete(socket)
        counted.emit('change')
      })
      counted.emit('change')
    })
    const first = Array.from({ length: 4 }, send)
    await until(() => engine.reading === 4)
    const more = Array.from({ length: 36 }, send)
    await until(() => sockets.size === 40)
    const other = opened.call('GET', `/api/runs/${run}/files/readme.md`, { headers: BOB })
    await until(() => sockets.size === 41)
    for (const one of more) one.destroy()
    await until(() => sockets.size === 5)
    engine.isStuck = false
    for (const one of first) one.destroy()
    assert.equal((await other).status, 200)
    await until(() => engine.ended === 4)
    // Those that waited have not begun.
    assert.equal(engine.reading, 4)
    assert.deepEqual(opened.errors, [])
  })
}

test('a stream of HTTP/2 that is reset ends its call, and no other of its connection', async () => {
  const engine = new SlowEngine()
  const run = engine.add()
  await using service = await createRunService({ engine, authorize: bearerKeys(KEYS) })
  const server = createServer(service.handler).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const streams = Array.from({ length: 3 }, () =>
    session.request({ ':path': `/api/runs/${run}/changes`, ...ANN }).on('error', () => undefined),
  )
  await until(() => engine.reading === 3)
  streams[0]!.close()
  await until(() => engine.ended === 1)
  streams[1]!.close()
  await until(() => engine.ended === 2)
  session.destroy()
  await until(() => engine.ended === 3)
  server.close()
})
