import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AsyncClient,
  BasicAuth,
  BearerAuth,
  Client,
  Cookies,
  DigestAuth,
  Headers,
  MockTransport,
  Request,
  Response,
  streamSync,
  putSync,
  type RequestOptions,
} from 'runwright/http'
import { behaviour, collect, failure, useApp } from './both-clients.js'

useApp()

/** Passes a value that the types forbid but a JavaScript caller may pass. */
const odd = (value: unknown): never => value as never

for (const { name, options, message } of [
  {
    name: 'a misspelt option',
    options: { baseURL: 'http://a.test' },
    message: /baseURL is not an option of a client; use baseUrl/,
  },
  {
    name: 'an option in snake case',
    options: { follow_redirects: true },
    message: /use followRedirects/,
  },
  {
    name: 'an option of another HTTP client',
    options: { prefixUrl: 'http://a.test' },
    message: /use baseUrl/,
  },
  {
    name: 'an unknown option',
    options: { colour: 1 },
    message: /colour is not an option of a client; the options are baseUrl, auth/,
  },
  {
    name: 'a base URL without a scheme',
    options: { baseUrl: 'a.test' },
    message: /baseUrl "a\.test" is invalid; write it as https/,
  },
  {
    name: 'a base URL with another scheme',
    options: { baseUrl: 'ftp://a.test' },
    message: /baseUrl must be an http/,
  },
  {
    name: 'a number as base URL',
    options: { baseUrl: 5 },
    message: /baseUrl must be a string or a URL, got number/,
  },
  {
    name: 'auth as one string',
    options: { auth: 'user:password' },
    message: /auth must be an Auth, \[username, password\]/,
  },
  {
    name: 'auth without a password',
    options: { auth: ['user', undefined] },
    message: /must be strings, got string, undefined/,
  },
  {
    name: 'headers as a string',
    options: { headers: 'A: b' },
    message: /headers must be an object/,
  },
  {
    name: 'a boolean as header',
    options: { headers: { 'X-Debug': true } },
    message: /value of header X-Debug must be a string.*got boolean/,
  },
  {
    name: 'cookies as a string',
    options: { cookies: 'a=b' },
    message: /cookies must be an object/,
  },
  {
    name: 'a number as cookie',
    options: { cookies: { a: 1 } },
    message: /cookie a must be a string, got number/,
  },
  { name: 'params as a number', options: { params: 7 }, message: /params must be an object/ },
  {
    name: 'a negative time limit',
    options: { timeout: -1 },
    message: /timeout must be a positive number.*got -1/,
  },
  {
    name: 'a time limit of NaN',
    options: { timeout: { read: NaN } },
    message: /timeout\.read must be.*got NaN/,
  },
  {
    name: 'an unknown phase',
    options: { timeout: { request: 5 } },
    message: /timeout\.request is not an option; the options are connect/,
  },
  {
    name: 'followRedirects as a string',
    options: { followRedirects: 'yes' },
    message: /followRedirects must be true or false/,
  },
  {
    name: 'a negative maxRedirects',
    options: { maxRedirects: -1 },
    message: /maxRedirects must be a whole number/,
  },
  {
    name: 'an unknown encoding',
    options: { defaultEncoding: 'klingon' },
    message: /defaultEncoding: unknown encoding "klingon"/,
  },
  {
    name: 'a hook outside of a list',
    options: { eventHooks: { request: () => {} } },
    message: /eventHooks\.request must be an array/,
  },
  {
    name: 'a hook for an unknown event',
    options: { eventHooks: { error: [] } },
    message: /eventHooks\.error is not an option; the options are request, response, redirect, retry/,
  },
  {
    name: 'an unknown limit',
    options: { limits: { max: 1 } },
    message: /limits\.max is not an option/,
  },
  {
    name: 'an unknown option of the retry policy',
    options: { retry: { times: 1 } },
    message: /retry\.times is not an option/,
  },
  {
    name: 'a path as CA',
    options: { verify: { ca: '/etc/ca.pem' } },
    message: /verify\.ca must be certificates in PEM/,
  },
  {
    name: 'a string as size',
    options: { maxResponseBytes: '1mb' },
    message: /maxResponseBytes must be a number or null, got a string/,
  },
  {
    name: 'limits as a number',
    options: { limits: 5 },
    message: /limits must be an object, got 5/,
  },
  {
    name: 'retry as a boolean',
    options: { retry: true },
    message: /retry must be a number of retries, a policy or null, got true/,
  },
  {
    name: 'a function as hooks',
    options: { eventHooks: () => {} },
    message: /eventHooks must be an object, got a function/,
  },
  {
    name: 'verify as null',
    options: { verify: null },
    message: /verify must be true, false, a path or an object, got null/,
  },
  {
    name: 'a certificate without a key',
    options: { cert: { cert: '-----BEGIN' } },
    message: /cert needs key: PEM text/,
  },
  {
    name: 'http2 as a string',
    options: { http2: 'no' },
    message: /http2 must be true or false, got a string/,
  },
  {
    name: 'a number as encoding',
    options: { defaultEncoding: 5 },
    message: /defaultEncoding must be a label or a function, got number/,
  },
  {
    name: 'a string as sensitiveHeaders',
    options: { sensitiveHeaders: 'x-key' },
    message: /sensitiveHeaders must be an array, got a string/,
  },
  {
    name: 'a transport without handleRequest()',
    options: { transport: {} },
    message: /transport must be a transport with a handleRequest/,
  },
  {
    name: 'a number as mount',
    options: { mounts: { 'all://': 5 } },
    message: /mounts\["all:\/\/"\] must be a transport/,
  },
  {
    name: 'a proxy without a URL',
    options: { proxy: {} },
    message: /proxy needs url: a URL/,
  },
  {
    name: 'an unencoded slash in the password of the proxy',
    options: { proxy: 'http://user:hu/sh@a.test' },
    message: /proxy "http:\/\/\[secret\]@a\.test" is invalid/,
  },
  {
    name: 'strings in place of header pairs',
    options: { headers: ['a: b'] },
    message: /headers must be pairs of name and value, got string/,
  },
  {
    name: 'undefined in the list of a header',
    options: { headers: { 'X-A': ['b', undefined] } },
    message: /value of header X-A must be.*got undefined/,
  },
  {
    name: 'strings in place of cookie pairs',
    options: { cookies: ['a=b'] },
    message: /cookies must be pairs of name and value, got string/,
  },
  {
    name: 'a mount whose key is not a URL pattern',
    options: { mounts: { 'a.test': null } },
    message: /mounts: "a\.test" is not a URL pattern/,
  },
] as const) {
  test(`a client with ${name} is rejected with an error that names the option`, () => {
    for (const make of [AsyncClient, Client]) assert.throws(() => new make(odd(options)), message)
  })
}

