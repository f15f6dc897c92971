import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { WebSocketServer, type WebSocketServerOptions } from 'runwright/ws'
import { opening, readFrame, SAMPLE_KEY, stop } from '../helpers/ws-peer.js'
import { type Case, EITHER, LIMITS, makeCase } from './fuzz.js'
import { random } from './random.js'

/** How many cases; the first is number FUZZ_FROM, so that a failure can be looked at alone. */
const CASES = Number(process.env['FUZZ_CASES'] ?? 5_000)
const FROM = Number(process.env['FUZZ_FROM'] ?? 1)
const AT_ONCE = 32

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Everything the server sends for a case, up to the end of the transport. */
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

/** The replies as `Case.expected` writes them. */
function replies(octets: Buffer): string[] {
  const end = octets.indexOf('\r\n\r\n')
  assert.match(octets.toString('latin1', 0, 12), /^HTTP\/1.1 101/)
  const lines: string[] = []
  let rest = octets.subarray(end + 4)
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

async function serve(options: WebSocketServerOptions): Promise<{ port: number } & AsyncDisposable> {
  const server = createServer()
  const sockets = new WebSocketServer({
    ...LIMITS,
    origins: 'any',
    maxControlFramesPerSecond: null,
    keepAlive: null,
    // Long messages come back as they are, so that replies can be compared octet by octet.
    deflate: { thresholdBytes: 10 ** 9 },
    onError: (error) => assert.fail(String(error)),
    ...options,
  })
  sockets.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
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

/** The order between pongs and other replies, which is free when messages are iterated. */
const apart = (lines: string[]): string[][] => [
  lines.filter((line) => line.startsWith('10:')),
  lines.filter((line) => !line.startsWith('10:')),
]

for (const [name, options, share] of [['by handler', push, 0.7], ['by iteration', pull, 0.3]] as const) {
  const count = Math.ceil(CASES * share)
  test(`${count} random streams of frames are answered as the standard says, ${name}`, async () => {
    await using served = await serve(options)
    const offset = options === push ? 0 : 10 ** 7
    const seeds = Array.from({ length: count }, (_, i) => FROM + offset + i)
    await inParallel(seeds, async (seed) => {
      const one = makeCase(seed)
      const got = replies(await run(served.port, one))
      if (one.expected.at(-1) === EITHER && /^close 100[79]$/.test(got.at(-1)!)) got.splice(-1, 1, EITHER)
      const view = options === push ? (lines: string[]) => [lines] : apart
      assert.deepEqual(view(got), view([...one.expected]), `FUZZ_FROM=${one.seed - offset} FUZZ_CASES=2`)
    })
  })
}

test(`${Math.ceil(CASES / 10)} mutated opening handshakes get an HTTP answer and end`, async () => {
  await using served = await serve(push)
  const seeds = Array.from({ length: Math.ceil(CASES / 10) }, (_, i) => FROM + i)
  await inParallel(seeds, async (seed) => {
    const next = random(seed)
    const octets = Buffer.from(
      opening({
        'Sec-WebSocket-Protocol': 'a, b',
        'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits, x; y="z"',
        Origin: 'http://localhost',
      }),
    )
    for (let i = 1 + Math.floor(next() * 4); i > 0; i--) octets[Math.floor(next() * octets.length)] = Math.floor(next() * 256)
    const answer = await run(served.port, { pieces: [octets] } as unknown as Case)
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer.toString('latin1'))?.[1] ?? 0)
    // Nothing at all is right when the mutation left the head without an end.
    const known = [0, 101, 400, 403, 404, 405, 408, 426, 431, 501, 505].includes(status)
    assert.ok(known, `seed ${seed}: ${answer.toString('latin1')}`)
    if (status === 101) assert.ok(octets.includes(SAMPLE_KEY.slice(-2)))
  })
})
