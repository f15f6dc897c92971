import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'runwright/ws'

/**
 * The settings of a server that decide what it answers to an offer (RFC 7692, section 7.1). Not a
 * window of 2^8: python3-autobahn refuses it, and python3-websockets cannot compress with it.
 */
export const SETTINGS = [false, true].flatMap((serverContextTakeover) =>
  [false, true].flatMap((clientContextTakeover) =>
    [9, 12, 15].flatMap((serverMaxWindowBits) =>
      [9, 12, 15].map((clientMaxWindowBits) => ({
        serverContextTakeover,
        clientContextTakeover,
        serverMaxWindowBits,
        clientMaxWindowBits,
        thresholdBytes: 0,
      })),
    ),
  ),
)

export interface NegotiationServer extends AsyncDisposable {
  readonly port: number
}

/** Echoes with the nth settings on the path `/n`. */
export async function negotiationServer(): Promise<NegotiationServer> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>page</title>')
  })
  const all = SETTINGS.map((deflate, i) => {
    const sockets = new WebSocketServer({
      deflate,
      onConnection: (connection) => {
        connection.onMessage = (message) => connection.send(message)
      },
    })
    sockets.attach(server, { path: `/${i}` })
    return sockets
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((sockets) => sockets.close()))
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
