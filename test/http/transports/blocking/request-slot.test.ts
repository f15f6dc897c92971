import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONTROL } from '../../../../lib/http/transports/blocking/protocol.js'
import type { ToWorker } from '../../../../lib/http/transports/blocking/protocol.js'
import {
  REQUEST_SLOT_BYTES,
  RequestSlot,
} from '../../../../lib/http/transports/blocking/request-slot.js'

type RequestMessage = Extract<ToWorker, { t: 'request' }>

function message(id: number, body: Uint8Array | null = null): RequestMessage {
  return {
    t: 'request',
    id,
    transport: 1,
    request: {
      method: 'POST',
      url: 'http://a.test/',
      headers: ['X-Name', 'Grüße €'],
      target: '/ä',
      sniHostname: undefined,
      timeouts: { connect: 1, read: 2, write: 3, pool: null, total: null },
      body,
      bodyLength: body?.length ?? null,
      bodyReplayable: true,
      wantsInformation: false,
    },
  }
}

/** The two ends of a slot. */
function pair(): { caller: RequestSlot; worker: RequestSlot; control: Int32Array } {
  const control = new Int32Array(new SharedArrayBuffer(4 * CONTROL.length))
  const memory = new SharedArrayBuffer(REQUEST_SLOT_BYTES)
  const [caller, worker] = [new RequestSlot(control, memory), new RequestSlot(control, memory)]
  return { caller, worker, control }
}

test('a request comes out as it was put in, once, in memory that is not shared', () => {
  const { caller, worker } = pair()
  for (const body of [null, new Uint8Array([1, 2, 255])]) {
    worker.open()
    assert.equal(caller.put(message(7, body)), true)
    assert.equal(caller.put(message(8)), false)
    const taken = worker.take(true)
    // JSON leaves out what is undefined.
    const { sniHostname: _, ...request } = message(7, body).request
    assert.deepEqual(taken, { ...message(7), request })
    if (body !== null) assert.ok((taken!.request.body as Uint8Array).buffer instanceof ArrayBuffer)
    assert.equal(worker.take(true), null)
  }
})

test('a slot that is not open takes nothing', () => {
  const { caller, worker } = pair()
  assert.equal(caller.put(message(1)), false)
  worker.open()
  caller.interrupt()
  assert.equal(caller.put(message(1)), false)
  assert.equal(worker.take(true), null)
  worker.open()
  assert.equal(worker.take(false), null)
  assert.equal(caller.put(message(1)), false)
})

test('a request does not overtake a message', () => {
  const { caller, worker, control } = pair()
  worker.open()
  Atomics.add(control, CONTROL.sent, 1)
  assert.equal(caller.put(message(1)), false)
  worker.open()
  assert.equal(Atomics.load(control, CONTROL.slot), 0)
  Atomics.add(control, CONTROL.handled, 1)
  worker.open()
  assert.equal(caller.put(message(1)), true)
})

test('an empty body and a request that does not fit are left to a message', () => {
  const { caller, worker } = pair()
  worker.open()
  assert.equal(caller.put(message(1, new Uint8Array(0))), false)
  assert.equal(caller.put(message(1, new Uint8Array(REQUEST_SLOT_BYTES))), false)
  assert.equal(caller.put(message(1, new Uint8Array(REQUEST_SLOT_BYTES / 2))), true)
})

test('waits that are in vain become rare, and one that is not makes them frequent', () => {
  const { caller, worker, control } = pair()
  const opened = (responses: number, answer: boolean): number => {
    let count = 0
    for (let i = 0; i < responses; i++) {
      worker.open()
      if (Atomics.load(control, CONTROL.slot) === 0) continue
      count++
      if (answer) caller.put(message(i))
      worker.take(true)
    }
    return count
  }
  assert.equal(opened(300, false), 9)
  assert.ok(opened(100, true) > 30)
  assert.equal(opened(10, true), 10)
})
