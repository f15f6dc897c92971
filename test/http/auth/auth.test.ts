import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  AsyncClient,
  AsyncResponse,
  Auth,
  BearerAuth,
  DigestAuth,
  MockTransport,
  NetrcAuth,
  parseNetrc,
  type BaseResponse,
  type Request,
} from 'runwright/http'
import { parseChallenges } from '../../../lib/internal/web.js'
import { behaviour, failure, useApp } from '../both-clients.js'

useApp()

for (const algorithm of [
  'MD5',
  'MD5-sess',
  'SHA-256',
  'SHA-256-sess',
  'SHA-512-256',
  'SHA-512-256-sess',
  'SHA',
  'SHA-512',
]) {
  for (const qop of ['auth', 'auth-int', null]) {
    const variant = `${algorithm}, ${qop ?? 'without qop'},`
    behaviour(`a Digest challenge with ${variant} is answered`, async ({ client }) => {
      const auth = new DigestAuth('u', 'p')
      const params = { algorithm, ...(qop === null ? {} : { qop }) }
      const response = await client.post('/digest', {
        params,
        auth,
        content: ['bo', 'dy'].values(),
      })
      assert.equal(response.statusCode, 200, response.headers.get('www-authenticate') ?? '')
      assert.equal(response.authHistory.length, 1)
      assert.equal(response.history.length, 0)
      const again = await client.post('/digest', { params, auth, content: 'x' })
      assert.equal(again.authHistory.length, 0)
      if (qop !== null) assert.equal(again.text, 'welcome 00000002')
    })
  }
}

behaviour(
  'a stale nonce is replaced; with a wrong password the second 401 is returned',
  async ({ client }) => {
    const auth = new DigestAuth('u', 'p')
    for (let i = 0; i < 3; i++) {
      const response = await client.get('/digest?qop=auth&stale=1', { auth })
      assert.equal(response.statusCode, 200)
    }
    const wrong = await client.get('/digest?qop=auth', { auth: new DigestAuth('u', 'no') })
    assert.equal(wrong.statusCode, 401)
    assert.equal(wrong.authHistory.length, 1)
  },
)

behaviour(
  'an auth flow can read responses, and is closed when the call fails',
  async ({ client, origin }) => {
    let closed = 0
    class Twice extends Auth {
      override readonly requiresResponseBody = true;
      override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
        try {
          const response = yield request
          request.headers.set('X-Seen', response.text)
          yield request
        } finally {
          closed++
        }
      }
    }
    const response = await client.get('/echo', { auth: new Twice() })
    assert.match(
      response.json<{ headers: Record<string, string> }>().headers['x-seen']!,
      /"method":"GET"/,
    )
    await failure(() => client.get(origin.replace(/\d+$/, '1'), { auth: new Twice() }))
    assert.equal(closed, 2)
  },
)

behaviour('an auth flow that never ends is stopped', async ({ client }) => {
  class Endless extends Auth {
    override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
      for (;;) yield request
    }
  }
  const error = await failure(() => client.get('/echo', { auth: new Endless() }))
  assert.equal(error.code, 'ERR_HTTP_TOO_MANY_REDIRECTS')
})

behaviour('a bearer token is sent, except with auth: null', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, auth: new BearerAuth('t') })
  const authOf = (response: BaseResponse): unknown =>
    response.json<{ headers: Record<string, string> }>().headers['authorization']
  assert.equal(authOf(await client.get('/echo')), 'Bearer t')
  assert.equal(authOf(await client.get('/echo', { auth: null })), undefined)
})

interface DigestExample {
  name: string
  algorithm: string
  response: string
}

for (const { name, algorithm, response } of [
  { name: 'MD5', algorithm: 'MD5', response: '8ca523f5e9506fed4657c9700eebdbec' },
  {
    name: 'SHA-256',
    algorithm: 'SHA-256',
    response: '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1',
  },
] satisfies DigestExample[]) {
  test(`the example of RFC 7616, section 3.9.1, with ${name}`, async () => {
    const cnonce = 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ'
    const challenge =
      'realm="http-auth@example.org", qop="auth, auth-int", ' +
      'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", ' +
      'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
    const transport = new MockTransport((request) => {
      return request.headers.has('authorization')
        ? new AsyncResponse(200)
        : new AsyncResponse(401, {
            headers: { 'WWW-Authenticate': `Digest ${challenge}, algorithm=${algorithm}` },
          })
    })
    await using client = new AsyncClient({ transport })
    await client.get('http://www.example.org/dir/index.html', {
      auth: new DigestAuth('Mufasa', 'Circle of Life', { cnonce: () => cnonce }),
    })
    const sent = transport.requests[1]!.headers.get('authorization')!
    assert.match(sent, new RegExp(`response="${response}"`))
    assert.match(sent, /username="Mufasa", realm="http-auth@example\.org"/)
    assert.match(sent, /qop=auth, nc=00000001/)
  })
}

