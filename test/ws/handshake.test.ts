import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WebSocketServerOptions } from 'runwright/ws'
import {
  closeFrame,
  echo,
  opening,
  SAMPLE_ACCEPT,
  SAMPLE_KEY,
  text,
  world,
} from '../helpers/ws-peer.js'
import { splits } from './random.js'

type Headers = Record<string, string | readonly string[] | null>

/** Sends one opening handshake and returns the head of the response and the rest as text. */
async function ask(
  headers: Headers,
  request: { method?: string; version?: string; path?: string } = {},
  options: WebSocketServerOptions = echo,
  extra = '',
): Promise<{ status: number; headers: Map<string, string>; body: string }> {
  await using w = await world(options)
  const peer = await w.dial()
  peer.write(opening(headers, request) + extra)
  const head = await peer.head()
  const body = head.status === 101 ? '' : (await peer.body()).toString()
  return { ...head, body }
}

/** `4.2.1` is a section of RFC 6455; others are written `9110 7.8`. */
function cite(section: string): string {
  const [first = '', second] = section.split(' ')
  return second === undefined ? `RFC 6455 §${first}` : `RFC ${first} §${second}`
}

describe('an opening handshake is accepted', () => {
  const cases: { name: string; section: string; headers: Headers }[] = [
    { name: 'with the example key of RFC 6455', section: '4.2.2', headers: {} },
    { name: 'with Upgrade in any case', section: '4.2.1', headers: { Upgrade: 'WebSocket' } },
    { name: 'with Upgrade in a list', section: '4.2.1', headers: { Upgrade: 'h2c, websocket' } },
    {
      name: 'with Connection in a list and any case',
      section: '4.2.1',
      headers: { Connection: 'keep-alive, UPGRADE' },
    },
    {
      name: 'with an unknown extension, which is ignored',
      section: '9.1',
      headers: { 'Sec-WebSocket-Extensions': 'x-webkit-deflate-frame, foo; bar="baz"; a=1' },
    },
    {
      name: 'with an extension named like a property of Object.prototype',
      section: '9.1',
      headers: { 'Sec-WebSocket-Extensions': 'constructor; __proto__=1, toString' },
    },
    { name: 'with empty content', section: '9110 7.8', headers: { 'Content-Length': '0' } },
    {
      name: 'from a page of the same host',
      section: '10.2',
      headers: { Host: 'App.example:8080', Origin: 'https://app.example:8080' },
    },
    {
      name: 'from a page of the same host on the default port',
      section: '10.2',
      headers: { Host: 'app.example', Origin: 'https://app.example' },
    },
  ]
  for (const { name, section, headers } of cases) {
    test(`${name} (${cite(section)})`, async () => {
      const answer = await ask(headers)
      assert.equal(answer.status, 101)
      assert.equal(answer.headers.get('sec-websocket-accept'), SAMPLE_ACCEPT)
      assert.equal(answer.headers.get('sec-websocket-extensions'), undefined)
      assert.equal(answer.headers.get('sec-websocket-protocol'), undefined)
    })
  }
})

