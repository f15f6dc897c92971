/**
 * A WebSocket server that echoes text and binary messages of up to 16 MiB.
 *
 *   PORT=9001 DEFLATE=1 node --conditions=runwright-source --import tsx examples/ws-echo.ts
 *
 * It prints its address and runs until SIGINT or SIGTERM.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'runwright/ws'

const MIB = 2 ** 20

const sockets = new WebSocketServer({
  deflate: process.env['DEFLATE'] === '1',
  origins: 'any',
  maxMessageBytes: 16 * MIB,
  // The Autobahn suite sends 4 MiB in fragments of 64 bytes.
  maxFragments: 2 ** 17,
  backpressure: { limitBytes: 64 * MIB },
  async onConnection(connection) {
    for await (const message of connection) {
      if (connection.send(message) === 'full') await connection.drained()
    }
  },
})

const server = createServer()
sockets.attach(server)
server.listen(Number(process.env['PORT'] ?? 9001), '127.0.0.1')

const stop = async (): Promise<void> => {
  await sockets.close()
  server.close()
}
process.once('SIGINT', () => void stop())
process.once('SIGTERM', () => void stop())

await once(server, 'listening')
console.log(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
