import { createServer } from 'node:tls'

const FRAME = { data: 0, headers: 1, settings: 4, ping: 6, windowUpdate: 8 }
const HEAD = 9

function frame(type, flags, stream, payload) {
  const bytes = Buffer.alloc(HEAD + payload.length)
  bytes.writeUIntBE(payload.length, 0, 3)
  bytes[3] = type
  bytes[4] = flags
  bytes.writeUInt32BE(stream, 5)
  payload.copy(bytes, HEAD)
  return bytes
}

/** `:status: 200`, then two literal fields without indexing (RFC 7541, section 6.2.2). */
function encodeFields(length) {
  const literal = (name, value) =>
    Buffer.concat([
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ])
  return Buffer.concat([
    Buffer.from([0x88]),
    literal('content-type', 'application/json'),
    literal('content-length', String(length)),
  ])
}

/**
 * An HTTP/2 server that answers every request with the same prebuilt frames, which costs little. It
 * understands only what well-behaved clients of this benchmark send.
 */
export function createBareHttp2(tls, body) {
  const fields = encodeFields(body.length)
  const answer = Buffer.concat([frame(FRAME.headers, 4, 0, fields), frame(FRAME.data, 1, 0, body)])
  const dataAt = HEAD + fields.length

  return createServer({ ...tls, ALPNProtocols: ['h2'] }, (socket) => {
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.write(frame(FRAME.settings, 0, 0, Buffer.from([0, 3, 0, 0, 1, 0])))
    let held = Buffer.alloc(0)
    let preface = 24
    let window = 65_535
    const waiting = []

    const serve = () => {
      const answers = []
      while (waiting.length > 0 && window >= body.length) {
        const stream = waiting.shift()
        const frames = Buffer.from(answer)
        frames.writeUInt32BE(stream, 5)
        frames.writeUInt32BE(stream, dataAt + 5)
        window -= body.length
        answers.push(frames)
      }
      if (answers.length > 0)
        socket.write(answers.length === 1 ? answers[0] : Buffer.concat(answers))
    }
    socket.on('data', (chunk) => {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      let at = 0
      if (preface > 0) {
        if (held.length < preface) return
        at = preface
        preface = 0
      }
      while (held.length >= at + HEAD) {
        const length = held.readUIntBE(at, 3)
        if (held.length < at + HEAD + length) break
        const type = held[at + 3]
        const flags = held[at + 4]
        const stream = held.readUInt32BE(at + 5)
        const payload = held.subarray(at + HEAD, at + HEAD + length)
        at += HEAD + length
        if (type === FRAME.headers) waiting.push(stream)
        else if (type === FRAME.windowUpdate && stream === 0) window += payload.readUInt32BE(0)
        else if (type === FRAME.settings && (flags & 1) === 0)
          socket.write(frame(FRAME.settings, 1, 0, Buffer.alloc(0)))
        else if (type === FRAME.ping && (flags & 1) === 0)
          socket.write(frame(FRAME.ping, 1, 0, payload))
      }
      held = held.subarray(at)
      serve()
    })
  })
}
