import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { prepare, WebSocketServer } from 'runwright/ws'
import { turn } from '../helpers/ws-peer.js'
import { decode, link } from './stub-socket.js'

const memory = Buffer.from(Array.from({ length: 64 }, (_, i) => i))
const { buffer, byteOffset } = new Uint8Array(memory)
const shared = new SharedArrayBuffer(4)
new Uint8Array(shared).set([9, 8, 7, 6])
const hex = (from: number, to: number): string => memory.subarray(from, to).toString('hex')

/** Bytes of every kind: a view counts as far as it reaches. */
const bytes: Record<string, [value: ArrayBufferView | ArrayBufferLike, hex: string]> = {
  'an empty Buffer': [Buffer.alloc(0), ''],
  'a Buffer within a larger one': [memory.subarray(3, 6), hex(3, 6)],
  Uint8Array: [new Uint8Array(buffer, byteOffset + 1, 2), hex(1, 3)],
  Uint8ClampedArray: [new Uint8ClampedArray(buffer, byteOffset + 1, 2), hex(1, 3)],
  Int8Array: [new Int8Array([-1, 2]), 'ff02'],
  Uint16Array: [new Uint16Array(buffer, byteOffset + 2, 2), hex(2, 6)],
  Int16Array: [new Int16Array(buffer, byteOffset + 2, 2), hex(2, 6)],
  Uint32Array: [new Uint32Array(buffer, byteOffset + 4, 2), hex(4, 12)],
  Int32Array: [new Int32Array(buffer, byteOffset + 4, 2), hex(4, 12)],
  Float32Array: [new Float32Array(buffer, byteOffset + 4, 3), hex(4, 16)],
  Float64Array: [new Float64Array(buffer, byteOffset + 8, 2), hex(8, 24)],
  BigInt64Array: [new BigInt64Array(buffer, byteOffset + 8, 1), hex(8, 16)],
  BigUint64Array: [new BigUint64Array(buffer, byteOffset + 8, 2), hex(8, 24)],
  DataView: [new DataView(buffer, byteOffset + 5, 3), hex(5, 8)],
  ArrayBuffer: [Uint8Array.from([1, 2, 3]).buffer, '010203'],
  SharedArrayBuffer: [shared, '09080706'],
  'a view of a SharedArrayBuffer': [new Uint16Array(shared, 2, 1), '0706'],
  'a Uint8Array of another realm': [runInNewContext('new Uint8Array([5, 6])'), '0506'],
  'an ArrayBuffer of another realm': [runInNewContext('new Uint8Array([7]).buffer'), '07'],
}

/** What is no message, and what a TypeError calls it. */
const others: Record<string, [value: unknown, name: string]> = {
  'an array of numbers': [[1, 2, 3], 'an array'],
  'an object with a length': [{ length: 4 }, 'an object'],
  'an object like a view': [{ byteLength: 2, buffer: new ArrayBuffer(2) }, 'an object'],
  undefined: [undefined, 'nothing'],
  null: [null, 'null'],
  number: [5, '5'],
  boolean: [true, 'true'],
  bigint: [5n, 'a bigint'],
  symbol: [Symbol('x'), 'a symbol'],
  function: [() => {}, 'a function'],
  'a String object': [new String('x'), 'an object'],
  Blob: [new Blob(['x']), 'a Blob: send(await blob.arrayBuffer())'],
}

const offer = { 'sec-websocket-extensions': 'permessage-deflate' }
const open = (deflate: boolean): ReturnType<typeof link> => {
  const server = new WebSocketServer({
    keepAlive: null,
    deflate: deflate ? { thresholdBytes: 0, serverContextTakeover: true } : false,
  })
  return link(server, undefined, deflate ? offer : {})
}

describe('bytes of every kind are sent as they are in memory', () => {
  for (const [name, [value, expected]] of Object.entries(bytes)) {
    test(name, async () => {
      for (const deflate of [false, true]) {
        const one = await open(deflate)
        const server = new WebSocketServer()
        one.connection.send(value)
        one.connection.send(prepare(value))
        server.broadcast(value, [one.connection])
        await one.connection.sendStream([value, value])
        one.connection.ping(value)
        await turn()
        const received = decode(Buffer.concat(one.socket.writes), true)
        assert.deepEqual(
          received.map(({ opcode, payload }) => `${opcode}:${payload.toString('hex')}`),
          [...Array.from({ length: 3 }, () => `2:${expected}`), `2:${expected}${expected}`,
            `9:${expected}`],
        )
        assert.equal(prepare(value).byteLength, expected.length / 2)
        one.socket.destroy()
      }
    })

    test(`${name}, of 40 000 bytes`, async () => {
      if (!ArrayBuffer.isView(value)) return
      const large = new Uint8Array(40_008).fill(7)
      type Make = new (buffer: ArrayBuffer, offset: number, length: number) => Uint8Array
      const View = (Buffer.isBuffer(value) ? Uint8Array : value.constructor) as Make
      const size = 'BYTES_PER_ELEMENT' in View ? Number(View.BYTES_PER_ELEMENT) : 1
      const one = await open(false)
      one.connection.send(new View(large.buffer, 8, 40_000 / size))
      await turn()
      const [received] = decode(Buffer.concat(one.socket.writes), false)
      assert.equal(received!.payload.length, 40_000)
      one.socket.destroy()
    })
  }
})

describe('anything else is a TypeError that names what is accepted, and nothing is sent', () => {
  for (const [name, [value, shown]] of Object.entries(others)) {
    test(name, async () => {
      const one = await open(false)
      const expected = (what: string) => ({
        name: 'TypeError',
        message:
          `${what} must be a string, Buffer, typed array, DataView, ArrayBuffer or ` +
          `SharedArrayBuffer, got ${shown}`,
      })
      const bad = value as string
      assert.throws(() => one.connection.send(bad), expected('a message'))
      assert.throws(() => prepare(bad), expected('a message'))
      assert.throws(() => new WebSocketServer().broadcast(bad, []), expected('a message'))
      if (value !== undefined) {
        assert.throws(() => one.connection.ping(bad), expected('a ping'))
        const closing = (): unknown => one.connection.close(1000, bad)
        assert.throws(closing, expected('the reason of a Close frame'))
      }
      await turn()
      assert.deepEqual([one.socket.writes, one.connection.state], [[], 'open'])
      one.socket.destroy()
      await one.connection.closed
      assert.throws(() => one.connection.send(bad), expected('a message'))
    })
  }
})

test('the reason of a Close may be bytes of any kind', async () => {
  const one = await open(false)
  void one.connection.close(1000, new Uint16Array([0x6968, 0x2121]))
  await turn()
  assert.equal(one.socket.frames()[0]!.toString('latin1', 2), 'hi!!')
  one.socket.destroy()
})
