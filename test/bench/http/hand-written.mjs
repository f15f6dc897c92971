// The least that an HTTP/1.1 client over node:net can do: the floor for judging ratios. It knows
// one origin, one kind of request, and responses with a Content-Length; it checks nothing.
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** A client whose `get(url)` resolves with parsed JSON. */
export function handWritten() {
  const origins = new Map()
  return {
    get(url) {
      const at = url.indexOf('/', 8)
      const base = url.slice(0, at)
      let origin = origins.get(base)
      if (origin === undefined) origins.set(base, (origin = { idle: [], base }))
      return new Promise((resolve, reject) => {
        const connection = origin.idle.pop() ?? new Connection(origin)
        connection.send(url.slice(at), resolve, reject)
      })
    },
  }
}

class Connection {
  constructor(origin) {
    const { protocol, hostname, port, host } = new URL(origin.base)
    this.origin = origin
    this.host = host
    this.held = null
    const connect = protocol === 'https:' ? connectTls : connectTcp
    this.socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
    this.socket.setNoDelay(true)
    this.socket.on('data', (chunk) => this.receive(chunk))
    this.socket.on('error', (error) => this.reject?.(error))
  }

  send(path, resolve, reject) {
    this.resolve = resolve
    this.reject = reject
    const fields = `Host: ${this.host}\r\nAccept: */*\r\nConnection: keep-alive\r\n`
    this.socket.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n`, 'latin1')
  }

  receive(chunk) {
    const all = this.held === null ? chunk : Buffer.concat([this.held, chunk])
    const end = all.indexOf('\r\n\r\n', 0, 'latin1')
    const fields = end === -1 ? null : fieldsOf(all.latin1Slice(0, end))
    if (fields === null || all.length < end + 4 + Number(fields.get('content-length'))) {
      this.held = all
      return
    }
    this.held = null
    this.origin.idle.push(this)
    this.resolve(JSON.parse(all.utf8Slice(end + 4, all.length)))
  }
}

function fieldsOf(head) {
  const fields = new Map()
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':')
    fields.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
  }
  return fields
}