test('the strongest of several challenges is answered; user names may be hashed', async () => {
  const transport = new MockTransport((request) => {
    if (request.headers.has('authorization')) return new AsyncResponse(200)
    return new AsyncResponse(401, {
      headers: [
        ['WWW-Authenticate', 'Digest realm="r", nonce="n", algorithm=MD5'],
        [
          'WWW-Authenticate',
          'Digest realm="r", nonce="n", algorithm=SHA-512-256, userhash=true, qop="auth"',
        ],
      ],
    })
  })
  await using client = new AsyncClient({ transport })
  await client.get('http://a.test/', { auth: new DigestAuth('Jäsøn Doe', 'x') })
  const sent = transport.requests.at(-1)!.headers.get('authorization')!
  assert.match(sent, /algorithm=SHA-512-256/)
  assert.match(sent, /username="[0-9a-f]{64}".*userhash=true/)
})

test('the example of RFC 7616, section 3.9.2, corrected by erratum 4897', async () => {
  const challenge =
    'Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, ' +
    'nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", ' +
    'opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true'
  const transport = new MockTransport((request) => {
    if (request.headers.has('authorization')) return new AsyncResponse(200)
    return new AsyncResponse(401, { headers: { 'WWW-Authenticate': challenge } })
  })
  await using client = new AsyncClient({ transport })
  const cnonce = (): string => 'NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v'
  await client.get('http://api.example.org/doe.json', {
    auth: new DigestAuth('Jäsøn Doe', 'Secret, or not?', { cnonce }),
  })
  const sent = transport.requests[1]!.headers.get('authorization')!
  assert.match(sent, /username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"/)
  assert.match(sent, /response="3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"/)
  assert.match(sent, /userhash=true/)
})

test('netrc is used unless a call has other credentials or trustEnv is false', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'runwright-netrc-'))
  writeFileSync(join(folder, 'netrc'), 'machine a.test login u password p\n')
  process.env['NETRC'] = join(folder, 'netrc')
  try {
    const transport = new MockTransport(() => new AsyncResponse(200))
    const last = (): string | null => transport.requests.at(-1)!.headers.get('authorization')
    await using client = new AsyncClient({ transport })
    await client.get('http://a.test/')
    assert.equal(last(), `Basic ${Buffer.from('u:p').toString('base64')}`)
    for (const options of [
      { auth: null },
      { headers: { Authorization: 'Own' } },
      { auth: new BearerAuth('t') },
    ]) {
      await client.get('http://a.test/', options)
      assert.notEqual(last(), `Basic ${Buffer.from('u:p').toString('base64')}`)
    }
    await client.get('http://b.test/')
    assert.equal(last(), null)
    await using untrusting = new AsyncClient({ transport, trustEnv: false })
    await untrusting.get('http://a.test/')
    assert.equal(last(), null)
  } finally {
    delete process.env['NETRC']
    rmSync(folder, { recursive: true })
  }
})

test('a challenge from another origin, after a redirect, is not answered', async () => {
  const transport = new MockTransport((request) => {
    return request.url.host === 'a.test'
      ? new AsyncResponse(302, { headers: { Location: 'http://evil.test/' } })
      : new AsyncResponse(401, { headers: { 'WWW-Authenticate': 'Digest realm="r", nonce="n"' } })
  })
  await using client = new AsyncClient({ transport, followRedirects: true })
  const response = await client.get('http://a.test/', { auth: new DigestAuth('u', 'p') })
  assert.equal(response.statusCode, 401)
  assert.deepEqual(
    transport.requests.map((request) => request.headers.has('authorization')),
    [false, false],
  )
})

test('challenges are split at schemes, not inside quotes', () => {
  assert.deepEqual(
    parseChallenges(['Basic realm="a, Digest b", Newauth x="1", y=2', 'Negotiate']),
    [
      { scheme: 'basic', params: { realm: 'a, Digest b' } },
      { scheme: 'newauth', params: { x: '1', y: '2' } },
      { scheme: 'negotiate', params: {} },
    ],
  )
})

test('netrc files may have quotes, comments, macros and a default entry', async () => {
  const netrc = parseNetrc(`# comment
machine a.test login u password "p \\"w"
machine b.test
  login v
  password x#y
macdef init
  machine c.test login no password no

default login d password e`)
  assert.deepEqual(netrc.get('a.test'), { login: 'u', password: 'p "w' })
  assert.deepEqual(netrc.get('b.test'), { login: 'v', password: 'x#y' })
  assert.equal(netrc.has('c.test'), false)
  assert.deepEqual(netrc.get(''), { login: 'd', password: 'e' })
  const transport = new MockTransport(() => new AsyncResponse(200))
  await using client = new AsyncClient({ transport, auth: new NetrcAuth(netrc) })
  await client.get('http://b.test/')
  assert.equal(
    transport.requests[0]!.headers.get('authorization'),
    `Basic ${Buffer.from('v:x#y').toString('base64')}`,
  )
})
