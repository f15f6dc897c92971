import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A proxy in front of a local server that can interrupt connections. */
export interface TcpProxy {
  readonly port: number
  /** Resets all present connections; new ones are accepted. */
  cut(): void
  /** Forwards nothing in either direction until {@link TcpProxy.flow}. */
  stall(): void
  flow(): void
  close(): Promise<void>
}

/** Opens a proxy on a free port to the local port `target`. */
export async function openTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let stalled = false
  const server = createServer({ pauseOnConnect: true }, (client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [one, other] of [[client, upstream], [upstream, client]] as const) {
      sockets.add(one)
      one.setNoDelay(true)
      one.on('error', () => undefined)
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
      if (stalled) one.pause()
      else one.resume()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of sockets) {
      // A socket that is already ending cannot be reset (EINVAL): it would stay open and keep the
      // process alive.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    stall() {
      stalled = true
      for (const socket of sockets) socket.pause()
    },
    flow() {
      stalled = false
      for (const socket of sockets) socket.resume()
    },
    async close() {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}
