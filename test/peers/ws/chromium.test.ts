import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import type { BrowserContext } from 'playwright-core'
import { type AttachableServer, type CloseInfo, WebSocketServer } from 'runwright/ws'
import { EXECUTABLE, openBrowser } from '../server/browser.js'

const skip = existsSync(EXECUTABLE) ? false : `${EXECUTABLE} is not there: apt-get install chromium`

/** The browser that all tests share; each has its own context. */
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  if (skip === false) await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

/** A browser context that closes all its connections, including HTTP/2, when it is disposed. */
async function openContext(): Promise<{
  readonly context: BrowserContext
  readonly close: () => Promise<void>
}> {
  let close = async (): Promise<void> => {}
  const context = await openBrowser(
    { after: (hook) => (close = hook) },
    { ignoreHTTPSErrors: true },
  )
  return { context, close: () => close() }
}

const fixture = (name: string): string =>
  readFileSync(new URL(`../../fixtures/ws/${name}`, import.meta.url), 'utf8')

const page = (
  _request: unknown,
  response: { setHeader(n: string, v: string): unknown; end(body: string): unknown },
): void => {
  response.setHeader('content-type', 'text/html')
  response.end('<!doctype html><title>page</title>')
}

/** The script of the page: exchanges messages with the server of its origin, returns a report. */
const converse = `async () => {
  const socket = new WebSocket(location.origin.replace('http', 'ws') + '/echo', ['other', 'echo'])
  socket.binaryType = 'arraybuffer'
  const next = (type) => new Promise((resolve) => {
    socket.addEventListener(type, resolve, { once: true })
  })
  await next('open')
  const seen = []
  for (const message of ['', 'κόσμε € 💩', 'x'.repeat(100000), new Uint8Array(70000)]) {
    socket.send(message)
    const { data } = await next('message')
    seen.push(typeof data === 'string' ? data.length : 'b' + data.byteLength)
  }
  const { protocol, extensions } = socket
  socket.close(4000, 'done')
  const { code, wasClean } = await next('close')
  return { seen, protocol, extensions, code, wasClean }
}`

interface Seen {
  readonly seen: unknown[]
  readonly protocol: string
  readonly extensions: string
  readonly code: number
  readonly wasClean: boolean
}

const versions: Record<string, { scheme: string; deflate: boolean; make: () => AttachableServer }> =
  {
    'HTTP/1.1': { scheme: 'http', deflate: false, make: () => createServer(page) },
    'HTTP/1.1 with compression': { scheme: 'http', deflate: true, make: () => createServer(page) },
    'HTTP/2': {
      scheme: 'https',
      deflate: true,
      make: () =>
        createSecureServer(
          { cert: fixture('localhost.crt'), key: fixture('localhost.key'), allowHTTP1: true },
          page,
        ),
    },
  }

for (const [name, { scheme, deflate, make }] of Object.entries(versions)) {
  test(`a page in Chromium talks to its own server over ${name}`, { skip }, async () => {
    const server = make()
    const ends: CloseInfo[] = []
    const httpVersions: string[] = []
    const sockets = new WebSocketServer({
      protocols: ['echo'],
      deflate,
      onConnection(connection, request) {
        httpVersions.push(request.httpVersion)
        connection.onMessage = (message) => connection.send(message)
        connection.onClose = (info) => ends.push(info)
      },
    })
    sockets.attach(server, { path: '/echo', http2: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const opened = await openContext()
    try {
      const tab = await opened.context.newPage()
      await tab.goto(`${scheme}://localhost:${(server.address() as AddressInfo).port}/`)
      const seen = (await tab.evaluate(`(${converse})()`)) as Seen
      assert.deepEqual(seen.seen, [0, 10, 100_000, 'b70000'])
      assert.deepEqual([seen.protocol, seen.code, seen.wasClean], ['echo', 4000, true])
      assert.equal(seen.extensions.startsWith('permessage-deflate'), deflate)
      assert.deepEqual(httpVersions, [name === 'HTTP/2' ? '2.0' : '1.1'])
    } finally {
      await opened.close()
      await sockets.close()
      server.close()
      ;(
        server as Partial<Http2SecureServer> & { closeAllConnections?: () => void }
      ).closeAllConnections?.()
      await once(server, 'close')
    }
    assert.deepEqual(ends, [{ code: 4000, reason: 'done', wasClean: true, error: null }])
  })

  test(`a page of another origin is refused over ${name}`, { skip }, async () => {
    const server = make()
    const sockets = new WebSocketServer({ onConnection: () => assert.fail('it was accepted') })
    sockets.attach(server, { http2: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const opened = await openContext()
    try {
      const tab = await opened.context.newPage()
      const { port } = server.address() as AddressInfo
      // The same server by another host name is another origin.
      await tab.goto(`${scheme}://127.0.0.1:${port}/`)
      const code = await tab.evaluate(`new Promise((resolve) => {
        const socket = new WebSocket('${scheme.replace('http', 'ws')}://localhost:${port}/')
        socket.onclose = ({ code }) => resolve(code)
      })`)
      assert.equal(code, 1006)
    } finally {
      await opened.close()
      await sockets.close()
      server.close()
      ;(
        server as Partial<Http2SecureServer> & { closeAllConnections?: () => void }
      ).closeAllConnections?.()
      await once(server, 'close')
    }
  })
}
