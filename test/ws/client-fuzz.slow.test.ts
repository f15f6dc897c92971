import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { WebSocketClient, type WebSocketConnection } from 'runwright/ws'
import { acceptFor, readFrame, turn } from '../helpers/ws-peer.js'
import { type Case, EITHER, LIMITS, makeCase } from './fuzz.js'

/** How many cases; the first is number FUZZ_FROM, so that one failing case can be run alone. */
const CASES = Number(process.env['FUZZ_CASES'] ?? 5_000)
const FROM = Number(process.env['FUZZ_FROM'] ?? 1)
const AT_ONCE = 32

/** A transport in memory to a server that accepts each handshake. */
class MemoryServer extends Duplex {
  readonly chunks: Buffer[] = []
  readonly #response: Promise<Buffer>
  #resolve!: (response: Buffer) => void

  constructor() {
    super({ allowHalfOpen: true })
    this.#response = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** The head of the 101, once the request is there. */
  get response(): Promise<Buffer> {
    return this.#response
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const text = chunk.toString('latin1')
    if (!text.startsWith('GET ')) this.chunks.push(chunk)
    else this.#resolve(responseTo(text))
    done()
  }
}

function responseTo(request: string): Buffer {
  const key = /^Sec-WebSocket-Key: (.*)\r$/m.exec(request)![1]!
  const deflate = request.includes('permessage-deflate')
    ? 'Sec-WebSocket-Extensions: permessage-deflate\r\n'
    : ''
  return Buffer.from(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${acceptFor(key)}\r\n${deflate}\r\n`,
  )
}

/** The frames of the client in the notation of `Case.expected`. */
async function run(
  one: Case,
  clients: Record<'plain' | 'deflate', WebSocketClient>,
  handle: (connection: WebSocketConnection) => void,
  transports: WeakMap<object, MemoryServer>,
): Promise<string[]> {
  const client = one.deflate ? clients.deflate : clients.plain
  const opened = client.connect(`ws://server/${one.seed}`).then((connection) => {
    handle(connection)
    return connection
  })
  await turn()
  const server = transports.get(client)!
  const [first = Buffer.alloc(0), ...rest] = one.pieces
  const head = await server.response
  // The first frames arrive with the head, behind it, or the head in two pieces.
  if (one.seed % 3 === 0) server.push(Buffer.concat([head, first]))
  else {
    const cut = one.seed % 3 === 1 ? head.length : one.seed % head.length
    server.push(head.subarray(0, cut))
    await turn()
    if (cut < head.length || first.length > 0)
      server.push(Buffer.concat([head.subarray(cut), first]))
  }
  const connection = await opened
  for (const piece of rest) {
    if (server.destroyed) break
    server.push(Buffer.from(piece))
    await turn()
  }
  server.push(null)
  const info = await connection.closed
  const lines = framesIn(Buffer.concat(server.chunks))
  assert.equal(info.error === null, info.wasClean)
  return lines
}

function framesIn(bytes: Buffer): string[] {
  const lines: string[] = []
  const keys: string[] = []
  let rest = bytes
  for (let next = readFrame(rest); next !== null; next = readFrame(rest)) {
    const { opcode, payload, masked, fin, rsv } = next.frame
    assert.deepEqual([masked, fin, rsv], [true, true, 0])
    keys.push(rest.toString('hex', next.size - payload.length - 4, next.size - payload.length))
    if (opcode !== 8) lines.push(`${opcode}:${payload.toString('hex')}`)
    else lines.push(payload.length === 0 ? 'close empty' : `close ${payload.readUInt16BE(0)}`)
    rest = rest.subarray(next.size)
  }
  assert.equal(rest.length, 0, 'half a frame')
  assert.ok(keys.length < 2 || new Set(keys).size > 1, 'each frame has a key of its own')
  if (!lines.at(-1)?.startsWith('close')) lines.push('end')
  return lines
}

const push = (connection: WebSocketConnection): void => {
  connection.onMessage = (message) => connection.send(message)
}
const pull = (connection: WebSocketConnection): void => {
  const echo = async (): Promise<void> => {
    for await (const message of connection) connection.send(message)
  }
  echo().catch((error: unknown) => assert.fail(String(error)))
}

/** Pongs and other replies separately: their relative order is undefined during iteration. */
const separated = (lines: readonly string[]): string[][] => [
  lines.filter((line) => line.startsWith('10:')),
  lines.filter((line) => !line.startsWith('10:')),
]

const ways = [
  { name: 'by handler', handle: push, share: 0.6 },
  { name: 'by iteration', handle: pull, share: 0.4 },
]
for (const [index, { name, handle, share }] of ways.entries()) {
  const count = Math.ceil(CASES * share)
  test(`random streams of frames get the replies of a client, ${name}`, async (t) => {
    t.diagnostic(`${count} streams`)
    const queue = Array.from({ length: count }, (_, i) => FROM + i + index * 10 ** 7).values()
    const worker = async (): Promise<void> => {
      // One at a time for each pair of clients, so that a client has one transport.
      const transports = new WeakMap<object, MemoryServer>()
      const make = (deflate: boolean): WebSocketClient => {
        const made: WebSocketClient = new WebSocketClient({
          ...LIMITS,
          maxControlFramesPerSecond: null,
          keepAlive: null,
          // Replies are not compressed, so that they can be compared byte by byte.
          deflate: deflate && {
            thresholdBytes: 10 ** 9, serverContextTakeover: true, clientContextTakeover: true,
          },
          onError: (error) => assert.fail(String(error)),
          connect: () => {
            const server = new MemoryServer()
            transports.set(made, server)
            return server
          },
        })
        return made
      }
      const clients = { plain: make(false), deflate: make(true) }
      for (const seed of queue) {
        const one = makeCase(seed, 'client')
        const got = await run(one, clients, handle, transports)
        if (one.expected.at(-1) === EITHER && /^close 100[79]$/.test(got.at(-1)!))
          got.splice(-1, 1, EITHER)
        const view = handle === push ? (lines: readonly string[]) => [[...lines]] : separated
        assert.deepEqual(view(got), view(one.expected), `FUZZ_FROM=${seed - index * 10 ** 7}`)
        assert.equal(clients.plain.connections.size + clients.deflate.connections.size, 0)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  })
}
