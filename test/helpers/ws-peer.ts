import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  type AttachableServer,
  type AttachOptions,
  WebSocketServer,
  type WebSocketServerOptions,
} from 'runwright/ws'

/** The key of RFC 6455, section 1.3, and the Sec-WebSocket-Accept for it. */
export const SAMPLE_KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
export const SAMPLE_ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

/** The Sec-WebSocket-Accept for a key (RFC 6455, section 4.2.2). */
export function acceptFor(key: string): string {
  const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
  return createHash('sha1').update(key + guid).digest('base64')
}

/** Resolves in the next turn of the event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A frame as it was received; the payload of a client's is unmasked. */
export interface Frame {
  readonly fin: boolean
  readonly rsv: number
  readonly opcode: number
  readonly masked: boolean
  readonly payload: Buffer
}

/** The fields of a frame, a client's by default, each of which can be made invalid. */
export interface FrameOptions {
  readonly fin?: boolean
  readonly rsv?: number
  readonly mask?: boolean
  readonly key?: readonly number[]
  /** Forces a 16-bit or 64-bit length. */
  readonly lengthBits?: 16 | 64
  /** The length to declare instead of the payload's own. */
  readonly declared?: number | bigint
}

/** Encodes a client's frame as in the diagram of RFC 6455, section 5.2. */
export function frame(
  opcode: number,
  payload: string | Uint8Array = '',
  options: FrameOptions = {},
): Buffer {
  const { fin = true, rsv = 0, mask = true, key = [0x37, 0xfa, 0x21, 0x3d] } = options
  const bytes = Buffer.from(payload as string)
  const length = options.declared ?? bytes.length
  const bits = options.lengthBits ?? (length < 126 ? 7 : length < 65_536 ? 16 : 64)
  const parts = [(fin ? 0x80 : 0) | (rsv << 4) | opcode]
  const maskBit = mask ? 0x80 : 0
  if (bits === 7) parts.push(maskBit | Number(length))
  else {
    const extended = Buffer.alloc(8)
    extended.writeBigUInt64BE(BigInt(length))
    parts.push(maskBit | (bits === 16 ? 126 : 127), ...extended.subarray(bits === 16 ? 6 : 0))
  }
  if (!mask) return Buffer.concat([Buffer.from(parts), bytes])
  const masked = bytes.map((byte, i) => byte ^ key[i % 4]!)
  return Buffer.concat([Buffer.from(parts), Buffer.from(key), masked])
}

export const text = (payload: string | Uint8Array, options?: FrameOptions): Buffer =>
  frame(1, payload, options)

export function closeFrame(code?: number, reason: string | Uint8Array = ''): Buffer {
  if (code === undefined) return frame(8)
  return frame(
    8,
    Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason as string)]),
  )
}

/** Reads the first frame; throws unless its length has the shortest form. */
export function readFrame(bytes: Buffer): { frame: Frame; size: number } | null {
  if (bytes.length < 2) return null
  const short = bytes[1]! & 0x7f
  const at = short < 126 ? 2 : short === 126 ? 4 : 10
  if (bytes.length < at) return null
  const length =
    short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if ((short === 126 && length < 126) || (short === 127 && length < 65_536)) {
    throw new Error('the peer sent a length that is not in its shortest form')
  }
  const masked = (bytes[1]! & 0x80) !== 0
  const from = masked ? at + 4 : at
  if (bytes.length < from + length) return null
  const sent = bytes.subarray(from, from + length)
  const frame = {
    fin: (bytes[0]! & 0x80) !== 0,
    rsv: (bytes[0]! >> 4) & 7,
    opcode: bytes[0]! & 15,
    masked,
    payload: masked ? Buffer.from(sent.map((byte, i) => byte ^ bytes[at + (i & 3)]!)) : sent,
  }
  return { frame, size: from + length }
}

/** A response head. */
export interface Head {
  readonly status: number
  readonly headers: Map<string, string>
  readonly raw: string
}

/** A client that sends and receives raw bytes and frames over any duplex stream. */
export class RawPeer implements Disposable {
  readonly socket: Duplex
  #received: Buffer = Buffer.alloc(0)
  #ended = false
  #error: Error | null = null
  #wake: (() => void) | null = null

