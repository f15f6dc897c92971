// The server of the comparison: its small response is prebuilt, so that it costs little.
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { createServer as createNet } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { createBareHttp2 } from './http2-server.mjs'

const certs = new URL('../../fixtures/http/certs/', import.meta.url)
const tls = {
  cert: readFileSync(new URL('server.pem', certs)),
  key: readFileSync(new URL('server-key.pem', certs)),
}
const json = JSON.stringify({
  items: Array.from({ length: 20 }, (_, i) => ({ id: i, name: `item ${i}`, ok: true })),
})
const small = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n' +
    `Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
)
const items = Array.from({ length: 12_000 }, (_, i) => ({
  id: i,
  name: `item ${i}`,
  value: i * 1.37,
  text: 'some words here',
}))
const large = gzipSync(JSON.stringify(items))
const piece = Buffer.alloc(256 * 1024, 'x')

function answer(request, response) {
  if (request.url === '/gzip') {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': large.length,
    })
    return void response.end(large)
  }
  if (request.url === '/stream') {
    let left = 100 * 1024 * 1024
    const go = () => {
      while (left > 0) {
        left -= piece.length
        if (!response.write(piece)) return void response.once('drain', go)
      }
      response.end()
    }
    return void go()
  }
  request.on('data', () => {})
  request.on('end', () => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(json),
    })
    response.end(json)
  })
}

/** Answers every request head with the same bytes. */
function answerBare(socket) {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  let tail = ''
  socket.on('data', (chunk) => {
    tail += chunk.toString('latin1')
    for (let end = tail.indexOf('\r\n\r\n'); end !== -1; end = tail.indexOf('\r\n\r\n')) {
      tail = tail.slice(end + 4)
      socket.write(small)
    }
  })
}

const listen = (server) =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))
process.send({
  bareHttp: await listen(createNet(answerBare)),
  bareHttps: await listen(createTls(tls, answerBare)),
  bareHttp2: await listen(createBareHttp2(tls, Buffer.from(json))),
  http: await listen(createServer(answer)),
})
process.on('disconnect', () => process.exit())
