import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { ReadError, RemoteProtocolError, type AsyncResponse } from 'runwright/http'
import { HeldTimers } from '../../../helpers/held-timers.js'
import { listen } from '../../../helpers/serve.js'
import {
  answering,
  clientOf,
  data,
  END_HEADERS,
  END_STREAM,
  field,
  frame,
  ok,
  OK,
  scripted,
  setting,
  TYPE,
  uint32,
  type Frame,
} from './scripted-server.js'

test('a response is the same however its bytes are split', async () => {
  const whole = (stream: number): Buffer =>
    Buffer.concat([
      frame(TYPE.headers, END_HEADERS, stream, `\x08\x03103${field('link', '</a>')}`),
      frame(TYPE.headers, 0x28, stream, `\x03\0\0\0\0\x10${OK}\0\0\0`),
      frame(TYPE.continuation, 0, stream, field('x-a', '1')),
      frame(TYPE.continuation, END_HEADERS, stream, field('x-b', '2')),
      frame(TYPE.data, 8, stream, '\x02hello\0\0'),
      frame(99, 0xff, stream, 'unknown frames are ignored'),
      data(stream, '', 0),
      data(stream, ' world', 0),
      frame(TYPE.headers, END_HEADERS | END_STREAM, stream, field('x-sum', '9')),
    ])
  for (const size of [1, 2, 3, 7, 10, 50, 1000]) {
    await using server = await scripted(async (peer) => {
      const bytes = whole((await peer.next(TYPE.headers)).stream)
      for (let at = 0; at < bytes.length; at += size) {
        peer.write(bytes.subarray(at, at + size))
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    await using client = clientOf()
    const early: string[] = []
    const response = await client.get(server.origin, {
      extensions: {
        onInformation: (status, headers) => early.push(`${status} ${headers.get('link')}`),
      },
    })
    assert.equal(response.text, 'hello world')
    assert.deepEqual(
      [...response.headers],
      [
        ['x-a', '1'],
        ['x-b', '2'],
      ],
    )
    assert.equal(response.trailers.get('x-sum'), '9')
    assert.deepEqual(early, ['103 </a>'])
  }
})

for (const { what, frames } of [
  { what: 'no :status', frames: [frame(TYPE.headers, 5, 1, field('a', 'b'))] },
  { what: 'an impossible :status', frames: [frame(TYPE.headers, 5, 1, '\x08\x03099')] },
  { what: 'a connection field', frames: [ok(1, field('connection', 'close'), END_STREAM)] },
  { what: 'an unknown pseudo-header field', frames: [ok(1, field(':x', 'y'), END_STREAM)] },
  { what: 'an upper-case name', frames: [ok(1, field('X', 'y'), END_STREAM)] },
  { what: 'a line break in a value', frames: [ok(1, field('x', 'a\r\nb'), END_STREAM)] },
  { what: 'content before the head', frames: [data(1, 'early')] },
  { what: 'status 103 as its last head', frames: [frame(TYPE.headers, 5, 1, '\x08\x03103')] },
  { what: 'status 101', frames: [frame(TYPE.headers, 4, 1, '\x08\x03101')] },
  {
    what: 'too large a head',
    frames: [
      frame(
        TYPE.headers,
        5,
        1,
        OK + `\x40\x01a\x7f\x81\x08${'x'.repeat(1152)}` + '\xbe'.repeat(100),
      ),
    ],
  },
  {
    what: 'a malformed Content-Length',
    frames: [ok(1, field('content-length', '1x'), END_STREAM)],
  },
  {
    what: 'two Content-Lengths',
    frames: [ok(1, field('content-length', '1') + field('content-length', '2')), data(1, 'x')],
  },
  {
    what: 'less content than its Content-Length',
    frames: [ok(1, field('content-length', '9')), data(1, 'short')],
  },
  {
    what: 'more content than its Content-Length',
    frames: [ok(1, field('content-length', '2')), data(1, 'long')],
  },
  {
    what: 'trailers that do not end the stream',
    frames: [ok(1), frame(TYPE.headers, 4, 1, field('a', 'b'))],
  },
  { what: ':status among its trailers', frames: [ok(1), frame(TYPE.headers, 5, 1, OK)] },
  { what: 'a WINDOW_UPDATE of 0', frames: [frame(TYPE.window, 0, 1, uint32(0))] },
]) {
  test(`a response with ${what} fails alone; the connection stays usable`, async () => {
    await using server = await scripted(
      answering((stream) => (stream === 1 ? frames : [ok(stream), data(stream, 'fine')])),
    )
    await using client = clientOf()
    await assert.rejects(client.get(server.origin), RemoteProtocolError)
    assert.equal((await client.get(server.origin)).text, 'fine')
    assert.equal(server.accepted, 1)
  })
}

for (const { what, frames } of [
  {
    what: 'too large a frame',
    frames: [Buffer.concat([Buffer.from([0xff, 0xff, 0xff]), Buffer.alloc(20)])],
  },
  { what: 'a stream that was never opened', frames: [ok(99)] },
  { what: "a stream with a server's number", frames: [ok(2)] },
  { what: 'a push', frames: [frame(TYPE.push, END_HEADERS, 1, uint32(2))] },
  {
    what: 'an invalid header block',
    frames: [frame(TYPE.headers, 5, 1, '\xff\xff\xff\xff\xff\xff\xff')],
  },
  {
    what: 'an interrupted field section',
    frames: [frame(TYPE.headers, 0, 1, OK), frame(TYPE.ping, 0, 0, '12345678')],
  },
  {
    what: 'content inside a field section',
    frames: [frame(TYPE.headers, 0, 1, OK), data(1, 'x')],
  },
  { what: 'CONTINUATION without HEADERS', frames: [frame(TYPE.continuation, 4, 1, OK)] },
  {
    what: 'a flood of CONTINUATION frames',
    frames: [
      frame(TYPE.headers, 0, 1, OK),
      ...Array<Buffer>(100).fill(frame(TYPE.continuation, 0, 1)),
    ],
  },
  { what: 'truncated SETTINGS', frames: [frame(TYPE.settings, 0, 0, '123')] },
  { what: 'SETTINGS of a stream', frames: [frame(TYPE.settings, 0, 1)] },
  { what: 'an invalid largest frame', frames: [frame(TYPE.settings, 0, 0, setting(5, 100))] },
  { what: 'an invalid window', frames: [frame(TYPE.settings, 0, 0, setting(4, 2 ** 31))] },
  { what: 'a window that overflows', frames: [frame(TYPE.window, 0, 0, uint32(2 ** 31 - 1))] },
  {
    what: 'a WINDOW_UPDATE of 0 for the connection',
    frames: [frame(TYPE.window, 0, 0, uint32(0))],
  },
  { what: 'PING of the wrong length', frames: [frame(TYPE.ping, 0, 0, '123')] },
  { what: 'RST_STREAM of the wrong length', frames: [frame(TYPE.reset, 0, 1, '123')] },
  { what: 'truncated GOAWAY', frames: [frame(TYPE.goAway, 0, 0, '123')] },
  { what: 'more padding than payload', frames: [ok(1), frame(TYPE.data, 8, 1, '\x09abc')] },
]) {
  test(`${what} ends the connection with an error code; the next call opens another`, async () => {
    let first = true
    let goAway: Promise<Frame> | undefined
    await using server = await scripted(async (peer) => {
      if (!first) return answering((stream) => [ok(stream), data(stream, 'fine')])(peer)
      first = false
      goAway = peer.next(TYPE.goAway)
      await peer.next(TYPE.headers)
      peer.write(...frames)
    })
    await using client = clientOf()
    const failed = client.get(server.origin)
    await assert.rejects(failed, RemoteProtocolError)
    assert.notEqual((await goAway)!.payload.readUInt32BE(4), 0)
    assert.equal((await client.get(server.origin)).text, 'fine')
    assert.equal(server.accepted, 2)
  })
}

test('content beyond the window of a stream ends the connection', async () => {
  let gone: Promise<void> | undefined
  await using server = await scripted(async (peer) => {
    gone = peer.closed
    await peer.next(TYPE.headers)
    peer.write(ok(1))
    const piece = data(1, 'x'.repeat(16_384), 0)
    for (let sent = 0; sent <= 6 * 1024 * 1024; sent += 16_384) peer.write(piece)
  })
  await using client = clientOf()
  // The content is not read, so the window is not widened.
  const response = await client.stream('GET', server.origin)
  await gone
  await assert.rejects(response.read(), /more than its flow-control window allows/)
})

test('an HTTP/1.1 server is recognized when HTTP/2 is used without negotiation', async () => {
  const server = createServer((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'))
  })
  await using served = await listen(server)
  await using client = clientOf()
  await assert.rejects(client.get(served.origin), /does not speak HTTP\/2/)
})

test('a server that sends no SETTINGS in time is disconnected', async () => {
  using limits = new HeldTimers(4_321)
  const server = createServer()
  await using served = await listen(server)
  await using client = clientOf({ timeout: { connect: 4_321 } })
  const answer = assert.rejects(client.get(served.origin), /no SETTINGS in time/)
  const [socket] = (await once(server, 'connection')) as [Socket]
  await once(socket, 'data')
  limits.fire()
  await answer
})

test('a connection that breaks in the middle is a read error', async () => {
  await using server = await scripted(async (peer) => {
    await peer.next(TYPE.headers)
    peer.write(ok(1), data(1, 'half', 0))
  })
  await using client = clientOf()
  const response = await client.stream('GET', server.origin)
  const chunks = response.iterBytes()
  assert.equal(Buffer.from((await chunks.next()).value!).toString(), 'half')
  for (const socket of server.sockets) socket.resetAndDestroy()
  await assert.rejects(chunks.next(), ReadError)
})

test('GOAWAY: streams it covers go on, the others are sent again on a new connection', async () => {
  let connections = 0
  await using server = await scripted(async (peer) => {
    if (connections++ > 0) return answering((stream) => [ok(stream), data(stream, 'second')])(peer)
    await peer.next(TYPE.headers)
    peer.write(ok(1))
    const later = await peer.next(TYPE.headers)
    assert.equal(later.stream, 3)
    peer.write(frame(TYPE.goAway, 0, 0, Buffer.concat([uint32(1), uint32(0)])), data(1, 'first'))
  })
  await using client = clientOf()
  const first = await client.stream('GET', server.origin)
  const second = client.post(server.origin, { content: 'once' })
  assert.equal((await first.read()).toString(), 'first')
  assert.equal((await second).text, 'second')
  assert.equal(server.accepted, 2)
})

test("uploads respect the server's windows, and changes of them", async () => {
  let received = 0
  let most = 0
  await using server = await scripted(
    async (peer) => {
      const first = await peer.next(TYPE.headers)
      peer.write(ok(first.stream, '', END_STREAM))
      const { stream } = await peer.next(TYPE.headers)
      let window = 10
      for (let ended = false; !ended;) {
        const { payload, flags } = await peer.next(TYPE.data)
        received += payload.length
        window -= payload.length
        most = Math.max(most, payload.length)
        assert.ok(window >= 0, 'the client sent more than the window takes')
        ended = flags === 1
        if (window > 0 || ended) continue
        if (received === 10) {
          // All stream windows grow by 990: the one that is empty now, to 990.
          window = 990
          peer.write(frame(TYPE.settings, 0, 0, setting(4, 1000)))
        } else {
          window = 30_000
          peer.write(
            frame(TYPE.window, 0, stream, uint32(30_000)),
            frame(TYPE.window, 0, 0, uint32(30_000)),
          )
        }
      }
      peer.write(ok(stream, '', END_STREAM))
    },
    setting(4, 10),
  )
  await using client = clientOf()
  // This call learns the settings.
  await client.get(server.origin)
  const content = Buffer.alloc(300_000, 'x')
  const upload = async function* (): AsyncGenerator<Buffer> {
    yield content
  }
  const progress: number[] = []
  const response = await client.post(server.origin, {
    content: upload(),
    extensions: { onUpload: (sent) => progress.push(sent) },
  })
  assert.equal(response.statusCode, 200)
  assert.equal(received, content.length)
  assert.ok(most <= 16_384)
  assert.deepEqual(progress, [content.length])
})

test('windows are widened as content is read, and not before', async () => {
  const total = 12 * 1024 * 1024
  let sent = 0
  let held = 0
  await using server = await scripted(async (peer) => {
    const { stream } = await peer.next(TYPE.headers)
    peer.write(ok(stream))
    let window = 4 * 1024 * 1024
    while (sent < total) {
      while (window >= 16_384 && sent < total) {
        peer.write(data(stream, 'x'.repeat(16_384), (sent += 16_384) >= total ? END_STREAM : 0))
        window -= 16_384
      }
      if (held === 0) held = sent
      while (sent < total && window < 16_384) {
        const update = await peer.next(TYPE.window)
        if (update.stream === stream) window += update.payload.readUInt32BE(0)
      }
    }
  })
  await using client = clientOf()
  const response: AsyncResponse = await client.stream('GET', server.origin)
  assert.equal((await response.read()).length, total)
  assert.equal(held, 4 * 1024 * 1024)
})

test('PING and SETTINGS are answered; a server that floods without reading is left', async () => {
  await using server = await scripted(async (peer) => {
    const { stream } = await peer.next(TYPE.headers)
    peer.write(frame(TYPE.ping, 0, 0, 'abcdefgh'), frame(TYPE.settings, 0, 0))
    for (;;) if ((await peer.next(TYPE.settings)).flags === 1) break
    const pong = await peer.next(TYPE.ping)
    peer.write(ok(stream), data(stream, `${pong.flags} ${pong.payload.toString()}`))
  })
  await using client = clientOf()
  assert.equal((await client.get(server.origin)).text, '1 abcdefgh')

  const deaf = createServer((socket) => {
    socket.pause()
    const pings = Buffer.concat(Array<Buffer>(5000).fill(frame(TYPE.ping, 0, 0, 'abcdefgh')))
    socket.write(frame(TYPE.settings, 0, 0))
    const more = (): void => {
      while (!socket.destroyed && socket.write(pings));
    }
    socket.on('drain', more)
    more()
  })
  await using flooding = await listen(deaf)
  await assert.rejects(
    client.get(flooding.origin, { timeout: null }),
    /without reading the replies/,
  )
})

test('frames of an abandoned stream are ignored, but its header blocks are decoded', async () => {
  await using server = await scripted(async (peer) => {
    const first = await peer.next(TYPE.headers)
    peer.write(ok(first.stream))
    await peer.next(TYPE.reset)
    peer.write(
      data(first.stream, 'late', 0),
      frame(TYPE.headers, 5, first.stream, '\x40\x01a\x01b'),
    )
    peer.write(
      frame(TYPE.window, 0, first.stream, uint32(5)),
      frame(TYPE.reset, 0, first.stream, uint32(0)),
    )
    const second = await peer.next(TYPE.headers)
    peer.write(frame(TYPE.headers, 5, second.stream, `${OK}\xbe`))
  })
  await using client = clientOf()
  const first = await client.stream('GET', server.origin)
  await first.close()
  assert.equal((await client.get(server.origin)).headers.get('a'), 'b')
  assert.equal(server.accepted, 1)
})

test('endless informational heads, or content after HEAD, end the stream alone', async () => {
  await using server = await scripted(async (peer) => {
    const flooded = await peer.next(TYPE.headers)
    for (let i = 0; i <= 100; i++)
      peer.write(frame(TYPE.headers, END_HEADERS, flooded.stream, '\x08\x03103'))
    const headed = await peer.next(TYPE.headers)
    peer.write(ok(headed.stream), data(headed.stream, 'content'))
    await answering((later) => [ok(later), data(later, 'fine')])(peer)
  })
  await using client = clientOf()
  await assert.rejects(client.get(server.origin), {
    code: 'ERR_HTTP_REMOTE_PROTOCOL',
    message: /more than 100 informational/,
  })
  await assert.rejects(client.head(server.origin), { code: 'ERR_HTTP_REMOTE_PROTOCOL' })
  assert.equal((await client.get(server.origin)).text, 'fine')
  assert.equal(server.accepted, 1)
})

test('a response before the end of the upload is accepted, and the upload abandoned', async () => {
  await using server = await scripted(async (peer) => {
    const { stream } = await peer.next(TYPE.headers)
    await peer.next(TYPE.data)
    peer.write(frame(TYPE.headers, 5, stream, '\x08\x03413'))
    assert.equal((await peer.next(TYPE.reset)).payload.readUInt32BE(0), 0)
    await answering((later) => [ok(later), data(later, 'fine')])(peer)
  })
  let returned = false
  const endless = async function* (): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        yield Buffer.alloc(1000)
        await new Promise((resolve) => setImmediate(resolve))
      }
    } finally {
      returned = true
    }
  }
  await using client = clientOf()
  assert.equal((await client.post(server.origin, { content: endless() })).statusCode, 413)
  assert.equal((await client.get(server.origin)).text, 'fine')
  assert.equal(returned, true)
  assert.equal(server.accepted, 1)
})
