import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { inspect } from 'node:util'
import {
  CookieConflictError,
  Cookies,
  Headers,
  MockTransport,
  parsePublicSuffixes,
  Response,
} from 'runwright/http'
import { parseCookieDate } from '../../../lib/http/cookies/set-cookie.js'
import { behaviour, useApp } from '../both-clients.js'

useApp()

interface Case {
  from: string
  set: string
  to: string
  goes: boolean
}

const cases: Case[] = [
  { from: 'http://a.test/', set: 'k=v', to: 'http://a.test/x', goes: true },
  { from: 'http://a.test/', set: 'k=v', to: 'http://b.a.test/', goes: false },
  { from: 'http://a.test/', set: 'k=v; Domain=a.test', to: 'http://b.a.test/', goes: true },
  { from: 'http://b.a.test/', set: 'k=v; Domain=.a.test', to: 'http://a.test/', goes: true },
  { from: 'http://a.test/', set: 'k=v; Domain=b.test', to: 'http://b.test/', goes: false },
  { from: 'http://a.test/', set: 'k=v; Domain=x.a.test', to: 'http://x.a.test/', goes: false },
  { from: 'http://a.co.uk/', set: 'k=v; Domain=co.uk', to: 'http://b.co.uk/', goes: false },
  { from: 'http://a.co.uk/', set: 'k=v; Domain=co.uk', to: 'http://a.co.uk/', goes: false },
  {
    from: 'http://a.github.io/',
    set: 'k=v; Domain=github.io',
    to: 'http://b.github.io/',
    goes: false,
  },
  { from: 'http://a.b.ck/', set: 'k=v; Domain=b.ck', to: 'http://c.b.ck/', goes: false },
  { from: 'http://a.www.ck/', set: 'k=v; Domain=www.ck', to: 'http://b.www.ck/', goes: true },
  { from: 'http://a.test/', set: 'k=v; Domain=test', to: 'http://b.test/', goes: false },
  { from: 'http://127.0.0.1/', set: 'k=v', to: 'http://127.0.0.1/', goes: true },
  { from: 'http://1.2.3.4/', set: 'k=v; Domain=3.4', to: 'http://9.2.3.4/', goes: false },
  { from: 'https://a.test/', set: 'k=v; Secure', to: 'http://a.test/', goes: false },
  { from: 'https://a.test/', set: 'k=v; Secure', to: 'https://a.test/', goes: true },
  { from: 'http://a.test/', set: 'k=v; Secure', to: 'https://a.test/', goes: false },
  { from: 'http://a.test/app/x', set: 'k=v', to: 'http://a.test/app/y', goes: true },
  { from: 'http://a.test/app/x', set: 'k=v', to: 'http://a.test/apple', goes: false },
  { from: 'http://a.test/', set: 'k=v; Path=/app', to: 'http://a.test/apple', goes: false },
  { from: 'http://a.test/', set: 'k=v; Path=/app', to: 'http://a.test/app/x', goes: true },
  { from: 'http://a.test/', set: 'k=v; Max-Age=0', to: 'http://a.test/', goes: false },
  { from: 'http://a.test/', set: 'k=v; Max-Age=-1', to: 'http://a.test/', goes: false },
  {
    from: 'http://a.test/',
    set: 'k=v; Expires=Thu, 01 Jan 1970 00:00:00 GMT',
    to: 'http://a.test/',
    goes: false,
  },
  { from: 'http://a.test/', set: 'k=v; Expires=x; Max-Age=60', to: 'http://a.test/', goes: true },
  { from: 'http://a.test:1/', set: 'k=v', to: 'http://a.test:2/', goes: true },
  { from: 'https://a.test/', set: '__Host-k=v; Secure; Path=/', to: 'https://a.test/', goes: true },
  {
    from: 'https://a.test/',
    set: '__Host-k=v; Secure; Path=/; Domain=a.test',
    to: 'https://a.test/',
    goes: false,
  },
  { from: 'https://a.test/', set: '__Host-k=v; Path=/', to: 'https://a.test/', goes: false },
  { from: 'https://a.test/', set: '__Secure-k=v', to: 'https://a.test/', goes: false },
  { from: 'http://a.test/', set: `k=${'v'.repeat(5000)}`, to: 'http://a.test/', goes: false },
  { from: 'http://a.test/', set: '=v', to: 'http://a.test/', goes: false },
]

