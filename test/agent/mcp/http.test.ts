import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { McpError, openMcpServer, type McpServer, type McpServerOptions } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { serve } from '../../helpers/serve.js'
import { call } from './support.js'

interface Rpc {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly name?: string; readonly arguments?: Record<string, unknown> }
}

interface Asked {
  readonly method: string
  readonly rpc: Rpc
  readonly headers: IncomingMessage['headers']
}

/** Returns true if it has answered. */
type Answer = (asked: Asked, response: ServerResponse) => boolean

const TOOLS = [{ name: 'echo', inputSchema: { type: 'object' } }]

function json(
  response: ServerResponse,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(200, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(value))
}

/** A tiny server: `answer` may handle a request; any other request gets a correct answer. */
async function tinyHttp(
  t: TestContext,
  answer: Answer,
  options: Partial<McpServerOptions> = {},
): Promise<{ readonly open: () => Promise<McpServer>; readonly asked: Asked[] }> {
  const asked: Asked[] = []
  const served = await serve(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const entry: Asked = {
      method: request.method ?? '',
      rpc: (body === '' ? {} : JSON.parse(body)) as Rpc,
      headers: request.headers,
    }
    asked.push(entry)
    if (answer(entry, response) === true) return
    const { id, method, params } = entry.rpc
    if (entry.method === 'GET') response.writeHead(405).end()
    else if (entry.method === 'DELETE') response.writeHead(200).end()
    else if (id === undefined) response.writeHead(202).end()
    else if (method === 'initialize') {
      json(
        response,
        { jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18', capabilities: {} } },
        { 'mcp-session-id': `s${asked.length}` },
      )
    } else if (method === 'tools/list')
      json(response, { jsonrpc: '2.0', id, result: { tools: TOOLS } })
    else
      json(response, {
        jsonrpc: '2.0',
        id,
        result: { content: [{ type: 'text', text: String(params?.arguments?.['text']) }] },
      })
  })
  t.after(() => served.close())
  const open = async (): Promise<McpServer> => {
    const server = await openMcpServer({
      name: 'tiny',
      url: `${served.origin}/mcp`,
      ...options,
    } as McpServerOptions)
    t.after(() => server.close())
    return server
  }
  return { open, asked }
}

const isCall = ({ rpc }: Asked): boolean => rpc.method === 'tools/call'
const answerOf = ({ rpc }: Asked, text: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id: rpc.id, result: { content: [{ type: 'text', text }] } })

test('requests carry session, version and credentials; closing ends the session', async (t) => {
  let token = 0
  const { open, asked } = await tinyHttp(t, () => false, {
    bearer: () => Promise.resolve(`token-${++token}`), headers: { 'x-team': 'a' },
  })
  const server = await open()
  assert.deepEqual(await call(server, 'echo', { text: 'hi' }), { output: 'hi', exitCode: 0 })
  await server.close()
  const [hello, ...rest] = asked
  assert.equal(hello?.headers['mcp-session-id'], undefined)
  assert.match(hello?.headers.accept ?? '', /application\/json, text\/event-stream/)
  for (const { headers } of rest) {
    assert.equal(headers['mcp-session-id'], 's1')
    assert.match(headers.authorization ?? '', /^Bearer token-\d+$/)
    assert.equal(headers['x-team'], 'a')
  }
  const later = rest.filter(({ rpc }) => rpc.method !== undefined)
  assert.ok(later.every(({ headers }) => headers['mcp-protocol-version'] === '2025-06-18'))
  assert.deepEqual(
    asked.map(({ method, rpc }) => rpc.method ?? method).filter((name) => name !== 'GET'),
    ['initialize', 'notifications/initialized', 'tools/list', 'tools/call', 'DELETE'],
  )
})

test('an answer may arrive in a stream, after other messages', async (t) => {
  const { open } = await tinyHttp(t, (asked, response) => {
    if (!isCall(asked)) return false
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      ': hello\n\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n' +
        'data: no json\n\ndata:\n\n',
    )
    response.write(`data: ${answerOf(asked, 'streamed')}\n\n`) // the stream stays open
    return true
  })
  assert.equal((await call(await open(), 'echo')).output, 'streamed')
})

