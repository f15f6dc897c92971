import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { FileStore, type AgentEvent } from 'runwright/agent'
import { HandlerTransport } from 'runwright/http'
import { createRunService, RunServiceClient, type RunService } from 'runwright/server'
import { scratch, testProvider } from '../../helpers/engine.js'
import { HeldTimers } from '../../helpers/held-timers.js'
import { listen } from '../../helpers/serve.js'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'
import { openReal } from '../real.js'

/** A client of a handler that is not a run service. */
function clientOf(handler: RequestListener): RunServiceClient {
  const transport = new HandlerTransport(handler)
  return new RunServiceClient({ baseUrl: 'http://localhost', transport, retry: null })
}

const STREAM = { 'content-type': 'text/event-stream' }
const RUN = '01930000-0000-7000-8000-000000000001'

/** An event in the framing of a stream. */
function line(seq: number, kind = 'log'): string {
  return `id: ${seq}\ndata: ${JSON.stringify({ seq, kind, payload: {} })}\n\n`
}

async function collect(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const list: AgentEvent[] = []
  for await (const event of events) list.push(event)
  return list
}

const seqs = (events: readonly AgentEvent[]): number[] => events.map(({ seq }) => seq)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

test('an ended run is read from its first event to its last', async (t) => {
  const { service } = await openReal(t)
  await using runs = RunServiceClient.inProcess(service)
  const { run_id } = await runs.create({ goal: 'shell: true' })
  const live = await collect(runs.events(run_id))
  assert.deepEqual(seqs(live), upTo(live.length))
  assert.equal(live.at(-1)?.kind, 'run_end')
  assert.deepEqual(await collect(runs.events(run_id)), live)
  assert.deepEqual(
    seqs(await collect(runs.events(run_id, { after: 2 }))),
    upTo(live.length).slice(2),
  )
  assert.deepEqual(await collect(runs.events(run_id, { after: -1 })), [])
})

test('connections that are cut after every event lose and repeat nothing', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  const runId = engine.add()
  let connections = 0
  const cutting: RequestListener = (request, response) => {
    connections += 1
    const write = response.write.bind(response)
    response.write = ((text: string) => {
      const isOver = engine.runs.get(runId)!.end !== undefined
      // The last event of each connection is truncated, until the run is over.
      const cut =
        isOver || text.startsWith('retry')
          ? text
          : text.slice(0, text.length - 1 - (connections % 9))
      const taken = write(cut)
      if (cut !== text) setImmediate(() => response.destroy())
      else if (!isOver) engine.log(runId, 1)
      return taken
    }) as typeof response.write
    opened.service.handler(request, response)
  }
  await using runs = clientOf(cutting)
  const seen: number[] = []
  for await (const { seq } of runs.events(runId, { reconnectMs: 0 })) {
    seen.push(seq)
    if (seq === 40) engine.finish(runId)
  }
  assert.deepEqual(seen, upTo(engine.runs.get(runId)!.events.length))
  assert.ok(connections > 5, `only ${connections} connections`)
})

test('a restart of the service in the middle of a run does not show in its events', async (t) => {
  const root = scratch(t)
  const directory = scratch(t)
  const server = await listen(createServer())
  t.after(() => server.close())
  let current: RequestListener | null = null
  server.server.on('request', (request, response) => {
    if (current === null) request.socket.destroy()
    else current(request, response)
  })
  const start = async (): Promise<RunService> => {
    const service = await createRunService({
      engine: {
        store: new FileStore({ directory }),
        roots: [root],
        providers: [testProvider(() => ({ text: 'nothing' }))],
        defaultModel: 'test:m',
      },
    })
    current = service.handler
    return service
  }
  let service = await start()
  await using runs = new RunServiceClient({ baseUrl: server.origin, trustEnv: false, retry: null })
  const request = { goal: 'shell: false', hitl_enabled: true, max_iterations: 4 }
  const { run_id } = await runs.create(request)
  const events: AgentEvent[] = []
  let restarts = 0
  for await (const event of runs.events(run_id, { reconnectMs: 1, maxFailures: 10_000 })) {
    events.push(event)
    if (event.kind !== 'human_check_required') continue
    current = null
    await service.close({ graceMs: 0 })
    service = await start()
    restarts += 1
    const { gate_id } = event.payload
    await runs.resume(run_id, { decision: 'approve', gate_id })
  }
  t.after(() => service.close({ graceMs: 0 }))
  assert.ok(restarts >= 2)
  const { last_seq } = await runs.get(run_id)
  assert.deepEqual(seqs(events), upTo(last_seq))
  assert.equal(events.at(-1)?.kind, 'run_end')
})

test('with a filter only those kinds are yielded, and the end is still found', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  const runId = engine.add()
  engine.log(runId, 3)
  engine.finish(runId)
  const kinds = (await collect(runs.events(runId, { kinds: ['run_started'] }))).map(
    ({ kind }) => kind,
  )
  assert.deepEqual(kinds, ['run_started'])
})

test('a reader of live events loses none of them when its first connection is lost', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  const runId = engine.add()
  engine.log(runId, 4)
  let streams = 0
  await using runs = clientOf((request, response) => {
    if (request.url?.includes('/events') === true && streams++ === 0) {
      response.writeHead(200, STREAM).write(': hello\n\n')
      engine.log(runId, 2)
      engine.finish(runId)
      response.destroy()
    } else opened.service.handler(request, response)
  })
  assert.deepEqual(
    seqs(await collect(runs.events(runId, { after: -1, reconnectMs: 0 }))),
    [6, 7, 8],
  )
})

