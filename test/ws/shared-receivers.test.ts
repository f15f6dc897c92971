/** Connections at rest share receivers: no byte of one may reach another, whatever handlers do. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type WebSocketConnection, WebSocketServer } from 'runwright/ws'
import { frame, text, turn } from '../helpers/ws-peer.js'
import { random } from './random.js'
import { link, StubSocket } from './stub-socket.js'

/** Answers each write at once, within it, as a transport in memory can. */
class AnsweringSocket extends StubSocket {
  readonly answers: Buffer[] = []

  override _write(chunk: Buffer, encoding: string, done: () => void): void {
    super._write(chunk, encoding, done)
    const answer = this.answers.shift()
    if (answer !== undefined) this.push(answer)
  }
}

class Dice {
  readonly #next: () => number

  constructor(seed: number) {
    this.#next = random(seed)
  }

  chance(share: number): boolean {
    return this.#next() < share
  }

  int(least: number, most: number): number {
    return least + Math.floor(this.#next() * (most - least + 1))
  }

  pick<T>(values: readonly T[]): T {
    return values[this.int(0, values.length - 1)]!
  }
}

interface Peer {
  readonly socket: AnsweringSocket
  readonly connection: WebSocketConnection<undefined>
  /** What it has still to send. */
  readonly chunks: Buffer[]
  readonly sent: string[]
  readonly got: string[]
}

describe('connections that share receivers', () => {
  test('get their own bytes, in order, fed from within handlers and writes', async () => {
    for (let seed = 1; seed <= 30; seed++) await interleave(new Dice(seed), `seed ${seed}`)
  })

  test('keep the count of control frames of each', async () => {
    const server = new WebSocketServer({ keepAlive: null, maxControlFramesPerSecond: 10 })
    const links = await Promise.all(Array.from({ length: 3 }, () => link(server)))
    const second = Math.floor(performance.now() / 1_000)
    for (let i = 0; i < 10; i++) for (const { socket } of links) socket.push(frame(9, 'ping'))
    const states = links.map(({ connection }) => connection.state)
    if (second !== Math.floor(performance.now() / 1_000)) return
    assert.deepEqual(states, ['open', 'open', 'open'])
    links[1]!.socket.push(frame(9, 'one too many'))
    assert.deepEqual(links.map(({ connection }) => connection.state), ['open', 'closing', 'open'])
    for (const { socket } of links) socket.destroy()
  })
})

async function interleave(dice: Dice, what: string): Promise<void> {
  const server = new WebSocketServer({ keepAlive: null, closeTimeoutMs: 50 })
  const peers = await Promise.all(Array.from({ length: 5 }, (_, i) => peerOf(server, dice, i)))
  const feed = (): void => {
    const { socket, chunks } = dice.pick(peers)
    const chunk = chunks.shift()
    if (chunk === undefined) return
    if (socket.answers.length > 0 || dice.chance(0.2)) socket.answers.push(chunk)
    else socket.push(chunk)
  }
  for (const peer of peers) {
    peer.connection.onMessage = (message) => {
      peer.got.push(String(message))
      if (dice.chance(0.5)) peer.connection.send('reply')
      if (dice.chance(0.4)) feed()
      if (dice.chance(0.02)) dice.pick(peers).connection.terminate()
      if (dice.chance(0.02)) void dice.pick(peers).connection.close()
    }
  }
  while (peers.some(({ chunks }) => chunks.length > 0)) {
    feed()
    if (dice.chance(0.1)) await turn()
  }
  for (const { connection, socket, sent, got } of peers) {
    for (const answer of socket.answers.splice(0)) socket.push(answer)
    await turn()
    const whole = connection.state === 'open'
    assert.deepEqual(got, whole ? sent : sent.slice(0, got.length), what)
    socket.destroy()
    const { error } = await connection.closed
    assert.ok(error === null || error.code === 'ERR_WS_CONNECTION_LOST', `${what}: ${error}`)
  }
}

async function peerOf(server: WebSocketServer, dice: Dice, id: number): Promise<Peer> {
  const { socket, connection } = await link(server, new AnsweringSocket())
  const sent = Array.from({ length: 12 }, (_, i) => `${id}:${i} ${'x'.repeat(dice.int(0, 200))}`)
  const frames = sent.flatMap((message) => {
    const ping = dice.chance(0.2) ? [frame(9, 'ping')] : []
    if (dice.chance(0.6)) return [...ping, text(message)]
    return [text(message.slice(0, 3), { fin: false }), ...ping, frame(0, message.slice(3))]
  })
  const chunks: Buffer[] = []
  let rest = Buffer.alloc(0)
  for (const one of frames) {
    rest = Buffer.concat([rest, one])
    if (dice.chance(0.3)) continue
    const whole = dice.chance(0.6)
    while (rest.length > 0) {
      const size = whole ? rest.length : dice.int(1, dice.pick([3, 40, 400]))
      chunks.push(Buffer.from(rest.subarray(0, size)))
      rest = rest.subarray(size)
    }
  }
  if (rest.length > 0) chunks.push(rest)
  return { socket: socket as AnsweringSocket, connection, chunks, sent, got: [] }
}