for (const { from, set, to, goes } of cases) {
  test(`"${set.slice(0, 50)}" from ${from} is ${goes ? '' : 'not '}sent to ${to}`, () => {
    const jar = new Cookies()
    jar.extract(new URL(from), new Headers({ 'Set-Cookie': set }))
    assert.equal(jar.headerFor(new URL(to)) !== null, goes)
  })
}

test('longer paths come first, then older cookies', () => {
  const jar = new Cookies()
  const fields = ['a=1', 'b=2; Path=/x/y', 'c=3; Path=/x', 'd=4'].map((set): [string, string] => [
    'Set-Cookie',
    set,
  ])
  jar.extract(new URL('http://a.test/'), new Headers(fields))
  assert.equal(jar.headerFor(new URL('http://a.test/x/y')), 'b=2; c=3; a=1; d=4')
})

test('a response without TLS cannot replace a Secure cookie', () => {
  const jar = new Cookies()
  jar.extract(new URL('https://a.test/'), new Headers({ 'Set-Cookie': 'k=tls; Secure' }))
  jar.extract(new URL('http://a.test/'), new Headers({ 'Set-Cookie': 'k=clear' }))
  assert.equal(jar.headerFor(new URL('https://a.test/')), 'k=tls')
})

for (const { name, secure, clear, sent } of [
  {
    name: 'of a host with one of its domain',
    secure: 'k=tls; Secure',
    clear: 'k=clear; Domain=a.test',
    sent: 'k=tls',
  },
  {
    name: 'with one of a path below',
    secure: 'k=tls; Secure',
    clear: 'k=clear; Path=/x',
    sent: 'k=tls',
  },
  {
    name: 'of a domain with one of a host',
    secure: 'k=tls; Secure; Domain=a.test',
    clear: 'k=clear',
    sent: 'k=tls',
  },
  {
    name: 'of a path where that is sent',
    secure: 'k=tls; Secure; Path=/y',
    clear: 'k=clear',
    sent: 'k=clear',
  },
]) {
  test(`a response without TLS cannot shadow a Secure cookie ${name}`, () => {
    const jar = new Cookies()
    jar.extract(new URL('https://w.a.test/'), new Headers({ 'Set-Cookie': secure }))
    jar.extract(new URL('http://w.a.test/'), new Headers({ 'Set-Cookie': clear }))
    assert.equal(jar.headerFor(new URL('https://w.a.test/x/')), sent)
  })
}

test('Unicode and ASCII forms of a domain are equal', () => {
  const jar = new Cookies()
  jar.extract(
    new URL('http://bücher.test/'),
    new Headers({ 'Set-Cookie': 'k=1; Domain=Bücher.test' }),
  )
  jar.set('own', '2', { domain: 'bücher.test' })
  assert.equal(jar.headerFor(new URL('http://shop.xn--bcher-kva.test/')), 'k=1; own=2')
  assert.equal(jar.get('own', { domain: '.bücher.test' }), '2')
})

test('a host name that starts like a loopback address needs TLS for Secure cookies', () => {
  const jar = new Cookies()
  jar.extract(new URL('https://127.0.0.1.evil.test/'), new Headers({ 'Set-Cookie': 'k=1; Secure' }))
  assert.equal(jar.headerFor(new URL('http://127.0.0.1.evil.test/')), null)
  jar.extract(new URL('http://127.0.0.1/'), new Headers({ 'Set-Cookie': 'k=1; Secure' }))
  assert.equal(jar.headerFor(new URL('http://127.0.0.1/')), 'k=1')
})

