import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import {
  Client,
  DecodingError,
  MockTransport,
  Response,
  ResponseTooLargeError,
} from 'runwright/http'
import { decodeContent } from '../../../lib/http/content/decoders.js'
import { ZstdFrames } from '../../../lib/http/content/zstd.js'
import { behaviour, collect, failure, useApp } from '../both-clients.js'
import { zstd } from './zstd.js'

useApp()
const codings = [
  'gzip',
  'deflate',
  'deflate-raw',
  'br',
  'gzip,br',
  ...(zstd ? ['zstd', 'gzip,zstd'] : []),
]

for (const coding of codings) {
  behaviour(`${coding} content is decoded, whether read whole or streamed`, async ({ client }) => {
    const params = { coding, text: 'hällo ', times: 50_000 }
    const whole = await client.get('/encoded', { params })
    assert.equal(whole.text.length, 300_000)
    assert.ok(whole.numBytesDownloaded < 10_000)
    const streamed = await client.stream('GET', '/encoded', { params })
    assert.equal((await collect(streamed.iterText())).join(''), whole.text)
  })
  behaviour(`truncated ${coding} content is a DecodingError`, async ({ client }) => {
    const params = { coding, text: 'hello', times: 1000, cut: 4 }
    const error = await failure(() => client.get('/encoded', { params }))
    assert.ok(error instanceof DecodingError, String(error))
    const streamed = await client.stream('GET', '/encoded', { params })
    const late = await failure(() => collect(streamed.iterBytes()))
    assert.ok(late instanceof DecodingError, String(late))
    assert.equal((await client.get('/echo')).statusCode, 200)
  })
}

behaviour(
  'content larger than maxResponseBytes is rejected, compressed or not',
  async ({ client }) => {
    for (const path of ['/bytes?n=1001', '/encoded?coding=gzip&text=a&times=1001']) {
      const error = await failure(() => client.get(path))
      assert.ok(error instanceof ResponseTooLargeError)
      assert.equal(error.maxBytes, 1000)
    }
    assert.equal((await client.get('/bytes?n=1000')).content.length, 1000)
  },
  { maxResponseBytes: 1000 },
)

test(
  'zstd content is decoded if this version of Node can',
  { skip: zstd ? false : 'this Node has no zstd' },
  () => {
    assert.ok(codings.includes('zstd'))
  },
)

behaviour('zstd is offered only if it can be decoded', async ({ client }) => {
  const { headers } = (await client.get('/echo')).json<{ headers: Record<string, string> }>()
  assert.equal(headers['accept-encoding'], zstd ? 'gzip, deflate, br, zstd' : 'gzip, deflate, br')
})

for (const coding of ['gzip', ...(zstd ? ['zstd'] : [])]) {
  behaviour(
    `${coding} content of several members is decoded to the last, and must be complete`,
    async ({ client }) => {
      const params = { coding, text: 'member ', times: 3000, members: 3 }
      const whole = await client.get('/encoded', { params })
      assert.equal(whole.text, 'member '.repeat(9000))
      const streamed = await client.stream('GET', '/encoded', { params })
      assert.equal((await collect(streamed.iterText())).join(''), whole.text)
      const cut = { params: { ...params, cut: 3 } }
      assert.ok((await failure(() => client.get('/encoded', cut))) instanceof DecodingError)
      const late = await client.stream('GET', '/encoded', cut)
      assert.ok((await failure(() => collect(late.iterBytes()))) instanceof DecodingError)
    },
  )
}

behaviour('an abort amid encoded content ends with its reason', async ({ make, client }) => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const stream = client instanceof Client ? abortingSync : aborting
  const transport = new MockTransport(
    () => new Response(200, { headers: { 'Content-Encoding': 'gzip' }, stream: stream() as never }),
  )
  const { signal } = controller
  const response = await make({ transport }).stream('GET', 'http://a.test', { signal })
  assert.equal(await failure(() => collect(response.iterBytes())), reason)

  function* abortingSync(): Generator<Uint8Array> {
    yield zlib.gzipSync('hello').subarray(0, 12)
    controller.abort(reason)
    yield Buffer.from('x')
  }
  async function* aborting(): AsyncGenerator<Uint8Array> {
    yield* abortingSync()
  }
})

// "abc" without a checksum; "abc" with one and its size; a skippable frame of two bytes.
const plain = Buffer.from('28b52ffd0000190000616263', 'hex')
const checked = Buffer.from('28b52ffd2403190000616263990977ad', 'hex')
const skippable = Buffer.from('502a4d18020000000102', 'hex')

test('zstd frames are separated by their lengths, however the input is split', () => {
  const all = Buffer.concat([plain, skippable, checked, plain])
  for (let size = 1; size <= all.length; size++) {
    const frames = new ZstdFrames()
    const found: Buffer[] = []
    let held: Uint8Array[] = []
    for (let at = 0; at < all.length; at += size) {
      for (const { bytes, last } of frames.feed(all.subarray(at, at + size))) {
        held.push(bytes)
        if (!last) continue
        found.push(Buffer.concat(held))
        held = []
      }
    }
    assert.deepEqual(found, [plain, checked, plain], `pieces of ${size}`)
    assert.equal(frames.complete, true)
    assert.deepEqual(
      [...Buffer.alloc(9)].flatMap((byte) => frames.feed(Buffer.from([byte]))),
      [],
    )
    assert.equal(frames.complete, true)
    assert.throws(() => frames.feed(plain), /more bytes after the end/)
  }
})

test('a truncated zstd frame is incomplete, and other content is rejected', () => {
  for (let length = 1; length < checked.length; length++) {
    const frames = new ZstdFrames()
    frames.feed(checked.subarray(0, length))
    assert.equal(frames.complete, false, String(length))
  }
  assert.throws(() => new ZstdFrames().feed(Buffer.from('no zstd')), /unknown frame/)
})

test('content that expands beyond 8 MiB leaves the thread, however small it arrived', async () => {
  const bytes = zlib.gzipSync(Buffer.alloc(9 * 1024 * 1024))
  let done = false
  const decoding = decodeContent(bytes, ['gzip'], null).finally(() => (done = true))
  for (let i = 0; i < 100; i++) await Promise.resolve()
  assert.equal(done, false)
  assert.equal((await decoding).length, 9 * 1024 * 1024)
  await assert.rejects(decodeContent(bytes, ['gzip'], 1_000), ResponseTooLargeError)
})
