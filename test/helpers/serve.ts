import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'

/** A server that listens on a free port of the loopback interface, for one test. */
export interface Served<S extends NetServer = Server> extends AsyncDisposable {
  readonly server: S
  readonly port: number
  /** `http://127.0.0.1:port`, without a slash at the end. */
  readonly origin: string
  /** The connections that are open. */
  readonly sockets: ReadonlySet<Socket>
  /** The number of connections accepted so far. */
  readonly accepted: number
  /** Destroys all connections and resolves once the port is free. May be called twice. */
  close(): Promise<void>
}

/** Starts any `node:net` based server (`http`, `https`, `http2`, `net`, `tls`) on port 0. */
export async function listen<S extends NetServer>(server: S, scheme = 'http'): Promise<Served<S>> {
  const sockets = new Set<Socket>()
  let accepted = 0
  server.on('connection', (socket: Socket) => {
    accepted++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    closed ??= new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
    return closed
  }
  return {
    server,
    port,
    origin: `${scheme}://127.0.0.1:${port}`,
    sockets,
    get accepted() {
      return accepted
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Starts a `node:http` server with this handler. */
export function serve(handler: RequestListener): Promise<Served> {
  return listen(createServer(handler))
}
