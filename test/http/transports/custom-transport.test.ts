import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as send, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import {
  AsyncClient,
  Client,
  ClientStateError,
  Headers,
  MockTransport,
  Request,
  Response,
  StreamConsumedError,
  type AsyncTransport,
  type BodyContent,
  type SyncByteStream,
  type Transport,
  type TransportResponse,
} from 'runwright/http'
import { serve } from '../../helpers/serve.js'
import { behaviour, failure, useApp } from '../both-clients.js'

useApp()

/** A transport that only uses the public API: it pipes each request to node:http. */
class NodeTransport implements AsyncTransport {
  async handleRequest(request: Request): Promise<TransportResponse> {
    const { method, url, signal } = request
    const headers = Object.fromEntries(request.headers.raw)
    const outgoing = send(url, { method, headers, ...(signal === null ? {} : { signal }) })
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
    answered.catch(() => {})
    await pipeline(Readable.from(request.iterBytes()), outgoing)
    const [incoming] = await answered
    return {
      statusCode: incoming.statusCode!,
      headers: new Headers(Object.entries(incoming.headers) as [string, string][]),
      stream: incoming,
    }
  }
}

const NODE_HTTP = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { port, flag } = workerData
  let outgoing
  const post = (message) => {
    port.postMessage(message)
    Atomics.add(flag, 0, 1)
    Atomics.notify(flag, 0)
  }
  port.on('message', ({ head, chunk }) => {
    if (head) {
      outgoing = require('node:http').request(head.url, head)
      outgoing.on('response', (incoming) => {
        const chunks = []
        incoming.on('data', (data) => chunks.push(data))
        incoming.on('end', () => post({ status: incoming.statusCode, chunks }))
      })
    } else if (chunk) outgoing.write(chunk, () => post({ written: chunk.length }))
    else outgoing.end()
  })
`

/** Its counterpart for Client: node:http runs on another thread, which gets piece by piece. */
class NodeTransportSync implements Transport {
  readonly #flag = new Int32Array(new SharedArrayBuffer(4))
  readonly #channel = new MessageChannel()
  readonly #worker: Worker

  constructor() {
    const workerData = { port: this.#channel.port2, flag: this.#flag }
    const transferList = [this.#channel.port2]
    this.#worker = new Worker(NODE_HTTP, { eval: true, execArgv: [], workerData, transferList })
    this.#worker.unref()
    this.#channel.port1.unref()
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> {
    const { method, url } = request
    const headers = Object.fromEntries(request.headers.raw)
    this.#channel.port1.postMessage({ head: { method, url: url.href, headers } })
    for (const chunk of request.iterBytesSync()) {
      this.#channel.port1.postMessage({ chunk })
      this.#receive()
    }
    this.#channel.port1.postMessage({})
    const { status, chunks } = this.#receive() as { status: number; chunks: Uint8Array[] }
    return { statusCode: status, headers: new Headers(), stream: chunks }
  }

  close(): void {
    void this.#worker.terminate()
  }

  #receive(): unknown {
    for (;;) {
      const seen = Atomics.load(this.#flag, 0)
      const received = receiveMessageOnPort(this.#channel.port1) as { message: unknown } | undefined
      if (received !== undefined) return received.message
      Atomics.wait(this.#flag, 0, seen)
    }
  }
}

interface Echo {
  body: string
  headers: Record<string, string>
}

/** Three pieces, counted when they are read. */
function pieces(): { content: Iterable<string>; read: number } {
  const counted = { content: [] as Iterable<string>, read: 0 }
  counted.content = (function* () {
    for (const piece of ['one ', 'two ', 'three']) {
      counted.read++
      yield piece
    }
  })()
  return counted
}

behaviour('a custom transport pipes bodies in pieces to node:http', async ({ make, origin }) => {
  const blocking = make() instanceof Client
  const transport = blocking ? new NodeTransportSync() : new NodeTransport()
  const client = make({ transport: transport as never, baseUrl: origin })
  const bodies: [object, string][] = [
    [{ content: 'text' }, 'text'],
    [{ json: { a: 1 } }, '{"a":1}'],
    [{ content: pieces().content }, 'one two three'],
    [{ content: new Blob(['blob']) }, 'blob'],
    [{ content: '' }, ''],
    [{}, ''],
  ]
  for (const [options, expected] of bodies) {
    const { body, headers } = (await client.post('/echo', options)).json<Echo>()
    assert.equal(body, expected)
    const chunked = 'content' in options && typeof options.content === 'object'
    if (!chunked) assert.equal(headers['content-length'], String(expected.length))
  }
  if (transport instanceof NodeTransportSync) transport.close()
})

test('a streaming body is read as the transport asks for it', async () => {
  const source = pieces()
  const request = new Request('POST', 'http://a.test/', { content: source.content })
  const iterator = request.iterBytes()
  assert.equal(source.read, 0)
  assert.equal(Buffer.from((await iterator.next()).value!).toString(), 'one ')
  assert.equal(source.read, 1)
  await iterator.return()
  assert.deepEqual([...source.content], [], 'the source was ended')
})

test('bodies say their length, and how often they can be iterated', async () => {
  const table: [BodyContent | undefined, length: number | null, again: boolean][] = [
    [undefined, 0, true],
    ['', 0, true],
    ['abc', 3, true],
    [new Blob(['abcd']), 4, true],
    [['ab', 'c'], null, true],
    [() => 'abc', null, true],
    [['abc'].values(), null, false],
    [Readable.from(['abc']), null, false],
  ]
  for (const [content, length, again] of table) {
    const request = new Request('POST', 'http://a.test/', content === undefined ? {} : { content })
    assert.equal(request.bodyLength, length)
    const read = async (): Promise<string> => {
      let text = ''
      for await (const chunk of request.iterBytes()) text += Buffer.from(chunk).toString()
      return text
    }
    const first = await read()
    if (again) assert.equal(await read(), first)
    else assert.ok((await failure(read)) instanceof StreamConsumedError)
  }
})

test('an asynchronous body has no blocking pieces', () => {
  const request = new Request('POST', 'http://a.test/', { content: Readable.from(['a']) })
  assert.throws(() => [...request.iterBytesSync()], ClientStateError)
  const blob = new Request('POST', 'http://a.test/', { content: new Blob(['a', 'b']) })
  assert.equal(Buffer.concat([...blob.iterBytesSync()]).toString(), 'ab')
})

test('a body that was read into memory can be iterated again', async () => {
  const request = new Request('POST', 'http://a.test/', { content: ['a', 'b'].values() })
  await request.read()
  assert.deepEqual([request.bodyLength, [...request.iterBytesSync()].length], [2, 1])
})

test('a source that fails ends the call with its error', async () => {
  await using server = await serve((request, response) => {
    request.resume()
    response.end()
  })
  await using client = new AsyncClient({ transport: new NodeTransport() })
  const content = (async function* () {
    yield 'a'
    throw new Error('source')
  })()
  assert.equal((await failure(() => client.post(server.origin, { content }))).message, 'source')
  const seen = new MockTransport(async (request) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request.iterBytes()) chunks.push(chunk)
    return new Response(200, { content: Buffer.concat(chunks) })
  })
  await using mocked = new AsyncClient({ transport: seen })
  const content2 = ['x', 'y'].values()
  assert.equal(await mocked.post('http://a.test/', { content: content2 }).text(), 'xy')
})
