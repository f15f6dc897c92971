import assert from 'node:assert/strict'
import { createServer, Socket, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { outliveWriteFailures } from '../../../lib/http/transports/write-failures.js'

/** As in Bun: what was held back is written by the one `_write`, with the same callback. */
class JoiningSocket extends Socket {
  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void,
  ): void {
    const whole = Buffer.concat(chunks.map(({ chunk }) => Buffer.from(chunk)))
    this._write(whole, 'buffer' as BufferEncoding, callback)
  }
}

for (const [name, open] of Object.entries({
  'of Node': () => new Socket(),
  'whose _writev calls its _write': () => new JoiningSocket(),
})) {
  test(`writes held back by a socket ${name} are each called back once`, async (t) => {
    const server = createServer((socket) => socket.pipe(socket))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const socket = open().connect((server.address() as AddressInfo).port, '127.0.0.1')
    outliveWriteFailures(socket, assert.fail)
    t.after(() => void (socket.destroy(), server.close()))
    await once(socket, 'connect')
    const written: string[] = []
    socket.cork()
    for (const text of ['a', 'b', 'c']) socket.write(text, () => written.push(text))
    socket.uncork()
    socket.end('d')
    let echoed = ''
    for await (const chunk of socket) echoed += chunk
    assert.deepEqual([echoed, written], ['abcd', ['a', 'b', 'c']])
  })
}
