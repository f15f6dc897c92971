import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CloseInfo, WebSocketServer } from 'runwright/ws'

export interface EchoServer extends AsyncDisposable {
  readonly server: Server
  readonly url: string
  readonly port: number
  /** How the connections ended, in that order. */
  readonly ends: CloseInfo[]
  /** Resolves once `count` connections have ended. */
  ended(count: number): Promise<void>
}

/** Echoes on a free port; offers the subprotocol `echo`. */
export async function echoServer(deflate: boolean): Promise<EchoServer> {
  const ends: CloseInfo[] = []
  const server = createServer((_request, response) => response.end('plain'))
  const sockets = new WebSocketServer({
    deflate: deflate
      ? { thresholdBytes: 0, serverContextTakeover: true, clientContextTakeover: true }
      : false,
    protocols: ['echo'],
    maxMessageBytes: 2 ** 24,
    backpressure: { limitBytes: 2 ** 26 },
    async onConnection(connection) {
      connection.onClose = (info) => {
        ends.push(info)
        server.emit('test:end')
      }
      for await (const message of connection) {
        if (connection.send(message) === 'full') await connection.drained()
      }
    },
  })
  sockets.attach(server, { path: '/echo' })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `ws://127.0.0.1:${port}/echo`,
    ends,
    async ended(count) {
      while (ends.length < count) await once(server, 'test:end')
    },
    async [Symbol.asyncDispose]() {
      await sockets.close()
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The text messages that each client sends. */
export const TEXTS: readonly string[] = [
  '',
  'hello',
  'κόσμε € 💩',
  'x'.repeat(70_000),
  JSON.stringify({ kind: 'log' }),
]

/** The sizes of the binary messages that each client sends. */
export const SIZES: readonly number[] = [0, 1, 125, 126, 65_535, 65_536, 1_000_000]
