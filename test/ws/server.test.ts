import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebSocketServer } from 'runwright/ws'
import { closeFrame, echo, frame, SAMPLE_ACCEPT, opening, text, world } from '../helpers/ws-peer.js'

test('the sample key of the standard is answered with its accept value (RFC 6455, section 4.2.2)', async () => {
  await using w = await world(echo)
  const peer = await w.dial()
  peer.write(opening())
  const { status, headers } = await peer.head()
  assert.equal(status, 101)
  assert.equal(headers.get('sec-websocket-accept'), SAMPLE_ACCEPT)
  assert.equal(headers.get('upgrade'), 'websocket')
  assert.equal(headers.get('connection'), 'Upgrade')
})

test('messages are echoed and the closing handshake completes', async () => {
  await using w = await world(echo)
  const peer = await w.open()
  peer.write(Buffer.concat([text('hello'), frame(2, Buffer.from([1, 2])), closeFrame(1000, 'bye')]))
  assert.deepEqual(await peer.finish(), ['text:hello', 'binary:\x01\x02', 'close:1000'])
})

test('a message is iterated and the reply goes out before the Close', async () => {
  await using w = await world({
    async onConnection(connection) {
      for await (const message of connection) connection.send(message)
    },
  })
  const peer = await w.open()
  peer.write(Buffer.concat([text('one'), text('two'), frame(3)]))
  assert.deepEqual(await peer.finish(), ['text:one', 'text:two', 'close:1002:opcode 3 is reserved'])
})

test('a bad option is told by name', () => {
  assert.throws(() => new WebSocketServer({ maxMessageBytes: 0 }), /maxMessageBytes/)
})
