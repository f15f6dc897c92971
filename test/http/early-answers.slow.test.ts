import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import {
  AsyncClient,
  Client,
  DigestAuth,
  ReadError,
  WriteError,
  type AsyncClientOptions,
} from 'runwright/http'
import { sleepSync } from '../../lib/internal/time.js'
import { listen } from '../helpers/serve.js'
import { testCa, type AnyClient, type AnyClientOptions } from './both-clients.js'

const control = new Int32Array(new SharedArrayBuffer(8))
let worker: Worker
let ports: Record<string, number>

before(async () => {
  const file = new URL('../fixtures/http/early-worker.mjs', import.meta.url)
  worker = new Worker(file, { workerData: { control }, execArgv: [] })
  ;[ports] = (await once(worker, 'message')) as [Record<string, number>]
})

after(async () => {
  worker.postMessage('close')
  await once(worker, 'exit')
})

type Kind = 'AsyncClient' | 'Client'

function clientOf(kind: Kind, protocol: string, options: AnyClientOptions = {}): AnyClient {
  const [http2, tls] = [protocol.startsWith('HTTP/2'), protocol.includes('TLS')]
  const all = {
    baseUrl: `${tls ? 'https' : 'http'}://127.0.0.1:${ports[protocol]}`,
    verify: testCa,
    http2,
    http1: !http2,
    ...options,
  }
  return kind === 'Client' ? new Client(all) : new AsyncClient(all as AsyncClientOptions)
}

const PIECE = 100_000

function* pieces(size: number, ended?: () => void): Generator<Uint8Array, void, undefined> {
  try {
    for (let at = 0; at < size; at += PIECE) yield new Uint8Array(Math.min(PIECE, size - at))
  } finally {
    ended?.()
  }
}

/** A body that can be sent again. Its second half comes late, and no two pieces are the same. */
class Pieces extends Array<Uint8Array> {
  override *[Symbol.iterator](): ArrayIterator<Uint8Array> {
    for (let at = 0; at < this.length; at++) {
      if (at === this.length / 2) sleepSync(100)
      yield new Uint8Array(PIECE).fill(at + 1)
    }
  }
}

function sha1(content: Uint8Array): string {
  return createHash('sha1').update(content).digest('hex')
}

/** When the answer comes, what follows it, and the size of the request's content. */
type Cell = readonly [at: string, then: string, size: number, shape: 'bytes' | 'stream']

async function answerTo(kind: Kind, protocol: string, cell: Cell): Promise<string> {
  const [at, then, size, shape] = cell
  const client = clientOf(kind, protocol)
  const sent = Atomics.load(control, 0)
  try {
    const response = await client.post(`/?at=${at}&then=${then}&size=${size}`, {
      content: shape === 'bytes' ? new Uint8Array(size) : pieces(size),
      headers: { 'content-length': String(size) },
    })
    const times = Atomics.load(control, 0) - sent
    return `${response.statusCode}, ${response.content.length} bytes, sent ${times} time(s)`
  } catch (error) {
    return String(error)
  } finally {
    await client.close()
  }
}

async function checkAll(kind: Kind, protocol: string, cells: Iterable<Cell>): Promise<void> {
  const wrong: string[] = []
  for (const cell of cells) {
    const answer = await answerTo(kind, protocol, cell)
    if (answer !== '413, 9 bytes, sent 1 time(s)') wrong.push(`${cell.join(' ')}: ${answer}`)
  }
  assert.deepEqual(wrong, [])
}

const protocols = ['HTTP/1.1', 'HTTP/1.1 and TLS', 'HTTP/2', 'HTTP/2 and TLS']
const moments = ['before', 'during', 'after']
const ends = ['close', 'reset', 'end', 'half', 'keep']

function* allCells(): Generator<Cell, void, undefined> {
  for (const shape of ['bytes', 'stream'] as const) {
    for (const then of ends) {
      for (const at of moments) for (const size of [3e5, 3e6, 2e7]) yield [at, then, size, shape]
    }
    yield ['during', 'close', 5e7, shape]
  }
}

const fewCells: readonly Cell[] = [
  ['before', 'close', 3e6, 'stream'],
  ['before', 'reset', 3e5, 'bytes'],
  ['during', 'close', 3e6, 'bytes'],
  ['during', 'reset', 3e6, 'stream'],
  ['during', 'half', 3e5, 'bytes'],
  ['during', 'keep', 3e6, 'bytes'],
]

