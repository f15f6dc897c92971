import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { inspect } from 'node:util'
import {
  HttpStatusError,
  InvalidBodyError,
  InvalidJsonError,
  LocalProtocolError,
  MockTransport,
  ReadTimeoutError,
  RemoteProtocolError,
  Request,
  Response,
  ResponseNotReadError,
  StreamClosedError,
  StreamConsumedError,
  TooManyRedirectsError,
  TotalTimeoutError,
  UnsupportedProtocolError,
} from 'runwright/http'
import { behaviour, collect, failure, useApp } from './both-clients.js'

useApp()

interface Echo {
  method: string
  url: string
  headers: Record<string, string>
  rawHeaders: string[]
  body: string
}

for (const method of ['get', 'post', 'put', 'patch', 'delete', 'options'] as const) {
  behaviour(`${method}() sends ${method.toUpperCase()}`, async ({ client }) => {
    const response = await client[method]('/echo', { params: { q: 'a b' } })
    const echo = response.json<Echo>()
    assert.equal(echo.method, method.toUpperCase())
    assert.equal(echo.url, '/echo?q=a+b')
    assert.equal(echo.headers['content-length'], /^p/.test(method) ? '0' : undefined)
  })
}

behaviour('head() returns headers and no content', async ({ client }) => {
  const response = await client.head('/bytes?n=5')
  assert.equal(response.headers.get('content-length'), '5')
  assert.equal(response.text, '')
})

behaviour('request() accepts any method', async ({ client }) => {
  assert.equal((await client.request('PURGE', '/echo')).json<Echo>().method, 'PURGE')
})

behaviour('a method that is not a token is rejected', async ({ client }) => {
  assert.ok((await failure(() => client.request('GET /', '/echo'))) instanceof LocalProtocolError)
})

behaviour('Host is sent first, and header names keep their case', async ({ client, origin }) => {
  const echo = (await client.get('/echo', { headers: { 'X-MiXed': '1' } })).json<Echo>()
  assert.deepEqual(echo.rawHeaders.slice(0, 2), ['Host', new URL(origin).host])
  assert.ok(echo.rawHeaders.includes('X-MiXed'))
  assert.match(echo.headers['user-agent']!, /^runwright\//)
  assert.match(echo.headers['accept-encoding']!, /^gzip, deflate, br/)
})

behaviour('json, data and content are sent with their content types', async ({ client }) => {
  for (const [options, type, body] of [
    [{ json: { a: [1, null] } }, 'application/json', '{"a":[1,null]}'],
    [{ data: { a: '1 2', b: ['x', 'y'] } }, 'application/x-www-form-urlencoded', 'a=1+2&b=x&b=y'],
    [{ content: 'text' }, 'text/plain; charset=utf-8', 'text'],
    [{ content: new Uint8Array([1, 2]) }, undefined, '\x01\x02'],
    [{ content: new Uint8Array([65]).buffer }, undefined, 'A'],
    [{ content: () => 'made' }, undefined, 'made'],
  ] as const) {
    const echo = (await client.post('/echo', options)).json<Echo>()
    assert.equal(echo.headers['content-type'], type)
    assert.equal(echo.body, body)
  }
})

behaviour(
  'an iterable is sent chunked, or with the Content-Length that is given',
  async ({ client }) => {
    const content = (): Iterable<string> => ['ab', '', 'c'].values()
    const chunked = (await client.post('/echo', { content: content() })).json<Echo>()
    assert.equal(chunked.headers['transfer-encoding'], 'chunked')
    assert.equal(chunked.body, 'abc')
    const sized = (
      await client.post('/echo', { content: content(), headers: { 'Content-Length': '3' } })
    ).json<Echo>()
    assert.equal(sized.headers['transfer-encoding'], undefined)
    assert.equal(sized.body, 'abc')
  },
)

behaviour('a request without a body ends, whatever Transfer-Encoding says', async ({ client }) => {
  const headers = { 'Transfer-Encoding': 'chunked' }
  for (const method of ['GET', 'POST']) {
    // Without its end, the server would wait for it, or read it from the next request.
    const options = { headers, timeout: 1000 }
    assert.equal((await client.request(method, '/echo', options)).json<Echo>().body, '')
    assert.equal((await client.post('/echo', { content: 'next' })).json<Echo>().body, 'next')
  }
})

behaviour('a body that does not match its Content-Length is rejected', async ({ client }) => {
  for (const length of ['2', '4']) {
    const headers = { 'Content-Length': length }
    const content = ['a', 'bc'].values()
    const error = await failure(() => client.post('/echo', { content, headers }))
    assert.ok(error instanceof LocalProtocolError, `${length}: ${error}`)
    const known = await failure(() => client.post('/echo', { content: 'abc', headers }))
    assert.ok(known instanceof LocalProtocolError)
  }
})

behaviour('a value that JSON cannot represent is rejected with its path', async ({ client }) => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = { cycle }
  for (const [json, message] of [
    [{ a: [NaN] }, /json\.a\[0\] is NaN/],
    [{ a: [undefined, { b: -Infinity }] }, /json\.a\[1\]\.b is -Infinity/],
    [{ n: 1n }, /json\.n is a BigInt/],
    [{ n: Object(1n) }, /json\.n is a BigInt/],
    [cycle, /json\.self\.cycle contains itself/],
    [{ a: { toJSON: () => cycle } }, /json\.a\.self\.cycle contains itself/],
    [{ a: { toJSON: () => [NaN] } }, /json\.a\[0\] is NaN/],
    [() => 1, /json is a function/],
    [{ a: () => 1 }, /json\.a is a function/],
    [{ toJSON: () => undefined }, /json is undefined, by its toJSON/],
  ] as const) {
    const error = await failure(() => client.post('/echo', { json }))
    assert.ok(error instanceof InvalidBodyError)
    assert.match(error.message, message)
  }
})