describe('an opening handshake is refused', () => {
  const shortKey = Buffer.alloc(15).toString('base64')
  const longKey = Buffer.alloc(17).toString('base64')
  const cases: {
    name: string
    section: string
    status: number
    headers?: Headers
    request?: { method?: string; version?: string }
    extra?: string
    answer?: Record<string, string>
  }[] = [
    {
      name: 'over HTTP/1.0',
      section: '4.2.1',
      status: 505,
      request: { version: '1.0' },
    },
    ...['POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'].map((method) => ({
      name: `with the method ${method}`,
      section: '4.2.1',
      status: 405,
      request: { method },
      answer: { allow: 'GET' },
    })),
    ...['8', '12', '013', '0xd', '13, 13', '13.0', '', '+13'].map((version) => ({
      name: `with the version ${version || 'left empty'}`,
      section: '4.4',
      status: 426,
      headers: { 'Sec-WebSocket-Version': version },
      answer: { 'sec-websocket-version': '13', upgrade: 'websocket', connection: 'Upgrade, close' },
    })),
    {
      name: 'without a version',
      section: '4.2.1',
      status: 426,
      headers: { 'Sec-WebSocket-Version': null },
      answer: { 'sec-websocket-version': '13' },
    },
    ...[
      ['left out', null],
      ['left empty', ''],
      ['of 15 bytes', shortKey],
      ['of 17 bytes', longKey],
      ['that is not base64', 'dGhlIHNhbXBsZSBub25jZ!=='],
      ['in base64url', 'dGhlIHNhbXBsZSBub25j_w=='],
      ['without padding', 'dGhlIHNhbXBsZSBub25jZQ'],
    ].map(([what, key]) => ({
      name: `with a key ${what}`,
      section: '4.2.1',
      status: 400,
      headers: { 'Sec-WebSocket-Key': key ?? null },
    })),
    {
      name: 'with two keys',
      section: '11.3.1',
      status: 400,
      headers: { 'Sec-WebSocket-Key': [SAMPLE_KEY, SAMPLE_KEY] },
    },
    {
      name: 'with two hosts',
      section: '4.2.1',
      status: 400,
      headers: { Host: ['a.example', 'b.example'] },
    },
    {
      name: 'without a host',
      section: '4.2.1',
      status: 400,
      headers: { Host: null },
    },
    {
      name: 'with content',
      section: '9110 7.8',
      status: 400,
      headers: { 'Content-Length': '5' },
      extra: 'hello',
    },
    {
      name: 'with chunked content',
      section: '9110 7.8',
      status: 400,
      headers: { 'Transfer-Encoding': 'chunked' },
      extra: '0\r\n\r\n',
    },
    ...['chat,,superchat', 'chat, chat', 'a b', '(chat)', '', 'chat,'].map((protocol) => ({
      name: `with the subprotocols "${protocol}"`,
      section: '4.1',
      status: 400,
      headers: { 'Sec-WebSocket-Protocol': protocol },
    })),
    ...['foo;', 'foo; =1', 'a=b', 'foo; bar="a b"', 'foo bar', '"foo"', 'foo; bar="x', '', ';'].map(
      (extensions) => ({
        name: `with the extensions ${extensions || 'left empty'}`,
        section: '9.1',
        status: 400,
        headers: { 'Sec-WebSocket-Extensions': extensions },
      }),
    ),
    ...['https://evil.example', 'null', 'https://localhost:1234', 'not an origin'].map(
      (origin) => ({
        name: `from the origin ${origin}`,
        section: '10.2',
        status: 403,
        headers: { Origin: origin },
      }),
    ),
    {
      name: 'with more than 128 header fields',
      section: '10.4',
      status: 431,
      headers: Object.fromEntries(Array.from({ length: 124 }, (_, i) => [`X-${i}`, '1'])),
    },
  ]
  for (const { name, section, status, headers = {}, request, extra, answer = {} } of cases) {
    test(`${name}: ${status} (${cite(section)})`, async () => {
      const got = await ask(headers, request, echo, extra)
      assert.equal(got.status, status)
      assert.equal(got.headers.get('sec-websocket-accept'), undefined)
      for (const [field, value] of Object.entries(answer))
        assert.equal(got.headers.get(field), value)
      assert.equal(Number(got.headers.get('content-length')) > 0, true)
      assert.equal(
        got.body.length,
        request?.method === 'HEAD' ? 0 : Number(got.headers.get('content-length')),
      )
    })
  }

  test('with 3000 header fields: 4xx, and the next one succeeds (RFC 6455 §10.4)', async () => {
    await using w = await world(echo)
    // The status depends on whether Node or this server checks first, which varies by version.
    for (const name of [
      (i: number) => i.toString(36),
      (i: number) => `x-${i}`,
      (i: number) => `${i}`,
    ]) {
      const flood = await w.dial()
      flood.write(
        opening(Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [name(i), '']))),
      )
      assert.equal(Math.floor((await flood.head()).status / 100), 4)
    }
    const peer = await w.open()
    peer.write(text('alive'))
    assert.equal(await peer.line(), 'text:alive')
  })
})

