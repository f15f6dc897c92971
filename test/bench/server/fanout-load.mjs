/** The subscribers of `fanout.mjs`: raw sockets that count the messages of each. @module */
import { once } from 'node:events'
import { connect } from 'node:net'

/** A subscriber: the number of its messages, and the bytes of an incomplete one. */
class Subscriber {
  count = 0
  /** When its last chunk arrived. */
  at = 0
  #rest = null
  #skip = 0

  constructor(run, from) {
    this.run = run
    this.count = from
  }

  /** Counts the frames in a chunk; their payloads are skipped. */
  take(piece) {
    let at = 0
    if (this.#rest !== null) {
      piece = Buffer.concat([this.#rest, piece])
      this.#rest = null
    }
    while (at < piece.length) {
      if (this.#skip > 0) {
        const step = Math.min(this.#skip, piece.length - at)
        this.#skip -= step
        at += step
        continue
      }
      const short = piece.length - at < 2 ? 127 : piece[at + 1] & 0x7f
      const head = short < 126 ? 2 : short === 126 ? 4 : 10
      if (piece.length - at < head) {
        this.#rest = piece.subarray(at)
        return
      }
      const opcode = piece[at] & 0x0f
      if (opcode === 8) throw new Error('a subscriber was closed')
      if (opcode === 1) this.count += 1
      this.#skip =
        short < 126
          ? short
          : short === 126
            ? piece.readUInt16BE(at + 2)
            : Number(piece.readBigUInt64BE(at + 2))
      at += head
    }
  }
}

const subscribers = []
const sockets = []
let onData = () => {}

async function open({ port, run, count, from }) {
  for (let done = 0; done < count; done += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, count - done) }, async () => {
        const socket = connect(port, '127.0.0.1')
        await once(socket, 'connect')
        socket.write(
          `GET /api/ws/${run}?after=${from} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n` +
            'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
        )
        const [head] = await once(socket, 'data')
        if (!head.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(`refused: ${head}`)
        const subscriber = new Subscriber(run, from)
        const end = head.indexOf('\r\n\r\n') + 4
        if (end < head.length) subscriber.take(head.subarray(end))
        socket.on('data', (piece) => {
          subscriber.take(piece)
          subscriber.at = performance.now()
          onData(subscriber)
        })
        socket.on('error', () => {})
        subscribers.push(subscriber)
        sockets.push(socket)
      }),
    )
  }
  return { open: sockets.length }
}

/** Resolves once every subscriber has all events of its run; `at` is when the last one arrived. */
function until({ heads }) {
  return new Promise((resolve, reject) => {
    const check = () => {
      if (subscribers.some(({ run, count }) => count < heads[run])) return
      onData = () => {}
      const wrong = subscribers.find(({ run, count }) => count > heads[run])
      if (wrong !== undefined) reject(new Error(`${wrong.count} messages of ${heads[wrong.run]}`))
      else resolve({ at: performance.timeOrigin + Math.max(...subscribers.map(({ at }) => at)) })
    }
    const missing = new Set(subscribers.filter(({ run, count }) => count < heads[run]))
    onData = (subscriber) => {
      if (
        subscriber.count >= heads[subscriber.run] &&
        missing.delete(subscriber) &&
        missing.size === 0
      )
        check()
    }
    check()
  })
}

const orders = { open, until }
process.on(
  'message',
  (order) => void orders[order.kind](order).then((answer) => process.send(answer)),
)
process.on('disconnect', () => process.exit())
process.send({})