behaviour('what JSON.stringify() leaves out of json is left out', async ({ client }) => {
  const keys: string[] = []
  const keyed = { toJSON: (key: string) => void keys.push(key) }
  const self = { a: 1, toJSON: (): object => self }
  for (const json of [
    { a: 1, b: undefined },
    [undefined, 1, [undefined]],
    { a: { b: undefined, c: [{ d: undefined }] }, e: new Date(0) },
    [, 1],
    { keyed, list: [keyed] },
    { self, twice: [self, self] },
    { toJSON: () => null },
    [new Date(NaN), new String('s'), Object(false)],
    { [Symbol('s')]: 1, a: Object.create({ inherited: 1 }) as object },
  ]) {
    const sent = (await client.post('/echo', { json })).json<Echo>().body
    assert.equal(sent, JSON.stringify(json))
  }
  assert.deepEqual([...new Set(keys)], ['keyed', '0'])
  assert.equal((await client.post('/echo', { json: undefined })).json<Echo>().body, '')
})

behaviour('json() of a response that is not JSON says which response', async ({ client, make }) => {
  const transport = new MockTransport(
    ({ url }) =>
      new Response(url.pathname === '/none' ? 502 : 200, {
        headers: url.pathname === '/none' ? {} : { 'content-type': 'text/html' },
        content: url.pathname === '/none' ? '' : '<p>',
      }),
  )
  const mocked = make({ transport, baseUrl: 'https://user:pass@a.test' })
  const html = await mocked.put('/page', { params: { api_key: 'secret1' } })
  assert.throws(() => html.json(), (error: Error & { code?: string }) => {
    assert.ok(error instanceof InvalidJsonError && error instanceof SyntaxError)
    assert.equal(error.name, 'SyntaxError')
    assert.equal(error.code, 'ERR_HTTP_INVALID_JSON')
    assert.match(
      error.message,
      /to PUT https:\/\/\[secret\]@a\.test\/page\?api_key=\[secret\] is not JSON \(status 200, /,
    )
    assert.match(error.message, /content type text\/html\): Unexpected token/)
    assert.ok(error.cause instanceof SyntaxError)
    assert.doesNotMatch(inspect(error), /pass|secret1/)
    return true
  })
  assert.throws(() => new Response(204).json(), /the response is not JSON \(status 204/)
  const none = await mocked.get('/none')
  assert.throws(() => none.json(), /\(status 502, content type none\): Unexpected end/)
  assert.equal((await client.get('/echo')).ok, true)
  assert.deepEqual([none.ok, new Response(304).ok, new Response(299).ok], [false, false, true])
})

behaviour('two bodies in one request are rejected', async ({ client }) => {
  assert.ok(
    (await failure(() => client.post('/echo', { json: 1, content: 'a' }))) instanceof
      InvalidBodyError,
  )
})

behaviour(
  'fields and files are sent as multipart, with a Content-Length if it is known',
  async ({ client }) => {
    const files = { file: ['a"b.txt', 'content', 'text/x-test'] } as const
    const echo = (await client.post('/echo', { data: { field: 'ü' }, files })).json<Echo>()
    const boundary = /boundary=(.+)$/.exec(echo.headers['content-type']!)![1]
    assert.equal(
      echo.body,
      [
        `--${boundary}`,
        'Content-Disposition: form-data; name="field"',
        '',
        'Ã¼',
        `--${boundary}`,
        'Content-Disposition: form-data; name="file"; filename="a%22b.txt"',
        'Content-Type: text/x-test',
        '',
        'content',
        `--${boundary}--`,
        '',
      ].join('\r\n'),
    )
    assert.equal(echo.headers['content-length'], String(echo.body.length))
    const streamed = { file: ['s.bin', ['x', 'y'].values()] } as const
    const second = (await client.post('/echo', { files: streamed })).json<Echo>()
    assert.equal(second.headers['transfer-encoding'], 'chunked')
    assert.match(second.body, /application\/octet-stream\r\n\r\nxy\r\n/)
  },
)

behaviour(
  'an open file is sent with its length, and again after a redirect',
  async ({ client }) => {
    const path = new URL('../fixtures/http/certs/ca.pem', import.meta.url)
    const file = await open(path)
    try {
      const params = { code: 307, to: '/echo' }
      const sent = await client.post('/redirect', { content: file, params, followRedirects: true })
      const echo = sent.json<Echo>()
      assert.equal(echo.body, readFileSync(path, 'latin1'))
      assert.equal(echo.headers['content-length'], String(echo.body.length))
      const parts = (await client.post('/echo', { files: { cert: ['ca.pem', file] } })).json<Echo>()
      assert.ok(parts.body.includes(echo.body))
      assert.equal(parts.headers['content-length'], String(parts.body.length))
    } finally {
      await file.close()
    }
  },
)

behaviour(
  'a Blob or File is sent with its length and type, alone or as a part',
  async ({ client }) => {
    const blob = new Blob(['ab', 'c'.repeat(700_000)], { type: 'text/x-test' })
    const params = { code: 307, to: '/echo' }
    const echo = (
      await client.post('/redirect', { content: blob, params, followRedirects: true })
    ).json<Echo>()
    assert.equal(echo.body, 'ab' + 'c'.repeat(700_000))
    assert.deepEqual(
      [echo.headers['content-length'], echo.headers['content-type']],
      ['700002', 'text/x-test'],
    )
    const file = new File(['content'], 'a.csv')
    const parts = (
      await client.post('/echo', { data: { k: 'v' }, files: { file, blob } })
    ).json<Echo>()
    assert.match(
      parts.body,
      /name="file"; filename="a\.csv"\r\nContent-Type: text\/csv\r\n\r\ncontent\r\n/,
    )
    assert.match(
      parts.body,
      /name="blob"; filename="upload"\r\nContent-Type: text\/x-test\r\n\r\nabcc/,
    )
    assert.equal(parts.headers['content-length'], String(parts.body.length))
  },
)

behaviour(
  'a FormData is sent as multipart if it has files, else as a form',
  async ({ client }) => {
    const form = new FormData()
    form.append('a', '1')
    form.append('a', 'ü')
    const plain = (await client.post('/echo', { data: form })).json<Echo>()
    assert.deepEqual(
      [plain.headers['content-type'], plain.body],
      ['application/x-www-form-urlencoded', 'a=1&a=%C3%BC'],
    )
    form.append('f', new Blob(['x'], { type: 'text/x-test' }), 'f.bin')
    const parts = (await client.post('/echo', { data: form })).json<Echo>()
    assert.match(parts.headers['content-type']!, /^multipart\/form-data; boundary=/)
    assert.match(parts.body, /name="a"\r\n\r\n1\r\n/)
    assert.match(
      parts.body,
      /name="f"; filename="f\.bin"\r\nContent-Type: text\/x-test\r\n\r\nx\r\n/,
    )
  },
)

behaviour(
  'a redirect is returned with its next request',
  async ({ client, origin }) => {
    const response = await client.get('/redirect?to=/echo')
    assert.equal(response.statusCode, 302)
    assert.equal(response.nextRequest?.url.href, `${origin}/echo`)
    assert.deepEqual(response.history, [])
    const next = await client.send(response.nextRequest)
    assert.equal(next.json<Echo>().url, '/echo')
  },
)

for (const { code, method, becomes, body } of [
  { code: 301, method: 'POST', becomes: 'GET', body: '' },
  { code: 301, method: 'PUT', becomes: 'PUT', body: 'abc' },
  { code: 302, method: 'POST', becomes: 'GET', body: '' },
  { code: 302, method: 'PUT', becomes: 'GET', body: '' },
  { code: 303, method: 'POST', becomes: 'GET', body: '' },
  { code: 303, method: 'DELETE', becomes: 'GET', body: '' },
  { code: 307, method: 'POST', becomes: 'POST', body: 'abc' },
  { code: 308, method: 'PATCH', becomes: 'PATCH', body: 'abc' },
]) {
  behaviour(`a ${code} response to ${method} is followed with ${becomes}`, async ({ client }) => {
    const response = await client.request(method, '/redirect', {
      params: { code, to: '/echo#part' },
      content: 'abc',
      followRedirects: true,
    })
    const echo = response.json<Echo>()
    assert.equal(echo.method, becomes)
    assert.equal(echo.body, body)
    assert.equal(echo.headers['content-type'] === undefined, body === '')
    assert.equal(response.history.length, 1)
    assert.equal(response.history[0]!.statusCode, code)
    assert.equal(response.url.hash, '#part')
  })
}

for (const location of [
  'app://signed-in?code=1',
  'mailto:a@b.test',
  'http://[bad',
  'http://a.test:99999/',
  'http://',
]) {
  behaviour(
    `a redirect to ${location} is returned, but cannot be followed`,
    async ({ make }) => {
      const client = make({
        transport: new MockTransport(() => new Response(302, { headers: { Location: location } })),
      })
      const response = await client.get('http://a.test/')
      assert.equal(response.headers.get('location'), location)
      assert.equal(response.nextRequest, null)
      const error = await failure(() => client.get('http://a.test/', { followRedirects: true }))
      assert.ok(error instanceof RemoteProtocolError)
      assert.doesNotMatch(inspect(error), /code=1/)
    },
  )
}

behaviour('several different Locations are not followed; equal ones are', async ({ make }) => {
  const locations = [['/a', '/b'], ['/a', '/b'], ['/a', '/a'], []]
  const client = make({
    transport: new MockTransport(
      () => new Response(302, { headers: { Location: locations.shift()! } }),
    ),
  })
  assert.equal((await client.get('http://a.test/')).nextRequest, null)
  assert.ok(
    (await failure(() => client.get('http://a.test/', { followRedirects: true }))) instanceof
      RemoteProtocolError,
  )
  assert.equal((await client.get('http://a.test/', { followRedirects: true })).url.pathname, '/a')
})

behaviour('an invalid request target is rejected', async ({ client }) => {
  for (const target of ['', '/a b', '/a\r\nX: y', '/\u00e9', '/a#b', '/\0']) {
    const error = await failure(() => client.get('/echo', { extensions: { target } }))
    assert.equal(error.code, 'ERR_HTTP_LOCAL_PROTOCOL', JSON.stringify(target))
  }
  assert.equal(
    (await client.get('/echo', { extensions: { target: '/echo?"{x}' } })).json<Echo>().url,
    '/echo?"{x}',
  )
})

behaviour('elapsed measures the last exchange, without earlier redirects', async ({ make }) => {
  let redirected = 0
  const transport = new MockTransport(({ url }) => {
    if (url.pathname !== '/') return new Response(200)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60)
    redirected = performance.now()
    return new Response(302, { headers: { Location: '/next' } })
  })
  const response = await make({ transport, followRedirects: true }).get('http://a.test/')
  assert.ok(response.elapsed <= performance.now() - redirected)
})

