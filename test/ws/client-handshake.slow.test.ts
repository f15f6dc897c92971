import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import {
  HandshakeRefusedError,
  OpeningError,
  WebSocketClient,
  type WebSocketClientOptions,
  type WebSocketConnection,
  type WebSocketConnectOptions,
} from 'runwright/ws'
import { frame, type Head, type RawPeer, text, turn } from '../helpers/ws-peer.js'
import { rawServer, response } from '../helpers/ws-raw-server.js'

type Fields = Record<string, string | readonly string[] | null>

/** What a client makes of the bytes that `answer` returns for its request. */
async function outcome(
  answer: (request: Head) => string | Buffer,
  options: WebSocketClientOptions = {},
  send: (peer: RawPeer, bytes: Buffer) => Promise<void> | void = (peer, bytes) => peer.write(bytes),
): Promise<WebSocketConnection | OpeningError> {
  await using server = await rawServer()
  const client = new WebSocketClient(options)
  const opened = client.connect(server.url).catch((error: unknown) => error as OpeningError)
  const { peer, head } = await server.request()
  await send(peer, Buffer.from(answer(head) as string, 'latin1'))
  const result = await opened
  if (result instanceof Error) {
    assert.ok(result instanceof OpeningError, inspect(result))
    assert.equal(client.connections.size, 0)
    if (!peer.socket.destroyed) await peer.body()
  } else assert.deepEqual([...client.connections], [result])
  return result
}

async function byteByByte(peer: RawPeer, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    if (peer.socket.destroyed) return
    peer.write(Buffer.from([byte]))
    await turn()
  }
}

const offering: WebSocketClientOptions = { protocols: ['v2', 'v1'], deflate: true }

describe('a valid response opens the connection (RFC 6455 §4.1)', () => {
  const cases: Record<string, (request: Head) => string> = {
    'as it should be': (request) => response(request),
    'with other cases': (request) =>
      response(request, { Upgrade: 'WebSocket', Connection: 'upgrade' })
        .replace('Sec-WebSocket-Accept', 'sec-websocket-ACCEPT'),
    'with a list in Connection': (request) =>
      response(request, { Connection: 'keep-alive, Upgrade' }),
    'with two fields of Connection': (request) =>
      response(request, { Connection: ['keep-alive', 'upgrade'] }),
    'without a reason': (request) => response(request, {}, 'HTTP/1.1 101'),
    'with an empty reason': (request) => response(request, {}, 'HTTP/1.1 101 '),
    'with spaces around values': (request) =>
      response(request, { Upgrade: ' \t websocket \t' }),
    'without spaces before values': (request) => response(request).replaceAll(': ', ':'),
    'with a field of any bytes': (request) => response(request, { 'X-Any': 'gr\xfc\xdfe \xff' }),
    'behind interim responses': (request) =>
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' +
      response(request),
    'with content that a 101 cannot have': (request) =>
      response(request, { 'Content-Length': '0' }),
    'with cookies': (request) => response(request, { 'Set-Cookie': ['a=1', 'b=2'] }),
    'without a subprotocol': (request) => response(request),
    'with a subprotocol of those offered': (request) =>
      response(request, { 'Sec-WebSocket-Protocol': 'v1' }),
    'with compression as offered': (request) =>
      response(request, {
        'Sec-WebSocket-Extensions':
          'permessage-deflate; server_no_context_takeover; client_max_window_bits=10',
      }),
    'with compression in quotes, and an empty element': (request) =>
      response(request, {
        'Sec-WebSocket-Extensions': [
          ', permessage-deflate; client_max_window_bits="9"; server_no_context_takeover',
          '',
        ],
      }),
  }
  for (const [name, answer] of Object.entries(cases)) {
    test(name, async () => {
      for (const send of [undefined, byteByByte]) {
        const result = await outcome(answer, offering, send)
        assert.ok(!(result instanceof Error), inspect(result))
        assert.equal(result.protocol, name.includes('of those offered') ? 'v1' : '')
        const cookies = (result.context as { headers: Fields }).headers['set-cookie']
        assert.deepEqual(cookies, name === 'with cookies' ? ['a=1', 'b=2'] : undefined)
      }
    })
  }
})

