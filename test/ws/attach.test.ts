import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { connect } from 'node:tls'
import { describe, test } from 'node:test'
import { WebSocketServer } from 'runwright/ws'
import { certificate, key } from '../helpers/ws-certificate.js'
import { echo, listen, opening, RawPeer, stop, text, world } from '../helpers/ws-peer.js'

describe('paths', () => {
  test('a path is served with any query, other paths are not (RFC 6455 §4.2.2)', async () => {
    await using w = await world(echo, { path: '/echo' })
    for (const [path, status] of [
      ['/echo', 101],
      ['/echo?a=/b', 101],
      ['/echo/', 404],
      ['/', 404],
      ['/echoes', 404],
    ] as const) {
      const peer = await w.dial()
      peer.write(opening({}, { path }))
      assert.equal((await peer.head()).status, status, path)
    }
  })

  test('a function picks paths', async () => {
    await using w = await world(echo, { path: (path) => path.startsWith('/runs/') })
    const peer = await w.dial()
    peer.write(opening({}, { path: '/runs/17?x' }))
    assert.equal((await peer.head()).status, 101)
  })

  test('without other listeners a plain GET of the path is 426, of another 404', async () => {
    await using w = await world(echo, { path: '/echo' })
    const answers = await Promise.all(
      ['/echo', '/other'].map((path) => fetch(`http://127.0.0.1:${w.port}${path}`)),
    )
    assert.deepEqual(answers.map(({ status }) => status), [426, 404])
    assert.equal(answers[0]!.headers.get('upgrade'), 'websocket')
    await Promise.all(answers.map((answer) => answer.text()))
  })

  test('a plain GET is left to the listener of the program', async () => {
    const server = createServer((_request, response) => response.end('mine'))
    await using w = await world(echo, {}, server)
    assert.equal(await (await fetch(`http://127.0.0.1:${w.port}/`)).text(), 'mine')
  })
})

describe('side by side', () => {
  test('two servers and another listener each get their own path, and only once', async () => {
    const server = createServer()
    const foreign: string[] = []
    const [one, two] = [
      new WebSocketServer(echo),
      new WebSocketServer({ ...echo, protocols: ['v2'] }),
    ]
    one.attach(server, { path: '/one' })
    server.on('upgrade', (request, socket) => {
      if (request.url !== '/foreign') return
      foreign.push(request.url)
      socket.end(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: foreign\r\nConnection: Upgrade\r\n\r\nhi',
      )
    })
    two.attach(server, { path: '/two' })
    const port = await listen(server)
    const peers: RawPeer[] = []
    for (const path of ['/one', '/two', '/foreign']) {
      const peer = await RawPeer.connect(port)
      peers.push(peer)
      peer.write(opening({ 'Sec-WebSocket-Protocol': 'v2' }, { path }))
    }
    const heads = await Promise.all(peers.map((peer) => peer.head()))
    assert.deepEqual(
      heads.map(({ status }) => status),
      [101, 101, 101],
    )
    assert.deepEqual(
      heads.map(({ headers }) => headers.get('sec-websocket-protocol')),
      [undefined, 'v2', undefined],
    )
    assert.equal((await peers[2]!.body()).toString(), 'hi')
    assert.deepEqual(foreign, ['/foreign'])
    assert.deepEqual([one.connections.size, two.connections.size], [1, 1])
    for (const peer of peers) peer.socket.destroy()
    await Promise.all([one.close(), two.close()])
    await stop(server)
  })

  test('an upgrade without a route is left to another listener, even a slow one', async () => {
    const server = createServer()
    let answer = (): void => {}
    server.on('upgrade', (request, socket) => {
      if (request.url === '/theirs') answer = () => socket.end('HTTP/1.1 204 No Content\r\n\r\n')
    })
    await using w = await world(echo, { path: '/ours' }, server)
    const peer = await w.dial()
    peer.write(opening({}, { path: '/theirs' }))
    const ours = await w.dial()
    ours.write(opening({}, { path: '/ours' }))
    await ours.head()
    assert.equal(peer.received.length, 0)
    answer()
    assert.equal((await peer.head()).status, 204)
  })

  for (const order of ['before', 'after']) {
    test(`a listener added ${order} that refuses other paths does not affect ours`, async () => {
      const server = createServer()
      const refuse = (): void => {
        server.on('upgrade', (_request, socket) => {
          socket.once('finish', socket.destroy)
          socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
          socket.destroy()
        })
      }
      if (order === 'before') refuse()
      await using w = await world(
        { ...echo, authorize: () => ({ context: undefined }) },
        { path: '/ours' },
        server,
      )
      if (order === 'after') refuse()
      const ours = await w.dial()
      ours.write(opening({}, { path: '/ours' }))
      assert.equal((await ours.head()).status, 101)
      ours.write(text('still here'))
      assert.equal(await ours.line(), 'text:still here')
      const theirs = await w.dial()
      theirs.write(opening({}, { path: '/theirs' }))
      assert.equal((await theirs.head()).status, 400)
      // Our own refusal is still written and ends the connection.
      const wrong = await w.dial()
      wrong.write(opening({ 'Sec-WebSocket-Version': '7' }, { path: '/ours' }))
      assert.equal((await wrong.head()).status, 426)
      await wrong.body()
    })
  }

  test('detaching removes every listener, and may be called twice', async () => {
    const server = createServer()
    const [one, two] = [new WebSocketServer(), new WebSocketServer()]
    const [detachOne, detachTwo] = [
      one.attach(server, { path: '/one' }),
      two.attach(server, { path: '/two' }),
    ]
    assert.equal(server.listenerCount('upgrade'), 1)
    detachOne()
    detachOne()
    assert.equal(server.listenerCount('upgrade'), 1)
    detachTwo()
    assert.deepEqual([server.listenerCount('upgrade'), server.listenerCount('request')], [0, 0])
  })
})

