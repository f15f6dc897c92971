import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Client, TotalTimeoutError, WorkerError } from 'runwright/http'
import {
  sharedChannel,
  WORKER_TIMEOUTS,
} from '../../lib/http/transports/blocking/worker-channel.js'
import { compiled, withLoader } from '../helpers/programs.js'
import { Random } from '../helpers/random.js'
import { failure, testCa } from './both-clients.js'
import { origin, secureOrigin } from './app-worker.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

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
