/** The event stream, read by an independent WebSocket client. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { bearerKeys, createRunService, type RunServiceOptions } from 'runwright/server'
import { WebSocket } from 'ws'
import { testProvider } from '../../helpers/engine.js'

interface Event {
  readonly seq: number
  readonly kind: string
  readonly payload: Record<string, unknown>
}

/** A service whose model runs one command in each iteration, once `go` resolves. */
async function openService(
  t: TestContext,
  go: Promise<void>,
  options: Partial<RunServiceOptions> = {},
) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-peer-')))
  const provider = testProvider(async ({ signal }, n) => {
    await Promise.race([
      go,
      once(signal, 'abort').then(() => Promise.reject(signal.reason as Error)),
    ])
    return n % 2 === 0
      ? { calls: [{ tool: 'bash', args: { command: `echo ${n} >> log` } }], tokens: [10, 5] }
      : {}
  })
  const service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots: [root],
      providers: [provider],
      defaultModel: 'test:m',
    },
    ...options,
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
    rmSync(root, { recursive: true, force: true })
  })
  const start = async (headers: Record<string, string> = {}): Promise<string> => {
    const response = await fetch(`http://${host}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ goal: 'shell: test "$(wc -l < log)" -ge 3', max_iterations: 9 }),
    })
    assert.equal(response.status, 201)
    return ((await response.json()) as { run_id: string }).run_id
  }
  return { host, service, start }
}

/** All messages that a client gets, and how the stream ends. */
class Reader {
  readonly socket: WebSocket
  readonly events: Event[] = []
  readonly closed: Promise<number>
  #wake: (() => void) | undefined

  constructor(url: string, protocols: string[] = []) {
    this.socket = new WebSocket(url, protocols)
    this.socket.on('message', (data, isBinary) => {
      assert.equal(isBinary, false)
      this.events.push(JSON.parse(String(data)) as Event)
      this.#wake?.()
    })
    this.closed = new Promise((resolve, reject) => {
      this.socket.on('close', (code) => resolve(code))
      this.socket.on('error', reject)
    })
  }

  async until(kind: string): Promise<Event> {
    for (;;) {
      const event = this.events.find((one) => one.kind === kind)
      if (event !== undefined) return event
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

test('readers from the start, the middle and after the end see the same events', async (t) => {
  let begin = (): void => {}
  const { host, start } = await openService(t, new Promise((resolve) => (begin = resolve)))
  const runId = await start()
  const url = `ws://${host}/api/ws/${runId}`
  const early = new Reader(url)
  await early.until('step_start')
  assert.ok(!early.events.some(({ kind }) => kind === 'tool_call'), 'nothing was done before')
  begin()
  await early.until('iteration_complete')
  const middle = new Reader(url)
  const behind = new Reader(`${url}?after=5`)
  assert.equal(await early.closed, 1000)
  const late = new Reader(url)
  assert.deepEqual(
    await Promise.all([middle.closed, behind.closed, late.closed]),
    [1000, 1000, 1000],
  )
  const seqs = early.events.map(({ seq }) => seq)
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => i + 1),
  )
  assert.equal(early.events.at(-1)!.kind, 'run_end')
  assert.equal(early.events.at(-1)!.payload['achieved'], true)
  assert.deepEqual(middle.events, early.events)
  assert.deepEqual(late.events, early.events)
  assert.deepEqual(behind.events, early.events.slice(5))
})

test('by subprotocol a key is accepted; without one 401, for an unknown run 404', async (t) => {
  const key = 'a-key-for-the-peer-0001'
  const { host, start } = await openService(t, Promise.resolve(), {
    authorize: bearerKeys({ ann: key }),
  })
  const runId = await start({ authorization: `Bearer ${key}` })
  const protocols = ['runwright.v1', `bearer.${Buffer.from(key).toString('base64url')}`]
  const reader = new Reader(`ws://${host}/api/ws/${runId}`, protocols)
  await reader.until('run_end')
  assert.equal(reader.socket.protocol, 'runwright.v1')
  assert.equal(await reader.closed, 1000)
  for (const { id, offered, status } of [
    { id: runId, offered: ['runwright.v1'], status: 401 },
    { id: '01930000-0000-7000-8000-00000000ffff', offered: protocols, status: 404 },
  ]) {
    const socket = new WebSocket(`ws://${host}/api/ws/${id}`, offered)
    socket.on('error', () => {})
    const [, response] = (await once(socket, 'unexpected-response')) as [
      unknown,
      { statusCode: number },
    ]
    assert.equal(response.statusCode, status)
    socket.terminate()
  }
})

test('a closing service sends 1001, and the client continues behind its last event', async (t) => {
  const { host, service, start } = await openService(t, new Promise(() => {}))
  const reader = new Reader(`ws://${host}/api/ws/${await start()}`)
  await reader.until('step_start')
  await service.close({ graceMs: 0 })
  assert.equal(await reader.closed, 1001)
})
