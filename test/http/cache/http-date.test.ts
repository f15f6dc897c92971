import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseHttpDate } from '../../../lib/http/cache/http-date.js'

const NOW = Date.UTC(2026, 0, 1)
const AT = Date.UTC(1994, 10, 6, 8, 49, 37)

for (const [text, expected] of [
  // The examples of RFC 9110, section 5.6.7
  ['Sun, 06 Nov 1994 08:49:37 GMT', AT],
  ['Sunday, 06-Nov-94 08:49:37 GMT', AT],
  ['Sun Nov  6 08:49:37 1994', AT],
  ['Wed Nov 16 08:49:37 1994', Date.UTC(1994, 10, 16, 8, 49, 37)],
  // Two digits: more than 50 years ahead is the past
  ['Wednesday, 01-Jan-76 00:00:00 GMT', Date.UTC(2076, 0, 1)],
  ['Saturday, 01-Jan-77 00:00:00 GMT', Date.UTC(1977, 0, 1)],
  ['Fri, 31 Dec 1999 23:59:60 GMT', Date.UTC(2000, 0, 1)],
  ['Thu, 29 Feb 2024 00:00:00 GMT', Date.UTC(2024, 1, 29)],
  ['Sat, 29 Feb 2025 00:00:00 GMT', null],
  ['Sun, 31 Apr 2025 00:00:00 GMT', null],
  ['Sun, 00 Apr 2025 00:00:00 GMT', null],
  ['Sun, 06 Nov 1994 24:00:00 GMT', null],
  ['Sun, 06 Nov 1994 08:60:00 GMT', null],
  ['Sun, 06 Nov 1994 08:49:61 GMT', null],
  ['sun, 06 nov 1994 08:49:37 gmt', null],
  ['Sun, 06 Nov 1994 08:49:37 UTC', null],
  ['Sun, 06 Nov 1994 08:49:37 +0000', null],
  ['Sun, 06 Nov 1994 08:49:37', null],
  ['Sun 06 Nov 1994 08:49:37 GMT', null],
  ['Sun, 6 Nov 1994 08:49:37 GMT', null],
  ['Sun,  06 Nov 1994 08:49:37 GMT', null],
  ['Sun, 06 Nov 0094 08:49:37 GMT', null],
  ['1994-11-06T08:49:37Z', null],
  ['0', null],
  ['-1', null],
  ['', null],
] as const) {
  test(`the HTTP date ${JSON.stringify(text)} is ${expected ?? 'none'}`, () => {
    assert.equal(parseHttpDate(text, NOW), expected)
  })
}

test('what Date writes is what is read', () => {
  for (let at = 0; at < NOW; at += 1_234_567_000) {
    assert.equal(parseHttpDate(new Date(at).toUTCString(), NOW), at)
  }
})