describe('subprotocols', () => {
  const offer = { 'Sec-WebSocket-Protocol': ['bearer.c2VjcmV0, v2', 'v1'] }

  test('the server picks its preferred offer of two header lines (RFC 6455 §11.3.4)', async () => {
    const answer = await ask(offer, {}, { protocols: ['v3', 'v1', 'v2'] })
    assert.equal(answer.headers.get('sec-websocket-protocol'), 'v1')
  })

  test('without a common one the header is omitted (RFC 6455 §4.2.2)', async () => {
    const answer = await ask(offer, {}, { protocols: ['v3'] })
    assert.equal(answer.status, 101)
    assert.equal(answer.headers.has('sec-websocket-protocol'), false)
  })

  test('authorize may select one, and read a token from another that is never echoed', async () => {
    let seen: readonly string[] = []
    const answer = await ask(offer, {}, {
      protocols: ['v1'],
      authorize: (_request, { protocols }) => {
        seen = protocols
        return { context: undefined, protocol: 'v2' }
      },
    })
    assert.deepEqual(seen, ['bearer.c2VjcmV0', 'v2', 'v1'])
    assert.equal(answer.headers.get('sec-websocket-protocol'), 'v2')
    assert.equal([...answer.headers.values()].some((value) => value.includes('bearer')), false)
  })

  test('one that was not offered cannot be selected (RFC 6455 §4.2.2)', async () => {
    const errors: unknown[] = []
    const answer = await ask(offer, {}, {
      authorize: () => ({ context: undefined, protocol: 'v9' }),
      onError: (error) => errors.push(error),
    })
    assert.equal(answer.status, 500)
    assert.equal(errors.length, 1)
    assert.doesNotMatch(String(errors[0]), /bearer|c2VjcmV0/)
  })
})

describe('chunks of input', () => {
  test('a frame in the packet of the request is handled (RFC 6455 §4.2.2)', async () => {
    await using w = await world(echo)
    const peer = await w.dial()
    peer.write(Buffer.concat([Buffer.from(opening()), text('early'), closeFrame(1000)]))
    assert.equal((await peer.head()).status, 101)
    assert.deepEqual(await peer.finish(), ['text:early', 'close:1000'])
  })

  test('a frame in the packet of the request waits for authorize (RFC 6455 §4.2.2)', async () => {
    await using w = await world({
      ...echo,
      authorize: async () => {
        await new Promise(setImmediate)
        return { context: undefined }
      },
    })
    const peer = await w.dial()
    peer.write(Buffer.concat([Buffer.from(opening()), text('early').subarray(0, 4)]))
    peer.write(text('early').subarray(4))
    assert.equal((await peer.head()).status, 101)
    assert.equal(await peer.line(), 'text:early')
  })

  test('a handshake that arrives byte by byte is accepted (RFC 6455 §6.2)', async () => {
    await using w = await world(echo)
    const peer = await w.dial()
    const bytes = Buffer.concat([Buffer.from(opening()), text('slow')])
    for (const byte of bytes) {
      peer.write(Buffer.from([byte]))
      await new Promise(setImmediate)
    }
    assert.equal((await peer.head()).status, 101)
    assert.equal(await peer.line(), 'text:slow')
  })

  test('a handshake in random pieces is accepted (RFC 6455 §6.2)', async () => {
    await using w = await world(echo)
    for (const pieces of splits(Buffer.concat([Buffer.from(opening()), text('piece')]), 5)) {
      const peer = await w.dial()
      for (const piece of pieces) {
        peer.write(piece)
        await new Promise(setImmediate)
      }
      assert.equal((await peer.head()).status, 101)
      assert.equal(await peer.line(), 'text:piece')
    }
  })
})
