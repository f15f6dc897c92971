import { Duplex } from 'node:stream'
import { constants, inflateRawSync } from 'node:zlib'
import type { WebSocketConnection, WebSocketServer } from 'runwright/ws'
import { readFrame, turn } from '../helpers/ws-peer.js'

/** The server's end of a transport whose peer reads only while `reads` is true. */
export class StubSocket extends Duplex {
  readonly writes: Buffer[] = []
  #taken: (() => void)[] = []
  reads = true

  constructor() {
    super({ writableHighWaterMark: 16_384, allowHalfOpen: true })
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(chunk)
    if (this.reads) done()
    else this.#taken.push(done)
  }

  /** Makes the peer read everything written so far, and all that follows. */
  resumeReading(): void {
    this.reads = true
    this.takeOne()
  }

  /** Makes the peer read one write. */
  takeOne(): void {
    for (const done of this.#taken.splice(0)) done()
  }

  /** The payloads of all frames written so far. */
  frames(): Buffer[] {
    let rest = Buffer.concat(this.writes)
    const found: Buffer[] = []
    for (let next = readFrame(rest); next !== null; next = readFrame(rest)) {
      found.push(next.frame.payload)
      rest = rest.subarray(next.size)
    }
    return found
  }

  texts(): string[] {
    return this.frames().map((payload) => payload.toString())
  }
}

export interface Link {
  readonly connection: WebSocketConnection<undefined>
  readonly socket: StubSocket
}

/** A connection over a stub; the answer to the handshake is discarded. */
export async function link(
  server: WebSocketServer,
  socket: StubSocket = new StubSocket(),
  headers: Record<string, string> = {},
): Promise<Link> {
  const request = {
    method: 'GET',
    url: '/',
    httpVersion: '1.1',
    headers: {
      host: 'localhost',
      upgrade: 'websocket',
      connection: 'Upgrade',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...headers,
    },
    rawHeaders: ['Host', 'localhost'],
    socket: {},
  }
  const connection = await server.upgrade(request, socket)
  connection!.onMessage = () => {}
  await turn()
  socket.writes.length = 0
  return { connection: connection!, socket }
}

/** A message or control frame as a client sees it. */
export interface Received {
  readonly opcode: number
  readonly payload: Buffer
}

/** Decodes what a server wrote as a client does: fragments joined, messages inflated. */
export function decode(bytes: Buffer, contextTakeover: boolean): Received[] {
  const all: Received[] = []
  let window = Buffer.alloc(0)
  let parts: Buffer[] = []
  let [opcode, compressed] = [0, false]
  let rest = bytes
  for (let next = readFrame(rest); next !== null; next = readFrame(rest)) {
    const { frame } = next
    rest = rest.subarray(next.size)
    if (frame.opcode >= 8) {
      if (!frame.fin || frame.rsv !== 0) throw new Error('a broken control frame')
      all.push({ opcode: frame.opcode, payload: frame.payload })
      continue
    }
    if ((frame.opcode === 0) !== opcode > 0) throw new Error('a frame in the wrong place')
    if (frame.opcode !== 0) [opcode, compressed] = [frame.opcode, frame.rsv === 4]
    parts.push(frame.payload)
    if (!frame.fin) continue
    let payload: Buffer = Buffer.concat(parts)
    if (compressed) {
      payload = inflateRawSync(Buffer.concat([payload, Buffer.from([0, 0, 255, 255])]), {
        finishFlush: constants.Z_SYNC_FLUSH,
        ...(window.length > 0 ? { dictionary: window } : {}),
      })
      if (contextTakeover) window = Buffer.concat([window, payload]).subarray(-32_768)
    }
    all.push({ opcode, payload })
    ;[parts, opcode] = [[], 0]
  }
  return all
}
