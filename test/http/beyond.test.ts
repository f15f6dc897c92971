import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { randomUUID } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { inspect } from 'node:util'
import {
  AsyncClient,
  ConnectError,
  getSync,
  Headers,
  MockTransport,
  post,
  ReadError,
  RemoteProtocolError,
  Request,
  RequestError,
  Response,
  RetryTransport,
  stream,
  TotalTimeoutError,
  type AsyncClientOptions,
  type HttpStatusError,
} from 'runwright/http'
import {
  delayAfterError,
  delayAfterResponse,
  parseRetryAfter,
  resolveRetry,
} from '../../lib/http/retry.js'
import { behaviour, collect, failure, useApp, type AnyResponse } from './both-clients.js'

useApp()

const quick = { backoffMs: 1, random: () => 0.5 }

behaviour('a failed request is retried as often as the policy says', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, retry: { retries: 2, ...quick } })
  const key = randomUUID()
  assert.equal((await client.get('/flaky', { params: { key, fail: 2 } })).text, '3 ')
  const other = await client.get('/flaky', { params: { key: randomUUID(), fail: 3 } })
  assert.equal(other.statusCode, 503)
})

behaviour(
  'without a policy, or for a POST, nothing is retried',
  async ({ client, make, origin }) => {
    assert.equal(
      (await client.get('/flaky', { params: { key: randomUUID(), fail: 1 } })).statusCode,
      503,
    )
    const retrying = make({ baseUrl: origin, retry: { ...quick } })
    assert.equal(
      (await retrying.post('/flaky', { params: { key: randomUUID(), fail: 1 } })).statusCode,
      503,
    )
  },
)

behaviour('a retry sends the body again, except a consumed stream', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, retry: { ...quick } })
  const again = await client.put('/flaky', {
    params: { key: randomUUID(), fail: 1 },
    content: () => ['a', 'b'].values(),
  })
  assert.equal(again.text, '2 ab')
  const used = await client.put('/flaky', {
    params: { key: randomUUID(), fail: 1 },
    content: ['a'].values(),
  })
  assert.equal(used.statusCode, 503)
})

behaviour('a request is retried after a lost connection', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, retry: { ...quick } })
  assert.equal(
    (await client.get('/flaky', { params: { key: randomUUID(), fail: 1, cut: 1 } })).text,
    '2 ',
  )
})

behaviour('no retry is made if its delay exceeds the total limit', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, retry: { ...quick }, timeout: { total: 20_000 } })
  const params = { key: randomUUID(), fail: 1, after: 30 }
  assert.equal((await client.get('/flaky', { params })).statusCode, 503)
})

test('Retry-After may be seconds or a date', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  assert.equal(parseRetryAfter('3', now), 3000)
  assert.equal(parseRetryAfter('Thu, 01 Jan 2026 00:00:10 GMT', now), 10_000)
  assert.equal(parseRetryAfter('Thu, 01 Jan 2020 00:00:10 GMT', now), 0)
  assert.equal(parseRetryAfter('soon', now), null)
  assert.equal(parseRetryAfter(null, now), null)
})

test('delays double, with jitter, up to their limit', () => {
  const policy = resolveRetry({ retries: 10, backoffMs: 100, maxBackoffMs: 1000, random: () => 1 })
  const request = new Request('GET', 'http://a.test/')
  const delays = [1, 2, 3, 4, 5].map((tries) =>
    delayAfterError(policy, request, tries, new ReadError('x')),
  )
  assert.deepEqual(delays, [100, 200, 400, 800, 1000])
  assert.equal(delayAfterError(policy, request, 11, new ReadError('x')), null)
  const post = new Request('POST', 'http://a.test/', { content: 'x' })
  assert.equal(delayAfterError(policy, post, 1, new ReadError('x')), null)
  assert.equal(delayAfterError(policy, post, 1, new ConnectError('x')), 100)
  const response = { statusCode: 429, headers: new Headers({ 'Retry-After': '61' }) }
  assert.equal(delayAfterResponse(policy, request, 1, response), null)
})

behaviour('retries can be set for one call, also to none', async ({ client, make, origin }) => {
  const params = (): Record<string, string> => ({ key: randomUUID(), fail: '1' })
  assert.equal((await client.get('/flaky', { params: params(), retry: { ...quick } })).text, '2 ')
  const retrying = make({ baseUrl: origin, retry: { ...quick } })
  assert.equal((await retrying.get('/flaky', { params: params(), retry: null })).statusCode, 503)
  const built = retrying.buildRequest('GET', '/flaky', { params: params() })
  assert.equal((await retrying.send(built, { retry: 0 })).statusCode, 503)
})

behaviour(
  'the retry hook is called before each retry, and may end them',
  async ({ make, origin }) => {
    const seen: unknown[] = []
    const client = make({
      baseUrl: origin,
      retry: { retries: 5, ...quick },
      eventHooks: {
        retry: [
          ({ request, tries, delayMs, statusCode, error }) => {
            seen.push([request.url.pathname, tries, delayMs, statusCode, error])
            return tries < 2
          },
        ],
      },
    })
    const response = await client.get('/flaky', { params: { key: randomUUID(), fail: 9 } })
    assert.equal(response.statusCode, 503)
    assert.deepEqual(seen, [
      ['/flaky', 1, 0.5, 503, undefined],
      ['/flaky', 2, 1, 503, undefined],
    ])
  },
)

