import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  attachment,
  decodeFilePath,
  encodeFilePath,
} from '../../../lib/server/messages/file-path.js'

for (const { sent, path } of [
  { sent: 'readme.md', path: 'readme.md' },
  { sent: 'src/main.js', path: 'src/main.js' },
  { sent: '%61/b', path: 'a/b' },
  { sent: 'a%20b%3F%23%25', path: 'a b?#%' },
  { sent: '%C3%A4/%c3%b6', path: 'ä/ö' },
  { sent: 'a%FFb', path: 'a\udcffb' },
  { sent: '%ED%B2%80', path: '\udced\udcb2\udc80' },
  { sent: '...', path: '...' },
  { sent: 'a/.hidden', path: 'a/.hidden' },
  { sent: "it's;a=b&c", path: "it's;a=b&c" },
  { sent: '%5C..%5C', path: '\\..\\' },
  { sent: '%0A', path: '\n' },
  { sent: '__proto__', path: '__proto__' },
]) {
  test(`${sent} is the path ${JSON.stringify(path)}`, () => {
    assert.equal(decodeFilePath(sent), path)
    assert.equal(decodeFilePath(encodeFilePath(path)), path)
  })
}

for (const sent of [
  '', '/', 'a//b', 'a/', '/a', '.', '..', 'a/..', 'a/./b', '%2e', '%2E%2e/etc', 'a/%2e%2e/b',
  'a%2fb', '%2F', 'a%00', '%00', '%', 'a%2', '%zz', '%u0041', 'ä', 'a b', 'a\tb',
  'a'.repeat(4_097), '%61'.repeat(4_097), `${'a/'.repeat(2_048)}a`,
]) {
  test(`${JSON.stringify(sent.slice(0, 20))} of ${sent.length} characters is no path`, () => {
    assert.throws(
      () => decodeFilePath(sent),
      (error: any) => {
        assert.deepEqual([error.status, error.code], [422, 'invalid_request'])
        assert.deepEqual([error.errors[0].pointer, error.errors[0].in], ['/path', 'path'])
        return true
      },
    )
  })
}

test('each byte is decoded, or refused where it is a separator', () => {
  for (let byte = 0; byte < 256; byte++) {
    const sent = `x%${byte.toString(16).padStart(2, '0')}`
    if (byte === 0 || byte === 0x2f) assert.throws(() => decodeFilePath(sent), sent)
    else {
      const path = decodeFilePath(sent)
      assert.equal(decodeFilePath(encodeFilePath(path)), path)
      assert.equal(path.length, 2, sent)
    }
  }
})

for (const { path, header } of [
  { path: 'src/main.js', header: `filename="main.js"; filename*=UTF-8''main.js` },
  { path: 'a b.txt', header: `filename="a_b.txt"; filename*=UTF-8''a%20b.txt` },
  {
    path: 'x";\r\nSet-Cookie: a=b',
    header:
      `filename="x____Set-Cookie__a_b"; ` +
      `filename*=UTF-8''x%22%3B%0D%0ASet-Cookie%3A%20a%3Db`,
  },
  { path: 'ä😀', header: `filename="__"; filename*=UTF-8''%C3%A4%F0%9F%98%80` },
  { path: 'a\udcff', header: `filename="a_"; filename*=UTF-8''a%EF%BF%BD` },
]) {
  test(`${JSON.stringify(path)} is stored under its last name`, () => {
    assert.equal(attachment(path), `attachment; ${header}`)
    assert.match(attachment(path), /^[\x20-\x7e]*$/)
  })
}

test('the name of a download has a bound', () => {
  assert.ok(attachment('ä'.repeat(10_000)).length < 2_000)
})