describe('an invalid response is a HandshakeError', () => {
  const fields = (given: Fields) => (request: Head) => response(request, given)
  const cases: Record<string, [RegExp, (request: Head) => string | Buffer]> = {
    'no Upgrade': [/Upgrade must be/, fields({ Upgrade: null })],
    'another Upgrade': [/Upgrade must be/, fields({ Upgrade: 'h2c' })],
    'a list in Upgrade': [/Upgrade must be/, fields({ Upgrade: 'websocket, h2c' })],
    'Upgrade twice': [/Upgrade must be/, fields({ Upgrade: ['websocket', 'websocket'] })],
    'no Connection': [/Connection must/, fields({ Connection: null })],
    'another Connection': [/Connection must/, fields({ Connection: 'keep-alive, upgrades' })],
    'no Accept': [/Sec-WebSocket-Accept/, fields({ 'Sec-WebSocket-Accept': null })],
    'an Accept for another key': [
      /Sec-WebSocket-Accept/,
      fields({ 'Sec-WebSocket-Accept': 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' }),
    ],
    'an Accept in another case': [
      /Sec-WebSocket-Accept/,
      (request) => response(request).replace(/Accept: .*/, (found) => found.toUpperCase()),
    ],
    'Accept twice': [
      /Sec-WebSocket-Accept/,
      (request) => {
        const line = /Sec-WebSocket-Accept: .*\r\n/.exec(response(request))![0]
        return response(request).replace(line, line + line)
      },
    ],
    'HTTP/1.0': [/HTTP\/1\.0/, (request) => response(request, {}, 'HTTP/1.0 101 Switching')],
    'HTTP/2': [/not HTTP\/1\.1/, (request) => response(request, {}, 'HTTP/2 101 Switching')],
    'HTTP/1.12': [/not HTTP\/1\.1/, (request) => response(request, {}, 'HTTP/1.12 101 Switching')],
    'a status of two digits': [/not HTTP/, (request) => response(request, {}, 'HTTP/1.1 10')],
    'a status of four digits': [/not HTTP/, (request) => response(request, {}, 'HTTP/1.1 1010 x')],
    'another protocol': [/not HTTP/, () => 'SSH-2.0-OpenSSH_9.2\r\n'],
    'a TLS alert': [/not HTTP/, () => Buffer.from([0x15, 3, 1, 0, 2, 2, 70])],
    'a folded field': [/malformed header/, fields({ 'X-Folded': 'a\r\n b' })],
    'a space before the colon': [/malformed header/, fields({ 'X-Space ': 'a' })],
    'a field without a name': [/malformed header/, fields({ '': 'a' })],
    'a field without a colon': [
      /malformed header/,
      (request) => response(request).replace('\r\n', '\r\nnonsense\r\n'),
    ],
    'a bare CR': [/malformed header/, fields({ 'X-Cr': 'a\rb' })],
    'a bare LF': [/malformed header/, fields({ 'X-Lf': 'a\nb' })],
    'a NUL': [/malformed header/, fields({ 'X-Nul': 'a\0b' })],
    'a subprotocol that was not offered': [
      /subprotocol that was not offered/,
      fields({ 'Sec-WebSocket-Protocol': 'v3' }),
    ],
    'a subprotocol in another case': [
      /subprotocol that was not offered/,
      fields({ 'Sec-WebSocket-Protocol': 'V1' }),
    ],
    'an empty subprotocol': [
      /subprotocol that was not offered/,
      fields({ 'Sec-WebSocket-Protocol': '' }),
    ],
    'two subprotocols': [/not offered/, fields({ 'Sec-WebSocket-Protocol': 'v1, v2' })],
    'two fields of subprotocols': [
      /more than one subprotocol/,
      fields({ 'Sec-WebSocket-Protocol': ['v1', 'v2'] }),
    ],
    ...Object.fromEntries(
      [
        ['x-other', /extension that was not offered/],
        ['permessage-deflate, permessage-deflate', /extension that was not offered/],
        ['permessage-deflate; server_no_context_takeover, x', /extension that was not offered/],
        ['permessage-deflate; x', /invalid parameters/],
        ['permessage-deflate; server_no_context_takeover=1', /invalid parameters/],
        ['permessage-deflate; client_max_window_bits', /invalid parameters/],
        ['permessage-deflate; client_max_window_bits=7', /invalid parameters/],
        ['permessage-deflate; client_max_window_bits=16', /invalid parameters/],
        ['permessage-deflate; client_max_window_bits=08', /invalid parameters/],
        ['permessage-deflate; server_max_window_bits', /invalid parameters/],
        [
          'permessage-deflate; server_no_context_takeover; server_no_context_takeover',
          /invalid parameters/,
        ],
        ['permessage-deflate', /keep to the offer/],
        ['permessage-deflate; =', /malformed/],
      ].map(([value, pattern]) => [
        `the extension ${String(value)}`,
        [pattern as RegExp, fields({ 'Sec-WebSocket-Extensions': value as string })],
      ]),
    ) as Record<string, [RegExp, (request: Head) => string]>,
  }
  for (const [name, [pattern, answer]] of Object.entries(cases)) {
    test(name, async () => {
      for (const send of [undefined, byteByByte]) {
        const result = await outcome(answer, offering, send)
        assert.ok(result instanceof OpeningError, `${name} was accepted`)
        assert.equal(result.code, 'ERR_WS_HANDSHAKE')
        assert.match(result.message, pattern)
      }
    })
  }

  test('an extension without an offer', async () => {
    const result = await outcome(fields({ 'Sec-WebSocket-Extensions': 'permessage-deflate' }))
    assert.match((result as Error).message, /extension that was not offered/)
  })

  test('a larger window than was offered', async () => {
    for (const [given, bits] of [['server', 11], ['client', 10]]) {
      const value = `permessage-deflate; ${given}_max_window_bits=${bits}`
      const deflate = {
        serverMaxWindowBits: 10, clientMaxWindowBits: 9, serverContextTakeover: true,
      }
      const parts = given === 'client' ? `${value}; server_max_window_bits=10` : value
      const result = await outcome(fields({ 'Sec-WebSocket-Extensions': parts }), { deflate })
      assert.match((result as Error).message, /keep to the offer/)
    }
    const ignored = fields({ 'Sec-WebSocket-Extensions': 'permessage-deflate' })
    const deflate = { serverMaxWindowBits: 10, serverContextTakeover: true }
    assert.match(((await outcome(ignored, { deflate })) as Error).message, /keep to the offer/)
  })
})

describe('a head of any size or split', () => {
  test('frames behind the head are read, wherever the bytes are split', async () => {
    await using server = await rawServer()
    const client = new WebSocketClient({ keepAlive: null })
    const length = response(
      { headers: new Map([['sec-websocket-key', 'x']]) } as unknown as Head,
    ).length
    const frames = Buffer.concat([
      frame(1, 'first', { mask: false }),
      frame(2, 'second', { mask: false }),
    ])
    for (let at = 1; at < length + frames.length; at++) {
      const opened = client.connect(server.url)
      const { peer, head } = await server.request()
      const bytes = Buffer.concat([Buffer.from(response(head)), frames])
      assert.equal(bytes.length, length + frames.length)
      peer.write(bytes.subarray(0, at))
      await turn()
      peer.write(bytes.subarray(at))
      const connection = await opened
      const messages = connection.messages()
      assert.equal((await messages.next()).value, 'first', `split at ${at}`)
      assert.equal(String((await messages.next()).value), 'second')
      connection.terminate()
      await connection.closed
    }
  })

  for (const how of ['FIN', 'RST'] as const) {
    test(`a ${how} at each byte rejects, and leaves nothing open`, async () => {
      await using server = await rawServer()
      const client = new WebSocketClient({ keepAlive: null })
      for (let at = 0, end = false; !end; at++) {
        const opened = client.connect(server.url)
        const { peer, head } = await server.request()
        const bytes = Buffer.from(response(head))
        peer.write(bytes.subarray(0, at))
        // A reset discards what the client has not read yet.
        await turn()
        if (how === 'FIN') peer.socket.end()
        else (peer.socket as Socket).resetAndDestroy()
        end = at === bytes.length
        if (end && how === 'FIN') {
          const { code, wasClean } = await (await opened).closed
          assert.deepEqual([code, wasClean], [1006, false])
        } else if (!end) {
          await assert.rejects(opened, { code: 'ERR_WS_HANDSHAKE' }, `at ${at}`)
        } else await opened.then(({ closed }) => closed, () => {})
        await peer.body()
        assert.equal(client.connections.size, 0)
      }
    })
  }

  test('an endless head is refused at 64 KiB, interim responses included', async () => {
    const filler = `X-Filler: ${'x'.repeat(1_000)}\r\n`
    for (const answer of [
      `HTTP/1.1 101 Switching Protocols\r\n${filler.repeat(100)}`,
      `HTTP/1.1 101 ${'x'.repeat(100_000)}`,
      'HTTP/1.1 100 Continue\r\n\r\n'.repeat(5_000),
      `HTTP/1.1 200 OK\r\n${filler.repeat(100)}\r\n`,
    ]) {
      const result = await outcome(() => answer)
      assert.match((result as Error).message, /more than 65536 bytes/)
    }
  })

  test('a large head below that is accepted', async () => {
    const fields = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`X-${i}`, 'x'.repeat(1_000)]),
    )
    assert.ok(!((await outcome((request) => response(request, fields))) instanceof Error))
  })
})