behaviour('RetryTransport retries with any transport', async ({ make, origin }) => {
  const answers = [new ReadError('lost'), 503, 200]
  const inner = new MockTransport(() => {
    const next = answers.shift()!
    if (next instanceof Error) throw next
    return new Response(next as number, { text: 'done' })
  })
  const transport = new RetryTransport(inner, quick)
  const client = make({ transport, baseUrl: origin })
  assert.equal((await client.get('/')).text, 'done')
  assert.equal(inner.requests.length, 3)
  answers.push(503)
  assert.equal((await client.post('/')).statusCode, 503)
})

test('RetryTransport obeys limit and signal of the call, and closes what it wraps', async () => {
  let closed = 0
  const inner = {
    handleRequest: () => new Response(503, { headers: { 'Retry-After': '30' } }),
    close: () => void closed++,
  }
  const transport = new RetryTransport(inner, { retries: 9 })
  const client = new AsyncClient({ transport, baseUrl: 'http://a.test' })
  assert.equal((await client.get('/', { timeout: { total: 20_000 } })).statusCode, 503)
  const controller = new AbortController()
  const call = client.get('/', { signal: controller.signal })
  const reason = new Error('enough')
  controller.abort(reason)
  await assert.rejects(call, (error) => error === reason)
  await client.close()
  assert.equal(closed, 0)
  await transport.close()
  assert.equal(closed, 1)
})

behaviour(
  'a redirect hook may change the next request, reject it, or end the call',
  async ({ make, origin }) => {
    const veto = new Error('not there')
    const client = make({
      baseUrl: origin,
      followRedirects: true,
      eventHooks: {
        redirect: [
          (next, response) => {
            assert.equal(response.statusCode, 302)
            if (next.url.pathname === '/refused') return false
            if (next.url.hostname === 'internal.test') throw veto
            next.headers.set('X-Hop', String(response.history.length + 1))
            return undefined
          },
        ],
      },
    })
    const followed = await client.get('/redirect?to=/echo')
    assert.equal(followed.json<{ headers: Record<string, string> }>().headers['x-hop'], '1')
    const refused = await client.get('/redirect?to=/refused')
    assert.deepEqual([refused.statusCode, refused.nextRequest?.url.pathname], [302, '/refused'])
    assert.equal(refused.text, 'redirecting')
    assert.equal(await failure(() => client.get('/redirect?to=http://internal.test/')), veto)
    assert.equal((await client.get('/echo')).statusCode, 200)
  },
)

test('one signal may serve many calls at once, and mocks obey it and the total limit', async () => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  const client = new AsyncClient({ transport: new MockTransport(() => new Promise(() => {})) })
  const controller = new AbortController()
  const reason = new Error('enough')
  const calls = Array.from({ length: 30 }, () =>
    client.get('http://a.test/', { signal: controller.signal }),
  )
  const settled = Promise.allSettled(calls)
  controller.abort(reason)
  for (const call of await settled) assert.equal(call.status === 'rejected' && call.reason, reason)
  await assert.rejects(client.get('http://a.test/', { timeout: { total: 20 } }), {
    code: 'ERR_HTTP_TOTAL_TIMEOUT',
  })
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  assert.deepEqual(warnings, [])
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
})

test('secrets in URLs of headers are masked', () => {
  const headers = new Headers({
    Location: 'https://u:hush@a.test/back#access_token=hush&x=1',
    Link: '<https://a.test/?page=2&api_key=hush>; rel="next"',
  })
  assert.deepEqual(headers.toJSON(), {
    location: 'https://[secret]@a.test/back#access_token=[secret]&x=1',
    link: '<https://a.test/?page=2&api_key=[secret]>; rel="next"',
  })
})

behaviour('sse() rejects a response that is not an event stream', async ({ client }) => {
  assert.ok((await failure(() => collect(client.sse('/echo')))) instanceof RemoteProtocolError)
  assert.equal((await failure(() => collect(client.sse('/nowhere')))).code, 'ERR_HTTP_STATUS')
})

behaviour(
  'sse() accepts only status 200, and does not send back an id that no header can contain',
  async ({ make }) => {
    const headers = { 'Content-Type': 'text/event-stream' }
    const answers = [
      new Response(200, { headers, content: 'id: a\x01b\ndata: 1\n\n' }),
      new Response(202, { headers, content: 'data: 2\n\n' }),
    ]
    const transport = new MockTransport(() => answers.shift()!)
    const client = make({ transport })
    const events = client.sse('http://a.test/', { reconnectMs: 1 })
    assert.equal(((await events.next()).value as { data: string }).data, '1')
    const error = await failure(() => events.next())
    assert.deepEqual([error.code, (error as HttpStatusError).statusCode], ['ERR_HTTP_STATUS', 202])
    assert.equal(transport.requests[1]?.headers.has('last-event-id'), false)
  },
)

