import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, RunEngine, type EngineOptions, type RunStore } from 'runwright/agent'
import { failingExecutor } from '../helpers/executor.js'
import { runToEnd, scratch, testProvider } from '../helpers/engine.js'
import { FakeEngine } from './fake-engine.js'
import { call, openService, SocketClient, type Opened } from './open-service.js'

/** Calls of a store or an `authorize` that wait for the test, as those of a slow disk do. */
class Gate {
  waiting = 0
  #shut: Promise<void> | undefined
  #open: () => void = () => undefined
  #onWait: () => void = () => undefined

  shut(): void {
    this.#shut = new Promise((resolve) => (this.#open = resolve))
  }

  open(): void {
    this.#open()
  }

  async pass(): Promise<void> {
    if (this.#shut === undefined) return
    this.waiting += 1
    this.#onWait()
    await this.#shut
  }

  /** Resolves once this many calls wait. */
  async holds(count: number): Promise<void> {
    while (this.waiting < count) await new Promise<void>((resolve) => (this.#onWait = resolve))
  }
}

const GATED = ['head', 'list', 'read', 'findByKey', 'append', 'delete']

/** A store whose calls pass `calls`; once it is closed, its `close()` passes `ending`. */
function gated(calls: Gate, ending: Gate, names: readonly unknown[] = GATED): RunStore {
  return new Proxy(new MemoryStore(), {
    get(store, name) {
      const value: unknown = Reflect.get(store, name, store)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]): Promise<unknown> => {
        if (names.includes(name)) await calls.pass()
        const result: unknown = await Reflect.apply(value, store, args)
        if (name === 'close') await ending.pass()
        return result
      }
    },
  })
}

type Request = readonly [method: string, path: string, body?: object | undefined, accept?: string]

/** Each kind of request that needs the store. */
const REQUESTS: readonly Request[] = [
  ['GET', '/api/runs'],
  ['GET', '/api/runs/RUN'],
  ['GET', '/api/runs/RUN/events'],
  ['GET', '/api/runs/RUN/events', undefined, 'text/event-stream'],
  ['POST', '/api/runs', { goal: 'shell: x' }],
  ['POST', '/api/runs/RUN/resume', { decision: 'approve' }],
  ['POST', '/api/runs/RUN/abort'],
  ['POST', '/api/runs/RUN/retry'],
  ['DELETE', '/api/runs/RUN'],
]
/** How often each of them, and an upgrade, is under way. */
const TIMES = 5
const UPGRADES = 10

/** A service with one run that has ended. */
async function ended(t: TestContext, owns: boolean, names?: readonly string[]) {
  const [calls, ending] = [new Gate(), new Gate()]
  const options: EngineOptions = {
    store: gated(calls, ending, names),
    roots: [scratch(t)],
    providers: [testProvider(() => ({ stop: 'refusal' }))],
    defaultModel: 'test:m',
    executor: failingExecutor,
  }
  const engine = owns ? undefined : await RunEngine.open(options)
  const opened = await openService({ engine: engine ?? options })
  t.after(async () => {
    calls.open()
    ending.open()
    await opened[Symbol.asyncDispose]()
    await engine?.close()
  })
  const { details } = await runToEnd(opened.service.engine as RunEngine, { goal: 'shell: x' })
  return { opened, engine, calls, ending, details }
}

interface Racing {
  readonly opened: Opened
  readonly engine: RunEngine | undefined
  readonly calls: Gate
  readonly ending: Gate
  /** The answers: what was asked, status, code, Retry-After. */
  readonly answers: Promise<readonly (readonly [string, number, unknown, boolean])[]>
}

/** A service with requests of every kind under way, all of which wait for the store. */
async function race(t: TestContext, owns: boolean): Promise<Racing> {
  const { details, ...world } = await ended(t, owns)
  const { calls, ending, opened } = world
  calls.shut()
  ending.shut()
  const { port } = opened
  const rest = REQUESTS.flatMap(([method, path, body, accept]) =>
    Array.from({ length: TIMES }, async () => {
      const answer = await call(port, method, path.replace('RUN', details.run_id), {
        ...(body !== undefined && { body }),
        ...(accept !== undefined && { headers: { accept } }),
      })
      const { code } = answer.json
      const later = answer.headers['retry-after'] !== undefined
      return [`${method} ${path}`, answer.status, code, later] as const
    }),
  )
  const upgrades = Array.from({ length: UPGRADES }, async () => {
    using client = await SocketClient.connect(port, `/api/ws/${details.run_id}`)
    const { code } = client.status === 101 ? { code: '' } : await client.problem()
    return ['upgrade', client.status, code, /^retry-after: \d+/im.test(client.head)] as const
  })
  await calls.holds(rest.length + upgrades.length)
  return { ...world, answers: Promise.all([...rest, ...upgrades]) }
}

async function assertDraining({ answers, opened }: Racing): Promise<void> {
  for (const answer of await answers)
    assert.deepEqual(answer.slice(1), [503, 'draining', true], answer[0])
  assert.deepEqual(opened.errors, [])
}

test('requests that reach a closed store while the service closes are 503 draining', async (t) => {
  const racing = await race(t, true)
  const closing = racing.opened.service.close({ graceMs: 0 })
  await racing.ending.holds(1)
  racing.calls.open()
  await assertDraining(racing)
  racing.ending.open()
  await closing
})

test('requests that reach a closed store after the service has closed are 503 draining', async (t) => {
  const racing = await race(t, true)
  racing.ending.open()
  await racing.opened.service.close({ graceMs: 0 })
  racing.calls.open()
  await assertDraining(racing)
})

test('requests that reach the store of an engine that its host closes are 503 draining', async (t) => {
  const racing = await race(t, false)
  const closing = racing.engine!.close()
  await racing.ending.holds(1)
  racing.calls.open()
  await assertDraining(racing)
  racing.ending.open()
  await closing
})

test('requests and upgrades whose caller is not known yet when it closes are 503 draining', async (t) => {
  const gate = new Gate()
  gate.shut()
  const opened = await openService({
    engine: {
      store: new MemoryStore(),
      roots: [scratch(t)],
    },
    authorize: async () => {
      await gate.pass()
      return { id: 'somebody', tenant: null }
    },
  })
  t.after(() => opened[Symbol.asyncDispose]())
  const run = '01930000-0000-7000-8000-000000000001'
  const request = call(opened.port, 'GET', '/api/runs')
  const upgrade = SocketClient.connect(opened.port, `/api/ws/${run}`)
  await gate.holds(2)
  await opened.service.close({ graceMs: 0 })
  gate.open()
  const answer = await request
  assert.deepEqual([answer.status, answer.json.code], [503, 'draining'])
  using client = await upgrade
  assert.deepEqual([client.status, (await client.problem()).code], [503, 'draining'])
  assert.deepEqual(opened.errors, [])
})

test('whatever an engine throws while the service closes is 503 draining', async (t) => {
  const gate = new Gate()
  gate.shut()
  const engine = new FakeEngine()
  const authorize = async (): Promise<{ id: string; tenant: null }> => {
    await gate.pass()
    return { id: 'somebody', tenant: null }
  }
  const opened = await openService({ engine, authorize })
  t.after(() => opened[Symbol.asyncDispose]())
  const request = call(opened.port, 'GET', '/api/runs')
  await gate.holds(1)
  await opened.service.close({ graceMs: 0 })
  engine.failure = new Error('the pool is closed')
  gate.open()
  const answer = await request
  assert.deepEqual([answer.status, answer.json.code], [503, 'draining'])
  assert.deepEqual(opened.errors, [])
})

test('streams whose history is being read when the store closes end like all others', async (t) => {
  const { opened, calls, ending, details } = await ended(t, true, ['read'])
  calls.shut()
  ending.shut()
  using client = await opened.socket(`/api/ws/${details.run_id}`)
  const path = `/api/runs/${details.run_id}/events`
  const events = fetch(`http://127.0.0.1:${opened.port}${path}`, {
    headers: { accept: 'text/event-stream' },
  })
  const text = events.then((response) => response.text()).catch(() => 'cut off')
  await calls.holds(2)
  const closing = opened.service.close({ graceMs: 0 })
  await ending.holds(1)
  calls.open()
  assert.equal((await client.rest()).code, 1001)
  client.peer.end()
  assert.equal(await text, 'cut off')
  ending.open()
  await closing
  assert.deepEqual(opened.errors, [])
})
