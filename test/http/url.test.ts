import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidUrlError, UnsupportedProtocolError } from 'runwright/http'
import { applyParams, redactUrl, resolveUrl, sameOrigin } from '../../lib/http/url.js'

const bases = ['http://a.test', 'http://a.test/', 'http://a.test/v1', 'http://a.test/v1/']

for (const base of bases) {
  const prefix = base.replace(/\/$/, '')
  for (const [input, expected] of [
    ['users', `${prefix}/users`],
    ['/users', `${prefix}/users`],
    ['./users', `${prefix}/users`],
    ['/users/', `${prefix}/users/`],
    ['users/./7', `${prefix}/users/7`],
    ['users/../7', `${prefix}/7`],
    ['users?x=1#part', `${prefix}/users?x=1#part`],
    ['', new URL(base).href],
    ['?x=1', `${new URL(base).href}?x=1`],
    ['#part', `${new URL(base).href}#part`],
    ['a b/ü', `${prefix}/a%20b/%C3%BC`],
    ['a%2Fb', `${prefix}/a%2Fb`],
    ['//b.test/x', `${prefix}/b.test/x`],
    ['///b.test/x', `${prefix}/b.test/x`],
    ['http://b.test/y?z', 'http://b.test/y?z'],
    ['HTTPS://b.test/y', 'https://b.test/y'],
  ] as const) {
    test(`${base} with ${JSON.stringify(input)} is ${expected}`, () => {
      assert.equal(resolveUrl(input, new URL(base)).href, expected)
    })
  }
}

for (const { base, input, expected } of [
  { base: 'http://a.test/v1?key=1', input: 'x', expected: 'http://a.test/v1/x?key=1' },
  {
    base: 'http://a.test/v1?key=1',
    input: 'x?page=2',
    expected: 'http://a.test/v1/x?key=1&page=2',
  },
  { base: 'http://a.test/v1?key=1', input: 'x?key=2', expected: 'http://a.test/v1/x?key=2' },
  { base: 'http://a.test/v1?key=1#top', input: 'x', expected: 'http://a.test/v1/x?key=1' },
  { base: 'http://a.test/v1/?', input: '', expected: 'http://a.test/v1/' },
]) {
  test(`the query of a base URL is kept: ${base} with ${input} is ${expected}`, () => {
    assert.equal(resolveUrl(input, new URL(base)).href.replace(/\?$/, ''), expected)
  })
}

test('a URL with another scheme than http(s), or an invalid one, is rejected', () => {
  for (const input of ['ftp://a.test/', 'javascript:alert(1)', 'localhost:80/x']) {
    assert.throws(() => resolveUrl(input, null), UnsupportedProtocolError, input)
  }
  for (const input of [
    'http://',
    'http://a.test:99999/',
    'http://a b/',
    'http://a.test/\n',
    'http://[::1/',
    `http://a.test/${'x'.repeat(70_000)}`,
  ]) {
    assert.throws(() => resolveUrl(input, null), InvalidUrlError, input.slice(0, 30))
  }
})

for (const { url, params, expected } of [
  { url: 'http://a.test/?x=1&y=2', params: { x: 3 }, expected: '?y=2&x=3' },
  { url: 'http://a.test/?a=%20b', params: { c: 'd e' }, expected: '?a=%20b&c=d+e' },
  {
    url: 'http://a.test/',
    params: { a: [1, 2], b: true, c: null, d: undefined, e: '' },
    expected: '?a=1&a=2&b=true&c=&e=',
  },
  {
    url: 'http://a.test/',
    params: [
      ['k', 'v'],
      ['k', 'w'],
    ] as [string, string][],
    expected: '?k=v&k=w',
  },
  { url: 'http://a.test/?x=1', params: 'y=2&z', expected: '?x=1&y=2&z=' },
  { url: 'http://a.test/?x=1', params: {}, expected: '?x=1' },
]) {
  test(`params ${JSON.stringify(params)} on ${url} give ${expected}`, () => {
    const target = new URL(url)
    applyParams(target, params)
    assert.equal(target.search, expected)
  })
}

test('origins are compared with default ports', () => {
  assert.equal(sameOrigin(new URL('http://a.test'), new URL('http://A.test:80/x')), true)
  assert.equal(sameOrigin(new URL('http://a.test'), new URL('https://a.test')), false)
  assert.equal(sameOrigin(new URL('http://a.test'), new URL('http://a.test:81')), false)
})

for (const input of [
  'http://user:hush@1 2/',
  'http://user:hu/sh@a.test',
  'http://user:hu#sh@a.test',
  'http://user:hu?sh@a.test',
  'http://user:hu@sh@a b/',
  'http:user:hush@a.test:x',
  'http:\\\\user:hush@a b',
  'http://user:hush@a.test/\u0000',
  '//user:hush@a.test/',
]) {
  test(`the error for an invalid URL does not show its password: ${JSON.stringify(input)}`, () => {
    assert.throws(
      () => resolveUrl(input, null),
      (error: Error) => !/hu|sh/.test(error.message.split(/is invalid|is relative|contains a/)[0]!),
    )
  })
}

test('passwords and secret query values are not printed', () => {
  assert.equal(
    redactUrl('https://a.test/back#access_token=1&state=2'),
    'https://a.test/back#access_token=[secret]&state=2',
  )
  assert.equal(
    redactUrl('https://u:p@a.test/x?api_key=1&page=2&access_token=3#f'),
    'https://[secret]@a.test/x?api_key=[secret]&page=2&access_token=[secret]#f',
  )
})