behaviour(
  'paginate() adds those params of the client that a link lacks',
  async ({ make, origin }) => {
    const client = make({ baseUrl: origin, params: { page: 1, q: 'all' } })
    const pages = await collect<AnyResponse>(client.paginate('/pages', { maxPages: 5 }))
    assert.deepEqual(
      pages.map((page) => page.text),
      ['page 1 all', 'page 2 all', 'page 3 all'],
    )
    const error = await failure(() =>
      collect<AnyResponse>(client.paginate('/pages?link=http://[bad')),
    )
    assert.equal(error.code, 'ERR_HTTP_REMOTE_PROTOCOL')
  },
)

behaviour('paginate() follows links up to the last page', async ({ client }) => {
  const pages = await collect<AnyResponse>(client.paginate('/pages', { params: { q: 'x' } }))
  assert.deepEqual(pages.map((page) => page.text), ['page 1 x', 'page 2 ', 'page 3 '])
  assert.equal((await collect<AnyResponse>(client.paginate('/pages', { maxPages: 2 }))).length, 2)
})

behaviour(
  'paginate() rejects a link to another origin or to the same page',
  async ({ make }) => {
    for (const [link, pattern] of [
      ['http://evil.test/', /another origin/],
      ['?page=1#x', /the same page/],
    ] as const) {
      const transport = new MockTransport(
        () => new Response(200, { headers: { Link: `<${link}>; rel=next` } }),
      )
      const client = make({ transport })
      const error = await failure(() =>
        collect<AnyResponse>(client.paginate('http://a.test/?page=1')),
      )
      assert.match(error.message, pattern)
      assert.equal(transport.requests.length, 1)
    }
  },
)

behaviour('paginate() rejects links that lead back to an earlier page', async ({ make }) => {
  for (const next of [(page: number) => 1 - page, (page: number) => (page === 9 ? 4 : page + 1)]) {
    const transport = new MockTransport((request) => {
      const page = next(Number(request.url.searchParams.get('page')))
      return new Response(200, { headers: { Link: `<?page=${page}>; rel=next` } })
    })
    const client = make({ transport })
    const error = await failure(() =>
      collect<AnyResponse>(client.paginate('http://a.test/?page=0')),
    )
    assert.equal(error.code, 'ERR_HTTP_REMOTE_PROTOCOL')
    assert.match(error.message, /leads back to a page before it/)
    assert.ok(transport.requests.length < 40, `${transport.requests.length} requests`)
  }
})

behaviour('each exchange is published on diagnostics channels', async ({ client }) => {
  const seen: string[] = []
  const onRequest = (message: unknown): void => {
    seen.push(`> ${(message as { request: Request }).request.url.pathname}`)
  }
  const onResponse = (message: unknown): void => {
    seen.push(`< ${(message as { response: Response }).response.statusCode}`)
  }
  subscribe('runwright.http.request', onRequest)
  subscribe('runwright.http.response', onResponse)
  try {
    await client.get('/redirect?to=/echo', { followRedirects: true })
  } finally {
    unsubscribe('runwright.http.request', onRequest)
    unsubscribe('runwright.http.response', onResponse)
  }
  assert.deepEqual(seen, ['> /redirect', '< 302', '> /echo', '< 200'])
})

behaviour('no secret of a request, response or client is printed', async ({ make, origin }) => {
  const options = {
    baseUrl: origin.replace('//', '//user:hush1@'),
    headers: { Authorization: 'Bearer hush2', 'X-Custom': 'hush3' },
    cookies: { session: 'hush4' },
    sensitiveHeaders: ['x-custom'],
  } satisfies AsyncClientOptions
  const client = make(options)
  const response = await client.get('/cookies?api_key=hush5&set=k%3Dv')
  const refused = await failure(() => client.get('http://user:hush7@127.0.0.1:1/?token=hush8'))
  assert.ok(refused instanceof RequestError)
  const printed = [
    client,
    response,
    response.request,
    response.headers,
    response.request.headers,
    refused,
    refused.request,
  ]
    .map((thing) => inspect(thing, { depth: 10, showHidden: true }) + JSON.stringify(thing))
    .join('\n')
  assert.doesNotMatch(printed, /hush/)
})

behaviour('the total limit spans redirects', async ({ client }) => {
  const error = await failure(() =>
    client.get('/redirect?to=/never', {
      followRedirects: true,
      timeout: { total: 60, read: null },
    }),
  )
  assert.ok(error instanceof TotalTimeoutError)
})

behaviour('one-off calls need no client', async ({ origin }) => {
  assert.equal((await post(`${origin}/echo`, { json: 1 })).json<{ body: string }>().body, '1')
  assert.equal(getSync(`${origin}/status?code=204`).statusCode, 204)
  await using response = await stream('GET', `${origin}/chunks?n=2`)
  assert.deepEqual(await collect(response.iterLines()), ['line 0', 'line 1'])
})
