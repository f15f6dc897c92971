/** Sends requests over raw connections; Content-Length delimits the responses. @module */
import { connect } from 'node:net'
import { once } from 'node:events'

async function open(port) {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  await once(socket, 'connect')
  return socket
}

/** Where the first response in `bytes` ends; -1 when it is incomplete. */
function endOf(bytes) {
  const head = bytes.indexOf('\r\n\r\n')
  if (head === -1) return -1
  const text = bytes.latin1Slice(0, head)
  if (!/^HTTP\/1\.1 20[01]/.test(text)) throw new Error(`unexpected answer: ${text.slice(0, 200)}`)
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1])
  const end = head + 4 + length
  return bytes.length >= end ? end : -1
}

/** Sequential requests on each connection, for `ms`; at least one on each. */
export async function hammer(port, request, connections, ms) {
  const bytes = Buffer.from(request)
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  let count = 0
  const began = performance.now()
  const until = began + ms
  let size = 0
  const run = (socket) =>
    new Promise((resolve, reject) => {
      let rest = null
      socket.on('error', reject)
      socket.on('data', (chunk) => {
        const all = rest === null ? chunk : Buffer.concat([rest, chunk])
        // Responses to the same request are as long as the first, which was parsed.
        const end = all.length === size ? size : endOf(all)
        if (end === -1) {
          rest = all
          return
        }
        size = end
        rest = null
        count += 1
        if (performance.now() < until) socket.write(bytes)
        else resolve()
      })
      socket.write(bytes)
    })
  await Promise.all(sockets.map(run))
  const took = performance.now() - began
  for (const socket of sockets) socket.destroy()
  return { count, ms: took }
}

/** Milliseconds from sending a start request to the run's first event on an open connection. */
export async function firstEvent(port, request, rounds) {
  const caller = await open(port)
  const samples = []
  for (let round = 0; round < rounds + 20; round++) {
    const reader = await open(port)
    const began = performance.now()
    caller.write(request)
    let head = ''
    while (!head.includes('\r\n\r\n')) head += (await once(caller, 'data'))[0].latin1Slice()
    const path = /\r\nlocation: (\S+)/i.exec(head)[1]
    reader.write(
      `GET ${path}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`,
    )
    let text = ''
    while (!text.includes('data: ')) text += (await once(reader, 'data'))[0].latin1Slice()
    const took = performance.now() - began
    reader.destroy()
    if (round >= 20) samples.push(took)
  }
  caller.destroy()
  return samples
}
