/** The load: raw sockets that send prebuilt frames to the measured process and count bytes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type LoadOrder =
  | {
      readonly kind: 'open'
      readonly port: number
      readonly count: number
      readonly path: string
      readonly stalled?: number
    }
  | {
      readonly kind: 'echo'
      readonly bytes: number
      readonly forMs: number
      readonly binary: boolean
    }
  | { readonly kind: 'close' }

interface Peer {
  readonly socket: Socket
  onData: (chunk: Buffer) => void
}

let peers: Peer[] = []

async function open(port: number, path: string, reads: boolean): Promise<Peer> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.setNoDelay(true)
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  if (!head.toString().startsWith('HTTP/1.1 101')) throw new Error(`refused: ${head.toString()}`)
  const peer: Peer = { socket, onData: () => {} }
  if (reads) socket.on('data', (chunk: Buffer) => peer.onData(chunk))
  else socket.pause()
  return peer
}

/** A masked message, and the size of its echo. */
function message(bytes: number, binary: boolean): { frame: Buffer; echoBytes: number } {
  const payload = Buffer.alloc(bytes, 'x')
  const length =
    bytes < 126 ? [0x80 | bytes] : bytes < 65_536 ? [0xfe, bytes >> 8, bytes & 255] : null
  const long = Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 0])
  if (length === null) long.writeUInt32BE(bytes, 5)
  const header = Buffer.concat([
    Buffer.from([binary ? 0x82 : 0x81]),
    length === null ? long : Buffer.from(length),
  ])
  const key = [0x12, 0x34, 0x56, 0x78]
  const masked = payload.map((byte, i) => byte ^ key[i & 3]!)
  return {
    frame: Buffer.concat([header, Buffer.from(key), masked]),
    echoBytes: header.length + bytes,
  }
}

/** Each peer sends, waits for the whole echo, and sends again. */
async function echo(
  bytes: number,
  binary: boolean,
  forMs: number,
): Promise<{ trips: number; wallMs: number }> {
  const { frame, echoBytes } = message(bytes, binary)
  let trips = 0
  let going = true
  const began = performance.now()
  const ends = peers.map(
    (peer) =>
      new Promise<void>((resolve) => {
        let owed = echoBytes
        peer.onData = (chunk) => {
          owed -= chunk.length
          if (owed > 0) return
          trips++
          owed = echoBytes
          if (going) peer.socket.write(frame)
          else resolve()
        }
        peer.socket.write(frame)
      }),
  )
  setTimeout(() => (going = false), forMs)
  await Promise.all(ends)
  return { trips, wallMs: performance.now() - began }
}

async function obey(order: LoadOrder): Promise<object> {
  if (order.kind === 'echo') return await echo(order.bytes, order.binary, order.forMs)
  if (order.kind === 'open') {
    for (let i = 0; i < order.count; i++) {
      peers.push(await open(order.port, order.path, i >= (order.stalled ?? 0)))
    }
    return {}
  }
  const closed = peers.map(({ socket }) => once(socket, 'close'))
  for (const { socket } of peers) socket.destroy()
  await Promise.all(closed)
  peers = []
  return {}
}

process.on('message', (order: LoadOrder) => {
  void obey(order).then((answer) => process.send!(answer))
})
process.on('disconnect', () => process.exit())
process.send!({})