behaviour('300, 304 and a redirect without Location are not followed', async ({ client }) => {
  for (const code of [300, 304, 305]) {
    const response = await client.get('/status', { params: { code }, followRedirects: true })
    assert.equal(response.statusCode, code)
  }
})

behaviour(
  'more redirects than maxRedirects are an error; exactly as many are followed',
  async ({ client }) => {
    const twice =
      '/redirect?to=' + encodeURIComponent('/redirect?to=' + encodeURIComponent('/echo'))
    const response = await client.get(twice)
    assert.equal(response.history.length, 2)
    const thrice = '/redirect?to=' + encodeURIComponent(twice)
    const error = await failure(() => client.get(thrice))
    assert.ok(error instanceof TooManyRedirectsError)
    assert.equal(error.request?.method, 'GET')
  },
  { followRedirects: true, maxRedirects: 2 },
)

behaviour('credentials are not sent on to another origin', async ({ client, origin }) => {
  const other = origin.replace('127.0.0.1', 'localhost')
  const response = await client.get('/redirect', {
    params: { to: `${other}/echo` },
    headers: { Authorization: 'Bearer secret', 'Proxy-Authorization': 'x', Cookie: 'a=b' },
    followRedirects: true,
  })
  const { headers } = response.json<Echo>()
  assert.equal(headers['authorization'], undefined)
  assert.equal(headers['proxy-authorization'], undefined)
  assert.equal(headers['cookie'], undefined)
  const same = await client.get('/redirect?to=/echo', { auth: ['u', 'p'], followRedirects: true })
  assert.match(same.json<Echo>().headers['authorization']!, /^Basic /)
})

