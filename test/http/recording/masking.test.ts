import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addCredential } from '../../../lib/internal/credentials.js'
import { Headers } from '../../../lib/http/headers.js'
import { isSecretField, Masker } from '../../../lib/http/recording/masking.js'

test('fields are secret by name', () => {
  for (const name of [
    'password',
    'passwd',
    'userPassword',
    'password_confirmation',
    'pwd',
    'token',
    'access_token',
    'accessToken',
    'refreshToken',
    'id-token',
    'secret',
    'client_secret',
    'clientSecret',
    'apiKey',
    'api_key',
    'APIKEY',
    'x.private_key',
    'credentials',
    'Authorization',
    'cookie',
    'code_verifier',
  ]) {
    assert.ok(isSecretField(name), name)
  }
  for (const name of [
    'key',
    'keys',
    'token_type',
    'total_tokens',
    'max_tokens',
    'author',
    'secretary',
    'monkey',
    'passage',
    'code',
    'session',
    'primaryKey',
    'tokenizer',
    '',
  ]) {
    assert.ok(!isSecretField(name), name)
  }
})

for (const [type, body, masked] of [
  ['application/json', '{"a": 1.0, "token": "abc"}', '{"a": 1.0, "token": "[secret]"}'],
  ['application/json', '{"token":"a\\"b","x":"token"}', '{"token":"[secret]","x":"token"}'],
  ['application/json', '[{"deep":[{"apiKey" :\n"k"}]}]', '[{"deep":[{"apiKey" :\n"[secret]"}]}]'],
  ['application/json', '{"token":"cut', '{"token":"[secret]"'],
  ['application/json', '{"token":7,"password":null}', '{"token":7,"password":null}'],
  ['text/event-stream', 'data: {"access_token":"t"}\n\n', 'data: {"access_token":"[secret]"}\n\n'],
  ['application/x-ndjson', '{"jwt":"t"}\n{"jwt":"u"}', '{"jwt":"[secret]"}\n{"jwt":"[secret]"}'],
  [
    'application/x-www-form-urlencoded',
    'a=b&client%5Fsecret=c&code=d&token=',
    'a=b&client%5Fsecret=%5Bsecret%5D&code=%5Bsecret%5D&token=',
  ],
  ['text/plain', 'token: abc', 'token: abc'],
] as const) {
  test(`of ${JSON.stringify(body)} secrets are masked, and once is enough`, () => {
    const masker = new Masker()
    assert.equal(masker.body(body, type), masked)
    assert.equal(masker.body(masked, type), masked)
  })
}

for (const [url, masked] of [
  ['http://u:p@a.test/x?token=abc&q=1#frag', 'http://a.test/x?token=%5Bsecret%5D&q=1'],
  [
    'http://a.test/?client_secret=a%26b&accessToken=x',
    'http://a.test/?client_secret=%5Bsecret%5D&accessToken=%5Bsecret%5D',
  ],
  ['http://a.test/?api%5Fkey=abc', 'http://a.test/?api%5Fkey=%5Bsecret%5D'],
  ['http://a.test/[secret]?q=[secret]', 'http://a.test/%5Bsecret%5D?q=%5Bsecret%5D'],
  ['http://a.test/?', 'http://a.test/?'],
  ['http://a.test/?page=2', 'http://a.test/?page=2'],
] as const) {
  test(`the URL ${url} is recorded as ${masked}`, () => {
    assert.equal(new Masker().url(url), masked)
    assert.equal(new Masker().url(masked), masked)
  })
}

test('a secret of one place is masked in all others, and so are credentials of this process', () => {
  const masker = new Masker()
  const headers = new Headers({ Authorization: 'Bearer abcdefgh12', Cookie: 'a=cookie-value; b' })
  assert.deepEqual(masker.headers(headers), [
    { name: 'Authorization', value: '[secret]' },
    { name: 'Cookie', value: 'a=[secret]; [secret]' },
  ])
  addCredential('credential-of-this-process')
  assert.equal(
    masker.all('abcdefgh12, cookie-value, credential-of-this-process, Bearer'),
    '[secret], [secret], [secret], Bearer',
  )
  assert.equal(masker.url('http://a.test/abcdefgh12'), 'http://a.test/%5Bsecret%5D')
})
