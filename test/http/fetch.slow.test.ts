import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { AsyncClient, Cookies, ReadTimeoutError } from 'runwright/http'
import { listen, serve } from '../helpers/serve.js'
import { failure } from './both-clients.js'

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

const ECHOED = ['content-type', 'content-length', 'transfer-encoding', 'x-a', 'cookie']

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url!, 'http://localhost')
  const { searchParams: query } = url
  const body = await read(request)
  switch (url.pathname) {
    case '/echo': {
      const { method, headers } = request
      const some = ECHOED.map((name) => [name, headers[name]])
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ method, url: request.url, some, body }))
      return
    }
    case '/status':
      response.statusMessage = query.get('phrase') ?? 'Phrase'
      response.statusCode = Number(query.get('code'))
      response.setHeader('x-status', 'yes')
      if (query.has('body')) response.end(query.get('body'))
      else response.end()
      return
    case '/redirect':
      response.statusCode = Number(query.get('code'))
      if (query.has('to')) response.setHeader('location', query.get('to')!)
      response.end('moved')
      return
    case '/loop':
      response.writeHead(302, { location: '/loop' }).end()
      return
    case '/headers':
      response.setHeader('set-cookie', ['a=1; Path=/', 'b=2'])
      response.setHeader('x-twice', ['one', 'two'])
      response.setHeader('X-Case', 'kept')
      response.end('h')
      return
    case '/gzip':
      response.setHeader('content-encoding', 'gzip')
      response.end(gzipSync('unpacked'))
      return
    case '/br':
      response.setHeader('content-encoding', 'br')
      response.end(brotliCompressSync('unpacked'))
      return
    case '/bad-gzip':
      response.setHeader('content-encoding', 'gzip')
      response.end(gzipSync('unpacked '.repeat(1000)).subarray(0, 30))
      return
    case '/cut':
      response.setHeader('content-length', '100')
      response.write('part')
      setImmediate(() => response.destroy())
      return
    case '/reset':
      response.destroy()
      return
    case '/open':
      response.write('begin')
      return
    default:
      response.end('plain')
  }
}

type Fetch = typeof globalThis.fetch
const served = serve((request, response) => void answer(request, response).catch(() => {}))
// Node's fetch() keeps no cookies.
const cookies = new Cookies(null, { persist: false })
const client = new AsyncClient({ trustEnv: false, cookies })
after(async () => {
  await client.close()
  await (await served).close()
})

/** All that a program can see of a response. */
async function seen(pending: Promise<Response>): Promise<unknown> {
  const response = await pending
  const { url, redirected, type, status, statusText, ok, bodyUsed } = response
  const headers = [...response.headers].filter(([name]) => {
    return !['date', 'connection', 'keep-alive', 'transfer-encoding'].includes(name)
  })
  const facts = { url, redirected, type, status, statusText, ok, bodyUsed }
  const clone = response.clone()
  return {
    ...facts,
    isResponse: response instanceof Response,
    headers,
    cookies: response.headers.getSetCookie(),
    noBody: response.body === null,
    text: await response.text(),
    clone: [clone.url, clone.status, await clone.text()],
    used: response.bodyUsed,
  }
}

const stream = (...parts: string[]): ReadableStream =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part))
      controller.close()
    },
  })

async function* parts(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('one ')
  yield Buffer.from('two')
}

/** The form that arrives, whatever boundary it was sent with. */
async function formSeen(pending: Promise<Response>): Promise<unknown> {
  const { some, body } = (await (await pending).json()) as {
    some: [string, string | undefined][]
    body: string
  }
  const [[, type], [, length]] = some as [[string, string], [string, string]]
  const headers = { 'content-type': type }
  const form = await new Response(Buffer.from(body, 'latin1'), { headers }).formData()
  const fields = []
  for (const [name, value] of form) {
    if (typeof value === 'string') fields.push([name, value])
    else fields.push([name, value.name, value.type, await value.text()])
  }
  return { fields, exact: length === String(body.length) }
}

