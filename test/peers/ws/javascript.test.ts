import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { WebSocket as UndiciWebSocket } from 'undici'
import websocket from 'websocket'
import { WebSocket as WsWebSocket } from 'ws'
import { echoServer, SIZES, TEXTS } from './echo-server.js'

/** The part of the WHATWG interface that these clients have in common. */
interface Client {
  binaryType: string
  readonly protocol: string
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(data: string | Uint8Array): void
  close(code?: number, reason?: string): void
}

const faye = createRequire(import.meta.url)('faye-websocket') as {
  Client: new (url: string, protocols: string[], options: object) => Client
}

const clients: Record<string, (url: string) => Client> = {
  ws: (url) => new WsWebSocket(url, 'echo') as unknown as Client,
  undici: (url) => new UndiciWebSocket(url, 'echo') as unknown as Client,
  websocket: (url) => new websocket.w3cwebsocket(url, 'echo') as unknown as Client,
  'faye-websocket': (url) => new faye.Client(url, ['echo'], { maxLength: 2 ** 24 }),
}

/** Sends all messages, compares the echoes, closes with 4000. */
async function converse(
  client: Client,
  texts: readonly string[],
): Promise<{ code: number; reason: string; protocol: string }> {
  client.binaryType = 'arraybuffer'
  const received: (string | Buffer)[] = []
  let wake = (): void => {}
  const closed = new Promise<{ code: number; reason: string }>((resolve, reject) => {
    client.onclose = resolve as (event: never) => void
    client.onerror = ((event: { message?: string }) =>
      reject(new Error(event.message ?? 'failed'))) as (event: never) => void
  })
  client.onmessage = ((event: { data: string | ArrayBuffer | Buffer }) => {
    received.push(typeof event.data === 'string' ? event.data : Buffer.from(event.data as Buffer))
    wake()
  }) as (event: never) => void
  await Promise.race([new Promise<void>((resolve) => (client.onopen = () => resolve())), closed])
  const sent = [...texts, ...SIZES.map((size) => Buffer.alloc(size, size & 255))]
  for (const message of sent) {
    client.send(message)
    while (received.length === 0)
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), closed])
    const echo = received.shift()!
    assert.ok(typeof message === 'string' ? echo === message : message.equals(echo as Buffer))
  }
  for (const message of sent) client.send(message)
  while (received.length < sent.length) {
    await Promise.race([new Promise<void>((resolve) => (wake = resolve)), closed])
  }
  client.close(4000, 'done')
  const { code, reason } = await closed
  return { code, reason, protocol: client.protocol }
}

for (const deflate of [false, true]) {
  for (const [name, make] of Object.entries(clients)) {
    test(`the client of ${name} gets its echoes, deflate ${deflate ? 'on' : 'off'}`, async () => {
      await using server = await echoServer(deflate)
      // The client of `websocket` does not deliver an empty text.
      const texts = name === 'websocket' ? TEXTS.filter((text) => text !== '') : TEXTS
      const { code, protocol } = await converse(make(server.url), texts)
      await server.ended(1)
      assert.deepEqual([code, protocol], [4000, 'echo'])
      assert.deepEqual(server.ends, [{ code: 4000, reason: 'done', wasClean: true, error: null }])
    })
  }

  test(`Node's own WebSocket gets its echoes, deflate ${deflate ? 'on' : 'off'}`, async () => {
    await using server = await echoServer(deflate)
    const script = `
      const socket = new WebSocket(process.argv[1], 'echo')
      socket.binaryType = 'arraybuffer'
      let step = 0
      socket.onopen = () => socket.send('κόσμε')
      socket.onmessage = ({ data }) => {
        if (step++ === 0 && data === 'κόσμε') socket.send(new Uint8Array(100000))
        else socket.close(4000, String(data.byteLength))
      }
      socket.onclose = ({ code, wasClean }) => console.log(code, wasClean, socket.protocol)`
    const flag = 'WebSocket' in globalThis ? [] : ['--experimental-websocket']
    const child = spawn(process.execPath, [...flag, '-e', script, server.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    await once(child, 'close')
    assert.equal(output, '4000 true echo\n')
    await server.ended(1)
    assert.deepEqual(server.ends, [{ code: 4000, reason: '100000', wasClean: true, error: null }])
  })
}
