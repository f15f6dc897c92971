/**
 * Random programs against a peer that reads now and then. The model of every policy is `missing()`:
 * what was accepted arrives, in order, and nothing else does. Only under `coalesce` may a message
 * be missing, if a newer one with its key arrives. MODEL_CASES plays more seeds for each setting.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BackpressurePolicy, prepare, type SendResult, WebSocketServer } from 'runwright/ws'
import { closeFrame, frame, turn } from '../helpers/ws-peer.js'
import { random } from './random.js'
import { decode, link } from './stub-socket.js'

interface Sent {
  readonly text: string
  readonly key: string | undefined
  result: SendResult | Promise<SendResult>
}

interface Setting {
  readonly policy: BackpressurePolicy
  /** `null` without compression. */
  readonly takeover: boolean | null
}

/** Accepted messages that have not arrived, and are not replaced. @throws if others have. */
function missing(sent: readonly Sent[], arrived: readonly string[], coalesces: boolean): Sent[] {
  const accepted = sent.filter(({ result }) => result === 'sent' || result === 'full')
  const places = arrived.map((text) => accepted.findIndex((one) => one.text === text))
  assert.ok(!places.includes(-1), 'only accepted messages arrive')
  assert.ok(places.every((place, i) => i === 0 || place > places[i - 1]!), 'in order, and once')
  return accepted.filter(
    ({ key }, i) =>
      !places.includes(i) &&
      !(coalesces && key !== undefined && places.some((p) => p > i && accepted[p]!.key === key)),
  )
}

async function play(seed: number, { policy, takeover }: Setting): Promise<void> {
  const next = random(seed)
  const below = (limit: number): number => Math.floor(next() * limit)
  const server = new WebSocketServer({
    keepAlive: null,
    backpressure: { highWaterBytes: 1_000, limitBytes: 1_000 + below(30_000), policy },
    deflate: takeover !== null && {
      thresholdBytes: 100,
      serverContextTakeover: takeover,
      level: 1,
    },
  })
  const offer = { 'sec-websocket-extensions': 'permessage-deflate' }
  const { connection, socket } = await link(server, undefined, takeover === null ? {} : offer)
  const sent: Sent[] = []
  const texts = (): string[] =>
    decode(Buffer.concat(socket.writes), takeover === true)
      .filter(({ opcode }) => opcode < 8)
      .map(({ payload }) => payload.toString())
  const owed = (): Sent[] => missing(sent, texts(), policy === 'coalesce')
  let [full, drainsOwed] = [false, false]
  connection.onDrain = () => {
    assert.deepEqual(owed(), [])
    drainsOwed = false
  }
  const send = (): void => {
    const key = below(3) === 0 ? undefined : `k${below(3)}`
    const text = `${sent.length}:`.padEnd(below(4) === 0 ? below(6_000) : below(150), 'state ')
    const bytes = below(2) === 0 ? text : Buffer.from(text)
    const message = below(3) === 0 ? prepare(bytes) : bytes
    const result = connection.send(message, { key, compress: below(4) > 0 })
    sent.push({ text, key, result })
    full = result === 'full'
    drainsOwed ||= full
  }
  const stream = (): void => {
    const piece = (_: unknown, i: number): string => `${sent.length}.${i}`.padEnd(below(400))
    const pieces = Array.from({ length: below(4) }, piece)
    const one: Sent = { text: pieces.join(''), key: undefined, result: 'closed' }
    sent.push(one)
    one.result = connection.sendStream(
      (async function* () {
        for (const piece of pieces) {
          if (below(2) === 0) await turn()
          yield piece
        }
      })(),
    )
    void one.result.then((result) => (one.result = result))
  }
  const steps: (() => unknown)[] = [
    send, send, send, send, send, stream,
    () => (socket.reads = false),
    () => socket.takeOne(),
    () => socket.resumeReading(),
    () => turn(),
    () => turn(),
    () => connection.ping(`${below(9)}`),
    () => socket.push(frame(9, `${below(9)}`)),
    () => {
      const before = sent.length
      void connection.drained().then((drained) => {
        if (drained) assert.ok(owed().every((one) => sent.indexOf(one) >= before), 'drained')
      })
    },
  ]
  for (let i = 20 + below(80); i > 0 && connection.state === 'open'; i--) {
    await steps[below(steps.length)]!()
  }
  const failed = connection.state !== 'open'
  const closes = below(2) === 0
  if (closes) void connection.close(1000)
  socket.resumeReading()
  if (!closes && !failed) assert.equal(await connection.drained(), true)
  await Promise.all(sent.map(({ result }) => result))
  await turn()
  // What ends a connection that fails also cuts off a stream, and what waits behind it.
  const cut = failed && sent.some(({ result }) => result === 'closed')
  if (!cut) assert.deepEqual(owed(), [])
  if (!failed && !closes) assert.equal(drainsOwed, false, 'each full is followed by onDrain')
  if (failed || closes) {
    const last = decode(Buffer.concat(socket.writes), takeover === true).at(-1)!
    assert.deepEqual([last.opcode, last.payload.readUInt16BE(0)], [8, failed ? 1013 : 1000])
  }
  socket.push(closeFrame(1000))
  socket.push(null)
  await connection.closed
}

const SETTINGS: readonly Setting[] = (['close', 'drop', 'coalesce'] as const).flatMap((policy) =>
  [null, false, true].map((takeover) => ({ policy, takeover })),
)

async function playAll(from: number, count: number): Promise<void> {
  for (const setting of SETTINGS) {
    for (let seed = from; seed < from + count; seed++) {
      await play(seed, setting).catch((cause: Error) => {
        const { policy, takeover } = setting
        throw new Error(`${policy}, ${takeover}, seed ${seed}: ${cause.message}`, { cause })
      })
    }
  }
}

test('what send() returned is true of what arrives, under every policy', () => playAll(1, 3))

test('what send() returned is true of what arrives, in 540 random programs', () =>
  playAll(100, Number(process.env['MODEL_CASES'] ?? 60)))