function form(): FormData {
  const made = new FormData()
  made.append('a', 'ä "quoted"\r\nline')
  made.append('a', 'again')
  made.append('file', new File(['content'], 'n"ame.txt', { type: 'text/x-a' }))
  made.append('blob', new Blob(['bytes']))
  return made
}

const half = { duplex: 'half' } as const
const never = (): Promise<never> => new Promise(() => {})

/** What both are called with. */
const cases: Record<string, (fetch: Fetch, origin: string) => Promise<unknown>> = {
  'a string': (fetch, at) => seen(fetch(`${at}/plain`)),
  'a URL': (fetch, at) => seen(fetch(new URL(`${at}/echo?a=b%20c#hash`))),
  'a Request': (fetch, at) =>
    seen(fetch(new Request(`${at}/echo`, { method: 'PUT', headers: { 'x-a': '1' }, body: 'b' }))),
  'a Request and init': (fetch, at) => {
    const given = { method: 'POST', headers: { 'x-a': '1' }, body: 'b' }
    const request = new Request(`${at}/echo`, given)
    return seen(fetch(request, { method: 'PATCH', headers: { 'x-a': '2' }, body: 'c' }))
  },
  'a used Request': async (fetch, at) => {
    const request = new Request(`${at}/echo`, { method: 'POST', body: 'b' })
    await request.text()
    return await fetch(request)
  },
  'a Request is used': async (fetch, at) => {
    const request = new Request(`${at}/echo`, { method: 'POST', body: 'b' })
    await fetch(request)
    return request.bodyUsed
  },
  'methods in any case': (fetch, at) => seen(fetch(`${at}/echo`, { method: 'post' })),
  'an own method': (fetch, at) => seen(fetch(`${at}/echo`, { method: 'PROPFIND', body: 'x' })),
  'POST without a body': (fetch, at) => seen(fetch(`${at}/echo`, { method: 'POST' })),
  'headers as pairs': (fetch, at) =>
    seen(fetch(`${at}/echo`, { headers: [['X-A', '1'], ['x-a', '2']] })),
  'headers as Headers': (fetch, at) =>
    seen(fetch(`${at}/echo`, { headers: new Headers({ 'x-a': '1' }) })),
  'a header with a line break': (fetch, at) => fetch(at, { headers: { 'x-a': 'a\r\nb: c' } }),
  'a body of a GET': (fetch, at) => fetch(at, { body: 'x' }),
  'a forbidden method': (fetch, at) => fetch(at, { method: 'TRACE' }),
  'no URL': (fetch) => fetch('relative'),
  'a URL with a password': (fetch) => fetch('http://a:b@localhost'),
  'an unknown scheme': (fetch) => fetch('ftp://a.test/'),
  'no arguments': (fetch) => (fetch as (url?: string) => Promise<Response>)(),

  'text as body': (fetch, at) => seen(fetch(`${at}/echo`, { method: 'POST', body: 'tëxt' })),
  'an empty body': (fetch, at) => seen(fetch(`${at}/echo`, { method: 'POST', body: '' })),
  'a typed body': (fetch, at) => {
    const headers = { 'content-type': 'application/json' }
    return seen(fetch(`${at}/echo`, { method: 'POST', headers, body: '{}' }))
  },
  URLSearchParams: (fetch, at) =>
    seen(fetch(`${at}/echo`, { method: 'POST', body: new URLSearchParams({ a: 'b c', d: 'ä' }) })),
  'an ArrayBuffer': (fetch, at) =>
    seen(fetch(`${at}/echo`, { method: 'POST', body: new Uint8Array([97, 98]).buffer })),
  'a view': (fetch, at) => {
    const body = new Uint16Array(new Uint8Array([97, 98, 99, 100]).buffer, 2, 1)
    return seen(fetch(`${at}/echo`, { method: 'POST', body }))
  },
  'a DataView that changes later': (fetch, at) => {
    const bytes = new Uint8Array([97, 98, 99])
    const pending = fetch(`${at}/echo`, { method: 'POST', body: new DataView(bytes.buffer, 1) })
    bytes.fill(0)
    return seen(pending)
  },
  'a Blob': (fetch, at) =>
    seen(fetch(`${at}/echo`, { method: 'POST', body: new Blob(['blob'], { type: 'text/x-b' }) })),
  'a Blob without a type': (fetch, at) =>
    seen(fetch(`${at}/echo`, { method: 'POST', body: new Blob(['blob']) })),
  'a form': (fetch, at) => formSeen(fetch(`${at}/echo`, { method: 'POST', body: form() })),
  'a form without files': (fetch, at) => {
    const body = new FormData()
    body.append('only', 'text')
    return formSeen(fetch(`${at}/echo`, { method: 'POST', body }))
  },
  'a form in a Request': async (fetch, at) => {
    const sent = fetch(new Request(`${at}/echo`, { method: 'POST', body: form() }))
    return ((await formSeen(sent)) as { fields: unknown }).fields
  },
  'a stream': (fetch, at) =>
    seen(fetch(`${at}/echo`, { method: 'POST', body: stream('a', 'b'), ...half })),
  'a stream without duplex': (fetch, at) =>
    fetch(`${at}/echo`, { method: 'POST', body: stream('a') }),
  'a stream in a Request': async (fetch, at) => {
    const init = { method: 'POST', body: stream('a', 'b'), ...half }
    const sent = await fetch(new Request(`${at}/echo`, init))
    return ((await sent.json()) as { body: string }).body
  },
  'an async iterable': (fetch, at) =>
    seen(fetch(`${at}/echo`, { method: 'POST', body: parts() as never, ...half })),
  'a locked stream': (fetch, at) => {
    const body = stream('a')
    body.getReader()
    return fetch(at, { method: 'POST', body, ...half })
  },
  'a stream that fails': (fetch, at) => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('source')) })
    return fetch(`${at}/echo`, { method: 'POST', body, ...half })
  },

  statuses: (fetch, at) =>
    Promise.all(
      [200, 201, 202, 206, 300, 304, 400, 404, 418, 429, 500, 503, 599].map((code) =>
        seen(fetch(`${at}/status?code=${code}&body=b`)),
      ),
    ),
  'no content': (fetch, at) => seen(fetch(`${at}/status?code=204`)),
  'reset content': (fetch, at) => seen(fetch(`${at}/status?code=205`)),
  'an unusual status': (fetch, at) => seen(fetch(`${at}/status?code=799&body=b`)),
  'an empty 200': (fetch, at) => seen(fetch(`${at}/status?code=200`)),
  HEAD: (fetch, at) => seen(fetch(`${at}/headers`, { method: 'HEAD' })),
  'an empty phrase': (fetch, at) => seen(fetch(`${at}/status?code=200&phrase=`)),
  'response headers': (fetch, at) => seen(fetch(`${at}/headers`)),
  gzip: (fetch, at) => seen(fetch(`${at}/gzip`)),
  'gzip to HEAD': (fetch, at) => seen(fetch(`${at}/gzip`, { method: 'HEAD' })),

  'a reset connection': (fetch, at) => fetch(`${at}/reset`),
  'a refused connection': (fetch) => fetch('http://127.0.0.1:1'),
  'a body that is cut off': async (fetch, at) => (await fetch(`${at}/cut`)).text(),
  'an abort before': (fetch, at) => fetch(at, { signal: AbortSignal.abort('reason') }),
  'an abort without a reason': (fetch, at) => fetch(at, { signal: AbortSignal.abort() }),
  'an abort of a Request': (fetch, at) =>
    fetch(new Request(at, { signal: AbortSignal.abort('reason') })),
  'an abort before the head': async (fetch, at) => {
    const controller = new AbortController()
    const body = new ReadableStream({ pull: never })
    const pending = fetch(at, { method: 'POST', body, ...half, signal: controller.signal })
    setImmediate(() => controller.abort(new Error('enough')))
    return await pending
  },
  'an abort while the body is read': async (fetch, at) => {
    const controller = new AbortController()
    const response = await fetch(`${at}/open`, { signal: controller.signal })
    const reader = response.body!.getReader()
    assert.equal(Buffer.from((await reader.read()).value!).toString(), 'begin')
    setImmediate(() => controller.abort(new Error('enough')))
    return await reader.read()
  },
  'a time limit': async (fetch, at) =>
    (await fetch(`${at}/open`, { signal: AbortSignal.timeout(20) })).text(),
  'a wrong signal': (fetch, at) => fetch(at, { signal: {} as AbortSignal }),

  'reading twice': async (fetch, at) => {
    const response = await fetch(at)
    await response.text()
    return await response.text()
  },
  'a reader with its own buffer': async (fetch, at) => {
    const reader = (await fetch(at)).body!.getReader({ mode: 'byob' })
    const { value, done } = await reader.read(new Uint8Array(3))
    return [Buffer.from(value!).toString(), done]
  },
  cancelling: async (fetch, at) => {
    const response = await fetch(`${at}/open`)
    await response.body!.cancel()
    return response.bodyUsed
  },
  'leaving a loop over the body': async (fetch, at) => {
    const response = await fetch(`${at}/open`)
    for await (const chunk of response.body!) return Buffer.from(chunk).toString()
    return null
  },

  'a redirect that is refused': (fetch, at) =>
    fetch(`${at}/redirect?code=302&to=/echo`, { redirect: 'error' }),
  'a redirect that is not followed': (fetch, at) =>
    seen(fetch(`${at}/redirect?code=302&to=/echo`, { redirect: 'manual' })),
  'a redirect without Location': (fetch, at) => seen(fetch(`${at}/redirect?code=302`)),
  'a refused redirect without Location': (fetch, at) =>
    fetch(`${at}/redirect?code=302`, { redirect: 'error' }),
  'a redirect to another scheme': (fetch, at) => fetch(`${at}/redirect?code=302&to=ftp://a.test`),
  'a redirect to nowhere': (fetch, at) => fetch(`${at}/redirect?code=302&to=http://:0:/`),
  'redirects without end': (fetch, at) => fetch(`${at}/loop`),
  'a redirect with a stream': (fetch, at) =>
    fetch(`${at}/redirect?code=307&to=/echo`, { method: 'POST', body: stream('a'), ...half }),
}
for (const code of [301, 302, 303, 307, 308]) {
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
    const init = { method, ...(/^P/.test(method) ? { body: 'x' } : {}) }
    cases[`${code} after ${method}`] = (fetch, at) =>
      seen(fetch(`${at}/redirect?code=${code}&to=/echo%23hash`, init))
  }
}

