import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import {
  AsyncResponse,
  Client,
  ClientStateError,
  HandlerTransport,
  Headers,
  MockTransport,
  PoolTimeoutError,
  Response,
  TimeoutError,
  TotalTimeoutError,
  WorkerError,
} from 'runwright/http'
import {
  sharedChannel,
  WORKER_TIMEOUTS,
} from '../../lib/http/transports/blocking/worker-channel.js'
import { serve } from '../helpers/serve.js'
import { compiled, withLoader } from '../helpers/programs.js'
import { Random } from '../helpers/random.js'
import { failure, testCa } from './both-clients.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
let app: Worker
let origin = ''
let secureOrigin = ''

before(async () => {
  app = new Worker(new URL('../fixtures/http/app-worker.mjs', import.meta.url), { execArgv: [] })
  const [{ port, securePort }] = (await once(app, 'message')) as [
    { port: number; securePort: number },
  ]
  origin = `http://127.0.0.1:${port}`
  secureOrigin = `https://127.0.0.1:${securePort}`
})
after(() => app.terminate())

test('connections are kept between calls', () => {
  using client = new Client({ baseUrl: origin })
  const count = client.get('/connections').text
  for (let i = 0; i < 5; i++) assert.equal(client.get('/connections').text, count)
})

test('a call that gets no connection reports the pool, not the server', () => {
  using client = new Client({ baseUrl: origin, limits: { maxConnections: 1 } })
  using _response = client.stream('GET', '/bytes?n=50000000')
  assert.throws(() => client.get('/bytes?n=1', { timeout: { pool: 20 } }), (error) => {
    assert.ok(error instanceof PoolTimeoutError)
    assert.match(error.message, /1 are in use/)
    assert.doesNotMatch(error.message, /AsyncClient/)
    return true
  })
})

test('a call returns its response, not a promise', () => {
  using client = new Client({ baseUrl: origin })
  const response = client.get('/bytes?n=2')
  assert.ok(response instanceof Response)
  assert.equal(response.text, 'aa')
})

test('a call to a server on the same thread times out with an error that says why', async () => {
  await using server = await serve((_request, response) => response.end('never'))
  using client = new Client({ timeout: 100 })
  assert.throws(
    () => client.get(server.origin),
    (error) =>
      error instanceof TimeoutError && /runs on the thread that called Client/.test(error.message),
  )
})

test('a dead worker is noticed, and the next call starts a new one', () => {
  using client = new Client({ baseUrl: origin })
  const response = client.stream('GET', '/bytes?n=50000000')
  sharedChannel().terminate()
  assert.throws(() => response.read(), WorkerError)
  assert.equal(client.get('/bytes?n=3').text, 'aaa')
})

test('a worker that hangs is replaced, however short the limits of the calls', async (t) => {
  if (process.platform !== 'linux') return t.skip('mkfifo')
  const folder = mkdtempSync(join(tmpdir(), 'runwright-client-'))
  const pipe = join(folder, 'keys')
  execFileSync('mkfifo', [pipe])
  const timeouts = { ...WORKER_TIMEOUTS }
  Object.assign(WORKER_TIMEOUTS, { sleepMs: 10, stuckMs: 150 })
  // A key log that is a pipe without a reader stops the worker in the middle of a system call.
  process.env['SSLKEYLOGFILE'] = pipe
  try {
    using hanging = new Client({ baseUrl: secureOrigin, verify: testCa, timeout: { total: 40 } })
    const stuck = sharedChannel()
    const errors: Error[] = []
    while (!(errors.at(-1) instanceof WorkerError)) {
      assert.ok(errors.length < 100, 'the hanging worker was not noticed')
      errors.push(await failure(() => hanging.get('/bytes?n=1')))
    }
    assert.match(errors.at(-1)!.message, /hangs; it was replaced/)
    assert.ok(
      errors.slice(0, -1).every((error) => error instanceof TotalTimeoutError),
      String(errors),
    )
    assert.equal(stuck.alive, false)
    Object.assign(WORKER_TIMEOUTS, timeouts)
    using client = new Client({ baseUrl: origin })
    assert.equal(client.get('/bytes?n=3').text, 'aaa')
    assert.notEqual(sharedChannel(), stuck)
  } finally {
    Object.assign(WORKER_TIMEOUTS, timeouts)
    delete process.env['SSLKEYLOGFILE']
    closeSync(openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK))
    rmSync(folder, { recursive: true })
  }
})

test('two streams may be read alternately, with calls in between', () => {
  using client = new Client({ baseUrl: origin })
  const one = client.stream('GET', '/bytes?n=3000000').iterBytes({ chunkSize: 1_000_000 })
  const two = client.stream('GET', '/bytes?n=3000000').iterBytes({ chunkSize: 1_000_000 })
  for (let i = 0; i < 3; i++) {
    assert.equal(one.next().value?.length, 1_000_000)
    assert.equal(client.get('/bytes?n=1').text, 'a')
    assert.equal(two.next().value?.length, 1_000_000)
  }
  assert.equal(one.next().done, true)
})

test('an upload is pulled on demand, and may itself make calls', () => {
  using client = new Client({ baseUrl: origin })
  const content = function* (): Generator<string> {
    for (let i = 0; i < 3; i++) yield client.get('/bytes?n=2').text
  }
  assert.equal(client.post('/echo', { content: content() }).json<{ body: string }>().body, 'aaaaaa')
})

test('an error thrown by an upload ends the call with that error', () => {
  using client = new Client({ baseUrl: origin })
  const broken = new Error('no more')
  const content = function* (): Generator<string> {
    yield 'a'
    throw broken
  }
  assert.throws(() => client.post('/echo', { content: content() }), (error) => error === broken)
  assert.equal(client.get('/bytes?n=1').text, 'a')
})

