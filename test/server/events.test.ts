import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { RawPeer } from '../helpers/raw-peer.js'
import { openService, type Opened } from './open-service.js'
import { assertMessageDescribed } from './conformance.js'
import { FakeEngine } from './fake-engine.js'

/** Reads an event stream, event by event. */
class StreamReader {
  readonly response: IncomingMessage
  #text = ''
  #ended = false
  #wake: (() => void) | undefined

  private constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8')
    response.on('data', (text: string) => {
      this.#text += text
      this.#wake?.()
    })
    response.on('close', () => {
      this.#ended = true
      this.#wake?.()
    })
    response.on('error', () => {})
  }

  static async open(
    opened: Opened,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<StreamReader> {
    const request = httpRequest({
      port: opened.port,
      host: '127.0.0.1',
      path,
      headers: { accept: 'text/event-stream', ...headers },
      agent: false,
    }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return new StreamReader(response)
  }

  /** The next block of lines, without its trailing empty line; null at the end. */
  async block(): Promise<string | null> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end !== -1) {
        const block = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        const data = block.split('\n').find((line) => line.startsWith('data: '))
        if (data !== undefined) assertMessageDescribed(JSON.parse(data.slice('data: '.length)))
        return block
      }
      if (this.#ended) return null
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Ids of all events up to the end. */
  async ids(): Promise<number[]> {
    const ids: number[] = []
    for (let block = await this.block(); block !== null; block = await this.block()) {
      const id = /^id: (\d+)$/m.exec(block)?.[1]
      if (id !== undefined) ids.push(Number(id))
    }
    return ids
  }
}

function finished(engine: FakeEngine, events: number): string {
  const runId = engine.add()
  engine.log(runId, events - 2)
  engine.finish(runId)
  return runId
}

const upTo = (last: number, first = 1): number[] =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i)

