/** The guides of HTTP client, WebSocket server and WebSocket client. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../../helpers/markdown.js'
import type { Guide } from '../rule.js'

const fixture = (name: string): string => readFileSync(join(root, 'test/fixtures/ws', name), 'utf8')

/** Serves what a guide attaches nowhere, and connects to it. */
const CONNECT = `const { WebSocketClient } = await import('runwright/ws')
  const server = (await import('node:http')).createServer().listen(0)
  sockets.attach(server, { path: '/' })
  const url = (await checks.originOf(server)).replace('http', 'ws') + '/'`
const DISCONNECT = 'process.exit()'

export const http: readonly Guide[] = [
  {
    document: 'docs/http-client.md',
    packages: ['openai'],
    files: {
      'report.pdf': 'a report of some length',
      'public_suffix_list.dat': 'test\nco.test\n',
      'cookies.json': '[]',
      'cache/keep': '',
      'etc/ssl/private-ca.pem': fixture('localhost.crt'),
      'client.pem': fixture('localhost.crt'),
      'client-key.pem': fixture('localhost.key'),
      // What Docker would be.
      'docker.mjs': `import { createServer } from 'node:http'
        createServer((_, response) => response.end('27')).listen('var/run/docker.sock')`,
      'var/run/keep': '',
    },
    rules: [
      {
        has: 'using blocking',
        after: `checks.assert.equal(response.json<Item[]>()[0]?.name, 'nut')
          checks.assert.equal(blocking.post('/items', { json: { name: 'nut' } }).statusCode, 201)`,
      },
      {
        has: 'docker.sock',
        first: 'node docker.mjs & until test -S var/run/docker.sock; do sleep 0.05; done',
        after: `checks.assert.equal((await client.get('http://docker/version')).text, '27')`,
      },
      { has: 'report.pdf', out: /^\d+ \d+$/m },
      { has: 'large.iso', then: 'test "$(wc -c < large.iso)" = 1000000' },
      {
        has: "endsWith('.internal')",
        after: `const leaves = await client.get('https://api.example/leaves')
          checks.assert.equal(leaves.statusCode, 302)`,
      },
      {
        has: 'parsePublicSuffixes',
        after: `cookies.set('seen', 'once', { domain: 'shop.test' })
          checks.assert.match(JSON.stringify(client.cookies), /once/)`,
      },
      {
        has: 'socks5h:',
        after: `const get = () => client.get('https://a.test/')
          checks.assert.throws(get, { code: 'ERR_HTTP_PROXY' })`,
      },
      { has: 'client.sse(', out: /^1 it rains\n2\n1\n$/ },
      {
        has: 'new MemoryCacheStore',
        after: `const first = { status: 'miss', ageMs: null }
          checks.assert.deepEqual(response.extensions.cache, first)`,
      },
      {
        has: 'new MockTransport',
        after: `checks.assert.deepEqual((await client.get('/x')).json(), { path: '/x' })`,
      },
      {
        has: 'new RecordingTransport',
        after: `const { readFileSync } = await import('node:fs')
          const recorded = readFileSync('test/recordings/items.har', 'utf8')
          checks.assert.ok(!recorded.includes('a-real-token'))
          const options = { file: 'test/recordings/items.har', mode: 'replay' } as const
          const again = new RecordingTransport(options)
          const baseUrl = 'https://api.example/v1'
          await using replaying = new AsyncClient({ transport: again, baseUrl })
          const items = (await replaying.get('items')).json<{ name: string }[]>()
          checks.assert.deepEqual(items, [{ name: 'nut' }])`,
      },
      {
        has: 'client.extend(',
        after: `const get = async () => await admin.get('/none')
          await checks.assert.rejects(get, { code: 'ERR_HTTP_STATUS' })`,
      },
      { has: 'new OpenAI(', out: /^hello\n$/ },
      {
        has: "client.post('/reports', { json",
        after: `const got = [items, JSON.parse(report)]
          checks.assert.deepEqual(got, [['a', 'b'], { bytes: 19 }])`,
      },
      {
        has: 'iterBytes(), outgoing',
        after: `const url = 'https://api.example/reports'
          const answer = await client.post(url, { content: ['one'] })
          checks.assert.equal(answer.text, '{"bytes":3}')`,
      },
      {
        has: 'class Refreshing',
        after: `const http = await import('runwright/http')
          const isFresh = (value: string | null): boolean => value === 'Bearer fresh'
          const transport = new http.MockTransport(({ headers }) => {
            return new http.Response(isFresh(headers.get('authorization')) ? 200 : 401)
          })
          const auth = new Refreshing(() => 'fresh')
          await using client = new http.AsyncClient({ transport, baseUrl: 'http://a.test', auth })
          for (const requests of [2, 3]) {
            const { statusCode } = await client.get('/')
            checks.assert.deepEqual([statusCode, transport.requests.length], [200, requests])
          }`,
      },
    ],
  },
  {
    document: 'docs/websocket-server.md',
    files: {
      'echo.mjs': `import { WebSocketClient } from 'runwright/ws'
        const connection = await new WebSocketClient().connect(process.argv[2])
        connection.send('hello')
        for await (const message of connection) {
          console.log(message)
          break
        }
        await connection.close()`,
    },
    rules: [
      {
        has: "path: '/echo'",
        serves: 'stops',
        then: `test "$(node echo.mjs ws://127.0.0.1:$port/echo)" = hello
          test "$(curl -sS $origin/)" = hello`,
      },
      {
        has: 'lookUp',
        before: `Object.assign(globalThis, {
          lookUp: async (token?: string) => (token === 'bearer.x' ? 'ann' : null),
        })`,
        after: `${CONNECT}
          const ann = await new WebSocketClient({ protocols: ['v1', 'bearer.x'] }).connect(url)
          checks.assert.equal((await ann[Symbol.asyncIterator]().next()).value, 'hello ann')
          const nobody = new WebSocketClient({ protocols: ['v1'] })
          await checks.assert.rejects(nobody.connect(url), /401/)
          ${DISCONNECT}`,
      },
      {
        has: 'topics: Set<string>',
        after: `${CONNECT}
          await using peer = await new WebSocketClient().connect(url)
          ${DISCONNECT}`,
        out: /^\S+ \S*127\.0\.0\.1 undefined\n$/,
      },
      {
        has: 'publishToMany',
        after: `${CONNECT}
          const peer = (await new WebSocketClient().connect(url))[Symbol.asyncIterator]()
          publish({ n: 1 }); publishToMany({ n: 2 })
          const got = [await peer.next(), await peer.next()].map(({ value }) => value)
          checks.assert.deepEqual(got, ['{"n":1}', '{"n":2}'])
          ${DISCONNECT}`,
      },
      {
        has: 'new Map<string, Set<WebSocketConnection>>',
        after: `${CONNECT}
          const peer = await new WebSocketClient().connect(url)
          peer.send('to all')
          checks.assert.equal((await peer[Symbol.asyncIterator]().next()).value, 'to all')
          ${DISCONNECT}`,
      },
      {
        has: 'sendStream',
        after: `${CONNECT}
          const peer = await new WebSocketClient().connect(url)
          const { value } = await peer[Symbol.asyncIterator]().next()
          checks.assert.equal(value, 'page 1\\npage 2\\npage 3\\n')
          ${DISCONNECT}`,
      },
    ],
  },
  {
    document: 'docs/websocket-client.md',
    rules: [
      { has: "send('subscribe')", out: /^subscribe\n$/ },
      { has: 'HandshakeRefusedError, WebSocketClient', out: /^401 undefined no\n$/ },
      { has: 'failures++', after: 'checks.assert.equal(last, 7)' },
      {
        has: 'tlsConnectOptions()',
        after: `checks.assert.equal(local.connections.size + asClients.connections.size, 0)`,
      },
    ],
  },
]