describe('offers of other protocols', () => {
  const h2c = {
    Upgrade: 'h2c',
    Connection: 'Upgrade, HTTP2-Settings, keep-alive',
    'HTTP2-Settings': 'AAMAAABkAAQCAAAAAAIAAAAA',
    'Sec-WebSocket-Key': null,
    'Sec-WebSocket-Version': null,
  }

  test('a GET with Upgrade: h2c gets its normal response and keeps its connection', async () => {
    const server = createServer((request, response) => {
      response.end(`${request.method} ${request.url}`)
    })
    await using w = await world(echo, { path: '/echo' }, server)
    for (const path of ['/page', '/echo']) {
      const peer = await w.dial()
      for (const turn of ['first', 'second']) {
        peer.write(opening(h2c, { path }))
        const { status, headers } = await peer.head()
        assert.equal(status, 200, turn)
        assert.equal(headers.get('connection'), 'keep-alive')
        assert.equal(
          (await peer.take(Number(headers.get('content-length')))).toString(),
          `GET ${path}`,
        )
      }
    }
  })

  test('a POST with Upgrade: h2c keeps its content (RFC 9110 §7.8)', async () => {
    const server = createServer(async (request, response) => {
      let content = ''
      for await (const chunk of request) content += chunk
      response.end(`got ${content}`)
    })
    await using w = await world(echo, { path: '/echo' }, server)
    const peer = await w.dial()
    peer.write(
      opening(
        { ...h2c, Connection: 'Upgrade, HTTP2-Settings, close', 'Content-Length': '10' },
        { method: 'POST' },
      ) + 'hello',
    )
    peer.write('world')
    assert.equal((await peer.head()).status, 200)
    assert.match((await peer.body()).toString(), /got helloworld/)
  })

  test('a shouldUpgradeCallback of the server is called, and finally restored', async (t) => {
    const server: Server & { shouldUpgradeCallback?: (request: IncomingMessage) => boolean } =
      createServer((_request, response) => response.end('plain'))
    if (server.shouldUpgradeCallback === undefined) return t.skip('this line of Node does not ask')
    const own = (request: IncomingMessage): boolean => request.url === '/echo'
    server.shouldUpgradeCallback = own
    const sockets = new WebSocketServer(echo)
    const detach = sockets.attach(server)
    const port = await listen(server)
    for (const [path, status] of [['/echo', 101], ['/other', 200]] as const) {
      const peer = new RawPeer(connectPlain({ port, host: '127.0.0.1' }))
      peer.write(opening({}, { path }))
      assert.equal((await peer.head()).status, status)
      peer.socket.destroy()
    }
    detach()
    assert.equal(server.shouldUpgradeCallback, own)
    await sockets.close()
    await stop(server)
  })

  test('with another upgrade listener they are left to that listener', async () => {
    const server = createServer((_request, response) => response.end('plain'))
    server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 204 Mine\r\n\r\n'))
    await using w = await world(echo, { path: '/echo' }, server)
    const peer = await w.dial()
    peer.write(opening(h2c))
    assert.equal((await peer.head()).status, 204)
  })
})

test('an https server is served like any other', async () => {
  const server = createSecureServer({ cert: certificate, key }, (_request, response) =>
    response.end('page'),
  )
  const sockets = new WebSocketServer(echo)
  sockets.attach(server, { path: '/echo' })
  const port = await listen(server)
  const secure = connect({ port, host: '127.0.0.1', ca: certificate, servername: 'localhost' })
  const peer = new RawPeer(secure)
  peer.write(opening({}, { path: '/echo' }))
  assert.equal((await peer.head()).status, 101)
  peer.write(text('x'.repeat(100_000)))
  assert.equal((await peer.next())!.payload.length, 100_000)
  const plain = new RawPeer(
    connect({ port, host: '127.0.0.1', ca: certificate, servername: 'localhost' }),
  )
  plain.write(opening({ Upgrade: 'h2c', Connection: 'Upgrade, close' }, { path: '/' }))
  assert.equal((await plain.head()).status, 200)
  await plain.body()
  secure.destroy()
  plain.socket.destroy()
  await sockets.close()
  await stop(server)
})