  constructor(socket: Duplex) {
    this.socket = socket
    const wake = (): void => this.#wake?.()
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      wake()
    })
    socket.on('end', () => {
      this.#ended = true
      wake()
    })
    socket.on('error', (error) => {
      this.#error = error
      wake()
    })
    socket.on('close', () => {
      this.#ended = true
      wake()
    })
  }

  static async connect(port: number): Promise<RawPeer> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    socket.setNoDelay(true)
    return new RawPeer(socket)
  }

  get received(): Buffer {
    return this.#received
  }

  /** The error of the transport, such as a reset. */
  get error(): Error | null {
    return this.#error
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes)
  }

  /** Resolves at the next data, error or end. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** The head of the response. */
  async head(): Promise<Head> {
    for (;;) {
      const end = this.#received.indexOf('\r\n\r\n')
      if (end !== -1) {
        const raw = this.#received.toString('latin1', 0, end)
        this.#received = this.#received.subarray(end + 4)
        const [first = '', ...lines] = raw.split('\r\n')
        const headers = new Map(
          lines.map((line): [string, string] => {
            const colon = line.indexOf(':')
            return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
          }),
        )
        return { status: Number(first.split(' ')[1]), headers, raw }
      }
      if (this.#ended) throw new Error(`the peer ended within the head: ${this.#received}`)
      await this.#change()
    }
  }

  /** The next frame; `null` at the end of the transport. */
  async next(): Promise<Frame | null> {
    for (;;) {
      const found = readFrame(this.#received)
      if (found !== null) {
        this.#received = this.#received.subarray(found.size)
        return found.frame
      }
      if (this.#ended) return null
      await this.#change()
    }
  }

  /** The next frame as text, like `text:hello`, `close:1000:bye`, `end`. */
  async line(): Promise<string> {
    const next = await this.next()
    return next === null ? 'end' : describe(next)
  }

  /** The next `count` frames as lines. */
  async lines(count: number): Promise<string[]> {
    const lines: string[] = []
    while (lines.length < count) lines.push(await this.line())
    return lines
  }

  /** All lines up to the end of the transport. */
  async rest(): Promise<string[]> {
    const lines: string[] = []
    for (;;) {
      const line = await this.line()
      if (line === 'end') return lines
      lines.push(line)
    }
  }

  /** The next `count` bytes, fewer at the end of the transport. */
  async take(count: number): Promise<Buffer> {
    while (this.#received.length < count && !this.#ended) await this.#change()
    const taken = this.#received.subarray(0, count)
    this.#received = this.#received.subarray(count)
    return taken
  }

  /** All bytes up to the end of the transport. */
  async body(): Promise<Buffer> {
    while (!this.#ended) await this.#change()
    return this.#received
  }

  /** Closes as a client should: answers the Close, waits for the server to end, then ends. */
  async finish(): Promise<string[]> {
    const lines = await this.rest()
    this.socket.end()
    return lines
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

const NAMES = ['more', 'text', 'binary', '3', '4', '5', '6', '7', 'close', 'ping', 'pong']

function describe({ fin, rsv, opcode, payload }: Frame): string {
  const name = `${NAMES[opcode]}${fin ? '' : '+'}${rsv === 0 ? '' : `/${rsv}`}`
  if (opcode !== 8) return `${name}:${payload.toString()}`
  if (payload.length === 0) return 'close'
  const code = `close:${payload.readUInt16BE(0)}`
  return payload.length > 2 ? `${code}:${payload.toString('utf8', 2)}` : code
}

/** The first line of a request. */
export interface RequestLine {
  readonly method?: string
  readonly path?: string
  readonly version?: string
}

/** The head of an opening handshake. `null` omits a header; a list repeats it. */
export function opening(
  headers: Record<string, string | readonly string[] | null> = {},
  { method = 'GET', path = '/', version = '1.1' }: RequestLine = {},
): string {
  const all: Record<string, string | readonly string[] | null> = {
    Host: 'localhost',
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Key': SAMPLE_KEY,
    'Sec-WebSocket-Version': '13',
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((item) => `${name}: ${item}\r\n`),
  )
  return `${method} ${path} HTTP/${version}\r\n${lines.join('')}\r\n`
}

/** A WebSocket server on a real HTTP server, with raw peers. */
export interface World<Context> extends AsyncDisposable {
  readonly server: Server
  readonly sockets: WebSocketServer<Context>
  readonly port: number
  /** Connects a peer that has sent nothing yet. */
  dial(): Promise<RawPeer>
  /** Connects a peer and completes its opening handshake. */
  open(headers?: Record<string, string | readonly string[] | null>): Promise<RawPeer>
}

/** Options of an echo server. */
export const echo: WebSocketServerOptions<undefined> = {
  onConnection(connection) {
    connection.onMessage = (message) => connection.send(message)
  },
}

/** Starts a server; disposing it closes everything. */
export async function world<Context = undefined>(
  options: WebSocketServerOptions<Context>,
  attach: AttachOptions | null = {},
  server: Server = createServer(),
): Promise<World<Context>> {
  const sockets = new WebSocketServer<Context>({ closeTimeoutMs: 60_000, ...options })
  if (attach !== null) sockets.attach(server, attach)
  const port = await listen(server)
  const peers: RawPeer[] = []
  const dial = async (): Promise<RawPeer> => {
    const peer = await RawPeer.connect(port)
    peers.push(peer)
    return peer
  }
  return {
    server,
    sockets,
    port,
    dial,
    async open(headers?: Record<string, string | readonly string[] | null>) {
      const peer = await dial()
      peer.write(opening(headers))
      const { status, raw } = await peer.head()
      if (status !== 101) throw new Error(`refused: ${raw}`)
      return peer
    },
    async [Symbol.asyncDispose]() {
      for (const peer of peers) peer.socket.destroy()
      await sockets.close()
      await stop(server)
    },
  }
}

/** Listens on a free port of the loopback interface. */
export async function listen(server: AttachableServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Closes a server and all its connections. */
export async function stop(server: AttachableServer): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  if ('closeAllConnections' in server) server.closeAllConnections()
  await closed
}