behaviour(
  'after a 307, a sent stream cannot be replayed, but a factory can',
  async ({ client }) => {
    const options = { params: { code: 307, to: '/echo' }, followRedirects: true }
    const once = await failure(() =>
      client.post('/redirect', { ...options, content: ['a'].values() }),
    )
    assert.ok(once instanceof StreamConsumedError, String(once))
    const again = await client.post('/redirect', { ...options, content: () => ['a', 'b'].values() })
    assert.equal(again.json<Echo>().body, 'ab')
  },
)

behaviour('stream() leaves the content unread; it can be read once', async ({ client }) => {
  const response = await client.stream('GET', '/chunks?n=3')
  assert.throws(() => response.content, ResponseNotReadError)
  assert.throws(() => response.elapsed)
  assert.deepEqual(await collect(response.iterLines()), ['line 0', 'line 1', 'line 2'])
  assert.equal(response.isClosed, true)
  assert.ok(response.elapsed > 0)
  assert.equal(response.trailers.get('x-count'), '3')
  assert.ok((await failure(() => collect(response.iterBytes()))) instanceof StreamConsumedError)
})

behaviour(
  'a closed response cannot be read, and its connection is freed',
  async ({ client }) => {
    const response = await client.stream('GET', '/bytes?n=10000000')
    await response.close()
    assert.ok((await failure(() => collect(response.iterBytes()))) instanceof StreamClosedError)
    const left = await client.stream('GET', '/bytes?n=10000000')
    for await (const chunk of left.iterBytes()) {
      assert.ok(chunk.length > 0)
      break
    }
    assert.equal(left.isClosed, true)
    assert.equal((await client.get('/echo')).statusCode, 200)
  },
)