for (const kind of ['AsyncClient', 'Client'] as const) {
  for (const protocol of ['HTTP/1.1', 'HTTP/2 and TLS']) {
    test(`${kind}: an answer before the end of an upload by ${protocol} is returned`, () =>
      checkAll(kind, protocol, fewCells))
  }
  for (const protocol of protocols) {
    test(`${kind}: answers at any time of an upload by ${protocol} are returned`, () =>
      checkAll(kind, protocol, allCells()))
  }

  test(`${kind}: an early answer that ends with the connection is whole after a reset`, async () => {
    for (const protocol of ['HTTP/1.1', 'HTTP/1.1 and TLS']) {
      const client = clientOf(kind, protocol)
      try {
        for (const size of [3e5, 3e6]) {
          // The kernel resets the connection, as bytes are unread.
          const path = `/?framed=no&at=during&then=close&size=${size}`
          const response = await client.post(path, { content: new Uint8Array(size) })
          assert.equal(response.text, 'x'.repeat(9))
        }
      } finally {
        await client.close()
      }
    }
  })

  test(`${kind}: an upload that was answered early ends its source and its connection`, async () => {
    const client = clientOf(kind, 'HTTP/1.1')
    try {
      for (let call = 0; call < 2; call++) {
        let ended = 0
        const connections = Atomics.load(control, 1)
        const response = await client.post('/?at=during&then=keep&size=3000000', {
          content: pieces(3e6, () => ended++),
        })
        assert.equal(response.statusCode, 413)
        assert.equal(ended, 1)
        assert.equal(Atomics.load(control, 1) - connections, 1)
      }
    } finally {
      await client.close()
    }
  })

  for (const [status, what] of [
    [307, 'a redirect'],
    [401, 'a challenge'],
  ] as const) {
    test(`${kind}: after ${what} in the middle of an upload the whole content is sent`, async () => {
      const content = new Uint8Array(3e6).map((_, at) => at >> 8)
      for (const then of ['close', 'reset', 'keep']) {
        const client = clientOf(kind, 'HTTP/1.1', { followRedirects: true })
        try {
          const sent = Atomics.load(control, 0)
          const path = `/?at=during&then=${then}&status=${status}&size=3000000`
          const auth = status === 401 ? new DigestAuth('user', 'secret') : null
          const response = await client.post(path, { content, auth })
          assert.equal(response.text, sha1(content), then)
          assert.equal(Atomics.load(control, 0) - sent, 2, then)
        } finally {
          await client.close()
        }
      }
    })
  }

  test(`${kind}: after a proxy's challenge in the middle of an upload the whole is sent`, async () => {
    const content = new Pieces(30)
    const headers = { 'content-length': String(30 * PIECE) }
    const proxy = `http://user:secret@127.0.0.1:${ports['HTTP/1.1']}`
    const client = clientOf(kind, 'HTTP/1.1', {
      proxy: { url: proxy, authScheme: 'digest' },
      baseUrl: 'http://origin.test',
    })
    try {
      const path = `/?at=during&then=close&status=407&size=${30 * PIECE}`
      const response = await client.post(path, { content, headers })
      assert.equal(response.text, sha1(Buffer.concat([...new Pieces(30)])))
    } finally {
      await client.close()
    }
  })

  test(`${kind}: an upload that fails without an answer is a write error, sent once`, async () => {
    const client = clientOf(kind, 'HTTP/1.1', { retry: 2 })
    try {
      for (const then of ['close']) {
        const sent = Atomics.load(control, 0)
        const path = `/?at=during&then=${then}&status=0&size=20000000`
        const call = async (): Promise<unknown> =>
          client.post(path, { content: new Uint8Array(2e7) })
        await assert.rejects(call, WriteError, then)
        assert.equal(Atomics.load(control, 0) - sent, 1, then)
      }
    } finally {
      await client.close()
    }
  })
}

test('a slow reader gets all that has arrived before a reset', async () => {
  // The client stops reading at the last byte of the first part.
  const [large, small] = ['x'.repeat(256 * 1024), 'y'.repeat(1_000)]
  // The server reads nothing, so that closing is a reset.
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length + 1_000}\r\n\r\n${large}`)
  })
  await using served = await listen(server)
  await using client = new AsyncClient()
  await using response = await client.stream('GET', served.origin)
  // The client takes each part in on its own, before the reader takes anything.
  const [connection] = [...served.sockets]
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  await new Promise((resolve) => connection!.write('', resolve))
  await turns()
  await new Promise((resolve) => connection!.write(small, resolve))
  await turns()
  connection!.destroy()
  await once(connection!, 'close')
  await turns()
  assert.equal((await response.read()).length, large.length + 1_000)
})

test('an answer to a whole request that ends with the connection is cut short by a reset', async () => {
  // The server reads nothing, so that closing is a reset.
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\nbegin')
  })
  await using served = await listen(server)
  await using client = new AsyncClient()
  await using response = await client.stream('GET', served.origin)
  const [connection] = [...served.sockets]
  connection!.destroy()
  await assert.rejects(Promise.resolve(response.read()), ReadError)
})