/** What a program can tell errors by; what caused them is another's text. */
async function outcome(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof Error)) return { thrown: error }
    const { name, message } = error
    const isOwn = message === 'enough'
    return { name, isOwn, type: error instanceof TypeError, abort: error instanceof DOMException }
  }
}

test('client.fetch does what the fetch() of Node does', async () => {
  const { origin } = await served
  const differences: unknown[] = []
  for (const [name, run] of Object.entries(cases)) {
    const [theirs, ours] = [
      await outcome((async () => run(globalThis.fetch, origin))()),
      await outcome((async () => run(client.fetch, origin))()),
    ]
    try {
      assert.deepEqual(ours, theirs)
    } catch {
      differences.push({ name, theirs, ours })
    }
  }
  assert.deepEqual(differences, [])
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const cause = async (call: () => Promise<unknown>): Promise<Error & { code?: string }> => {
  const error = await failure(call)
  assert.ok(error instanceof TypeError, String(error))
  return error.cause as Error
}

test('fetch has the headers, params, auth, cookies and base URL of its client', async () => {
  await using server = await serve((request, response) => {
    const { url, headers } = request
    response.setHeader('set-cookie', 'seen=1')
    response.end(JSON.stringify([url, headers['x-a'], headers.authorization, headers.cookie]))
  })
  const baseUrl = `${server.origin}/v1`
  const options = { headers: { 'X-A': 'client' }, params: { p: '1' }, cookies: { c: '2' } }
  await using own = new AsyncClient({ baseUrl, ...options, auth: ['u', 'p'], raiseForStatus: true })
  const { fetch } = own
  assert.equal(fetch, own.fetch)
  const basic = 'Basic dTpw'
  assert.deepEqual(await (await fetch('/x?a=b')).json(), ['/v1/x?a=b&p=1', 'client', basic, 'c=2'])
  assert.equal(own.cookies.get('seen'), '1')
  const headers = { 'x-a': 'call', authorization: 'me' }
  const given = await fetch(`${server.origin}/y`, { headers })
  assert.deepEqual(((await given.json()) as unknown[]).slice(0, 2), ['/y?p=1', 'call'])
  const omitted = await fetch('z', { credentials: 'omit', headers: { authorization: 'mine' } })
  assert.deepEqual(await omitted.json(), ['/v1/z?p=1', 'client', 'mine', null])
  const child = own.extend({ headers: { 'X-A': 'child' }, auth: null })
  assert.equal(((await (await child.fetch('')).json()) as unknown[])[1], 'child')
})

test('statuses are no errors for fetch, and hooks and retries are those of the client', async () => {
  let calls = 0
  await using server = await serve((_, response) => {
    response.statusCode = ++calls < 3 ? 503 : 404
    response.end('no')
  })
  const seenStatuses: number[] = []
  await using own = new AsyncClient({
    raiseForStatus: true,
    retry: { retries: 5, backoffMs: 1 },
    eventHooks: { response: [({ statusCode }) => void seenStatuses.push(statusCode)] },
  })
  const response = await own.fetch(server.origin)
  assert.deepEqual([response.status, response.ok, await response.text()], [404, false, 'no'])
  assert.deepEqual([calls, seenStatuses], [3, [404]])
})

test('redirects of fetch carry no secret to another origin, and hooks can stop them', async () => {
  await using other = await serve((request, response) => {
    response.end(JSON.stringify([request.headers['x-api-key'], request.headers['x-a']]))
  })
  await using server = await serve((_, response) => {
    response.writeHead(307, { location: other.origin }).end('moved')
  })
  const headers = { 'X-Api-Key': 'secret1', 'X-A': '1' }
  await using own = new AsyncClient()
  assert.deepEqual(await (await own.fetch(server.origin, { headers })).json(), [null, '1'])
  await using strict = own.extend({ eventHooks: { redirect: [() => false] }, maxRedirects: 0 })
  assert.match((await cause(() => strict.fetch(server.origin))).message, /maxRedirects/)
  await using careful = own.extend({ eventHooks: { redirect: [() => false] } })
  const stays = await careful.fetch(server.origin)
  assert.deepEqual([stays.status, await stays.text()], [307, 'moved'])
})

test('a failure is a TypeError with our error as its cause', async () => {
  const { origin } = await served
  assert.equal((await cause(() => client.fetch('http://127.0.0.1:1'))).code, 'ERR_HTTP_CONNECT')
  const scheme = await cause(() => client.fetch('ftp://a.test'))
  assert.equal(scheme.code, 'ERR_HTTP_UNSUPPORTED_PROTOCOL')
  const cut = await client.fetch(`${origin}/cut`)
  assert.equal((await cause(() => cut.text())).code, 'ERR_HTTP_REMOTE_PROTOCOL')
  const bad = await client.fetch(`${origin}/bad-gzip`)
  assert.equal((await cause(() => bad.text())).code, 'ERR_HTTP_DECODING')
  const closed = new AsyncClient()
  await closed.close()
  assert.equal((await cause(() => closed.fetch(origin))).code, 'ERR_HTTP_CLIENT_STATE')
  const unsupported = [{ integrity: 'sha256-x' }, { dispatcher: {} } as RequestInit]
  for (const init of unsupported) {
    const error = await failure(() => client.fetch(origin, init))
    assert.ok(error instanceof TypeError)
    assert.match(error.message, /fetch of a client/)
  }
})

test('without a timeout of the client, only connecting is limited', async () => {
  const { origin } = await served
  const limited = (timeout?: { read: number }): Promise<Response> => {
    const own = client.extend({
      ...(timeout === undefined ? {} : { timeout }),
      eventHooks: {
        request: [({ timeouts }) => assert.equal(timeouts?.read, timeout?.read ?? null)],
      },
    })
    return own.fetch(`${origin}/open`)
  }
  await (await limited()).body!.cancel()
  // On a busy machine the answer itself may take longer.
  const slow = await cause(async () => (await limited({ read: 10 })).text())
  assert.ok(slow instanceof ReadTimeoutError)
})

test('brotli and HTTP/2 are read as by any call', async () => {
  const { origin } = await served
  assert.equal(await (await client.fetch(`${origin}/br`)).text(), 'unpacked')
  const file = (name: string): Buffer =>
    readFileSync(new URL(`../fixtures/http/certs/${name}.pem`, import.meta.url))
  const server = createSecureServer({ cert: file('server'), key: file('server-key') })
  server.on('request', (request, response) => {
    void read(request as never).then((body) => response.end(`${request.httpVersion} ${body}`))
  })
  await using secure = await listen(server as never, 'https')
  await using own = new AsyncClient({ http2: true, verify: { ca: file('ca').toString() } })
  const init = { method: 'POST', body: stream('a', 'b'), ...half }
  const response = await own.fetch(secure.origin, init)
  assert.deepEqual([response.statusText, await response.text()], ['', '2.0 ab'])
})

test('a body is read as it is consumed, and cancelling it closes the connection', async () => {
  let written = 0
  const chunk = Buffer.alloc(256 * 1024)
  let stalled = (): void => {}
  const full = new Promise<void>((resolve) => (stalled = resolve))
  await using server = await serve((_, response) => {
    const write = (): void => {
      written += chunk.length
      if (response.write(chunk)) setImmediate(write)
      else {
        const timer = setImmediate(stalled)
        response.once('drain', () => {
          clearImmediate(timer)
          write()
        })
      }
    }
    write()
  })
  await using own = new AsyncClient()
  const response = await own.fetch(server.origin)
  const reader = response.body!.getReader()
  await reader.read()
  await full
  for (let i = 0; i < 20; i++) await turn()
  assert.ok(written < 64 * 1024 * 1024, `${written} bytes were sent`)
  const [socket] = server.sockets
  const closed = new Promise((resolve) => socket!.once('close', resolve))
  await reader.cancel()
  await closed
})

test('a response that is dropped unread gives its connection back', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await using server = await serve((_, response) => void response.write('begin'))
  await using own = new AsyncClient()
  await (async () => void (await own.fetch(server.origin)))()
  while (server.sockets.size > 0) {
    collect()
    await turn()
  }
})

test('an abort ends an upload, and cancels its stream', async () => {
  const controller = new AbortController()
  await using server = await serve((request) => {
    request.once('data', () => controller.abort(new Error('enough')))
  })
  const cancelled = new Promise<void>((resolve) => {
    const body = new ReadableStream({
      async pull(source) {
        await turn()
        source.enqueue(Buffer.from('x'))
      },
      cancel: () => resolve(),
    })
    const init = { method: 'POST', body, ...half, signal: controller.signal }
    void failure(() => client.fetch(server.origin, init)).then((error) => {
      assert.equal(error.message, 'enough')
    })
  })
  await cancelled
})