behaviour('chunkSize splits content and text into equal pieces', async ({ client }) => {
  const response = await client.stream('GET', '/bytes?n=10')
  const sizes = (await collect(response.iterBytes({ chunkSize: 4 }))).map((chunk) => chunk.length)
  assert.deepEqual(sizes, [4, 4, 2])
  const text = await client.get('/bytes?n=5')
  assert.deepEqual(await collect(text.iterText({ chunkSize: 2 })), ['aa', 'aa', 'a'])
})

behaviour('read() may be called again, and makes content available', async ({ client }) => {
  const response = await client.stream('GET', '/bytes?n=3')
  const first = await response.read()
  assert.equal(await response.read(), first)
  assert.equal(response.text, 'aaa')
})

for (const { type, hex, text } of [
  { type: 'text/plain', hex: 'c3a4', text: 'ä' },
  { type: 'text/plain; charset=iso-8859-1', hex: 'e4', text: 'ä' },
  { type: 'text/plain; charset="latin-1"', hex: 'e4', text: 'ä' },
  { type: 'text/plain; charset=shift_jis', hex: '8365', text: 'テ' },
  { type: 'text/plain; charset=latin1', hex: 'efbbbfc3a4', text: 'ä' },
  { type: 'text/plain', hex: 'fffe6100', text: 'a' },
  { type: 'text/plain; charset=utf-32le', hex: '6100000000f60100', text: 'a😀' },
  { type: 'text/plain; charset=nonsense', hex: 'c3a4', text: 'ä' },
  { type: 'text/plain', hex: '61ff62', text: 'a\ufffdb' },
]) {
  behaviour(`${hex} as ${type} reads as ${JSON.stringify(text)}`, async ({ client }) => {
    const response = await client.get('/text', { params: { type, hex } })
    assert.equal(response.text, text)
    const streamed = await client.stream('GET', '/text', { params: { type, hex } })
    assert.equal((await collect(streamed.iterText())).join(''), text)
  })
}

