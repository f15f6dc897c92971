/** The client against servers of others: npm's ws, websocket and faye-websocket, and Python's. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type CloseInfo, WebSocketClient, type WebSocketClientOptions } from 'runwright/ws'
import websocket from 'websocket'
import { WebSocketServer as WsServer } from 'ws'
import { SIZES, TEXTS } from './echo-server.js'
import { missing, PYTHON } from './python.js'

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

interface Peer extends AsyncDisposable {
  readonly url: string
}

async function served(server: Server): Promise<Peer> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/echo`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** A Python server that prints its port, then `closed` with the code of each connection. */
async function python(name: string, mode: string): Promise<Peer> {
  const child = spawn(PYTHON, [script(name), mode], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)
  const [port] = (await once(lines, 'line')) as [string]
  return {
    url: `ws://127.0.0.1:${port}/echo`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await once(child, 'close')
    },
  }
}

interface Faye {
  readonly protocol: string
  onmessage: ((event: { data: string | Buffer }) => void) | null
  send(data: string | Buffer): void
}
const faye = createRequire(import.meta.url)('faye-websocket') as {
  new (request: unknown, socket: unknown, head: unknown, protocols: string[], options: object): Faye
  isWebSocket(request: unknown): boolean
}

type Start = (deflate: boolean) => Promise<Peer>
const servers: Record<string, { start: Start; skip?: string | false; noDeflate?: true }> = {
  ws: {
    start: (deflate) => {
      const server = createServer()
      const sockets = new WsServer({
        server, maxPayload: 2 ** 26,
        perMessageDeflate: deflate && { threshold: 0 },
        handleProtocols: () => 'echo',
      })
      sockets.on('connection', (socket) => {
        socket.on('message', (data, binary) => socket.send(data, { binary }))
      })
      return served(server)
    },
  },
  websocket: {
    noDeflate: true,
    start: () => {
      const server = createServer()
      const sockets = new websocket.server({
        httpServer: server, maxReceivedFrameSize: 2 ** 26, maxReceivedMessageSize: 2 ** 26,
      })
      sockets.on('request', (request) => {
        const connection = request.accept('echo', request.origin)
        connection.on('message', (message) => {
          if (message.type === 'utf8') connection.sendUTF(message.utf8Data)
          else connection.sendBytes(message.binaryData)
        })
      })
      return served(server)
    },
  },
  'faye-websocket': {
    noDeflate: true,
    start: () => {
      const server = createServer()
      server.on('upgrade', (request, socket, head) => {
        const peer = new faye(request, socket, head, ['echo'], { maxLength: 2 ** 26 })
        peer.onmessage = ({ data }) => peer.send(data)
      })
      return served(server)
    },
  },
  'python3-websockets': {
    skip: missing('websockets'),
    start: (deflate) => python('serve_websockets.py', deflate ? 'deflate' : 'plain'),
  },
  'python3-autobahn': {
    skip: missing('autobahn'),
    start: (deflate) => python('serve_autobahn.py', deflate ? 'deflate' : 'plain'),
  },
}

const settings: Record<string, WebSocketClientOptions['deflate']> = {
  'without compression': false,
  'with compression': { thresholdBytes: 0 },
  'with compression over messages': {
    thresholdBytes: 0, serverContextTakeover: true, clientContextTakeover: true,
  },
  'with small windows': {
    thresholdBytes: 0, serverContextTakeover: true, clientContextTakeover: true,
    serverMaxWindowBits: 9, clientMaxWindowBits: 9,
  },
}

for (const [name, { start, skip = false, noDeflate }] of Object.entries(servers)) {
  for (const [how, deflate] of Object.entries(settings)) {
    if (noDeflate === true && deflate !== false && how !== 'with compression') continue
    test(`the client gets its echoes from ${name} ${how}`, { skip }, async () => {
      await using server = await start(deflate !== false)
      const client = new WebSocketClient({
        deflate, protocols: ['other', 'echo'], maxMessageBytes: 2 ** 24,
        backpressure: { limitBytes: 2 ** 26 },
      })
      const connection = await client.connect(server.url)
      assert.equal(connection.protocol, 'echo')
      const agreed = 'sec-websocket-extensions' in connection.context.headers
      assert.equal(agreed, deflate !== false && noDeflate !== true)
      const messages = connection.messages()
      const sent = [...TEXTS, ...SIZES.map((size) => Buffer.alloc(size, size & 255))]
      for (const message of sent) {
        connection.send(message)
        assert.deepEqual(await messages.next(), { done: false, value: message })
      }
      for (const message of sent) connection.send(message)
      for (const { length } of sent) assert.equal((await messages.next()).value!.length, length)
      const pong = new Promise<Buffer>((resolve) => (connection.onPong = resolve))
      connection.ping('are you there')
      assert.equal(String(await pong), 'are you there')
      const info: CloseInfo = await connection.close(4000, 'done')
      // Two of them answer every Close with 1000.
      const code = name === 'websocket' || name === 'python3-autobahn' ? 1000 : 4000
      assert.deepEqual([info.code, info.wasClean, info.error], [code, true, null])
    })
  }
}