test('a stream that breaks off is resumed', async (t) => {
  let first: Asked | undefined
  const { open, asked } = await tinyHttp(t, (one, response) => {
    if (isCall(one)) {
      first = one
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('id: e7\nretry: 1\ndata:\n\n')
      return true
    }
    if (one.method === 'GET' && one.headers['last-event-id'] === 'e7' && first !== undefined) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`id: e8\ndata: ${answerOf(first, 'after all')}\n\n`)
      return true
    }
    return false
  })
  assert.deepEqual(await call(await open(), 'echo'), { output: 'after all', exitCode: 0 })
  assert.equal(asked.filter(isCall).length, 1)
})

for (const [retry, waits] of [
  [4_000, 4_000],
  [0, 100],
  [9_999_999_999, 30_000],
  [null, 0],
] as const) {
  const asks = retry === null ? 'that names no delay' : `that asks for ${retry} ms`
  test(`a stream ${asks} is resumed after ${waits} ms`, async (t) => {
    const clock = new ManualClock()
    let ended = (): void => undefined
    const over = new Promise<void>((resolve) => (ended = resolve))
    let first: Asked | undefined
    const { open, asked } = await tinyHttp(
      t,
      (one, response) => {
        if (isCall(one)) {
          first = one
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.end(`id: e7\n${retry === null ? '' : `retry: ${retry}\n`}data:\n\n`, ended)
          return true
        }
        if (one.headers['last-event-id'] !== 'e7' || first === undefined) return false
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(`id: e8\ndata: ${answerOf(first, 'after all')}\n\n`)
        return true
      },
      { clock },
    )
    const resumed = (): boolean => asked.some(({ headers }) => headers['last-event-id'] === 'e7')
    const server = await open()
    const answer = call(server, 'echo')
    await over
    if (waits > 0) {
      // The timer of the call, and the one of the delay.
      await clock.whenPending(2)
      clock.advance(waits - 1)
      await new Promise((resolve) => setImmediate(resolve))
      assert.equal(resumed(), false)
      clock.advance(1)
    }
    assert.equal((await answer).output, 'after all')
    assert.equal(resumed(), true)
  })
}

for (const [title, answer, exitCode, says] of [
  [
    'a stream that ends without an answer or ids',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': bye\n\n')
    },
    -1,
    /ended before the answer. Whether/,
  ],
  [
    'a lost connection',
    (_, response) => response.destroy(),
    -1,
    /Whether the call did its work is not known/,
  ],
  ['an invalid answer', (_, response) => json(response, { hello: 1 }), 1, /holds no answer/],
  [
    'an answer to another request',
    (_, response) => json(response, { jsonrpc: '2.0', id: 999, result: {} }),
    1,
    /holds no answer/,
  ],
  [
    'an HTTP error',
    (_, response) => {
      response.writeHead(500).end('broken')
    },
    1,
    /answered 500: broken/,
  ],
  [
    'an insufficient key',
    (_, response) => {
      response.writeHead(401).end()
    },
    1,
    /401: give it a bearer token/,
  ],
  [
    'an answer that is too large',
    (_, response) => json(response, { jsonrpc: '2.0', id: 1, result: { x: 'y'.repeat(300_000) } }),
    -1,
    /larger|more than|exceed/i,
  ],
  [
    'an event that is too large',
    (_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`data: ${'y'.repeat(300_000)}\n\n`)
    },
    -1,
    /longer than|larger|more than/i,
  ],
  [
    'a redirect',
    (_, response) => {
      response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()
    },
    1,
    /answered 307/,
  ],
] as readonly (readonly [
  string,
  (asked: Asked, response: ServerResponse) => void,
  number,
  RegExp,
])[]) {
  test(`${title} becomes the output of the call`, async (t) => {
    const { open } = await tinyHttp(t, (asked, response) => {
      if (!isCall(asked)) return false
      answer(asked, response)
      return true
    }, { maxMessageBytes: 100_000 })
    const result = await call(await open(), 'echo')
    assert.match(result.output, says)
    assert.equal(result.exitCode, exitCode)
  })
}

