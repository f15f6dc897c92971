import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Mailbox, MAILBOX_BYTES } from '../../../../lib/http/transports/blocking/mailbox.js'
import { CONTROL } from '../../../../lib/http/transports/blocking/protocol.js'

/** Both ends of a mailbox, and a response that fits into it. */
function setUp() {
  const memory = new SharedArrayBuffer(MAILBOX_BYTES)
  const control = new Int32Array(new SharedArrayBuffer(4 * CONTROL.length))
  const head = {
    t: 'head' as const,
    id: 7,
    statusCode: 200,
    reasonPhrase: 'Très bien',
    httpVersion: 'HTTP/1.1',
    headers: ['Content-Type', 'text/plain', 'X-Name', 'Zoë 🙂'],
    info: { remotePort: 80 },
    timings: [null, 1, 20, null, null, 3, 400],
    chunks: [Buffer.from('some '), Buffer.from('content')],
    end: ['X-Sum', '1'],
  }
  return { worker: new Mailbox(control, memory), caller: new Mailbox(control, memory), head }
}

test('a response comes out as it was put in, in memory that is not shared', () => {
  const { worker, caller, head } = setUp()
  assert.equal(caller.take(), null)
  assert.equal(worker.put(head), true)
  const taken = caller.take()!
  assert.deepEqual({ ...taken, chunks: [] }, { ...head, chunks: [] })
  assert.equal(Buffer.concat(taken.chunks).toString(), 'some content')
  assert.ok(taken.chunks.every((chunk) => chunk.buffer instanceof ArrayBuffer))
  assert.equal(caller.take(), null)
})

test('a mailbox holds one response until it is taken', () => {
  const { worker, caller, head } = setUp()
  assert.equal(worker.put(head), true)
  assert.equal(worker.put({ ...head, id: 8 }), false)
  assert.equal(caller.take()?.id, 7)
  assert.equal(worker.put({ ...head, id: 8, chunks: [] }), true)
  assert.deepEqual(caller.take()?.chunks, [])
})

test('an incomplete or too large response is not put in the mailbox', () => {
  const { worker, caller, head } = setUp()
  assert.equal(worker.put({ ...head, end: null }), false)
  assert.equal(worker.put({ ...head, chunks: [Buffer.alloc(MAILBOX_BYTES)] }), false)
  assert.equal(worker.put({ ...head, headers: ['X-Long', 'ü'.repeat(MAILBOX_BYTES / 2)] }), false)
  assert.equal(caller.full, false)
})
