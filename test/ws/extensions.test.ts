import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseExtensions } from '../../lib/ws/extensions.js'

const good: Record<string, unknown> = {
  foo: [{ name: 'foo', parameters: [] }],
  'foo, bar;a ; b=1 ;c="2"': [
    { name: 'foo', parameters: [] },
    { name: 'bar', parameters: [['a', true], ['b', '1'], ['c', '2']] },
  ],
  'foo; a="x\\y"': [{ name: 'foo', parameters: [['a', 'xy']] }],
  '\tfoo\t;\ta\t=\t1\t': [{ name: 'foo', parameters: [['a', '1']] }],
  ', foo,, bar,': [
    { name: 'foo', parameters: [] },
    { name: 'bar', parameters: [] },
  ],
  'foo; a; a': [{ name: 'foo', parameters: [['a', true], ['a', true]] }],
  constructor: [{ name: 'constructor', parameters: [] }],
  '': [],
  ' , ': [],
}
for (const [header, expected] of Object.entries(good)) {
  test(`reads ${JSON.stringify(header)} (RFC 6455 §9.1)`, () => {
    assert.deepEqual(parseExtensions(header), expected)
  })
}

for (const header of [
  'foo bar',
  ';a',
  'foo;',
  'foo;;a',
  'foo; a=',
  'foo; =1',
  'foo; a="',
  'foo; a="b c"',
  'foo; a=""',
  'foo; a="b',
  'f@o',
  'foo; a=b=c',
  'foo=1',
  'foo; a="b"c',
  'foo\u00e9',
]) {
  test(`refuses ${JSON.stringify(header)} (RFC 6455 §9.1)`, () => {
    assert.equal(parseExtensions(header), null)
  })
}

test('parsing a hostile header takes time linear in its length (RFC 6455 §10.4)', () => {
  for (const header of [
    'a;'.repeat(50_000),
    'a,'.repeat(50_000),
    `a; b="${'\\a'.repeat(50_000)}`,
    ' '.repeat(100_000),
    `a${'\t'.repeat(100_000)}b`,
  ]) {
    const before = process.cpuUsage()
    parseExtensions(header)
    const { user, system } = process.cpuUsage(before)
    assert.ok(user + system < 2_000_000, `${user + system} microseconds of work`)
  }
})
