import { createServer, type Socket } from 'node:net'
import { acceptFor, type Head, listen, RawPeer } from './ws-peer.js'

/** A TCP server whose clients are served by the test, byte by byte. */
export interface RawServer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  /** The next client. */
  accept(): Promise<RawPeer>
  /** The next client, once its request is there. */
  request(): Promise<{ readonly peer: RawPeer; readonly head: Head }>
  /** The next client, after a valid 101. */
  open(): Promise<RawPeer>
  /** Sockets that are open. */
  readonly sockets: ReadonlySet<Socket>
}

export async function rawServer(): Promise<RawServer> {
  const sockets = new Set<Socket>()
  const waiting: RawPeer[] = []
  let wake = (): void => {}
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      wake()
    })
    waiting.push(new RawPeer(socket))
    wake()
  })
  const port = await listen(server as never)
  const accept = async (): Promise<RawPeer> => {
    while (waiting.length === 0) await new Promise<void>((resolve) => (wake = resolve))
    return waiting.shift()!
  }
  const request = async (): Promise<{ peer: RawPeer; head: Head }> => {
    const peer = await accept()
    return { peer, head: await peer.head() }
  }
  return {
    port,
    url: `ws://127.0.0.1:${port}/`,
    sockets,
    accept,
    request,
    async open() {
      const { peer, head } = await request()
      peer.write(response(head))
      return peer
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** A 101 for a request. `null` omits a field; a list repeats it. */
export function response(
  request: Head,
  fields: Record<string, string | readonly string[] | null> = {},
  first = 'HTTP/1.1 101 Switching Protocols',
): string {
  const all: Record<string, string | readonly string[] | null> = {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Accept': acceptFor(request.headers.get('sec-websocket-key')!),
    ...fields,
  }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((item) => `${name}: ${item}\r\n`),
  )
  return `${first}\r\n${lines.join('')}\r\n`
}
