import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** What a proxy calls when it sees a text. */
export type Reaction = (cutAtAnswer: () => void, sender: Sender) => void

/** Who has sent a text. */
export interface Sender {
  /** What the client has called itself, as PostgreSQL clients can; empty when it has not. */
  readonly name: string
  /** Resets its connection. */
  cut(): void
}

/** A proxy in front of a local server that can interrupt connections. */
export interface TcpProxy {
  readonly port: number
  /** Resets all present connections; new ones are accepted. */
  readonly cut: () => void
  /** Forwards nothing in either direction until {@link TcpProxy.flow}. */
  stall(): void
  flow(): void
  /**
   * Calls `react` once, when data with this text has arrived from a client and is not forwarded
   * yet. Its first argument resets all connections as soon as the server answers that data.
   */
  onText(text: string, react: Reaction): void
  close(): Promise<void>
}

/** Opens a proxy on a free port to the local port `target`. */
export async function openTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const reactions = new Map<string, Reaction>()
  let stalled = false
  const cut = (): void => {
    for (const socket of sockets) reset(socket)
  }
  const server = createServer({ pauseOnConnect: true }, (client) => {
    const upstream = connect(target, '127.0.0.1')
    let tail = ''
    const sender = {
      name: '',
      cut() {
        reset(client)
        reset(upstream)
      },
    }
    client.once('data', (chunk: Buffer) => {
      sender.name = /application_name\0([^\0]*)\0/.exec(chunk.toString('latin1'))?.[1] ?? ''
    })
    client.on('data', (chunk: Buffer) => {
      if (reactions.size === 0) return
      const seen = tail + chunk.toString('latin1')
      tail = seen.slice(-100)
      for (const [text, react] of reactions) {
        if (!seen.includes(text)) continue
        reactions.delete(text)
        react(() => upstream.prependOnceListener('data', cut), sender)
      }
    })
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
    onText: (text, react) => void reactions.set(text, react),
    async close() {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}

/** A socket that is already ending cannot be reset (EINVAL): it would stay open. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
