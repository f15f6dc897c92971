/**
 * The servers to compare. Ours is imported by path, because `run.ts` builds only lib/ws. Each
 * echoes on the path /echo, and keeps the sockets of other paths as subscribers of `broadcast`.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { prepare, WebSocketServer } from '../../../lib/ws/index.js'
import type { WebSocketConnection } from '../../../lib/ws/index.js'

export interface Contender {
  readonly server: Server
  /** Sends each text to every subscriber, as a message of its own. */
  broadcast(texts: readonly string[]): void
}

const LIMIT = 64 * 2 ** 20
const peers = createRequire(process.env['PEERS']!)

const isEcho = (request: { readonly url?: string | undefined }): boolean => request.url === '/echo'

function toEach<Socket>(
  subscribers: ReadonlySet<Socket>,
  send: (socket: Socket, text: string) => void,
): Contender['broadcast'] {
  return (texts) => {
    for (const text of texts) for (const subscriber of subscribers) send(subscriber, text)
  }
}

/** How the documentation reads messages, but for its error handling. */
async function iterate(connection: WebSocketConnection, echoes: boolean): Promise<void> {
  for await (const message of connection) if (echoes) connection.send(message)
}

function runwright(iterates = false): Contender {
  const subscribers = new Set<WebSocketConnection>()
  const sockets = new WebSocketServer({
    origins: 'any',
    maxMessageBytes: LIMIT,
    // A subscriber that never reads stays connected, with at most 1 MiB buffered for it.
    backpressure:
      process.env['STALLED'] === undefined
        ? { limitBytes: LIMIT }
        : { limitBytes: 2 ** 20, policy: 'drop' },
    onConnection(connection, request) {
      const echoes = isEcho(request)
      if (iterates) void iterate(connection, echoes)
      else connection.onMessage = echoes ? (message) => connection.send(message) : () => {}
      if (echoes) return
      subscribers.add(connection)
      connection.onClose = () => subscribers.delete(connection)
    },
  })
  const server = createServer()
  sockets.attach(server)
  return {
    server,
    broadcast(texts) {
      for (const text of texts) {
        const message = prepare(text)
        for (const subscriber of subscribers) subscriber.send(message)
      }
    },
  }
}

interface WsSocket {
  on(event: 'message', handler: (data: Buffer, binary: boolean) => void): void
  on(event: 'close', handler: () => void): void
  send(data: Buffer | string, options?: { binary: boolean }): void
}

function ws(): Contender {
  const { WebSocketServer } = peers('ws') as {
    WebSocketServer: new (options: object) => {
      on(event: 'connection', handler: (socket: WsSocket, request: IncomingMessage) => void): void
    }
  }
  const server = createServer()
  const subscribers = new Set<WsSocket>()
  const sockets = new WebSocketServer({ server, maxPayload: LIMIT })
  sockets.on('connection', (socket, request) => {
    if (isEcho(request)) {
      socket.on('message', (data, binary) => socket.send(data, { binary }))
      return
    }
    subscribers.add(socket)
    socket.on('close', () => subscribers.delete(socket))
  })
  return { server, broadcast: toEach(subscribers, (socket, text) => socket.send(text)) }
}

function faye(): Contender {
  interface FayeSocket {
    on(event: string, handler: (event: { data: string | Buffer }) => void): void
    send(data: string | Buffer): void
  }
  const FayeWebSocket = peers('faye-websocket') as new (
    request: IncomingMessage,
    socket: unknown,
    head: Buffer,
    protocols: null,
    options: object,
  ) => FayeSocket
  const server = createServer()
  const subscribers = new Set<FayeSocket>()
  server.on('upgrade', (request, raw, head) => {
    const socket = new FayeWebSocket(request, raw, head, null, { maxLength: LIMIT })
    if (isEcho(request)) {
      socket.on('message', ({ data }) => socket.send(data))
      return
    }
    subscribers.add(socket)
    socket.on('close', () => subscribers.delete(socket))
  })
  return { server, broadcast: toEach(subscribers, (socket, text) => socket.send(text)) }
}

function websocket(): Contender {
  interface Connection {
    on(event: 'close', handler: () => void): void
    on(
      event: 'message',
      handler: (message: { type: string; utf8Data: string; binaryData: Buffer }) => void,
    ): void
    sendUTF(text: string): void
    sendBytes(data: Buffer): void
  }
  const library = peers('websocket') as {
    server: new (options: object) => {
      on(
        event: 'request',
        handler: (request: { resource: string; accept(p: null, o: null): Connection }) => void,
      ): void
    }
  }
  const server = createServer()
  const subscribers = new Set<Connection>()
  const sockets = new library.server({
    httpServer: server,
    maxReceivedFrameSize: LIMIT,
    maxReceivedMessageSize: LIMIT,
    fragmentOutgoingMessages: false,
  })
  sockets.on('request', (request) => {
    const connection = request.accept(null, null)
    if (request.resource === '/echo') {
      connection.on('message', (message) => {
        if (message.type === 'utf8') connection.sendUTF(message.utf8Data)
        else connection.sendBytes(message.binaryData)
      })
      return
    }
    subscribers.add(connection)
    connection.on('close', () => subscribers.delete(connection))
  })
  return { server, broadcast: toEach(subscribers, (socket, text) => socket.sendUTF(text)) }
}

/** The floor: checks no rule, broadcasts prebuilt frames, and echoes frames unmasked. */
function raw(): Contender {
  const server = createServer()
  const subscribers = new Set<Socket>()
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    const key = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.setNoDelay(true)
    socket.setTimeout(0)
    socket.on('error', () => {})
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${key}\r\n\r\n`,
    )
    if (isEcho(request)) {
      socket.on('data', (chunk: Buffer) => {
        for (let at = 0; at < chunk.length; ) {
          const length = chunk[at + 1]! & 0x7f
          const frame = Buffer.allocUnsafe(2 + length)
          frame[0] = chunk[at]!
          frame[1] = length
          for (let i = 0; i < length; i++) {
            frame[2 + i] = chunk[at + 6 + i]! ^ chunk[at + 2 + (i & 3)]!
          }
          socket.write(frame)
          at += 6 + length
        }
      })
      return
    }
    subscribers.add(socket)
    socket.on('data', () => {})
    socket.on('close', () => subscribers.delete(socket))
  })
  return {
    server,
    broadcast(texts) {
      for (const text of texts) {
        const body = Buffer.from(text)
        const frame = Buffer.concat([
          Buffer.from([0x81, 126, body.length >> 8, body.length & 255]),
          body,
        ])
        for (const subscriber of subscribers) subscriber.write(frame)
      }
    },
  }
}

export const CONTENDERS: Readonly<Record<string, () => Contender>> = {
  raw,
  runwright: () => runwright(),
  'runwright-iterated': () => runwright(true),
  ws,
  websocket,
  'faye-websocket': faye,
}
