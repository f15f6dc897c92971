import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Headers } from 'runwright/http'
import { CacheDirectives } from '../../../lib/http/cache/directives.js'

const parse = (...lines: string[]): CacheDirectives =>
  new CacheDirectives(new Headers(lines.map((line) => ['Cache-Control', line] as const)))

test('directives are found whatever their case, blanks and neighbours', () => {
  for (const text of ['no-store', ' No-Store ', ',,no-store,', 'a,\tno-store ,b', 'a="x,y",no-store',
    'a="\\",", no-store', 'no-store;', 'no-store; a', '"a", no-store', '=1, no-store', 'a="b, no-store']) {
    assert.ok(parse(text).has('no-store'), text)
  }
  for (const text of ['', 'no-storex', 'xno-store', 'a="no-store"', 'a="b, no-store, c"', 'a="\\", no-store"']) {
    assert.ok(!parse(text).has('no-store'), text)
  }
  assert.ok(parse('a="b', 'no-store').has('no-store'))
})

for (const [text, expected] of [
  ['max-age=5', 5000],
  ['MAX-AGE="5"', 5000],
  ['max-age="\\5"', 5000],
  ['max-age=005', 5000],
  ['max-age=5, max-age=5', 5000],
  ['max-age=5, max-age=6', 0],
  ['max-age=5, max-age', 0],
  ['max-age', 0],
  ['max-age=', 0],
  ["max-age='5'", 0],
  ['max-age=-5', 0],
  ['max-age=+5', 0],
  ['max-age=5.5', 0],
  ['max-age=5s', 0],
  ['max-age=1e3', 0],
  ['max-age =5', 0],
  ['max-age= 5', 0],
  ['max-age=5 6', 0],
  ['max-age="5', 0],
  ['max-age=2147483649', 2 ** 31 * 1000],
  [`max-age=${'9'.repeat(400)}`, 2 ** 31 * 1000],
  ['s-maxage=5', null],
] as const) {
  test(`${text.slice(0, 40)} is ${expected} ms`, () => {
    assert.equal(parse(text).milliseconds('max-age'), expected)
  })
}

test('a directive is bare without an argument, or lists fields', () => {
  assert.ok(parse('no-cache').isBare('no-cache'))
  assert.ok(parse('no-cache="a", no-cache').isBare('no-cache'))
  assert.ok(!parse('no-cache="a"').isBare('no-cache'))
  assert.deepEqual(parse('no-cache="A, b", no-cache=c').fields('no-cache'), ['a', 'b', 'c'])
})