test('an event stream replays the log, follows it live and ends after run_end', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.log(runId, 2)
  await using opened = await openService({ engine })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events`)
  assert.equal(reader.response.headers['content-type'], 'text/event-stream')
  assert.match(reader.response.headers['cache-control']!, /no-transform/)
  assert.match((await reader.block())!, /^retry: \d+$/)
  const [id, data] = (await reader.block())!.split('\n')
  assert.equal(id, 'id: 1')
  assert.equal(data, `data: ${JSON.stringify(engine.runs.get(runId)!.events[0])}`)
  engine.log(runId, 1, 'line\nbreaks\r\n and \u2028')
  engine.finish(runId)
  assert.deepEqual(await reader.ids(), [2, 3, 4, 5])
})

for (const { query, lastEventId, gives } of [
  { query: '', gives: upTo(6) },
  { query: '?after=0', gives: upTo(6) },
  { query: '?after=4', gives: [5, 6] },
  { query: '?after=1', lastEventId: '4', gives: [5, 6] },
  { query: '?after=5', lastEventId: '', gives: [6] },
  { query: '?kinds=run_end', gives: [6] },
  { query: '?kinds=run_started,run_end&after=0', gives: [1, 6] },
  // An EventSource reconnects with its last id, and stops only at the id of the log's end.
  { query: '?kinds=run_started', gives: [1, 6] },
  { query: '?deltas=1', gives: upTo(6) },
] as { query: string; lastEventId?: string; gives: number[] }[]) {
  const id = lastEventId ?? '(absent)'
  test(`events${query} with Last-Event-ID ${id} gives ${gives}`, async () => {
    const engine = new FakeEngine()
    const runId = finished(engine, 6)
    await using opened = await openService({ engine })
    const headers: Record<string, string> =
      lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const reader = await StreamReader.open(opened, `/api/runs/${runId}/events${query}`, headers)
    assert.equal(reader.response.statusCode, 200)
    assert.deepEqual(await reader.ids(), gives)
  })
}

test('what follows run_end is part of every stream, and an EventSource stops behind it', async () => {
  const engine = new FakeEngine()
  const runId = finished(engine, 4)
  engine.append(runId, 'changes_decided', { changes: 'applied', by: null })
  engine.append(runId, 'changes_decided', { changes: 'pending', by: null })
  await using opened = await openService({ engine })
  const path = `/api/runs/${runId}/events`
  for (const { query, lastEventId, gives } of [
    { query: '', gives: upTo(6) },
    { query: '', lastEventId: '4', gives: [5, 6] },
    // The last id without data leads behind what the filter leaves out.
    { query: '?kinds=run_end', gives: [4, 6] },
    { query: '?kinds=run_end', lastEventId: '4', gives: [6] },
    { query: '?kinds=changes_decided', gives: [5, 6] },
  ] as const) {
    const headers: Record<string, string> =
      lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const reader = await StreamReader.open(opened, `${path}${query}`, headers)
    assert.deepEqual(await reader.ids(), gives, `${query} after ${lastEventId}`)
  }
  const headers = { accept: 'text/event-stream', 'last-event-id': '6' }
  assert.equal((await opened.call('GET', path, { headers })).status, 204)
  using socket = await opened.socket(`/api/ws/${runId}?after=4`)
  const { events, code } = await socket.rest()
  assert.deepEqual([events.map(({ seq }) => seq), code], [[5, 6], 1000])
})

for (const { query, lastEventId, status, code } of [
  { query: '?after=6', status: 204 },
  { query: '?after=-1', status: 204 },
  { query: '', lastEventId: '6', status: 204 },
  { query: '?after=7', status: 409, code: 'cursor_ahead' },
  { query: '', lastEventId: '7', status: 409, code: 'cursor_ahead' },
  { query: '', lastEventId: 'x', status: 422, code: 'invalid_request' },
  { query: '?after=-2', status: 422, code: 'invalid_request' },
  { query: '?after=1.5', status: 422, code: 'invalid_request' },
  { query: '?after=', status: 422, code: 'invalid_request' },
  { query: '?after=1&after=2', status: 422, code: 'invalid_request' },
  { query: '?kinds=run_ended', status: 422, code: 'invalid_request' },
] as { query: string; lastEventId?: string; status: number; code?: string }[]) {
  test(`an ended run at ${query || lastEventId} is ${status} ${code ?? ''}`, async () => {
    const engine = new FakeEngine()
    const runId = finished(engine, 6)
    await using opened = await openService({ engine })
    const answer = await opened.call('GET', `/api/runs/${runId}/events${query}`, {
      headers: {
        accept: 'text/event-stream',
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      },
    })
    assert.equal(answer.status, status)
    if (code === undefined) assert.equal(answer.text, '')
    else assert.equal(answer.json.code, code)
  })
}

test('a stream with after=-1 has new events only', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.log(runId, 5)
  await using opened = await openService({ engine })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events?after=-1`)
  await reader.block()
  engine.finish(runId)
  assert.deepEqual(await reader.ids(), [7])
})

test('comments are sent regularly to readers that keep up', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine, streams: { commentMs: 5 } })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events?after=1`)
  await reader.block()
  assert.match((await reader.block())!, /^:/)
  assert.match((await reader.block())!, /^:/)
})

test('the subscription of a reader that disconnects is closed', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events`)
  await reader.block()
  const { readers } = engine.runs.get(runId)!
  assert.equal(readers.size, 1)
  reader.response.destroy()
  // This response is sent after the reset was seen.
  while (readers.size > 0) await opened.call('GET', '/api/models')
})

test('a reader that takes nothing is disconnected; only its socket buffers for it', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine, streams: { stuckMs: 50 } })
  const accepted = once(opened.served.server, 'connection') as Promise<[Socket]>
  using peer = await RawPeer.connect(opened.port)
  const [socket] = await accepted
  peer.socket.pause()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  peer.write(
    `GET /api/runs/${runId}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`,
  )
  engine.log(runId, 400, 'x'.repeat(50_000))
  await closed
  assert.equal(engine.runs.get(runId)!.readers.size, 0)
})

