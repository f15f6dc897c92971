import assert from 'node:assert/strict'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { after, before, test, type TestContext } from 'node:test'
import threads, { Worker, type WorkerOptions } from 'node:worker_threads'
import { Client, WorkerError } from 'runwright/http'
import {
  sharedChannel,
  WORKER_TIMEOUTS,
} from '../../../../lib/http/transports/blocking/worker-channel.js'

/** The class itself: the name of the import follows what replaces it. */
const RealWorker = Worker
let app: Worker
let origin = ''

before(async () => {
  const file = new URL('../../../fixtures/http/app-worker.mjs', import.meta.url)
  app = new Worker(file, { execArgv: [] })
  const [{ port }] = (await once(app, 'message')) as [{ port: number }]
  origin = `http://127.0.0.1:${port}`
})
after(() => app.terminate())

function replaceWorker(replacement: typeof Worker): void {
  threads.Worker = replacement
  syncBuiltinESMExports()
}

/** Lets the next worker of `Client` start with other code or options, until the test is over. */
function nextWorker(t: TestContext, change: (code: string) => string, options: WorkerOptions = {}) {
  sharedChannel().terminate()
  t.after(() => replaceWorker(RealWorker))
  replaceWorker(
    class extends RealWorker {
      constructor(code: string | URL, given?: WorkerOptions) {
        super(change(String(code)), { ...given, ...options })
      }
    },
  )
}

/** The error of a call, which must come within the limit of the call. */
function failureOf(call: (client: Client) => unknown): WorkerError {
  using client = new Client({ baseUrl: origin, timeout: 5_000 })
  const began = performance.now()
  let caught: unknown = null
  try {
    call(client)
  } catch (error) {
    caught = error
  }
  assert.ok(performance.now() - began < 5_000)
  assert.ok(caught instanceof WorkerError, String(caught))
  return caught
}

const get = (client: Client): unknown => client.get('/bytes?n=3')

/** A worker that ends while a call waits for its response. */
const inTheMiddle = (code: string) => (worker: string) =>
  `${worker}
  process.getBuiltinModule('node:worker_threads').workerData.port.once('message', () => {
    setTimeout(() => { ${code} }, 20)
  })`

// Large pieces: over small ones, newer versions of V8 collect garbage for many seconds first.
const OUT_OF_MEMORY = 'const all = []; for (;;) all.push(new Array(200_000).fill(0.5))'
const SMALL: WorkerOptions = { resourceLimits: { maxOldGenerationSizeMb: 16 } }

const ENDS: readonly [string, (code: string) => string, RegExp, WorkerOptions?][] = [
  ['does not parse', (code) => `${code}\n)`, /out of memory, or was ended by a module/],
  [
    'throws when it starts',
    (code) => code.replace(/\n}\n/, "\n}\nthrow new Error('boom');\n"),
    /boom/,
  ],
  ['rejects when it starts', (code) => `${code}\nPromise.reject(new Error('boom'))`, /boom/],
  ['exits when it starts', (code) => `${code}\nprocess.exit(3)`, /process\.exit\(3\)/],
  ['ends before its first line', (code) => `process.reallyExit(0)\n${code}`, /NODE_OPTIONS/],
  ['has no memory to start', (code) => OUT_OF_MEMORY + code, /ran out of memory/, SMALL],
  ['throws in the middle', inTheMiddle("throw new Error('boom')"), /boom/],
  ['exits in the middle', inTheMiddle('process.exit(3)'), /process\.exit\(3\)/],
  ['runs out of memory in the middle', inTheMiddle(OUT_OF_MEMORY), /ran out of memory/, SMALL],
]
for (const [name, change, reason, options] of ENDS) {
  test(`a worker that ${name} fails the call with the reason, and the next call works`, (t) => {
    nextWorker(t, change, options)
    const error = failureOf((client) => client.get('/never'))
    assert.match(error.message, reason)
    assert.match(String((error.cause as Error).message), reason)
    replaceWorker(RealWorker)
    using client = new Client({ baseUrl: origin })
    assert.equal(client.get('/bytes?n=3').text, 'aaa')
  })
}

test('a worker that hangs when it starts fails the call at its own limit', (t) => {
  nextWorker(t, (code) => `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)\n${code}`)
  const { leastStartMs } = WORKER_TIMEOUTS
  t.after(() => (WORKER_TIMEOUTS.leastStartMs = leastStartMs))
  WORKER_TIMEOUTS.leastStartMs = 10
  for (const timeout of [{ total: 60 }, { connect: 60 }]) {
    const error = failureOf((client) => client.get('/bytes?n=3', { timeout }))
    assert.match(error.message, /did not start within 60 ms/)
  }
})

test('a worker that cannot be started fails the call at once', (t) => {
  nextWorker(t, (code) => code, { execArgv: ['--title=no'] })
  const error = failureOf(get)
  assert.match(error.message, /cannot be started/)
  assert.ok(error.cause instanceof Error)
})

test('a thread that may not block is told from one whose worker fails', (t) => {
  sharedChannel().terminate()
  t.mock.method(Atomics, 'wait', () => {
    throw new TypeError('Atomics.wait cannot be called in this context')
  })
  assert.match(failureOf(get).message, /thread that may block.*use AsyncClient/)
})