for (const { name, url = '/echo', options = {}, message } of [
  {
    name: 'no URL',
    message: /URL must be a string or a URL, got undefined/,
  },
  { name: 'a URL that is null', url: null, message: /got null/ },
  { name: 'a URL that is a number', url: 5, message: /got number/ },
  {
    name: 'a fetch option',
    options: { body: 'x' },
    message: /body is not an option of a request; use json or data or content or files/,
  },
  { name: 'an axios option', options: { responseType: 'stream' }, message: /use stream\(\)/ },
  { name: 'a got option', options: { searchParams: {} }, message: /use params/ },
  {
    name: 'an AbortController in place of its signal',
    options: { signal: new AbortController() },
    message: /of a controller, pass its signal/,
  },
  {
    name: 'an object as query parameter',
    options: { params: { filter: { a: 1 } } },
    message: /params\.filter must be a string.*got object/,
  },
  {
    name: 'a Date as form field',
    options: { data: { at: new Date() } },
    message: /data\.at must be a string.*got object/,
  },
  {
    name: 'followRedirects as a string',
    options: { followRedirects: 'no' },
    message: /followRedirects must be true or false, got a string/,
  },
  {
    name: 'null as content',
    options: { content: null },
    message: /content must be a string.*got null/,
  },
  {
    name: 'an object as content',
    options: { content: { a: 1 } },
    message: /use json or data for objects/,
  },
  {
    name: 'a number as chunk',
    options: { content: [1, 2] },
    message: /a body chunk must be a string or bytes, got number/,
  },
  {
    name: 'null as file',
    options: { files: { f: null } },
    message: /files\.f: content must be/,
  },
  {
    name: 'null as data',
    options: { data: null },
    message: /data must be an object, pairs or a string, got null/,
  },
  {
    name: 'numbers in place of parameter pairs',
    options: { params: [5] },
    message: /params must be pairs of name and value, got number/,
  },
  {
    name: 'null as files',
    options: { files: null },
    message: /files must be an object or pairs, got null/,
  },
  {
    name: 'a string as files',
    options: { files: 'a.txt' },
    message: /files must be an object or pairs, got string/,
  },
  {
    name: 'a form as content',
    options: { content: new URLSearchParams('a=b') },
    message: /content must not be a URLSearchParams; pass it as data/,
  },
  {
    name: 'a string as extensions',
    options: { extensions: 'x' },
    message: /extensions must be an object/,
  },
  { name: 'a symbol as json', options: { json: Symbol('x') }, message: /json is a symbol/ },
] as { name: string; url?: unknown; options?: object; message: RegExp }[]) {
  behaviour(
    `a call with ${name} is rejected with a clear error, and the client stays usable`,
    async ({ client }) => {
      const target = name === 'no URL' ? undefined : url
      const error = await failure(() => client.post(odd(target), options as RequestOptions))
      assert.match(error.message, message)
      assert.equal((await client.get('/echo')).statusCode, 200)
    },
  )
}