describe('a refusal is readable', () => {
  const refusal = async (
    answer: string,
    then: (peer: RawPeer) => void = () => {},
    url = '',
  ): Promise<HandshakeRefusedError> => {
    await using server = await rawServer()
    const client = new WebSocketClient()
    const opened = client.connect(server.url + url).catch((error: unknown) => error)
    const { peer } = await server.request()
    peer.write(answer)
    then(peer)
    const error = await opened
    await peer.body()
    assert.ok(error instanceof HandshakeRefusedError, inspect(error))
    assert.equal(error.code, 'ERR_WS_HANDSHAKE_REFUSED')
    return error
  }

  test('with its status, fields and content', async () => {
    const error = await refusal(
      'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="a"\r\nwww-authenticate: Bearer\r\n' +
        'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 5\r\n\r\nhello and more',
    )
    assert.equal(error.message, 'the server refused the WebSocket: 401 Unauthorized')
    assert.equal(error.statusCode, 401)
    assert.equal(error.headers['www-authenticate'], 'Basic realm="a", Bearer')
    assert.deepEqual(error.headers['set-cookie'], ['a=1', 'b=2'])
    assert.equal(error.body.toString(), 'hello')
  })

  test('with content in chunks, up to the end, or none', async () => {
    const chunks = '5;x=y\r\nhello\r\n6\r\n world\r\n0\r\n\r\n'
    const chunked = await refusal(`HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`)
    assert.equal(chunked.body.toString(), 'hello world')
    const closed = await refusal('HTTP/1.1 503 x\r\n\r\nto the end', (peer) => peer.socket.end())
    assert.equal(closed.body.toString(), 'to the end')
    const empty = await refusal('HTTP/1.1 204 x\r\n\r\n')
    assert.equal(empty.body.length, 0)
    assert.match(empty.message, /does not lead to a WebSocket endpoint/)
    const reset = await refusal('HTTP/1.0 426 x\r\nUpgrade: websocket\r\n\r\npart', (peer) => {
      setImmediate(() => (peer.socket as Socket).resetAndDestroy())
    })
    assert.equal(reset.statusCode, 426)
  })

  test('with at most 16 KiB of content', async () => {
    const length = 10_000_000
    const error = await refusal(
      `HTTP/1.1 400 x\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(100_000)}`,
    )
    assert.equal(error.body.length, 16_384)
  })

  test('without waiting for content that never ends', async () => {
    const error = await refusal('HTTP/1.1 400 x\r\nContent-Length: 10\r\n\r\nfive!')
    assert.equal(error.body.toString(), 'five!')
  })

  test('and says where a redirect leads, without what may be secret', async () => {
    for (const [location, shown] of [
      ['/other?token=SECRET#x', / to ws:\/\/127\.0\.0\.1:\d+\/other are not followed/],
      ['wss://user:SECRET@h.example/p?SECRET', / to wss:\/\/h\.example\/p are not followed/],
      ['http://[SECRET', /redirects are not followed/],
    ] as const) {
      const error = await refusal(
        `HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`,
      )
      assert.match(error.message, shown)
      assert.doesNotMatch(inspect(error), /SECRET/)
    }
  })

  test('and printing it shows neither fields nor content', async () => {
    const error = await refusal(
      'HTTP/1.1 403 x\r\nSet-Cookie: SECRET\r\nContent-Length: 6\r\n\r\nSECRET',
      undefined,
      'path?key=SECRET',
    )
    for (const printed of [inspect(error), JSON.stringify(error), String(error)])
      assert.doesNotMatch(printed, /SECRET/)
  })
})

