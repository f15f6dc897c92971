/**
 * The load cases of the Autobahn suite, groups 9, 12 and 13, with this library as the client that
 * echoes what the server of `ws` sends. CASE_MESSAGES is the number of messages in the cases with
 * many (1000 in the suite).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { describe, test } from 'node:test'
import { WebSocketClient, type WebSocketClientOptions } from 'runwright/ws'
import { type PerMessageDeflateOptions, type WebSocket, WebSocketServer } from 'ws'

const MESSAGES = Number(process.env['CASE_MESSAGES'] ?? 100)
const MIB = 2 ** 20

/** Runs `cases` on the server's end of a connection whose client echoes, then closes it. */
async function against(
  cases: (peer: WebSocket) => Promise<void>,
  deflate: WebSocketClientOptions['deflate'] = false,
  perMessageDeflate: PerMessageDeflateOptions | boolean = false,
): Promise<void> {
  const server = new WebSocketServer({
    port: 0, host: '127.0.0.1', maxPayload: 64 * MIB, perMessageDeflate,
  })
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[WebSocket]>
  const client = new WebSocketClient({
    deflate, maxMessageBytes: 16 * MIB, maxFragments: MIB, backpressure: { limitBytes: 64 * MIB },
  })
  const { port } = server.address() as AddressInfo
  const connection = await client.connect(`ws://127.0.0.1:${port}`)
  const echo = (async () => {
    for await (const message of connection) {
      if (connection.send(message) === 'full') await connection.drained()
    }
  })()
  const [peer] = await accepted
  assert.equal(peer.extensions !== '', perMessageDeflate !== false)
  await cases(peer)
  peer.close(1000)
  const [code] = (await once(peer, 'close')) as [number]
  assert.equal(code, 1000)
  await echo
  const { wasClean, error } = await connection.closed
  assert.deepEqual([wasClean, error], [true, null])
  server.close()
  await once(server, 'close')
}

async function expectEcho(peer: WebSocket, sent: string | Buffer): Promise<void> {
  const [data, binary] = (await once(peer, 'message')) as [Buffer, boolean]
  assert.equal(binary, typeof sent !== 'string')
  assert.ok(data.equals(Buffer.from(sent as string)), `${data.length} bytes came back`)
}

const payload = (size: number, binary: boolean): string | Buffer =>
  binary ? Buffer.alloc(size, 0xfe) : 'BAsd7&jh23'.repeat(Math.ceil(size / 10)).slice(0, size)

describe('limits and speed (group 9)', () => {
  for (const binary of [false, true]) {
    const kind = binary ? 'binary' : 'text'
    for (const size of [65_536, 262_144, MIB, 4 * MIB, 8 * MIB, 16 * MIB]) {
      test(`a ${kind} message of ${size} bytes`, () =>
        against(async (peer) => {
          const message = payload(size, binary)
          peer.send(message)
          await expectEcho(peer, message)
        }))
    }
    for (const size of [64, 256, 1_024, 4_096, 65_536, 262_144, MIB, 4 * MIB]) {
      test(`a ${kind} message of 4 MiB in fragments of ${size}`, () =>
        against(async (peer) => {
          const message = payload(4 * MIB, binary)
          const echo = expectEcho(peer, message)
          for (let at = 0; at < message.length; at += size) {
            peer.send(message.slice(at, at + size), { fin: at + size >= message.length, binary })
            if (peer.bufferedAmount > MIB) await new Promise(setImmediate)
          }
          await echo
        }))
    }
    for (const size of [64, 128, 256, 512, 1_024, 2_048]) {
      test(`a ${kind} message of 1 MiB in TCP chunks of ${size}`, () =>
        against(async (peer) => {
          const socket = (peer as unknown as { _socket: Socket })._socket
          const message = payload(MIB, binary)
          const header = Buffer.from([binary ? 0x82 : 0x81, 127, 0, 0, 0, 0, 0, 16, 0, 0])
          const bytes = Buffer.concat([header, Buffer.from(message as string)])
          const echo = expectEcho(peer, message)
          for (let at = 0; at < bytes.length; at += size) {
            if (!socket.write(bytes.subarray(at, at + size))) await once(socket, 'drain')
          }
          await echo
        }))
    }
    for (const size of [0, 16, 64, 256, 1_024, 4_096, 16_384]) {
      test(`${MESSAGES} ${kind} messages of ${size} bytes`, () =>
        against(async (peer) => {
          const message = payload(size, binary)
          for (let i = 0; i < MESSAGES; i++) {
            peer.send(message)
            await expectEcho(peer, message)
          }
        }))
    }
  }
})

describe('compression (groups 12 and 13)', () => {
  const json = JSON.stringify({ kind: 'tool_result', text: 'words that come again and again' })
  const takeovers = { serverContextTakeover: true, clientContextTakeover: true }
  const settings: Record<string, WebSocketClientOptions['deflate'] & object> = {
    'no parameters': takeovers,
    'no context takeover': {},
    'server_max_window_bits=9': { ...takeovers, serverMaxWindowBits: 9 },
    'client_max_window_bits=9': { ...takeovers, clientMaxWindowBits: 9 },
    'both windows of 9': { serverMaxWindowBits: 9, clientMaxWindowBits: 9 },
  }
  for (const [name, deflate] of Object.entries(settings)) {
    for (const size of [16, 64, 256, 1_024, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072]) {
      test(`${name}: messages of ${size} bytes`, () =>
        against(
          async (peer) => {
            const count = Math.max(4, Math.min(MESSAGES, Math.floor((MESSAGES * 4_096) / size)))
            for (let i = 0; i < count; i++) {
              const body = json.repeat(Math.ceil(size / json.length)).slice(0, size)
              const noise = Array.from({ length: size }, (_, at) => (at * 7 + i) & 255)
              const message = i % 3 === 2 ? Buffer.from(noise) : body
              peer.send(message)
              await expectEcho(peer, message)
            }
          },
          { ...deflate, thresholdBytes: 0 },
          { threshold: 0 },
        ))
    }
  }
})