test('a slow reader is not stuck', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.log(runId, 300, 'x'.repeat(20_000))
  engine.finish(runId)
  await using opened = await openService({ engine, streams: { stuckMs: 60_000 } })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events`)
  assert.deepEqual(await reader.ids(), upTo(302))
})

test('when the service closes, streams end without run_end, and readers reconnect', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events`)
  await reader.block()
  await opened.service.close()
  assert.deepEqual(await reader.ids(), [1])
})

test('a log that cannot be read ends the stream and is reported to the host', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  const subscribe = engine.subscribe
  let fail = (_error: Error): void => {}
  const failure = new Promise<Error>((resolve) => (fail = resolve))
  Object.assign(engine, {
    subscribe: async (...args: Parameters<typeof subscribe>) => {
      const subscription = await subscribe(...args)
      const { next } = subscription
      subscription.next = async () => {
        if (subscription.position > 0) throw await failure
        return next.call(subscription)
      }
      return subscription
    },
  })
  await using opened = await openService({ engine })
  const reader = await StreamReader.open(opened, `/api/runs/${runId}/events`)
  await reader.block()
  fail(new Error('disk'))
  assert.deepEqual(await reader.ids(), [1])
  assert.match(String(opened.errors[0]), /disk/)
})

test('without Accept, or with JSON, the log comes in linked pages', async () => {
  const engine = new FakeEngine()
  const runId = finished(engine, 5)
  await using opened = await openService({ engine })
  const path = `/api/runs/${runId}/events`
  const all = await opened.call('GET', path)
  assert.deepEqual(all.json, engine.runs.get(runId)!.events)
  assert.equal(all.headers['link'], undefined)
  const seqs: number[] = []
  let next: string | undefined = `${path}?limit=2`
  while (next !== undefined) {
    const page: Awaited<ReturnType<typeof opened.call>> = await opened.call('GET', next, {
      headers: { accept: 'application/json' },
    })
    seqs.push(...page.json.map((event: { seq: number }) => event.seq))
    next = /^<(.*)>; rel="next"$/.exec(String(page.headers['link'] ?? ''))?.[1]
  }
  assert.deepEqual(seqs, [1, 2, 3, 4, 5])
  assert.deepEqual((await opened.call('GET', `${path}?after=5`)).json, [])
  assert.deepEqual((await opened.call('GET', `${path}?kinds=run_end`)).json.length, 1)
})

for (const { query, status, pointer } of [
  { query: '?after=6', status: 409, pointer: undefined },
  { query: '?after=-1', status: 422, pointer: '/after' },
  { query: '?limit=0', status: 422, pointer: '/limit' },
  { query: '?limit=10001', status: 422, pointer: '/limit' },
  { query: '?limit=ten', status: 422, pointer: '/limit' },
  { query: '?kinds=', status: 422, pointer: '/kinds' },
]) {
  test(`a page with ${query} is ${status}`, async () => {
    const engine = new FakeEngine()
    const runId = finished(engine, 5)
    await using opened = await openService({ engine })
    const answer = await opened.call('GET', `/api/runs/${runId}/events${query}`)
    assert.equal(answer.status, status)
    assert.equal(answer.json.errors?.[0].pointer, pointer)
    if (pointer !== undefined) assert.equal(answer.json.errors[0].in, 'query')
  })
}

test('a page of large events ends early and links to the next', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.log(runId, 300, 'x'.repeat(60_000))
  await using opened = await openService({ engine })
  const first = await opened.call('GET', `/api/runs/${runId}/events?limit=300`)
  const count: number = first.json.length
  assert.ok(count >= 64 && count <= 128, String(count))
  const link = `</api/runs/${runId}/events?limit=300&after=${count}>; rel="next"`
  assert.equal(first.headers['link'], link)
})

test('HEAD of a stream returns its type and does not follow the run', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const answer = await opened.call('HEAD', `/api/runs/${runId}/events`, {
    headers: { accept: 'text/event-stream' },
  })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'text/event-stream')
  assert.equal(engine.runs.get(runId)!.readers.size, 0)
})