test('asynchronous bodies, hooks and transports are rejected', () => {
  const rejects = (call: () => unknown): void => assert.throws(call, ClientStateError)
  using client = new Client({ baseUrl: origin })
  rejects(() => client.post('/echo', { content: (async function* () { yield 'a' })() }))
  using hooked = new Client({ baseUrl: origin, eventHooks: { request: [async () => {}] } })
  rejects(() => hooked.get('/echo'))
  using mocked = new Client({ transport: new MockTransport(async () => new AsyncResponse(200)) })
  rejects(() => mocked.get('http://a.test/'))
})

test('a blocking client needs a handler that responds synchronously', () => {
  using client = new Client({
    transport: new HandlerTransport((request, response) => {
      if (request.url === '/later') setImmediate(() => response.end())
      else response.end(`${request.method} ${request.url}`)
    }),
    baseUrl: 'http://app.test',
  })
  assert.equal(client.post('/now', { json: 1 }).text, 'POST /now')
  assert.throws(() => client.get('/later'), ClientStateError)
})

test('a client works inside another worker', async () => {
  const module = new URL('../../lib/http/index.ts', import.meta.url).href
  const code = `
    import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then(async (tsx) => {
      tsx.register()
      const { Client } = await import(${JSON.stringify(module)})
      const client = new Client({ baseUrl: ${JSON.stringify(origin)} })
      require('node:worker_threads').parentPort.postMessage(client.get('/bytes?n=4').text)
    })`
  const worker = new Worker(code, { eval: true, execArgv: [] })
  const [text] = (await once(worker, 'message')) as [string]
  assert.equal(text, 'aaaa')
  await worker.terminate()
})

test('the process ends by itself even if the client is not closed', async () => {
  const script = `
    import { Client } from 'runwright/http'
    console.log(new Client({ baseUrl: ${JSON.stringify(origin)} }).get('/bytes?n=1').text)`
  const run = promisify(execFile)
  const args = [...(compiled === undefined ? withLoader : []), '--input-type=module', '-e', script]
  const { stdout } = await run(process.execPath, args, { cwd: compiled ?? root, timeout: 60_000 })
  assert.equal(stdout, 'a\n')
})

test('a proxy may be a URL and have headers of any kind, which are sent to the worker', () => {
  const basic = `Basic ${Buffer.from('u:p').toString('base64')}`
  const address = new URL(origin)
  for (const proxy of [
    address,
    { url: address, auth: ['u', 'p'] as const },
    { url: origin, headers: new Headers({ 'Proxy-Authorization': basic, 'X-Team': 'blue' }) },
  ]) {
    using client = new Client({ proxy })
    const echo = client
      .get('http://a.test/echo?x')
      .json<{ url: string; headers: Record<string, string> }>()
    assert.equal(echo.url, 'http://a.test/echo?x')
    assert.equal(echo.headers['proxy-authorization'], proxy === address ? undefined : basic)
  }
})

test('options that only the worker uses are checked at construction', () => {
  assert.throws(
    () => new Client({ limits: { maxConnections: 0 } }),
    /limits\.maxConnections must be/,
  )
  assert.throws(() => new Client({ http1: false }), /http1 and http2/)
  assert.throws(() => new Client({ proxy: 'ftp://p.test' }), /proxy must be/)
})

test('400 calls that end at random, however they end, leave no connection open', () => {
  using client = new Client({
    baseUrl: origin,
    limits: { maxKeepaliveConnections: 1, maxConnections: 2 },
  })
  const stop = new Error('stop')
  const random = new Random(7)
  const signals: AbortSignal[] = []
  const outcomes = new Set<string>()
  for (let i = 0; i < 400; i++) {
    const controller = new AbortController()
    signals.push(controller.signal)
    const end = random.chance(0.5) ? () => controller.abort(stop) : () => { throw stop }
    const at = random.integer(0, 5)
    let count = 0
    const maybe = (): void => void (count++ === at && end())
    const content = function* (): Generator<Uint8Array> {
      for (let n = 0; n < 4; n++) {
        maybe()
        yield Buffer.alloc(random.integer(0, 100_000))
      }
    }
    const kind = random.integer(0, 4)
    const options = { signal: controller.signal, timeout: { read: kind === 4 ? 1 : 5_000 } }
    try {
      if (kind === 0) client.post('/echo', { ...options, content: content() })
      else if (kind === 1)
        client.get('/bytes?n=900000', { ...options, extensions: { onDownload: maybe } })
      else if (kind === 4) client.get('/never', options)
      else {
        using response = client.stream(
          'GET',
          kind === 2 ? '/bytes?n=3000000' : '/encoded?coding=gzip&text=ab&times=99999',
          options,
        )
        for (const chunk of response.iterBytes()) {
          assert.ok(chunk.length > 0)
          if (random.chance(0.2)) break
          maybe()
        }
      }
      outcomes.add('done')
    } catch (error) {
      outcomes.add(error === stop ? 'stop' : (error as Error).name)
    }
  }
  assert.deepEqual([...outcomes].sort(), ['ReadTimeoutError', 'done', 'stop'])
  assert.equal(
    signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0),
    0,
  )
  // The server responds once at most this connection and three others are open.
  using fresh = new Client({ baseUrl: origin, timeout: 30_000 })
  assert.ok(Number(fresh.get('/open?most=4').text) <= 4)
  assert.equal(client.get('/bytes?n=3').text, 'aaa')
})