test('a percent sign in proxy credentials is literal unless it encodes a character', () => {
  for (const make of [AsyncClient, Client])
    assert.ok(new make({ proxy: 'http://us%er:p%zz@a.test' }))
})

behaviour('files may be a Map, and a missing boundary is added', async ({ client }) => {
  const files = new Map([['f', ['a.txt', 'hello'] as const]])
  const headers = { 'Content-Type': 'multipart/form-data' }
  const { body, headers: sent } = (await client.post('/echo', { files, headers })).json<{
    body: string
    headers: Record<string, string>
  }>()
  const boundary = /boundary=([0-9a-f]+)$/.exec(sent['content-type']!)![1]!
  assert.ok(body.startsWith(`--${boundary}\r\n`) && body.includes('hello'))
})

behaviour('text is split between characters, never inside a surrogate pair', async ({ client }) => {
  const hex = Buffer.from('a😀b😀').toString('hex')
  const response = await client.get('/text', { params: { type: 'text/plain; charset=utf-8', hex } })
  assert.deepEqual(await collect(response.iterText({ chunkSize: 1 })), ['a', '😀', 'b', '😀'])
  assert.deepEqual(await collect(response.iterText({ chunkSize: 2 })), ['a😀', 'b😀'])
})

test('only spaces and tabs around a header value are removed', () => {
  assert.equal(new Headers({ a: ' \t\u00a0x\u00a0 ' }).get('a'), '\u00a0x\u00a0')
})

test('credentials that are not strings are rejected instead of being sent as "undefined"', () => {
  assert.throws(() => new BearerAuth(odd(undefined)), /BearerAuth must be strings, got undefined/)
  assert.throws(() => new BasicAuth('u', odd(null)), /got string, null/)
  assert.throws(() => new DigestAuth('u', odd(5)), /DigestAuth must be strings/)
  assert.throws(() => new BasicAuth('a:b', 'c'), /must not contain ":"/)
})