test('an unknown or deleted run ends the iteration with an error', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  const gone = { name: 'RunServiceError', code: 'run_not_found', status: 404 }
  await assert.rejects(collect(runs.events(RUN)), gone)
  const runId = engine.add()
  const events = runs.events(runId, { reconnectMs: 0 })
  assert.equal((await events.next()).value?.seq, 1)
  engine.endReaders(runId, 'deleted')
  engine.runs.delete(runId)
  await assert.rejects(events.next(), gone)
  const other = engine.add()
  await assert.rejects(collect(runs.events(other, { after: 99 })), { code: 'cursor_ahead' })
})

for (const { what, handler, error } of [
  {
    what: 'an unreachable service',
    handler: ((_, response) => response.destroy()) as RequestListener,
    error: { code: 'ERR_HTTP_REMOTE_PROTOCOL' },
  },
  {
    what: 'a service that answers 503',
    handler: ((_, response) => response.writeHead(503).end()) as RequestListener,
    error: { name: 'RunServiceError', status: 503 },
  },
  {
    what: 'a stream with a missing event',
    handler: ((_, response) =>
      response.writeHead(200, STREAM).end(line(1) + line(3))) as RequestListener,
    error: /event 3 came after 1/,
  },
  {
    what: 'a stream with data that is not an event',
    handler: ((_, response) =>
      response.writeHead(200, STREAM).end('data: {\n\n')) as RequestListener,
    error: /data that is not an event/,
  },
]) {
  test(`${what} fails after maxFailures`, async () => {
    let calls = 0
    await using runs = clientOf((request, response) => {
      calls += 1
      handler(request, response)
    })
    await assert.rejects(collect(runs.events(RUN, { reconnectMs: 0, maxFailures: 3 })), error)
    assert.equal(calls, 4)
  })
}

test('a silent connection is reopened at the cursor', async () => {
  const urls: string[] = []
  await using runs = clientOf((request, response) => {
    urls.push(request.url ?? '')
    response.writeHead(200, STREAM)
    if (urls.length === 1) response.write(line(1))
    else response.end(line(1) + line(2, 'run_end'))
  })
  using silences = new HeldTimers(4_321)
  const events = runs.events(RUN, { silenceMs: 4_321, reconnectMs: 0 })
  assert.equal((await events.next()).value?.seq, 1)
  const next = events.next()
  await new Promise((resolve) => setImmediate(resolve))
  silences.fire()
  assert.equal((await next).value?.seq, 2)
  assert.deepEqual(await collect(events), [])
  assert.deepEqual(
    urls.map((url) => new URL(url, 'http://a').searchParams.get('after')),
    ['0', '1'],
  )
})

test('a signal ends the iteration with its reason, also between connections', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  const runId = engine.add()
  for (const between of [false, true]) {
    const stop = new AbortController()
    const reason = new Error('enough')
    const events = runs.events(runId, { signal: stop.signal, reconnectMs: 60_000 })
    await events.next()
    const next = events.next()
    if (between) engine.endReaders(runId, 'shutdown')
    stop.abort(reason)
    await assert.rejects(next, reason)
    engine.runs.get(runId)!.end = undefined
  }
})

test('leaving the loop ends the stream', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  const runId = engine.add()
  await using runs = new RunServiceClient({ baseUrl: opened.served.origin, trustEnv: false })
  const closed = new Promise<unknown>((resolve) => {
    opened.served.server.once('request', (_, response) => resolve(once(response, 'close')))
  })
  for await (const { seq } of runs.events(runId)) {
    assert.equal(seq, 1)
    break
  }
  await (await closed)
  assert.equal(engine.runs.get(runId)!.readers.size, 0)
  assert.ok((opened.served.server.address() as AddressInfo).port > 0)
})

test('an invalid cursor is refused at once', async () => {
  await using runs = clientOf(() => assert.fail('called'))
  for (const after of [1.5, -2]) {
    await assert.rejects(collect(runs.events(RUN, { after })), RangeError)
  }
})

for (const transport of ['sse', 'websocket'] as const) {
  test(`what follows run_end is read over ${transport}, with and without a filter`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({ engine })
    const baseUrl = `http://127.0.0.1:${opened.port}`
    await using runs = new RunServiceClient({ baseUrl, trustEnv: false })
    const runId = engine.add()
    engine.log(runId, 2)
    engine.finish(runId)
    const decided = { changes: 'applied', by: null } as const
    engine.append(runId, 'changes_decided', decided)
    engine.append(runId, 'files_changed', {
      operation_id: 'o1', operation: 'apply', paths: ['a'], skipped: [], more: 0,
    })
    const read = async (more: object): Promise<number[]> =>
      seqs(await collect(runs.events(runId, { transport, reconnectMs: 0, ...more })))
    assert.deepEqual(await read({}), [1, 2, 3, 4, 5, 6])
    assert.deepEqual(await read({ after: 4 }), [5, 6])
    assert.deepEqual(await read({ after: 6 }), [])
    assert.deepEqual(await read({ kinds: ['log'] }), [2, 3])
    assert.deepEqual(await read({ kinds: ['run_end'] }), [4])
    assert.deepEqual(await read({ kinds: ['changes_decided'] }), [5])
    assert.deepEqual(await read({ kinds: ['changes_decided'], after: 4 }), [5])
    // Nothing that is wanted is left, but the cursor is not at the end of the log.
    assert.deepEqual(await read({ kinds: ['log'], after: 4 }), [])
    assert.equal((await runs.wait(runId, { transport })).status, 'achieved')
  })
}