test('a jar is restored from JSON without expired cookies, and printing shows no value', () => {
  const jar = new Cookies({ plain: 'p' })
  jar.extract(
    new URL('https://a.test/x'),
    new Headers({ 'Set-Cookie': 'k=hush; Max-Age=60; Secure; HttpOnly' }),
  )
  const copy = Cookies.fromJSON(JSON.parse(JSON.stringify(jar)))
  assert.deepEqual(copy.toJSON(), jar.toJSON())
  assert.equal(copy.get('k'), 'hush')
  assert.equal(Cookies.fromJSON([{ ...jar.toJSON()[1]!, expiresAt: 1 }]).size, 0)
  assert.doesNotMatch(inspect(jar), /hush/)
})

test('get() by name alone throws when several cookies match', () => {
  const jar = new Cookies()
  jar.set('k', '1', { domain: 'a.test' })
  jar.set('k', '2', { domain: 'b.test' })
  assert.throws(() => jar.get('k'), CookieConflictError)
  assert.equal(jar.get('k', { domain: 'b.test' }), '2')
  assert.equal(jar.delete('k', { domain: 'a.test' }), true)
  assert.equal(jar.get('k'), '2')
  jar.clear()
  assert.equal(jar.size, 0)
})

test('one domain cannot fill the jar', () => {
  const jar = new Cookies()
  for (let i = 0; i < 400; i++)
    jar.extract(new URL('http://a.test/'), new Headers({ 'Set-Cookie': `k${i}=v` }))
  assert.equal(jar.size, 180)
})

/** A response from `host` that sets a cookie. */
const setFrom = (jar: Cookies, host: string, field: string): void =>
  jar.extract(new URL(`https://${host}/`), new Headers({ 'Set-Cookie': field }))
const namesIn = (jar: Cookies): string[] => [...jar].map(({ name }) => name)

test('of too many cookies of a domain the one changed or sent least recently is dropped', () => {
  const jar = new Cookies()
  for (let i = 0; i < 180; i++) setFrom(jar, 'a.test', `k${i}=v; Path=/${i}`)
  setFrom(jar, 'a.test', 'k0=again; Path=/0')
  assert.equal(jar.headerFor(new URL('https://a.test/2')), 'k2=v')
  setFrom(jar, 'b.test', 'other=v')
  for (const name of ['n1', 'n2']) setFrom(jar, 'a.test', `${name}=v`)
  const names = namesIn(jar)
  assert.equal(jar.size, 181)
  assert.deepEqual(['k1', 'k3'].filter((name) => names.includes(name)), [])
  assert.deepEqual(names.slice(-5), ['k0', 'k2', 'other', 'n1', 'n2'])
})

test('of too many cookies of all domains the one changed or sent least recently is dropped', () => {
  const jar = new Cookies()
  for (let i = 0; i < 3000; i++) setFrom(jar, `h${i}.test`, `k${i}=v`)
  jar.headerFor(new URL('https://h0.test/'))
  for (const host of ['x.test', 'y.test']) setFrom(jar, host, 'new=v')
  assert.equal(jar.size, 3000)
  const names = namesIn(jar)
  assert.deepEqual([names[0], names.at(-3)], ['k3', 'k0'])
})

test('expired cookies make room before any other is dropped', (t) => {
  t.mock.timers.enable({ apis: ['Date'] })
  const jar = new Cookies()
  for (let i = 0; i < 180; i++)
    setFrom(jar, 'a.test', `k${i}=v${i % 3 === 2 ? `; Max-Age=${1 + (i % 7)}` : ''}`)
  // The expiry of a cookie that was replaced does not count.
  setFrom(jar, 'a.test', 'k2=v')
  t.mock.timers.tick(3_500)
  setFrom(jar, 'a.test', 'new=v')
  const expired = (i: number): boolean => i % 3 === 2 && 1 + (i % 7) <= 3 && i !== 2
  const left = Array.from({ length: 180 }, (_, i) => i).filter((i) => !expired(i))
  assert.equal(jar.size, left.length + 1)
  assert.deepEqual(new Set(namesIn(jar)), new Set([...left.map((i) => `k${i}`), 'new']))
})

test('a cookie that would break its header is rejected', () => {
  for (const [name, value] of [
    ['a', 'b; c=d'],
    ['a', 'b\r\nX: y'],
    ['a b', 'c'],
    ['', 'c'],
  ] as const) {
    assert.throws(() => new Cookies().set(name, value), /invalid character/)
  }
})