behaviour('the encoding can be set until text is read', async ({ client }) => {
  const response = await client.get('/text', { params: { type: 'text/plain', hex: 'e4' } })
  response.encoding = 'latin1'
  assert.equal(response.text, 'ä')
  assert.throws(() => (response.encoding = 'utf-8'))
})

behaviour('json() reads UTF-8, UTF-16 and UTF-32', async ({ client }) => {
  for (const hex of ['7b7d', 'efbbbf7b7d', '7b007d00', '007b007d', '7b0000007d000000']) {
    const response = await client.get('/text', { params: { type: 'application/json', hex } })
    assert.deepEqual(response.json(), {})
  }
})

behaviour(
  'a link with several relation types is listed under each, in lower case, whatever its name',
  async ({ client }) => {
    const { links } = await client.get('/headers', {
      params: { link: '</a>; rel="Next  prefetch", </b>; rel=constructor, </c>; rel=__proto__' },
    })
    assert.deepEqual(
      Object.entries(links).map(([name, { url }]) => [name, url]),
      [
        ['next', '/a'],
        ['prefetch', '/a'],
        ['constructor', '/b'],
        ['__proto__', '/c'],
      ],
    )
  },
)

behaviour('links are listed by relation type', async ({ client }) => {
  const link = '</a?p=2>; rel="next"; title="x, y", <https://b.test/>; rel=last'
  const response = await client.get('/headers', { params: { link } })
  assert.deepEqual(response.links, {
    next: { url: '/a?p=2', rel: 'next', title: 'x, y' },
    last: { url: 'https://b.test/', rel: 'last' },
  })
})