describe('the request', () => {
  const requestOf = async (
    options: WebSocketClientOptions,
    call: WebSocketConnectOptions = {},
    path = '',
    user = '',
  ): Promise<Head> => {
    await using server = await rawServer()
    const url = `${server.url.replace('//', `//${user}`)}${path}`
    const opened = new WebSocketClient(options).connect(url, call)
    opened.catch(() => {})
    return (await server.request()).head
  }

  test('is as RFC 6455 §4.1 says', async () => {
    const { raw, headers } = await requestOf({}, {}, 'a/b?c=d')
    const key = headers.get('sec-websocket-key')!
    assert.equal(Buffer.from(key, 'base64').length, 16)
    assert.deepEqual(raw.split('\r\n'), [
      'GET /a/b?c=d HTTP/1.1',
      `Host: ${headers.get('host')}`,
      'Upgrade: websocket',
      'Connection: Upgrade',
      `Sec-WebSocket-Key: ${key}`,
      'Sec-WebSocket-Version: 13',
    ])
    const again = await requestOf({}, {}, 'a/b?c=d')
    assert.notEqual(again.headers.get('sec-websocket-key'), key)
  })

  test('offers subprotocols and compression', async () => {
    const { headers } = await requestOf(
      { protocols: ['a'], deflate: { serverMaxWindowBits: 9, clientMaxWindowBits: 10 } },
      { protocols: ['b', 'c'] },
    )
    assert.equal(headers.get('sec-websocket-protocol'), 'b, c')
    assert.equal(
      headers.get('sec-websocket-extensions'),
      'permessage-deflate; server_no_context_takeover; client_no_context_takeover; ' +
        'server_max_window_bits=9; client_max_window_bits=10',
    )
    const deflate = { serverContextTakeover: true, clientContextTakeover: true }
    assert.equal(
      (await requestOf({ deflate })).headers.get('sec-websocket-extensions'),
      'permessage-deflate; client_max_window_bits',
    )
  })

  test('has the fields of the client and of the call, which replace them by name', async () => {
    const { raw, headers } = await requestOf(
      { headers: { Origin: 'https://a', 'X-One': ['1', '2'], 'X-Two': 'b', host: 'v.example' } },
      { headers: { 'x-ONE': '3', 'X-None': undefined } },
    )
    assert.equal(headers.get('origin'), 'https://a')
    assert.equal(headers.get('x-one'), '3')
    assert.equal(headers.get('host'), 'v.example')
    assert.equal(raw.match(/^(host|x-one|x-two|x-none):/gim)!.length, 3)
  })

  test('has the credentials of the URL, unless it has others', async () => {
    const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`
    const plain = await requestOf({}, {}, '', 'm%C3%A4x:p%40ss%@')
    assert.equal(plain.headers.get('authorization'), basic('mäx:p%40ss%'))
    const decoded = await requestOf({}, {}, '', 'user:p%40ss@')
    assert.equal(decoded.headers.get('authorization'), basic('user:p@ss'))
    assert.equal(decoded.headers.get('host')!.includes('user'), false)
    const headers = { authorization: 'Bearer x' }
    const other = await requestOf({ headers }, {}, '', 'user:pass@')
    assert.deepEqual(other.raw.match(/^authorization: .*$/gim), ['authorization: Bearer x'])
  })
})

describe('what cannot be sent is refused before there is a transport', () => {
  const client = new WebSocketClient({ connect: () => assert.fail('it dialled') })

  for (const name of [
    'Upgrade', 'connection', 'Sec-WebSocket-Key', 'SEC-WEBSOCKET-PROTOCOL', 'sec-websocket-x',
    'Content-Length', 'Transfer-Encoding', 'Expect', 'TE', 'Trailer',
  ]) {
    test(`the field ${name}`, async () => {
      const headers = { [name]: '1' }
      assert.throws(() => new WebSocketClient({ headers }), /opening handshake sets/)
      await assert.rejects(client.connect('ws://h', { headers }), /opening handshake sets/)
    })
  }

  test('a field that would break the head', async () => {
    for (const [name, value] of [
      ['X', 'a\r\nUpgrade: b'], ['X', 'a\nb'], ['X', 'a\rb'], ['X', 'a\0b'], ['X', 'ä€'],
      ['X Y', 'a'], ['X:', 'a'], ['X\r\n', 'a'], ['', 'a'], ['Host', ['a', 'b']],
    ] as const) {
      const headers = { [name]: value as string }
      assert.throws(() => new WebSocketClient({ headers }), TypeError, `${name}: ${value}`)
      await assert.rejects(client.connect('ws://h', { headers }), TypeError)
    }
  })

  test('a subprotocol that is no token, or twice', async () => {
    for (const protocols of [['a b'], [''], ['a,b'], ['a', 'a'], ['a\r\nb'], [1 as never]]) {
      assert.throws(() => new WebSocketClient({ protocols }), TypeError)
      await assert.rejects(client.connect('ws://h', { protocols }), TypeError)
    }
  })

  test('a URL that is relative, of another scheme or with a fragment', async () => {
    for (const url of [
      '', '/path', 'h', 'ftp://h', 'ws:', 'ws://', 'ws://h#', 'ws://h/#x', 'ws://h:99999',
      'ws://user:SECRET@h/#x',
    ]) {
      await assert.rejects(client.connect(url), (error: Error) => {
        assert.ok(error instanceof TypeError, url)
        assert.doesNotMatch(error.message, /SECRET/)
        return true
      })
    }
  })
})

test('a URL leads to host, port and TLS by its scheme', async () => {
  const targets: unknown[] = []
  const client = new WebSocketClient({
    connect: (target) => {
      targets.push(Object.values(target))
      throw new Error('no')
    },
  })
  for (const url of [
    'ws://h', 'wss://h', 'http://h/', new URL('https://h:8443'), 'ws://h:80', 'wss://[::1]:9',
    'WS://EXAMPLE.com:81', 'ws://127.1',
  ]) await assert.rejects(client.connect(url), { code: 'ERR_WS_CONNECT' })
  assert.deepEqual(targets, [
    ['h', 80, false], ['h', 443, true], ['h', 80, false], ['h', 8443, true], ['h', 80, false],
    ['::1', 9, true], ['example.com', 81, false], ['127.0.0.1', 80, false],
  ])
})

test('each frame of a client is masked, with a key of its own (RFC 6455 §5.3)', async () => {
  await using server = await rawServer()
  const [connection, peer] = await Promise.all([
    new WebSocketClient().connect(server.url),
    server.open(),
  ])
  const large = Buffer.alloc(100_000, 7)
  const sent = ['', 'text', 'x'.repeat(70_000), Buffer.from('bytes'), large]
  for (const message of sent) connection.send(message)
  connection.ping('ping')
  peer.write(frame(9, 'pong', { mask: false }))
  const frames = []
  for (let i = 0; i < 7; i++) frames.push((await peer.next())!)
  assert.deepEqual(frames.map(({ masked }) => masked), Array(7).fill(true))
  assert.deepEqual(frames.map(({ opcode }) => opcode).sort(), [1, 1, 1, 10, 2, 2, 9])
  const sizes = frames.slice(0, 5).map(({ payload }) => payload.length)
  assert.deepEqual(sizes, [0, 4, 70_000, 5, 100_000])
  assert.ok(large.every((byte) => byte === 7), 'the bytes of the program are unchanged')
  void connection.close(4000, 'bye')
  const close = (await peer.next())!
  assert.deepEqual([close.masked, close.payload.toString('hex')], [true, '0fa0627965'])
})

test('a masked frame of a server is a protocol error (RFC 6455 §5.1)', async () => {
  for (const send of [undefined, byteByByte]) {
    await using server = await rawServer()
    const [connection, peer] = await Promise.all([
      new WebSocketClient().connect(server.url),
      server.open(),
    ])
    if (send === undefined) peer.write(text('x'))
    else await send(peer, text('x').subarray(0, 2))
    assert.match(await peer.line(), /^close:1002/)
    peer.socket.end()
    const { error, wasClean } = await connection.closed
    assert.equal(error?.code, 'ERR_WS_PROTOCOL')
    assert.equal(wasClean, false)
  }
})
