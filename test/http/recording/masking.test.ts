import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addCredential } from '../../../lib/internal/errors.js'
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
  ['text/plain', 'oauth_token_secret=abc&x=1', 'oauth_token_secret=%5Bsecret%5D&x=1'],
  ['application/json', '{"pass\\u0077ord":"a"}', '{"pass\\u0077ord":"[secret]"}'],
  ['application/json', '{"token":{"a":["b",1],"c":"d"},"e":"f"}', '{"token":{"a":["[secret]",1],"c":"[secret]"},"e":"f"}'],
  ['application/json', '{"secret":["a","b"],"c":"d"}', '{"secret":["[secret]","[secret]"],"c":"d"}'],
  ['application/json', '{"a":"{\\"token\\":\\"b\\"}"}', '{"a":"{\\"token\\":\\"[secret]\\"}"}'],
  ['application/json', '{"a":"x\\ny \\"quoted\\""}', '{"a":"x\\ny \\"quoted\\""}'],
  ['application/json', '["http://a/?b=c&access_token=d#e"]', '["http://a/?b=c&access_token=%5Bsecret%5D#e"]'],
  ['application/json', '["http:\\/\\/a\\/?b=c\\u0026token=d"]', '["http://a/?b=c&token=%5Bsecret%5D"]'],
  ['application/json', '{"git":"https://u:p@a.test/x@y"}', '{"git":"https://%5Bsecret%5D@a.test/x@y"}'],
  ['application/json', '{"a":"eyJhbGciOiJ9.eyJzdWIiOjF9.c2ln","b":1}', '{"a":"[secret]","b":1}'],
  [
    'application/x-www-form-urlencoded',
    'a=%7B%22token%22%3A%22b%22%7D&c=http%3A%2F%2Fd%2F%3Ftoken%3De',
    'a=%7B%22token%22%3A%22%5Bsecret%5D%22%7D&c=http%3A%2F%2Fd%2F%3Ftoken%3D%255Bsecret%255D',
  ],
  [
    'multipart/form-data; boundary=b',
    '--b\r\nContent-Disposition: form-data; name=token\r\n\r\nc\r\n' +
      '--b\r\nContent-Disposition: form-data; name="d"\r\n\r\n{"token":"e"}\r\n--b--\r\n',
    '--b\r\nContent-Disposition: form-data; name=token\r\n\r\n[secret]\r\n' +
      '--b\r\nContent-Disposition: form-data; name="d"\r\n\r\n{"token":"[secret]"}\r\n--b--\r\n',
  ],
] as const) {
  test(`of ${JSON.stringify(body)} secrets are masked, and once is enough`, () => {
    const masker = new Masker()
    assert.equal(masker.all(masker.body(body, type)), masked)
    assert.equal(masker.all(masker.body(masked, type)), masked)
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

test('a secret is masked in other fields, in its encodings, and in bytes', () => {
  const masker = new Masker()
  const auth = Buffer.from('user:pä"ss/word').toString('base64')
  const headers = new Headers({ 'X-Echo': auth, Authorization: `Basic ${auth}` })
  assert.deepEqual(masker.headers(headers), [
    { name: 'X-Echo', value: '[secret]' },
    { name: 'Authorization', value: '[secret]' },
  ])
  const shown = JSON.stringify(['pä"ss/word', encodeURIComponent('pä"ss/word'), auth])
  assert.equal(masker.all(shown), '["[secret]","[secret]","[secret]"]')
  const image = Buffer.concat([Buffer.of(0xff, 0xd8), Buffer.from('pä"ss/word'), Buffer.of(0xff)])
  const masked = Buffer.concat([Buffer.of(0xff, 0xd8), Buffer.from('[secret]'), Buffer.of(0xff)])
  assert.deepEqual(masker.bytes(image, 'image/jpeg'), masked)
})

test('fields of a multipart body with a binary file are masked, and the file is not changed', () => {
  const part = '--b\r\nContent-Disposition: form-data; name="'
  const file = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('latin1')
  const body = (password: string): Buffer =>
    Buffer.from(`${part}password"\r\n\r\n${password}\r\n${part}f"\r\n\r\n${file}\r\n--b--\r\n`, 'latin1')
  const masked = new Masker().bytes(body('abc'), 'multipart/form-data; boundary=b')
  assert.deepEqual(masked, body('[secret]'))
})