const noSession = (message: string, id: number | null = null): string =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message } })

for (const [title, status, text, replaced] of [
  ['404', 404, '', true],
  ['404 and an error', 404, noSession('Session not found'), true],
  ['400 in plain text', 400, 'Bad Request: No valid session ID provided', true],
  ['400: no valid id', 400, noSession('Bad Request: No valid session ID provided'), true],
  ['400: invalid id', 400, noSession('Invalid or missing session ID'), true],
  ['400: nothing opened', 400, noSession('Bad Request: Server not initialized'), true],
  ['400: no header', 400, noSession('Bad Request: Mcp-Session-Id header is required'), true],
  ['400 for another reason', 400, noSession('Bad Request: Unsupported protocol version'), false],
] as const) {
  test(`a session that is refused with ${title} is ${replaced ? '' : 'not '}replaced`, async (t) => {
    let forgot = false
    const { open, asked } = await tinyHttp(t, (one, response) => {
      if (!isCall(one) || forgot) return false
      forgot = true
      response.writeHead(status).end(text)
      return true
    })
    const { output, exitCode } = await call(await open(), 'echo', { text: 'x' })
    assert.deepEqual([output === 'x', exitCode], replaced ? [true, 0] : [false, 1])
    const opened = asked.filter(({ rpc }) => rpc.method === 'initialize')
    assert.equal(opened.length, replaced ? 2 : 1)
    const [before, after] = asked.filter(isCall)
    assert.equal(after !== undefined, replaced)
    if (replaced)
      assert.notEqual(before?.headers['mcp-session-id'], after?.headers['mcp-session-id'])
  })
}

test('an error of the call itself that speaks of a session is not repeated', async (t) => {
  let calls = 0
  const { open, asked } = await tinyHttp(t, (one, response) => {
    if (!isCall(one) || ++calls > 1) return false
    response.writeHead(400).end(noSession('Session not found', one.rpc.id))
    return true
  })
  const server = await open()
  const { output, exitCode } = await call(server, 'echo', { text: 'x' })
  assert.equal(exitCode, -1)
  assert.match(output, /Session not found.*Whether the call did its work is not known/)
  assert.equal((await call(server, 'echo', { text: 'next' })).output, 'next')
  assert.equal(asked.filter(isCall).length, 2)
  assert.equal(asked.filter(({ rpc }) => rpc.method === 'initialize').length, 2)
})

test('only the call that was refused is repeated, not those under way', async (t) => {
  let begun = (): void => undefined
  const underWay = new Promise<void>((resolve) => (begun = resolve))
  const { open, asked } = await tinyHttp(t, (one, response) => {
    const text = isCall(one) ? one.rpc.params?.arguments?.['text'] : undefined
    if (text === 'hangs') {
      begun()
      return true
    }
    const first = asked.filter(isCall).length === 2
    if (text === 'refused' && first) response.writeHead(404).end()
    return text === 'refused' && first
  })
  const server = await open()
  const hanging = call(server, 'echo', { text: 'hangs' })
  await underWay
  assert.equal((await call(server, 'echo', { text: 'refused' })).output, 'refused')
  const { output, exitCode } = await hanging
  assert.equal(exitCode, -1)
  assert.match(output, /Whether the call did its work is not known/)
  const texts = asked.filter(isCall).map(({ rpc }) => rpc.params?.arguments?.['text'])
  assert.deepEqual(texts, ['hangs', 'refused', 'refused'])
})

test('a server that forgets every session is not retried forever', async (t) => {
  const { open, asked } = await tinyHttp(t, (one, response) => {
    if (!isCall(one)) return false
    response.writeHead(404).end()
    return true
  })
  assert.match((await call(await open(), 'echo')).output, /the session is over/)
  assert.equal(asked.filter(isCall).length, 2)
})

