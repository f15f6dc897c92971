/** Our Model Context Protocol client against servers of the official SDK. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { openMcpServer, type McpServer, type McpServerOptions } from 'runwright/agent'
import { call } from '../../agent/mcp/support.js'
import { listen } from '../../helpers/serve.js'

const FILE = fileURLToPath(new URL('mcp-sdk-server.mjs', import.meta.url))
interface SdkServer { connect(transport: unknown): Promise<void>; close(): Promise<void> }
const { makeServer } = (await import(FILE)) as { makeServer: () => SdkServer }

/** Keeps streamed messages for clients that reconnect, as the SDK expects it. */
class EventStore {
  readonly #events: { id: string; streamId: string; message: unknown }[] = []

  storeEvent(streamId: string, message: unknown): Promise<string> {
    const id = `${streamId}/${this.#events.length}`
    this.#events.push({ id, streamId, message })
    return Promise.resolve(id)
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: never) => Promise<void> },
  ): Promise<string> {
    const at = this.#events.findIndex(({ id }) => id === lastEventId)
    const streamId = this.#events[at]?.streamId ?? ''
    for (const event of this.#events.slice(at + 1)) {
      if (event.streamId === streamId) await send(event.id, event.message as never)
    }
    return streamId
  }
}

type Kind = 'stateful' | 'stateful with JSON answers' | 'stateless'

interface SdkServerOverHttp {
  readonly open: (options?: Partial<McpServerOptions>) => Promise<McpServer>
  /** Drops all sessions on the server's side. */
  readonly forget: () => void
  readonly sessions: Map<string, StreamableHTTPServerTransport>
}

async function sdkOverHttp(t: TestContext, kind: Kind): Promise<SdkServerOverHttp> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const transportFor = async (
    request: IncomingMessage,
  ): Promise<StreamableHTTPServerTransport | null> => {
    const id = request.headers['mcp-session-id']
    if (typeof id === 'string') return sessions.get(id) ?? null
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport(
      kind === 'stateless'
        ? {}
        : {
            sessionIdGenerator: () => randomUUID(),
            enableJsonResponse: kind === 'stateful with JSON answers',
            eventStore: new EventStore(),
            retryInterval: 1,
            onsessioninitialized: (session: string) => void sessions.set(session, transport),
            onsessionclosed: (session: string) => void sessions.delete(session),
          },
    )
    await makeServer().connect(transport)
    return transport
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (kind === 'stateless' && request.method !== 'POST') {
      response.writeHead(405).end()
      return
    }
    const transport = await transportFor(request)
    if (transport === null) response.writeHead(404).end()
    else await transport.handleRequest(request, response)
  }
  const served = await listen(createServer((request, response) => void handle(request, response)))
  t.after(() => served.close())
  return {
    sessions,
    forget: () => sessions.clear(),
    open: async (options = {}) => {
      const server = await openMcpServer({
        name: 'sdk',
        url: `${served.origin}/mcp`,
        ...options,
      } as McpServerOptions)
      t.after(() => server.close())
      return server
    },
  }
}

async function exercise(server: McpServer): Promise<void> {
  const names = server
    .tools()
    .map(({ name }) => name)
    .sort()
  assert.deepEqual(
    names,
    ['add', 'grow', 'hang', 'long', 'poll', 'throw'].map((name) => `sdk__${name}`),
  )
  const add = server.tools().find(({ name }) => name === 'sdk__add')
  assert.equal(add?.effect, 'unsafe', 'hints of a server are ignored')
  assert.deepEqual(add?.parameters.required, ['a', 'b'])
  assert.deepEqual(await call(server, 'add', { a: 1.5, b: 2 }), { output: '3.5', exitCode: 0 })
  const failed = await call(server, 'throw')
  assert.equal(failed.exitCode, 1)
  assert.match(failed.output, /as intended/)
  const wrong = await call(server, 'add', { a: 'x', b: 2 })
  assert.equal(wrong.exitCode, 1)
  assert.equal((await call(server, 'long', { steps: 20 })).output, 'done')
  const stop = new AbortController()
  const hanging = call(server, 'hang', {}, stop.signal)
  setImmediate(() => stop.abort(new Error('enough')))
  await assert.rejects(hanging, /enough/)
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, b) => call(server, 'add', { a: 1, b })),
  )
  assert.deepEqual(
    many.map(({ output }) => output),
    Array.from({ length: 20 }, (_, b) => `${1 + b}`),
  )
}

test('a server of the SDK over standard input and output', async (t) => {
  const server = await openMcpServer({ name: 'sdk', command: process.execPath, args: [FILE] })
  t.after(() => server.close())
  await exercise(server)
})

for (const kind of ['stateful', 'stateful with JSON answers', 'stateless'] as const) {
  test(`a server of the SDK over streamable HTTP, ${kind}`, async (t) => {
    const { open, sessions } = await sdkOverHttp(t, kind)
    const server = await open()
    await exercise(server)
    assert.equal(sessions.size, kind === 'stateless' ? 0 : 1)
    await server.close()
    assert.equal(sessions.size, 0, 'the session was ended')
  })
}

test('a stream that the server ends early is resumed', async (t) => {
  const { open } = await sdkOverHttp(t, 'stateful')
  const server = await open()
  assert.deepEqual(await call(server, 'poll'), { output: 'sent later', exitCode: 0 })
})

test('a session that the server dropped is opened again', async (t) => {
  const { open, forget, sessions } = await sdkOverHttp(t, 'stateful')
  const server = await open()
  forget()
  assert.equal((await call(server, 'add', { a: 1, b: 1 })).output, '2')
  assert.equal(sessions.size, 1)
})

for (const way of ['stdio', 'http'] as const) {
  test(`a new tool is found when the server announces it, over ${way}`, async (t) => {
    const clock = {
      now: () => Date.now(),
      setTimeout: (callback: () => void, ms: number) => {
        const timer = setTimeout(callback, ms === 1_000 ? 0 : ms)
        return { cancel: () => clearTimeout(timer) }
      },
    }
    const server = way === 'stdio'
      ? await openMcpServer({ name: 'sdk', command: process.execPath, args: [FILE], clock })
      : await (await sdkOverHttp(t, 'stateful')).open({ clock })
    t.after(() => server.close())
    await call(server, 'grow')
    while (!server.tools().some(({ name }) => name === 'sdk__grown'))
      await call(server, 'add', { a: 1, b: 1 })
  })
}

test('a cancelled call is cancelled on the server', async (t) => {
  const { open } = await sdkOverHttp(t, 'stateful')
  const server = await open()
  const [begun, cancelled] = [once(process, 'mcp-hanging'), once(process, 'mcp-cancelled')]
  const stop = new AbortController()
  const hanging = assert.rejects(call(server, 'hang', {}, stop.signal), /enough/)
  // The server would ignore the cancellation of a call that has not reached it.
  await begun
  stop.abort(new Error('enough'))
  await hanging
  await cancelled
})