test('cookie dates have several formats', () => {
  const at = Date.UTC(1994, 10, 6, 8, 49, 37)
  for (const text of [
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
  ]) {
    assert.equal(parseCookieDate(text), at)
  }
  assert.equal(parseCookieDate('Sun, 31 Feb 2020 08:49:37 GMT'), null)
  assert.equal(parseCookieDate('tomorrow'), null)
})

test('the full public suffix list can be used', () => {
  const publicSuffixes = parsePublicSuffixes(
    '// comment\ncom\n*.kawasaki.jp\n!city.kawasaki.jp\n香港\n',
  )
  assert.equal(publicSuffixes('x.kawasaki.jp'), true)
  assert.equal(publicSuffixes('city.kawasaki.jp'), false)
  assert.equal(publicSuffixes('github.io'), false)
  assert.equal(publicSuffixes('xn--j6w193g'), true)
  const jar = new Cookies(null, { publicSuffixes })
  jar.extract(
    new URL('http://a.github.io/'),
    new Headers({ 'Set-Cookie': 'k=v; Domain=github.io' }),
  )
  assert.equal(jar.size, 1)
})

behaviour(
  'cookies of responses are sent back, along with given ones',
  async ({ make, origin }) => {
    const client = make({ baseUrl: origin, cookies: { given: '1' } })
    assert.equal((await client.get('/cookies?set=a%3D2')).text, 'given=1')
    const response = await client.get('/cookies', {
      cookies: { own: '3' },
      headers: { Cookie: 'raw=4' },
    })
    assert.equal(response.text, 'raw=4; own=3; given=1; a=2')
    assert.equal(client.cookies.get('a'), '2')
    assert.equal((await client.get('/cookies?set=b%3D5')).cookies.get('b'), '5')
    assert.equal((await client.get('/cookies?set=a%3D; Max-Age=0')).statusCode, 200)
    assert.equal(client.cookies.get('a'), null)
  },
)

behaviour(
  'redirects may set cookies; given ones are sent to the requested origin only',
  async ({ make, origin }) => {
    const client = make({ followRedirects: true, cookies: { given: '1' } })
    const other = origin.replace('127.0.0.1', 'localhost')
    const target = `${origin}/redirect?to=${encodeURIComponent(`${other}/cookies`)}`
    assert.equal(
      (await client.get(target, { cookies: { own: '2' }, headers: { Cookie: 'raw=3' } })).text,
      '',
    )
    const same = `${origin}/redirect?to=/cookies`
    assert.equal((await client.get(same, { cookies: { own: '2' } })).text, 'own=2; given=1')
  },
)

behaviour('with persist: false no cookie is stored', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, cookies: new Cookies(null, { persist: false }) })
  await client.get('/cookies?set=a%3D2')
  assert.equal(client.cookies.size, 0)
})

test('the built-in list names its source and version', () => {
  const text = readFileSync(
    new URL('../../../lib/http/cookies/public-suffixes.ts', import.meta.url),
    'utf8',
  )
  assert.match(text, /publicsuffix\.org, version of 9 February 2023/)
})

behaviour(
  'cookies given to a client or call are sent to the requested URL, whatever the base',
  async ({ make, origin }) => {
    const client = make({ baseUrl: 'http://elsewhere.test', cookies: { mine: '1' } })
    const response = await client.get(`${origin}/cookies`, {
      cookies: { call: '2' },
      headers: { Cookie: 'own=3' },
    })
    assert.equal(response.text, 'own=3; call=2; mine=1')
  },
)

behaviour(
  'the next request of a redirect has the cookies that it set',
  async ({ make }) => {
    const headers = { Location: '/in', 'Set-Cookie': 'session=1' }
    const transport = new MockTransport(
      ({ url }) => new Response(url.pathname === '/in' ? 200 : 302, { headers }),
    )
    const client = make({ transport, cookies: { given: '2' } })
    const { nextRequest } = await client.post('http://a.test/')
    await client.send(nextRequest!)
    assert.equal(transport.requests[1]?.headers.get('cookie'), 'given=2; session=1')
  },
)