test('an abort ends the exchange and is sent to the server', async (t) => {
  let arrived = (): void => undefined
  const begun = new Promise<void>((resolve) => (arrived = resolve))
  let gone: Promise<unknown> = Promise.resolve()
  let received = (): void => undefined
  const cancelled = new Promise<void>((resolve) => (received = resolve))
  const { open } = await tinyHttp(t, (one, response) => {
    if (one.rpc.method === 'notifications/cancelled') received()
    if (!isCall(one)) return false
    gone = once(response, 'close')
    arrived()
    return true
  })
  const server = await open()
  const stop = new AbortController()
  const hanging = call(server, 'echo', {}, stop.signal)
  await begun
  stop.abort(new Error('enough'))
  await assert.rejects(hanging, /enough/)
  await Promise.all([gone, cancelled])
})

test('after a notification of the server its list of tools is read again', async (t) => {
  let tools = 0
  let read = (): void => undefined
  const again = new Promise<void>((resolve) => (read = resolve))
  const streams: ServerResponse[] = []
  const { open, asked } = await tinyHttp(
    t,
    (one, response) => {
      if (one.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        streams.push(response)
      }
      if (one.rpc.method === 'tools/list' && ++tools === 2) read()
      if (isCall(one)) {
        for (const stream of streams)
          stream.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
      }
      return one.method === 'GET'
    },
    {
      clock: {
        now: () => 0,
        setTimeout: (callback, ms) => {
          const timer = setTimeout(callback, ms === 1_000 ? 0 : ms)
          return { cancel: () => clearTimeout(timer) }
        },
      },
    },
  )
  const server = await open()
  while (streams.length === 0) await call(server, 'echo')
  await call(server, 'echo')
  await again
  assert.ok(asked.length > 0)
})

/** A server whose list of tools has pages, by cursor. */
const paged = (page: (cursor: number) => { tools: object[]; nextCursor?: string }): Answer =>
  ({ rpc: { id, method, params } }, response) => {
    if (method !== 'tools/list') return false
    const { cursor = '0' } = (params ?? {}) as { cursor?: string }
    json(response, { jsonrpc: '2.0', id, result: page(Number(cursor)) })
    return true
  }

const tool = (i: number): object => ({ name: `t${i}`, inputSchema: { type: 'object' } })

type EndlessList = readonly [what: string, next: (page: number) => number, tools: number]

const ENDLESS: readonly EndlessList[] = [
  ['has the same cursor on each page', () => 7, 1],
  ['has two pages that lead to each other', (page) => 1 - page, 1],
  ['has no end of empty pages', (page) => page + 1, 0],
]

for (const [what, next, count] of ENDLESS) {
  test(`a server is refused whose list of tools ${what}`, async (t) => {
    const { open, asked } = await tinyHttp(
      t,
      paged((page) => {
        if (asked.length > 200) return { tools: [] }
        const tools = Array.from({ length: count }, () => tool(page))
        return { tools, nextCursor: String(next(page)) }
      }),
    )
    await assert.rejects(open(), (error) => {
      assert.ok(error instanceof McpError && error.problem === 'protocol', String(error))
      assert.match(error.message, /tools\/list (leads back to a page before it|has 64 empty pages)/)
      return true
    })
  })
}

test('a list is read to its end, page by page; an empty cursor ends it too', async (t) => {
  for (const last of [undefined, '']) {
    const { open } = await tinyHttp(
      t,
      paged((page) => {
        const nextCursor = page < 99 ? `${page + 1}` : last
        return { tools: [tool(page)], ...(nextCursor !== undefined && { nextCursor }) }
      }),
      { maxTools: 200 },
    )
    const server = await open()
    assert.equal(server.tools().length, 100)
  }
})

test('errors name a server that is unreachable or requires authentication', async (t) => {
  await assert.rejects(openMcpServer({ name: 'gone', url: 'http://127.0.0.1:1/mcp' }), (error) => {
    assert.ok(
      error instanceof McpError && error.problem === 'unreachable' && error.server === 'gone',
    )
    return true
  })
  const { open } = await tinyHttp(
    t,
    (_, response) => (response.writeHead(401).end('{"error":"no"}'), true),
    { bearer: 'hush-hush-secret' },
  )
  await assert.rejects(
    open(),
    (error: Error) => /401/.test(error.message) && !/hush/.test(error.message),
  )
})
