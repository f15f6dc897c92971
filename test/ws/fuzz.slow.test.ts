import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { WebSocketServer, type WebSocketServerOptions } from 'runwright/ws'
import { opening, readFrame, SAMPLE_KEY, stop, turn } from '../helpers/ws-peer.js'
import { type Case, EITHER, LIMITS, makeCase } from './fuzz.js'
import { random } from './random.js'

/** How many cases; the first is number FUZZ_FROM, so that one failing case can be run alone. */
const CASES = Number(process.env['FUZZ_CASES'] ?? 5_000)
const FROM = Number(process.env['FUZZ_FROM'] ?? 1)
const AT_ONCE = 32

/** Runs a case over TCP and returns everything the server sends, up to the end. */
async function run(port: number, { pieces }: Case): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {})
  for (const piece of pieces) {
    if (socket.destroyed || socket.readableEnded) break
    socket.write(piece)
    await turn()
  }
  socket.end()
  if (!socket.destroyed) await once(socket, 'close')
  return Buffer.concat(chunks)
}

/** A transport in memory, which is ten times as fast as the loopback. */
class MemorySocket extends Duplex {
  readonly chunks: Buffer[] = []

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.chunks.push(chunk)
    done()
  }
}

/** The same as {@link run} without a network, with the request as Node would parse it. */
async function runInMemory(sockets: WebSocketServer, { pieces, deflate }: Case): Promise<Buffer> {
  const socket = new MemorySocket({ allowHalfOpen: true })
  const closed = new Promise<void>((resolve) => socket.once('close', resolve))
  const headers = {
    host: 'localhost',
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-version': '13',
    'sec-websocket-key': SAMPLE_KEY,
    ...(deflate ? { 'sec-websocket-extensions': 'permessage-deflate' } : {}),
  }
  const rawHeaders = ['Host', 'localhost']
  const request = { method: 'GET', url: '/', httpVersion: '1.1', headers, rawHeaders, socket: {} }
  await sockets.upgrade(request, socket)
  for (const piece of withoutHead(pieces)) {
    if (socket.destroyed || socket.writableEnded) break
    socket.push(Buffer.from(piece))
    await turn()
  }
  socket.push(null)
  await closed
  return Buffer.concat(socket.chunks)
}

/** The pieces of the stream after the request. */
function withoutHead(pieces: readonly Buffer[]): Buffer[] {
  let left = Buffer.concat(pieces).indexOf('\r\n\r\n') + 4
  return pieces.flatMap((piece) => {
    const rest = piece.subarray(Math.min(left, piece.length))
    left -= piece.length - rest.length
    return rest.length === 0 ? [] : [rest]
  })
}

/** The replies in the notation of `Case.expected`. */
function replies(bytes: Buffer): string[] {
  const end = bytes.indexOf('\r\n\r\n')
  assert.match(bytes.toString('latin1', 0, 12), /^HTTP\/1.1 101/)
  const lines: string[] = []
  let rest = bytes.subarray(end + 4)
  for (let next = readFrame(rest); next !== null; next = readFrame(rest)) {
    const { opcode, payload, masked, fin, rsv } = next.frame
    assert.deepEqual([masked, fin, rsv], [false, true, 0])
    if (opcode !== 8) lines.push(`${opcode}:${payload.toString('hex')}`)
    else lines.push(payload.length === 0 ? 'close empty' : `close ${payload.readUInt16BE(0)}`)
    rest = rest.subarray(next.size)
  }
  assert.equal(rest.length, 0, 'half a frame')
  if (!lines.at(-1)?.startsWith('close')) lines.push('end')
  return lines
}

interface Served extends AsyncDisposable {
  readonly port: number
  readonly sockets: WebSocketServer
}

async function serve(options: WebSocketServerOptions): Promise<Served> {
  const server = createServer()
  const sockets = new WebSocketServer({
    ...LIMITS,
    origins: 'any',
    maxControlFramesPerSecond: null,
    keepAlive: null,
    // Replies are not compressed, so that they can be compared byte by byte.
    deflate: { thresholdBytes: 10 ** 9 },
    onError: (error) => assert.fail(String(error)),
    ...options,
  })
  sockets.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    sockets,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await sockets.close()
      assert.equal(sockets.connections.size, 0)
      await stop(server)
    },
  }
}

async function inParallel<T>(items: readonly T[], use: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of queue) await use(item)
    }),
  )
}

const push: WebSocketServerOptions = {
  onConnection(connection) {
    connection.onMessage = (message) => connection.send(message)
  },
}
const pull: WebSocketServerOptions = {
  async onConnection(connection) {
    for await (const message of connection) connection.send(message)
  },
}

/** Pongs and other replies separately: their relative order is undefined during iteration. */
const separated = (lines: string[]): string[][] => [
  lines.filter((line) => line.startsWith('10:')),
  lines.filter((line) => !line.startsWith('10:')),
]

/** How messages are read, and over what; one case in ten uses real sockets. */
const ways = [
  { name: 'by handler', options: push, network: false, share: 0.6 },
  { name: 'by iteration', options: pull, network: false, share: 0.3 },
  { name: 'by handler over TCP', options: push, network: true, share: 0.06 },
  { name: 'by iteration over TCP', options: pull, network: true, share: 0.04 },
]
for (const [index, { name, options, network, share }] of ways.entries()) {
  const count = Math.ceil(CASES * share)
  test(`random streams of frames get the replies of the RFC, ${name}`, async (t) => {
    t.diagnostic(`${count} streams`)
    await using served = await serve(options)
    // Each variant has its own range of seeds.
    const seeds = Array.from({ length: count }, (_, i) => FROM + i + index * 10 ** 7)
    await inParallel(seeds, async (seed) => {
      const one = makeCase(seed)
      const bytes = network ? await run(served.port, one) : await runInMemory(served.sockets, one)
      const got = replies(bytes)
      if (one.expected.at(-1) === EITHER && /^close 100[79]$/.test(got.at(-1)!))
        got.splice(-1, 1, EITHER)
      const view = options === push ? (lines: string[]) => [lines] : separated
      assert.deepEqual(view(got), view([...one.expected]), `FUZZ_FROM=${seed - index * 10 ** 7}`)
    })
  })
}

test('mutated handshakes get an HTTP response and end', async (t) => {
  await using served = await serve(push)
  const seeds = Array.from({ length: Math.ceil(CASES / 10) }, (_, i) => FROM + i)
  t.diagnostic(`${seeds.length} handshakes`)
  await inParallel(seeds, async (seed) => {
    const next = random(seed)
    const bytes = Buffer.from(
      opening({
        'Sec-WebSocket-Protocol': 'a, b',
        'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits, x; y="z"',
        Origin: 'http://localhost',
      }),
    )
    for (let i = 1 + Math.floor(next() * 4); i > 0; i--)
      bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256)
    const answer = await run(served.port, { pieces: [bytes] } as unknown as Case)
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer.toString('latin1'))?.[1] ?? 0)
    // No response is correct if the mutation removed the end of the head.
    const known = [0, 101, 400, 403, 404, 405, 408, 426, 431, 501, 505].includes(status)
    assert.ok(known, `seed ${seed}: ${answer.toString('latin1')}`)
    if (status === 101) assert.ok(bytes.includes(SAMPLE_KEY.slice(-2)))
  })
})
