import { createServer, type Socket } from 'node:net'
import { AsyncClient } from 'runwright/http'
import { FrameParser, PREFACE } from '../../../../lib/http/transports/http2/frames.js'
import { listen, type Served } from '../../../helpers/serve.js'

export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  window: 8,
  continuation: 9,
}
export const END_STREAM: number = 1
export const END_HEADERS: number = 4

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer | string = '',
): Buffer {
  const body = Buffer.from(payload as string, 'latin1')
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}

export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
export const setting = (id: number, value: number): Buffer =>
  Buffer.concat([Buffer.from([0, id]), uint32(value)])
/** A literal field without indexing. */
export const field = (name: string, value: string): string =>
  `\x00${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`
/** The indexed field `:status 200`. */
export const OK: string = '\x88'
export const ok = (stream: number, fields = '', flags = 0): Buffer =>
  frame(TYPE.headers, END_HEADERS | flags, stream, OK + fields)
export const data = (stream: number, text: string, flags: number = END_STREAM): Buffer =>
  frame(TYPE.data, flags, stream, text)

export interface Frame {
  type: number
  flags: number
  stream: number
  payload: Buffer
}

/** The server's end of one connection. */
export interface Peer {
  write(...frames: Buffer[]): void
  /** The next frame of this type from the client; rejects when the client has disconnected. */
  next(type: number): Promise<Frame>
  readonly closed: Promise<void>
}

/** A server that runs `script` for each connection; `settings` null: it sends none. */
export async function scripted(
  script: (peer: Peer) => Promise<void> | void,
  settings: Buffer | string | null = '',
): Promise<Served<ReturnType<typeof createServer>>> {
  const server = createServer((socket: Socket) => {
    const seen: Frame[] = []
    let waiting: (() => void)[] = []
    const wake = (): void => {
      const now = waiting
      waiting = []
      for (const resolve of now) resolve()
    }
    const take = (type: number, flags: number, stream: number, payload: Buffer): void => {
      seen.push({ type, flags, stream, payload: Buffer.from(payload) })
      wake()
    }
    const parser = new FrameParser({
      onFrame: take,
      onData: (stream, chunk, _length, endStream) =>
        take(TYPE.data, endStream ? 1 : 0, stream, chunk),
    })
    let preface = PREFACE.length
    socket.on('data', (chunk) => {
      const skip = Math.min(preface, chunk.length)
      preface -= skip
      parser.feed(chunk.subarray(skip))
    })
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
    void closed.then(() => wake())
    socket.setNoDelay(true)
    if (settings !== null) socket.write(frame(TYPE.settings, 0, 0, settings))
    void script({
      closed,
      write: (...frames) => void socket.write(Buffer.concat(frames)),
      async next(type) {
        for (;;) {
          const at = seen.findIndex((candidate) => candidate.type === type)
          if (at !== -1) return seen.splice(at, 1)[0]!
          if (socket.destroyed) throw new Error('the client has disconnected')
          await new Promise<void>((resolve) => waiting.push(resolve))
        }
      },
    })
  })
  return listen(server)
}

/** A script that answers every request with the frames of `answer`. */
export const answering =
  (answer: (stream: number) => Buffer[]) =>
  async (peer: Peer): Promise<void> => {
    for (;;) {
      const { stream } = await peer.next(TYPE.headers).catch(() => ({ stream: 0 }))
      if (stream === 0) return
      peer.write(...answer(stream))
    }
  }

export const clientOf = (options = {}): AsyncClient =>
  new AsyncClient({ http1: false, http2: true, ...options })
