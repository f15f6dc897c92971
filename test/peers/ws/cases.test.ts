/**
 * The load cases of the Autobahn suite, groups 9, 12 and 13, against the echo example in its own
 * process. CASE_MESSAGES is the number of messages in the cases with many (1000 in the suite).
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type ClientOptions, WebSocket } from 'ws'
import { programAt } from '../../helpers/programs.js'

const MESSAGES = Number(process.env['CASE_MESSAGES'] ?? 100)
const MIB = 2 ** 20

async function start(deflate: boolean): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, programAt('examples/ws-echo.ts'), {
    env: { ...process.env, PORT: '0', DEFLATE: deflate ? '1' : '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  return { url: line.toString().trim(), child }
}

async function open(
  url: string,
  options: ClientOptions = { perMessageDeflate: false },
): Promise<WebSocket> {
  const client = new WebSocket(url, { maxPayload: 64 * MIB, ...options })
  await once(client, 'open')
  return client
}

/** Waits for one echo and compares it. */
async function expectEcho(client: WebSocket, sent: string | Buffer): Promise<void> {
  const [data, binary] = (await once(client, 'message')) as [Buffer, boolean]
  assert.equal(binary, typeof sent !== 'string')
  assert.ok(data.equals(Buffer.from(sent as string)), `${data.length} bytes came back`)
}

async function close(client: WebSocket): Promise<void> {
  client.close(1000)
  const [code] = (await once(client, 'close')) as [number]
  assert.equal(code, 1000)
}

const payload = (size: number, binary: boolean): string | Buffer =>
  binary ? Buffer.alloc(size, 0xfe) : 'BAsd7&jh23'.repeat(Math.ceil(size / 10)).slice(0, size)

describe('limits and speed (group 9)', () => {
  let server: { url: string; child: ChildProcess }
  before(async () => {
    server = await start(false)
  })
  after(async () => {
    server.child.kill('SIGTERM')
    const [code] = (await once(server.child, 'exit')) as [number]
    assert.equal(code, 0)
  })

  for (const binary of [false, true]) {
    const kind = binary ? 'binary' : 'text'
    for (const size of [65_536, 262_144, MIB, 4 * MIB, 8 * MIB, 16 * MIB]) {
      test(`a ${kind} message of ${size} bytes`, async () => {
        const client = await open(server.url)
        const message = payload(size, binary)
        client.send(message)
        await expectEcho(client, message)
        await close(client)
      })
    }

    for (const size of [64, 256, 1_024, 4_096, 65_536, 262_144, MIB, 4 * MIB]) {
      test(`a ${kind} message of 4 MiB in fragments of ${size}`, async () => {
        const client = await open(server.url)
        const message = payload(4 * MIB, binary)
        const echo = expectEcho(client, message)
        for (let at = 0; at < message.length; at += size) {
          client.send(message.slice(at, at + size), { fin: at + size >= message.length, binary })
          if (client.bufferedAmount > MIB) await new Promise(setImmediate)
        }
        await echo
        await close(client)
      })
    }

    for (const size of [64, 128, 256, 512, 1_024, 2_048]) {
      test(`a ${kind} message of 1 MiB in TCP chunks of ${size}`, async () => {
        const client = await open(server.url)
        const socket = (client as unknown as { _socket: Socket })._socket
        const write = socket.write.bind(socket)
        const whole: Buffer[] = []
        socket.write = ((chunk: Buffer) => whole.push(chunk) > 0) as typeof socket.write
        const message = payload(MIB, binary)
        socket.cork = socket.uncork = () => {}
        client.send(message)
        socket.write = write as typeof socket.write
        const bytes = Buffer.concat(whole)
        const echo = expectEcho(client, message)
        for (let at = 0; at < bytes.length; at += size) {
          if (!write(bytes.subarray(at, at + size))) await once(socket, 'drain')
        }
        await echo
        client.terminate()
      })
    }

    for (const size of [0, 16, 64, 256, 1_024, 4_096, 16_384]) {
      test(`${MESSAGES} ${kind} messages of ${size} bytes`, async () => {
        const client = await open(server.url)
        const message = payload(size, binary)
        for (let i = 0; i < MESSAGES; i++) {
          client.send(message)
          await expectEcho(client, message)
        }
        await close(client)
      })
    }
  }
})

describe('compression (groups 12 and 13)', () => {
  let server: { url: string; child: ChildProcess }
  before(async () => {
    server = await start(true)
  })
  after(async () => {
    server.child.kill('SIGTERM')
    await once(server.child, 'exit')
  })

  const json = JSON.stringify({
    kind: 'tool_result',
    seq: 1,
    text: 'some words that come again and again',
  })
  const settings: Record<string, ClientOptions['perMessageDeflate']> = {
    'no parameters': true,
    'server_no_context_takeover': { serverNoContextTakeover: true },
    'server_max_window_bits=9': { serverMaxWindowBits: 9 },
    'server_max_window_bits=15': { serverMaxWindowBits: 15 },
    'both, 9': { serverNoContextTakeover: true, serverMaxWindowBits: 9 },
    'both, 15': { serverNoContextTakeover: true, serverMaxWindowBits: 15 },
    'client_no_context_takeover and client_max_window_bits=9': {
      clientNoContextTakeover: true,
      clientMaxWindowBits: 9,
    },
  }
  for (const [name, perMessageDeflate] of Object.entries(settings)) {
    for (const size of [16, 64, 256, 1_024, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072]) {
      test(`${name}: messages of ${size} bytes`, async () => {
        const client = await open(server.url, {
          perMessageDeflate: {
            ...(perMessageDeflate === true ? {} : (perMessageDeflate as object)),
            threshold: 0,
          },
        })
        assert.match(client.extensions, /permessage-deflate/)
        const count = Math.max(4, Math.min(MESSAGES, Math.floor((MESSAGES * 4_096) / size)))
        for (let i = 0; i < count; i++) {
          const body = json.repeat(Math.ceil(size / json.length)).slice(0, size)
          const message =
            i % 3 === 2
              ? Buffer.from(Array.from({ length: size }, (_, at) => (at * 7 + i) & 255))
              : body
          client.send(message)
          await expectEcho(client, message)
        }
        await close(client)
      })
    }
  }
})