behaviour('an omitted option is inherited; null switches it off', async ({ make, origin }) => {
  interface Echo {
    readonly url: string
    readonly headers: Record<string, string>
  }
  const client = make({
    baseUrl: origin,
    auth: ['u', 'p'],
    headers: { 'X-Own': '1', 'User-Agent': 'mine' },
    params: { key: '1' },
    cookies: { k: 'v' },
    timeout: 30_000,
  })
  const echo = async (options: RequestOptions): Promise<Echo> =>
    (await client.get('/echo', options)).json<Echo>()
  const all = {
    auth: undefined,
    headers: undefined,
    params: undefined,
    cookies: undefined,
    timeout: undefined,
  }
  const inherited = await echo(all)
  assert.equal(inherited.url, '/echo?key=1')
  assert.equal(inherited.headers['x-own'], '1')
  assert.equal(inherited.headers['cookie'], 'k=v')
  assert.match(inherited.headers['authorization']!, /^Basic /)
  const off = await echo({ auth: null, headers: null, params: null, cookies: null, timeout: null })
  assert.equal(off.url, '/echo')
  for (const name of ['x-own', 'cookie', 'authorization'])
    assert.equal(off.headers[name], undefined, name)
  assert.match(off.headers['user-agent']!, /^runwright\//)
  const one = await echo({ headers: { 'user-agent': null, 'x-own': undefined } })
  assert.equal(one.headers['user-agent'], undefined)
  assert.equal(one.headers['x-own'], '1')
  const hops = await client.get('/redirect?to=/echo', { followRedirects: true, cookies: null })
  assert.equal(hops.json<Echo>().headers['cookie'], undefined)
})

behaviour(
  'standard methods are sent in upper case, others as given',
  async ({ client }) => {
    const methodOf = async (method: string): Promise<string> =>
      (await client.request(method, '/echo')).json<{ method: string }>().method
    assert.equal(await methodOf('post'), 'POST')
    assert.equal(new Request('Purge', 'http://a.test').method, 'Purge')
    assert.ok(
      (await failure(() => client.request(odd(undefined), '/echo'))).message.includes(
        'is not a token',
      ),
    )
  },
)

behaviour('chunkSize must be a positive whole number', async ({ client }) => {
  for (const chunkSize of [0, -1, 1.5, Infinity]) {
    const response = await client.get('/bytes?n=3')
    assert.ok(
      (await failure(() => collect(response.iterBytes({ chunkSize })))) instanceof RangeError,
      String(chunkSize),
    )
    assert.ok(
      (await failure(() => collect(response.iterText({ chunkSize })))) instanceof RangeError,
      String(chunkSize),
    )
  }
})

behaviour('lines end at CR, LF and CRLF only', async ({ client }) => {
  const hex = Buffer.from('a\u2028b\rc\r\nd\n\ne\u0085f\vg\n\r').toString('hex')
  const response = await client.get('/text', { params: { type: 'text/plain; charset=utf-8', hex } })
  assert.deepEqual(await collect(response.iterLines()), [
    'a\u2028b',
    'c',
    'd',
    '',
    'e\u0085f\vg',
    '',
  ])
})

behaviour('defaultEncoding may be a function of the content', async ({ make, origin }) => {
  const client = make({
    baseUrl: origin,
    defaultEncoding: (content) => (content[0] === 0xe4 ? 'latin1' : 'utf-8'),
  })
  assert.equal((await client.get('/text', { params: { type: 'text/plain', hex: 'e4' } })).text, 'ä')
  assert.equal(
    (await client.get('/text', { params: { type: 'text/plain', hex: 'c3a4' } })).text,
    'ä',
  )
  assert.equal(
    (await client.get('/text', { params: { type: 'text/plain; charset=utf-8', hex: 'e4' } })).text,
    '\ufffd',
  )
})

behaviour(
  'a jar with persist: false sends its cookies and stores no others',
  async ({ make, origin }) => {
    const client = make({ baseUrl: origin, cookies: new Cookies({ own: '1' }, { persist: false }) })
    await client.get('/cookies', { params: { set: 'k=v' } })
    assert.equal((await client.get('/cookies')).text, 'own=1')
  },
)

test('invalid headers are rejected by every method and option that sets one', () => {
  for (const [name, value] of [
    ['a\r\nb', 'c'],
    ['', 'c'],
    ['a b', 'c'],
    ['a', 'b\nc'],
    ['a', 'b\0'],
    ['ä', 'c'],
  ] as const) {
    const headers = new Headers()
    assert.throws(() => headers.set(name, value), { code: 'ERR_HTTP_LOCAL_PROTOCOL' })
    assert.throws(() => headers.append(name, value), { code: 'ERR_HTTP_LOCAL_PROTOCOL' })
    assert.throws(() => new Headers([[name, value]]), { code: 'ERR_HTTP_LOCAL_PROTOCOL' })
    assert.throws(() => new AsyncClient({ headers: { [name]: value } }), {
      code: 'ERR_HTTP_LOCAL_PROTOCOL',
    })
  }
})

behaviour('a transport that returns nothing causes an error, not a hang', async ({ make }) => {
  const client = make({ transport: new MockTransport(odd(() => undefined)) })
  assert.ok((await failure(() => client.get('http://a.test/'))) instanceof TypeError)
})

behaviour('one-off calls can block', async ({ origin }) => {
  assert.equal(putSync(`${origin}/echo`, { content: 'x' }).json<{ method: string }>().method, 'PUT')
  using response = streamSync('GET', `${origin}/chunks?n=2`)
  assert.ok(response instanceof Response)
  assert.deepEqual([...response.iterLines()], ['line 0', 'line 1'])
})