for (const code of [204, 301, 404, 500]) {
  behaviour(`raiseForStatus() on ${code}`, async ({ client }) => {
    const response = await client.get('/status', { params: { code, secret: 'hush' } })
    if (code === 204) {
      assert.equal(response.raiseForStatus(), response)
      return
    }
    const error = await failure(() => response.raiseForStatus())
    assert.ok(error instanceof HttpStatusError)
    assert.equal(error.response, response)
    assert.equal(error.code, 'ERR_HTTP_STATUS')
    assert.doesNotMatch(error.message, /hush/)
  })
}

behaviour('hooks run around every redirect and see credentials', async ({ make, origin }) => {
  const seen: string[] = []
  const client = make({
    baseUrl: origin,
    followRedirects: true,
    auth: ['u', 'p'],
    eventHooks: {
      request: [
        (request) => seen.push(`> ${request.url.pathname} ${request.headers.has('authorization')}`),
      ],
      response: [(response) => seen.push(`< ${response.statusCode} ${response.isClosed}`)],
    },
  })
  await client.get('/redirect?to=/echo')
  assert.deepEqual(seen, ['> /redirect true', '< 302 false', '> /echo true', '< 200 false'])
})

behaviour('a hook that throws ends the call and frees its connection', async ({ make, origin }) => {
  let failing = true
  const broken = new Error('broken hook')
  const client = make({
    baseUrl: origin,
    limits: { maxConnections: 1 },
    eventHooks: {
      response: [
        () => {
          if (failing) throw broken
        },
      ],
    },
  })
  assert.equal(await failure(() => client.get('/bytes?n=1000000')), broken)
  failing = false
  assert.equal((await client.get('/bytes?n=3')).text, 'aaa')
})

behaviour('time limits apply to phases and to the whole call', async ({ client }) => {
  const slow = await failure(() => client.get('/never', { timeout: { read: 40 } }))
  assert.ok(slow instanceof ReadTimeoutError, String(slow))
  assert.equal(slow.timeoutMs, 40)
  assert.equal(slow.request?.url.pathname, '/never')
  const total = await failure(() => client.get('/never', { timeout: { total: 40, read: null } }))
  assert.ok(total instanceof TotalTimeoutError)
  assert.equal((await client.get('/echo')).statusCode, 200)
})

behaviour('an already aborted signal ends the call with its reason', async ({ client }) => {
  const reason = new Error('no')
  const signal = AbortSignal.abort(reason)
  assert.equal(await failure(() => client.get('/echo', { signal })), reason)
})

behaviour(
  'a signal is checked before each redirect and each chunk, and frees the connection',
  async ({ make, origin }) => {
    const reason = new Error('enough')
    const controllers = [
      new AbortController(),
      new AbortController(),
      new AbortController(),
    ] as const
    const [hop, chunk, upload] = controllers
    const client = make({
      baseUrl: origin,
      followRedirects: true,
      limits: { maxConnections: 1 },
      eventHooks: { response: [(response) => void (response.isRedirect && hop.abort(reason))] },
    })
    assert.equal(
      await failure(() => client.get('/redirect?to=/echo', { signal: hop.signal })),
      reason,
    )
    const response = await client.stream('GET', '/bytes?n=5000000', { signal: chunk.signal })
    let received = 0
    const reading = failure(async () => {
      for await (const bytes of response.iterBytes()) {
        received += bytes.length
        chunk.abort(reason)
      }
    })
    assert.equal(await reading, reason)
    assert.ok(received < 5_000_000)
    assert.equal(response.isClosed, true)
    const content = function* (): Generator<string> {
      yield 'a'
      upload.abort(reason)
      yield 'b'
    }
    assert.equal(
      await failure(() => client.post('/echo', { content: content(), signal: upload.signal })),
      reason,
    )
    assert.equal((await client.get('/bytes?n=1')).text, 'a')
  },
)

