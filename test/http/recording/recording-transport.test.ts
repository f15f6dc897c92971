import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  AsyncClient,
  Client,
  ConnectError,
  DecodingError,
  DigestAuth,
  MockTransport,
  ReadError,
  ReadTimeoutError,
  RecordingError,
  RecordingTransport,
  Response,
  type HarEntry,
  type RecordingTransportOptions,
} from 'runwright/http'
import {
  behaviour,
  collect,
  failure,
  useApp,
  type AnyClient,
  type AnyClientOptions,
} from '../both-clients.js'

useApp()

const folder = mkdtempSync(join(tmpdir(), 'runwright-har-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0
const newFile = (): string => join(folder, `${files++}`, 'recorded.har')
const entriesIn = (file: string): HarEntry[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as { log: { entries: HarEntry[] } }).log.entries

type Make = (options?: AnyClientOptions) => AnyClient

/** Runs `calls` with a client over a new RecordingTransport. */
async function recorded<T>(
  make: Make,
  options: RecordingTransportOptions,
  calls: (client: AnyClient) => Promise<T>,
  more: AnyClientOptions = {},
): Promise<T> {
  const transport = new RecordingTransport(options)
  const client = make({ ...more, transport })
  try {
    return await calls(client)
  } finally {
    await transport.close()
  }
}

/** Fails when it is used. */
const noNetwork = new MockTransport(() => {
  throw new Error('the network was used')
})
const replay = (file: string): RecordingTransportOptions => ({
  file,
  mode: 'replay',
  transport: noNetwork,
})

/** Records `calls` over the real transport, replays them, and compares what both return. */
async function compare(
  make: Make,
  calls: (client: AnyClient) => Promise<unknown>,
  more: AnyClientOptions = {},
): Promise<{ file: string; entries: HarEntry[] }> {
  const file = newFile()
  const before = await recorded(make, { file, mode: 'record' }, calls, more)
  assert.deepEqual(await recorded(make, replay(file), calls, more), before)
  return { file, entries: entriesIn(file) }
}

behaviour(
  'a recorded exchange is replayed: status, headers, content and trailers',
  async ({ make, origin }) => {
    const { entries } = await compare(make, async (client) => {
      const response = await client.get(`${origin}/chunks?n=3`)
      const { statusCode, reasonPhrase, httpVersion, headers, trailers, text } = response
      const fields = [...headers].filter(
        ([name]) => !['transfer-encoding', 'content-length'].includes(name),
      )
      const missing = await client.get(`${origin}/status?code=404&body=none`)
      return [
        statusCode,
        reasonPhrase,
        httpVersion,
        fields,
        [...trailers],
        text,
        missing.text,
        missing.statusCode,
      ]
    })
    assert.deepEqual(
      entries.map(({ request }) => request.method),
      ['GET', 'GET'],
    )
  },
)

behaviour(
  'requests are told apart by method, URL and body, and repeated ones keep their order',
  async ({ make }) => {
    const file = newFile()
    let count = 0
    const transport = new MockTransport(
      (request) => new Response(200, { text: `${++count} ${Buffer.from(request.content)}` }),
    )
    const calls = async (client: AnyClient): Promise<string[]> => {
      const texts: string[] = []
      const note = async (method: string, path: string, options = {}): Promise<void> =>
        void texts.push((await client.request(method, `http://a.test${path}`, options)).text)
      await note('GET', '/')
      await note('POST', '/', { json: { a: 1 } })
      await note('POST', '/', { json: { a: 2 } })
      await note('GET', '/?q=1')
      await note('GET', '/')
      await note('PUT', '/', { data: { a: '1' } })
      return texts
    }
    const before = await recorded(make, { file, mode: 'record', transport }, calls)
    await recorded(make, replay(file), async (client) => {
      assert.deepEqual(await calls(client), before)
      // The last one answers from then on.
      for (let i = 0; i < 3; i++) assert.equal((await client.get('http://a.test/')).text, '5 ')
    })
  },
)

behaviour('auto replays what is there, and records what is missing', async ({ make }) => {
  const file = newFile()
  let count = 0
  const transport = new MockTransport(() => new Response(200, { text: String(++count) }))
  const get = (path: string) => (client: AnyClient) =>
    Promise.resolve(client.get(`http://a.test${path}`)).then(({ text }) => text)
  const auto = { file, transport }
  assert.equal(await recorded(make, auto, get('/a')), '1')
  assert.equal(await recorded(make, auto, get('/b')), '2')
  assert.equal(await recorded(make, auto, get('/a')), '1')
  assert.equal(await recorded(make, auto, get('/b')), '2')
  // What repeats within the first run is recorded each time.
  await recorded(make, auto, async (client) => {
    assert.deepEqual(
      [await get('/c')(client), await get('/c')(client), await get('/a')(client)],
      ['3', '4', '1'],
    )
  })
  assert.deepEqual(
    entriesIn(file).map(({ request }) => request.url.at(-1)),
    ['a', 'b', 'c', 'c'],
  )
  // record begins anew.
  assert.equal(await recorded(make, { ...auto, mode: 'record' }, get('/d')), '5')
  assert.equal(entriesIn(file).length, 1)
})

behaviour('streamed content, both ways, is recorded whole', async ({ make, origin }) => {
  const pieces = ['a', 'b', 'c']
  function* chunks(): Generator<string> {
    yield* pieces
  }
  await compare(make, async (client) => {
    const response = await client.stream('POST', `${origin}/echo`, { content: chunks() })
    const text = (await collect(response.iterText())).join('')
    const { body } = JSON.parse(text) as { body: string }
    const lines = await collect((await client.stream('GET', `${origin}/chunks?n=3`)).iterLines())
    return [body, lines]
  })
})

behaviour('a response that is closed early is recorded as far as it was read', async ({ make }) => {
  const file = newFile()
  function* endless(): Generator<Uint8Array> {
    for (;;) yield Buffer.from('data: 1\n\n')
  }
  const transport = new MockTransport(() => new Response(200, { stream: endless() }))
  await recorded(make, { file, transport }, async (client) => {
    const response = await client.stream('GET', 'http://a.test/')
    let read = 0
    for await (const _chunk of response.iterRaw()) if (++read === 3) break
    await response.close()
  })
  await recorded(make, replay(file), async (client) => {
    assert.equal((await client.get('http://a.test/')).text, 'data: 1\n\n'.repeat(3))
  })
})

behaviour(
  'encoded content is stored decoded, binary content as base64',
  async ({ make, origin }) => {
    const { entries } = await compare(make, async (client) => {
      const params = { coding: 'gzip,br', text: 'hällo ', times: 1000 }
      const encoded = await client.get(`${origin}/encoded`, { params })
      const binary = await client.get(`${origin}/text?type=image/png&hex=89504e47ff00`)
      const latin = await client.get(
        `${origin}/text?type=${encodeURIComponent('text/plain; charset=latin1')}&hex=68e4`,
      )
      const none = await client.request('HEAD', `${origin}/bytes?n=7`)
      return [encoded.text, [...binary.content], latin.text, none.headers.get('content-length')]
    })
    const [encoded, binary] = entries.map(({ response }) => response)
    assert.equal(encoded!.content.text, 'hällo '.repeat(1000))
    assert.equal(encoded!.content.size, 7000)
    assert.equal(encoded!.content.compression, 7000 - encoded!.bodySize)
    assert.deepEqual([binary!.content.encoding, binary!.content.text], ['base64', 'iVBOR/8A'])
  },
)

behaviour('no character of a body is changed', async ({ make }) => {
  // JSON leaves two kinds of line ends unescaped.
  const content = Array.from({ length: 0x3000 }, (_, code) => String.fromCharCode(code)).join('')
  const file = newFile()
  const transport = new MockTransport((request) => new Response(200, { content: request.content }))
  const calls = async (client: AnyClient): Promise<void> =>
    assert.equal((await client.post('http://a.test/', { content })).text, content)
  await recorded(make, { file, transport }, calls)
  await recorded(make, replay(file), calls)
})

behaviour('content in an unknown or wrong coding stays as it is', async ({ make }) => {
  const file = newFile()
  const transport = new MockTransport(
    ({ url }) =>
      new Response(200, {
        headers: { 'Content-Encoding': url.pathname.slice(1) },
        stream: [url.pathname === '/unknown' ? Buffer.from('abc') : gzipSync('x').subarray(0, 9)],
      }),
  )
  const calls = async (client: AnyClient): Promise<void> => {
    const unknown = await client.get('http://a.test/unknown')
    assert.deepEqual([unknown.text, unknown.headers.get('content-encoding')], ['abc', 'unknown'])
    assert.ok((await failure(() => client.get('http://a.test/gzip'))) instanceof DecodingError)
  }
  await recorded(make, { file, transport }, calls)
  await recorded(make, replay(file), calls)
})

behaviour('redirects, authentication and cookies work as they did', async ({ make, origin }) => {
  const { entries } = await compare(
    make,
    async (client) => {
      const to = `${origin}/cookies?set=id%3Dsecret-session-1%3B+Path%3D/`
      const moved = await client.get(`${origin}/redirect`, { params: { to } })
      const sent = (await client.get(`${origin}/cookies`)).statusCode
      const digest = await client.get(`${origin}/digest?qop=auth`, {
        auth: new DigestAuth('u', 'p'),
      })
      return [
        moved.history.length,
        moved.url.pathname,
        sent,
        digest.statusCode,
        digest.authHistory.length,
      ]
    },
    { followRedirects: true },
  )
  assert.ok(entries.length >= 5)
  const set = entries
    .flatMap(({ response }) => response.headers)
    .find(({ name }) => /^set-cookie$/i.test(name))
  assert.equal(set!.value, 'id=[secret]; Path=/')
})

behaviour('failures of the network are replayed with their class', async ({ make }) => {
  const file = newFile()
  const transport = new MockTransport(({ url }) => {
    if (url.pathname === '/late') throw new ReadTimeoutError('too late', 50)
    if (url.pathname === '/refused') throw new ConnectError('refused')
    const stream = (function* (): Generator<Uint8Array> {
      yield Buffer.from('half')
      throw new ReadError('reset')
    })()
    return new Response(200, { stream })
  })
  const calls = async (client: AnyClient): Promise<void> => {
    const late = await failure(() => client.get('http://a.test/late'))
    assert.ok(
      late instanceof ReadTimeoutError && late.timeoutMs === 50 && late.message === 'too late',
    )
    assert.equal(late.request?.url.pathname, '/late')
    assert.ok((await failure(() => client.get('http://a.test/refused'))) instanceof ConnectError)
    const response = await client.stream('GET', 'http://a.test/half')
    const read: string[] = []
    const broken = await failure(async () => {
      for await (const text of response.iterText()) read.push(text)
    })
    assert.ok(broken instanceof ReadError)
    assert.deepEqual(read, ['half'])
  }
  await recorded(make, { file, transport }, calls)
  await recorded(make, replay(file), calls)
  assert.deepEqual(
    entriesIn(file).map(({ response }) => response.status),
    [0, 0, 200],
  )
})

behaviour('a multipart body matches whatever its boundary is', async ({ make, origin }) => {
  const { entries } = await compare(make, async (client) => {
    const files = { file: ['a.bin', Buffer.from([0, 255, 13, 10])] as [string, Uint8Array] }
    return (await client.post(`${origin}/echo`, { data: { a: '1' }, files })).statusCode
  })
  assert.match(entries[0]!.request.postData!.mimeType, /boundary=recorded-boundary$/)
})

const SECRETS = {
  header: 'sk-header-12345',
  bearer: 'bearer-123456',
  query: 'query-123456',
  user: 'pass-123456',
  json: 'json-123456',
  form: 'form-123456',
  part: 'part-123456',
  cookie: 'cookie-123456',
  set: 'set-123456',
  reply: 'reply-123456',
  custom: 'custom-123456',
}

behaviour(
  'secrets are masked wherever they are, and do not count when a request is matched',
  async ({ make }) => {
    const file = newFile()
    const transport = new MockTransport(
      (request) =>
        new Response(200, {
          headers: [
            ['Set-Cookie', `sid=${SECRETS.set}; Path=/; HttpOnly`],
            ['Content-Type', 'application/json'],
          ],
          // As an echo service answers.
          content: JSON.stringify({
            access_token: SECRETS.reply,
            total_tokens: 7,
            headers: request.headers.raw,
            url: request.url.href,
          }),
        }),
    )
    const calls =
      (secrets: typeof SECRETS) =>
      async (client: AnyClient): Promise<unknown[]> => {
        const headers = { 'X-Api-Key': secrets.header, Authorization: `Bearer ${secrets.bearer}` }
        const cookies = { c: secrets.cookie }
        const origin = `http://u:${secrets.user}@a.test`
        const responses = [
          await client.get(`${origin}/?api_key=${secrets.query}&page=1`, { headers, cookies }),
          await client.post(`${origin}/json`, {
            json: { n: 1, nested: { clientSecret: secrets.json } },
            headers,
          }),
          await client.post(`${origin}/form`, {
            data: { password: secrets.form, x: 'y' },
            headers,
          }),
          await client.post(`${origin}/part`, {
            data: { password: secrets.part },
            files: { f: 'x' },
            headers,
          }),
          await client.post(`${origin}/custom`, { json: { pin: secrets.custom }, headers }),
        ]
        return responses.map(({ statusCode }) => statusCode)
      }
    const redact = (entry: HarEntry): void => {
      const data = entry.request.postData
      if (data !== undefined) data.text = data.text.replace(/"pin":"[^"]*"/, '"pin":"[pin]"')
    }
    const before = await recorded(make, { file, mode: 'record', transport, redact }, calls(SECRETS))
    const text = readFileSync(file, 'utf8')
    for (const [name, secret] of Object.entries(SECRETS)) {
      assert.ok(!text.includes(secret), `${name} is in the file`)
      assert.ok(!text.includes(Buffer.from(`u:${SECRETS.user}`).toString('base64')))
    }
    assert.match(text, /total_tokens\\":7/)
    const others = Object.fromEntries(
      Object.entries(SECRETS).map(([name, secret]) => [name, `${secret}-other`]),
    ) as typeof SECRETS
    assert.deepEqual(await recorded(make, { ...replay(file), redact }, calls(others)), before)
  },
)

behaviour(
  'a request without a recording is an error that shows the nearest one',
  async ({ make }) => {
    const file = newFile()
    const transport = new MockTransport(() => new Response(200))
    await recorded(make, { file, transport }, async (client) => {
      await client.get('http://a.test/items?page=1&key=abcdefgh')
      await client.post('http://a.test/items', { json: { name: 'nut', size: 3 } })
    })
    await recorded(make, replay(file), async (client) => {
      const why = async (call: () => unknown): Promise<string> => {
        const error = await failure(call)
        assert.ok(error instanceof RecordingError && error.request !== undefined, String(error))
        assert.equal(error.code, 'ERR_HTTP_RECORDING')
        assert.ok(error.message.includes(`recorded.har has no recording of `))
        return error.message
      }
      assert.match(
        await why(() => client.get('http://a.test/items?page=2&key=zzzzzzzz')),
        /the nearest is GET http:\/\/a\.test\/items\?page=1&key=%5Bsecret%5D, where page of the query is "1", now "2"\. To add it, run once with mode: 'auto'/,
      )
      assert.match(
        await why(() => client.post('http://a.test/items', { json: { name: 'bolt', size: 3 } })),
        /nearest is POST .*, where the body at character 9 is ".*nut.*", now ".*bolt.*"/,
      )
      assert.match(await why(() => client.put('http://a.test/items')), /the method differs/)
      assert.match(await why(() => client.get('http://b.test/items')), /the URL differs/)
    })
    await recorded(make, replay(newFile()), async (client) => {
      assert.match(
        (await failure(() => client.get('http://a.test/'))).message,
        /it has none at all/,
      )
    })
  },
)

behaviour('replay neither resolves a name nor connects', async ({ make }) => {
  const file = newFile()
  const transport = new MockTransport(() => new Response(200, { text: 'recorded' }))
  const get = (client: AnyClient) => client.get('https://does-not-exist.invalid/')
  await recorded(make, { file, transport }, async (client) => void (await get(client)))
  // Without a transport of ours, a lookup would be a ConnectError.
  await recorded(make, { file, mode: 'replay' }, async (client) => {
    assert.equal((await get(client)).text, 'recorded')
    assert.ok((await failure(() => client.get('https://other.invalid/'))) instanceof RecordingError)
  })
})

test('the same exchanges make the same file, but for times', async () => {
  const texts = await Promise.all(
    [1, 2].map(async () => {
      const file = newFile()
      const transport = new MockTransport(async ({ url }) => {
        // Answers come in another order than requests.
        for (let i = 0; i < 9 - Number(url.searchParams.get('n')); i++) await Promise.resolve()
        return new Response(200, { json: { n: url.search } })
      })
      const recording = new RecordingTransport({ file, transport })
      await using client = new AsyncClient({ transport: recording })
      await Promise.all([1, 2, 3, 4].map((n) => client.get('http://a.test/', { params: { n } })))
      recording.close()
      return readFileSync(file, 'utf8')
    }),
  )
  const timeless = texts.map((text) =>
    text.replace(/"(startedDateTime|time|wait|receive|send)": [^\n]*/g, '"$1"'),
  )
  assert.equal(timeless[0], timeless[1])
  assert.match(timeless[0]!, /^\{\n {2}"log": \{\n {4}"version": "1.2",\n/)
  assert.ok(timeless[0]!.endsWith('\n      }\n    ]\n  }\n}\n'))
})

test('each exchange is in the file at once or at the exit of the process, and nothing else is left', async () => {
  const file = newFile()
  const transport = new MockTransport(() => new Response(200, { text: 'x' }))
  const recording = new RecordingTransport({ file, transport })
  await using client = new AsyncClient({ transport: recording })
  await client.get('http://a.test/')
  assert.equal(entriesIn(file).length, 1)
  for (let i = 0; i < 50; i++) await client.get('http://a.test/')
  assert.ok(entriesIn(file).length >= 1)
  process.listeners('exit').at(-1)!.call(process, 0)
  assert.equal(entriesIn(file).length, 51)
  recording.close()
  assert.deepEqual(readdirSync(join(file, '..')), ['recorded.har'])
  await assert.rejects(client.get('http://a.test/'), /was closed/)
})

test('two transports on one file lose nothing of each other', async () => {
  const file = newFile()
  const transport = new MockTransport(({ url }) => new Response(200, { text: url.pathname }))
  const both = ['/a', '/b'].map((path) => ({
    path,
    recording: new RecordingTransport({ file, transport }),
  }))
  await Promise.all(
    both.map(async ({ path, recording }) => {
      await using client = new AsyncClient({ transport: recording })
      for (let i = 0; i < 5; i++) await client.get(`http://a.test${path}${i}`)
    }),
  )
  for (const { recording } of both) recording.close()
  assert.equal(entriesIn(file).length, 10)
})

const BROKEN: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  ['half a file', '{"log": {"entries": [', /is not a HAR file, .*restore it, or delete it/],
  ['no JSON', 'GET /', /is not a HAR file/],
  ['other JSON', '[1]', /it has no log.entries/],
  ['null', 'null', /it has no log.entries/],
  [
    'an entry without a response',
    '{"log":{"entries":[{"request":{"method":"GET","url":"http://a"}}]}}',
    /log\.entries\[0\]/,
  ],
  ['an entry that is null', '{"log":{"entries":[null]}}', /log\.entries\[0\]/],
]

behaviour(
  'a file that is no HAR is an error in auto and replay, and left as it is',
  async ({ make }) => {
    const file = newFile()
    await recorded(
      make,
      { file, transport: new MockTransport(() => new Response(200)) },
      async (client) => {
        await client.get('http://a.test/')
      },
    )
    for (const [what, text, message] of BROKEN) {
      writeFileSync(file, text)
      for (const mode of ['auto', 'replay'] as const) {
        await recorded(make, { file, mode, transport: noNetwork }, async (client) => {
          const error = await failure(() => client.get('http://a.test/'))
          assert.ok(error instanceof RecordingError, `${what}: ${error}`)
          assert.match(error.message, message)
        })
        assert.equal(readFileSync(file, 'utf8'), text)
      }
    }
  },
)

behaviour('a HAR file of a browser is replayed', async ({ make }) => {
  const file = newFile()
  await recorded(
    make,
    { file, transport: new MockTransport(() => new Response(200)) },
    async (client) => {
      await client.get('http://a.test/')
    },
  )
  const request = {
    method: 'POST',
    url: 'https://a.test/x#top',
    httpVersion: 'h2',
    headers: [{ name: ':authority', value: 'a.test' }],
  }
  const response = {
    status: 200,
    statusText: '',
    httpVersion: 'h2',
    redirectURL: '',
    headers: [
      { name: ':status', value: '200' },
      { name: 'content-encoding', value: 'br' },
      { name: 'set-cookie', value: 'a=1\nb=2' },
      { name: 'content-length', value: '3' },
    ],
    content: { size: 5, mimeType: 'text/plain', text: 'hello' },
  }
  const failed = {
    ...response,
    status: 0,
    headers: [],
    content: { size: 0 },
    _error: 'net::ERR_FAILED',
  }
  const postData = {
    mimeType: 'application/x-www-form-urlencoded',
    params: [{ name: 'a', value: 'b c' }],
  }
  const log = {
    version: '1.2',
    browser: { name: 'Chromium', version: '1' },
    pages: [{ id: 'page_1' }],
    comment: 'kept',
  }
  const entries = [
    { request: { ...request, postData }, response, _resourceType: 'fetch' },
    {
      request: { ...request, method: 'GET', postData: undefined, url: 'https://a.test/failed' },
      response: failed,
    },
  ]
  writeFileSync(file, '\ufeff' + JSON.stringify({ log: { ...log, entries } }))
  await recorded(
    make,
    { file, transport: new MockTransport(() => new Response(204)) },
    async (client) => {
      const answer = await client.post('https://a.test/x', { data: { a: 'b c' } })
      assert.deepEqual([answer.text, answer.httpVersion], ['hello', 'HTTP/2'])
      assert.equal(answer.headers.get('content-length'), '5')
      assert.deepEqual(answer.headers.getList('set-cookie'), ['a=1', 'b=2'])
      assert.match((await failure(() => client.get('https://a.test/failed'))).message, /ERR_FAILED/)
      await client.get('https://a.test/new')
    },
  )
  const rewritten = JSON.parse(readFileSync(file, 'utf8')) as { log: Record<string, unknown> }
  const { entries: list, ...rest } = rewritten.log as { entries: unknown[] }
  assert.deepEqual(rest, log)
  assert.deepEqual(list.slice(0, 2), JSON.parse(JSON.stringify(entries)))
  assert.equal(list.length, 3)
})

test('options are checked when the transport is made', () => {
  const make = (options: unknown) => () => new RecordingTransport(options as never)
  assert.throws(make({}), /file/)
  assert.throws(make({ file: '' }), /file must be the path/)
  assert.throws(
    make({ file: 'x', mode: 'on' }),
    /mode must be 'record', 'replay' or 'auto', got on/,
  )
})

test('what the file cannot hold is an error of the call, and not lost in silence', async () => {
  const file = newFile()
  const stream = (function* (): Generator<Uint8Array> {
    for (let i = 0; i < 33; i++) yield new Uint8Array(1024 * 1024)
  })()
  const transport = new MockTransport(() => new Response(200, { stream }))
  using client = new Client({ transport: new RecordingTransport({ file, transport }) })
  assert.throws(
    () => client.get('http://a.test/'),
    /the body of the response is larger than 33554432 bytes/,
  )
  using other = new Client({
    transport: new RecordingTransport({
      file: '/dev/null/x.har',
      transport: new MockTransport(() => new Response(200)),
    }),
  })
  assert.throws(() => other.get('http://a.test/'), RecordingError)
})
