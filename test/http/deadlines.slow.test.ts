import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import {
  AsyncClient,
  Client,
  TotalTimeoutError,
  type AsyncClientOptions,
  type AsyncResponse,
} from 'runwright/http'
import { sleepSync } from '../../lib/internal/time.js'
import { testCa } from './both-clients.js'

/** Time limit of every call; the tests block the thread for longer. */
const LIMIT_MS = 1_500
const BYTES = 100_000
const UPLOAD = new Uint8Array(24 * 1024 * 1024)

const control = new Int32Array(new SharedArrayBuffer(8))
let worker: Worker
let ports: Record<string, number>

before(async () => {
  const file = new URL('../fixtures/http/late-worker.mjs', import.meta.url)
  worker = new Worker(file, { workerData: { control }, execArgv: [] })
  ;[ports] = (await once(worker, 'message')) as [Record<string, number>]
})

after(async () => {
  worker.postMessage('close')
  await once(worker, 'exit')
})

const protocols = ['HTTP/1.1', 'HTTP/1.1 and TLS', 'HTTP/2', 'HTTP/2 and TLS']

function clientOf(protocol: string, options: AsyncClientOptions = {}): AsyncClient {
  const [http2, tls] = [protocol.startsWith('HTTP/2'), protocol.includes('TLS')]
  return new AsyncClient({
    baseUrl: `${tls ? 'https' : 'http'}://127.0.0.1:${ports[protocol]}`,
    verify: testCa,
    http2,
    http1: !http2,
    ...options,
  })
}

const NONE = { connect: null, read: null, write: null, pool: null, total: null }

/** A call that waits under one limit. `waits` resolves when it is in that phase. */
interface Waiting {
  readonly what: string
  readonly result: Promise<number>
}

/** Starts one call for each limit, except the one that opens a connection. */
async function startCalls(protocol: string, clients: AsyncClient[]): Promise<Waiting[]> {
  const client = clientOf(protocol)
  const single = clientOf(protocol, { limits: { maxConnections: 1 } })
  clients.push(client, single)
  const arrivals = new Map<string, () => void>()
  const onMessage = (path: string): void => arrivals.get(path)?.()
  worker.on('message', onMessage)
  const arrived = (path: string): Promise<void> =>
    new Promise((resolve) => arrivals.set(path, resolve))
  const size = async (call: Promise<AsyncResponse>): Promise<number> =>
    (await call).content.length
  const calls: Waiting[] = []
  const start = async (what: string, path: string, result: Promise<number>): Promise<void> => {
    result.catch(() => {})
    calls.push({ what: `${protocol}, ${what}`, result })
    await arrived(path)
  }
  await start('read, before the head', '/head', size(
    client.get('/head', { timeout: { ...NONE, read: LIMIT_MS } }),
  ))
  const body = async (): Promise<number> => {
    const timeout = { ...NONE, read: LIMIT_MS }
    await using response = await client.stream('GET', '/body', { timeout })
    return (await response.read()).length - BYTES
  }
  await start('read, within the body', '/body', body())
  await start('total', '/total', size(
    client.get('/total', { timeout: { ...NONE, total: LIMIT_MS } }),
  ))
  const upload = client.post('/upload', {
    content: UPLOAD,
    timeout: { ...NONE, write: LIMIT_MS, read: LIMIT_MS },
  })
  await start('write', '/upload', upload.then((response) => {
    assert.equal(response.text, String(UPLOAD.length))
    return BYTES
  }))
  if (!protocol.startsWith('HTTP/2')) {
    await start('the only connection', '/only', size(single.get('/only', { timeout: NONE })))
    const waiter = size(single.get('/at-once', { timeout: { ...NONE, pool: LIMIT_MS } }))
    waiter.catch(() => {})
    calls.push({ what: `${protocol}, pool`, result: waiter })
  }
  worker.off('message', onMessage)
  return calls
}

/** Starts a call that must open a connection: its limit begins before the thread is blocked. */
function startConnect(protocol: string, clients: AsyncClient[]): Waiting {
  const client = clientOf(protocol)
  clients.push(client)
  const call = client.get('/at-once', { timeout: { ...NONE, connect: LIMIT_MS } })
  const result = call.then((response) => response.content.length)
  result.catch(() => {})
  return { what: `${protocol}, connect`, result }
}

test('no limit passes while the thread is blocked and what it waits for arrives', async () => {
  const clients: AsyncClient[] = []
  try {
    const calls: Waiting[] = []
    for (const protocol of protocols) calls.push(...(await startCalls(protocol, clients)))
    for (const protocol of protocols) calls.push(startConnect(protocol, clients))
    // From here on the thread is blocked. All responses arrive but those of uploads, which cannot
    // go on, and of calls that have not been sent.
    Atomics.store(control, 0, 1)
    Atomics.notify(control, 0)
    const unsent = / (write|pool|connect)$/
    const expected = calls.filter(({ what }) => !unsent.test(what)).length
    for (let seen = 0; seen < expected; seen = Atomics.load(control, 1)) {
      assert.notEqual(Atomics.wait(control, 1, seen, 20_000), 'timed-out', 'the server answers')
    }
    // Each limit grants as much time as it is late: a handshake beside uploads needs some.
    sleepSync(2 * LIMIT_MS)
    const outcomes = await Promise.allSettled(calls.map(({ result }) => result))
    const failures = outcomes.flatMap((outcome, at) =>
      outcome.status === 'fulfilled' && outcome.value === BYTES
        ? []
        : [`${calls[at]!.what}: ${outcome.status === 'rejected' ? outcome.reason : outcome.value}`],
    )
    assert.deepEqual(failures, [])
  } finally {
    for (const client of clients) await client.close()
  }
})

test('Client: what has arrived when the total time is up is returned', () => {
  const total = 1_000
  using client = new Client({ baseUrl: `http://127.0.0.1:${ports['HTTP/1.1']}` })
  client.get('/at-once') // the thread behind the client runs
  const sent = Atomics.load(control, 1)
  function* content(): Generator<Uint8Array, void, undefined> {
    yield new Uint8Array(10)
    // The caller's own code takes too long; the server has answered meanwhile.
    assert.notEqual(Atomics.wait(control, 1, sent, 20_000), 'timed-out', 'the server answers')
    sleepSync(total)
    yield new Uint8Array(10)
  }
  const timeout = { ...NONE, total }
  assert.equal(client.post('/large', { content: content(), timeout }).content.length, 1_090_000)
})

test('Client: a response without end does not prolong the total time', () => {
  using client = new Client({ baseUrl: `http://127.0.0.1:${ports['HTTP/1.1']}` })
  assert.throws(() => client.get('/endless', { timeout: { total: 300 } }), TotalTimeoutError)
})

test('AsyncClient: a response without end does not prolong the total time', async () => {
  for (const protocol of protocols) {
    await using client = clientOf(protocol)
    await assert.rejects(client.get('/endless', { timeout: { total: 100 } }), TotalTimeoutError)
  }
})
