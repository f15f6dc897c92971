import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'

/** A server that listens on a free port of the loopback interface, for one test. */
export interface Served<S extends NetServer = Server> extends AsyncDisposable {
  readonly server: S
  readonly port: number
  /** `http://127.0.0.1:port`, without a slash at the end. */
  readonly origin: string
  /** The connections that are open now. */
  readonly sockets: ReadonlySet<Socket>
  /** How many connections were accepted so far. */
  readonly accepted: number
  /** Cuts every connection and resolves once the port is free. Calling it twice is harmless. */
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

/** Serves `handler` with a plain `node:http` server. */
export function serve(handler: RequestListener): Promise<Served> {
  return listen(createServer(handler))
}
