import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import { ResponseTooLargeError } from 'runwright/http'
import {
  decodeContent,
  decodeContentSync,
  decodeStream,
  type Coding,
} from '../../../lib/http/content/decoders.js'
import { inflateSync } from '../../../lib/http/transports/blocking/inflate.js'
import { behaviour, collect, failure, useApp } from '../both-clients.js'
import { newer, zstd } from './zstd.js'

useApp()

for (const coding of ['gzip', 'br', 'gzip,gzip', ...(zstd ? ['zstd'] : [])]) {
  behaviour(
    `a zip bomb of ${coding} ends at maxResponseBytes, and streams in small chunks`,
    async ({ client }) => {
      const params = { coding, text: '\0'.repeat(1000), times: 20_000 }
      const error = await failure(() => client.get('/encoded', { params }))
      assert.ok(error instanceof ResponseTooLargeError, String(error))
      const response = await client.stream('GET', '/encoded', { params })
      let length = 0
      let largest = 0
      for await (const chunk of response.iterBytes()) {
        length += chunk.length
        largest = Math.max(largest, chunk.length)
      }
      assert.equal(length, 20_000_000)
      assert.ok(largest <= 1024 * 1024, `${largest} bytes in one chunk`)
    },
    { maxResponseBytes: 1_000_000 },
  )
}

const encoded: readonly (readonly [name: string, coding: Coding, bytes: Buffer])[] = [
  ['gzip', 'gzip', zlib.gzipSync('hello')],
  ['gzip of two members', 'gzip', Buffer.concat([zlib.gzipSync('hel'), zlib.gzipSync('lo')])],
  ['deflate with a zlib wrapper', 'deflate', zlib.deflateSync('hello')],
  ['raw deflate', 'deflate', zlib.deflateRawSync('hello')],
  ['br', 'br', zlib.brotliCompressSync('hello')],
  ...(zstd ? [['zstd', 'zstd', Buffer.from(newer.zstdCompressSync!('hello'))] as const] : []),
]
const TAILS: readonly (readonly [name: string, tail: Buffer, valid: boolean])[] = [
  ['nothing', Buffer.alloc(0), true],
  ['zeros', Buffer.alloc(5), true],
  ['a line break', Buffer.from('\n'), false],
  ['text', Buffer.from('extra'), false],
  ['text after zeros', Buffer.from('\0\0\0\0extra'), false],
]

interface Trailing {
  readonly what: string
  readonly coding: Coding
  readonly bytes: Buffer
  readonly expected: string
}

const trailing: readonly Trailing[] = encoded.flatMap(([name, coding, content]) =>
  TAILS.map(([after, tail, valid]) => ({
    what: `${name} and ${after}`,
    coding,
    bytes: Buffer.concat([content, tail]),
    expected: valid ? 'hello' : 'ERR_HTTP_DECODING',
  })),
)
const halves = (bytes: Buffer): Buffer[][] =>
  Array.from({ length: bytes.length + 1 }, (_, cut) => [
    bytes.subarray(0, cut),
    bytes.subarray(cut),
  ])
const codeOf = (error: unknown): string => (error as { code: string }).code

test('only zeros may follow encoded content, however it is read and split', async () => {
  for (const { what, coding, bytes, expected } of trailing) {
    const outcomes = new Set<string>()
    const note = async (reading: Promise<Uint8Array>): Promise<void> => {
      outcomes.add(await reading.then((all) => Buffer.from(all).toString(), codeOf))
    }
    await note(Promise.resolve().then(() => decodeContentSync(bytes, [coding], null)))
    await note(decodeContent(bytes, [coding], null))
    for (const pieces of [...halves(bytes), [...bytes].map((byte) => Buffer.from([byte]))]) {
      await note(
        collect(decodeStream(Readable.from(pieces), [coding])).then((all) => Buffer.concat(all)),
      )
    }
    assert.deepEqual([...outcomes], [expected], what)
  }
})

test('Client: only zeros may follow encoded content, however it is split', () => {
  for (const { what, coding, bytes, expected } of trailing) {
    const outcomes = new Set<string>()
    for (const pieces of halves(bytes)) {
      try {
        outcomes.add(Buffer.concat([...inflateSync(pieces, coding)]).toString())
      } catch (error) {
        outcomes.add(codeOf(error))
      }
    }
    assert.deepEqual([...outcomes], [expected], what)
  }
})