behaviour('a relative URL needs a base URL; other schemes are rejected', async ({ make }) => {
  const client = make({ baseUrl: null })
  for (const url of ['/echo', 'echo', 'ftp://a.test/', 'file:///etc/passwd']) {
    assert.ok((await failure(() => client.get(url))) instanceof UnsupportedProtocolError, url)
  }
})

behaviour('buildRequest() sends nothing; send() sends it', async ({ client, origin }) => {
  const request = client.buildRequest('POST', '/echo', { json: { a: 1 }, headers: { 'X-A': '1' } })
  assert.ok(request instanceof Request)
  assert.equal(request.url.href, `${origin}/echo`)
  assert.equal(Buffer.from(request.content).toString(), '{"a":1}')
  request.headers.set('X-B', '2')
  const response = await client.send(request)
  assert.equal(response.request, request)
  const { headers } = response.json<Echo>()
  assert.deepEqual([headers['x-a'], headers['x-b']], ['1', '2'])
})

behaviour(
  'auth may be a pair, the URL, a function or null',
  async ({ client, origin }) => {
    const authOf = async (options: object, url = '/echo'): Promise<string | undefined> =>
      (await client.get(url, options)).json<Echo>().headers['authorization']
    assert.equal(
      await authOf({ auth: ['ü', 'p'] }),
      `Basic ${Buffer.from('ü:p').toString('base64')}`,
    )
    const inUrl = origin.replace('//', '//us%40r:pw@') + '/echo'
    assert.equal(await authOf({}, inUrl), `Basic ${Buffer.from('us@r:pw').toString('base64')}`)
    assert.equal(await authOf({ auth: null }, inUrl), undefined)
    const sign = (request: Request): void => request.headers.set('Authorization', 'Signed')
    assert.equal(await authOf({ auth: sign }), 'Signed')
  },
)

behaviour('uploads and downloads report progress', async ({ client }) => {
  const sent: (number | null)[] = []
  const received: (number | null)[] = []
  await client.post('/echo', {
    content: ['aaaa', 'bb'].values(),
    extensions: {
      onUpload: (bytes, total) => sent.push(bytes, total),
      onDownload: (bytes, total) => received.push(bytes, total),
    },
  })
  assert.deepEqual(sent, [4, null, 6, null])
  assert.ok(received.at(-2)! > 100)
})

behaviour('content larger than a megabyte is sent and received', async ({ client }) => {
  const content = Buffer.alloc(1_500_000, 'x')
  const echo = (await client.post('/echo', { content })).json<Echo>()
  assert.equal(echo.body.length, content.length)
})

behaviour('MockTransport takes the place of the network', async ({ make }) => {
  const transport = new MockTransport(
    (request) => new Response(200, { json: { at: request.url.pathname } }),
  )
  const client = make({ transport, baseUrl: 'http://a.test/v1/' })
  assert.deepEqual((await client.post('x', { content: ['a'].values() })).json(), { at: '/v1/x' })
  assert.equal(Buffer.from(transport.requests[0]!.content).toString(), 'a')
})

behaviour('a closed client sends nothing', async ({ client }) => {
  await client.close()
  await client.close()
  assert.equal((await failure(() => client.get('/echo'))).code, 'ERR_HTTP_CLIENT_STATE')
})
