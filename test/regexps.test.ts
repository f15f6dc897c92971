/** How fast the time of a regular expression grows: the rule of `regexps.slow.test.ts`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { growthOf } from './helpers/regexp-growth.js'

for (const { source, flags = '', grows } of [
  { source: '^(a+)+$', grows: 'exponential' },
  { source: '^(a|a)*b', grows: 'exponential' },
  { source: '^(?:a|ab|b)*c', grows: 'exponential' },
  { source: '^(a*)*b', grows: 'exponential' },
  { source: '^(?:x+x+)+y', grows: 'exponential' },
  { source: '^a*a*b', grows: 'polynomial' },
  { source: '^\\s*:\\s*$', grows: null },
  { source: '^(.+?)\\s*<', flags: 's', grows: 'polynomial' },
  { source: '\\s+$', grows: 'restarted' },
  { source: 'a*b', grows: 'restarted' },
  { source: '<!--[^]*?-->', flags: 'g', grows: 'restarted' },
  { source: '^\\s*x', flags: 'm', grows: 'restarted' },
  { source: '^[ \\t]*x', flags: 'm', grows: null },
  { source: '(?<!\\d)\\d+ms', grows: null },
  { source: '\\d+ms', grows: 'restarted' },
  { source: '\\b\\w+ is', grows: null },
  { source: '\\b.+ is', grows: 'restarted' },
  { source: '\\w+', flags: 'g', grows: null },
  { source: '^(?:b*c|b)*', grows: 'polynomial' },
  { source: 'b(?:b*c)?', flags: 'g', grows: 'restarted' },
  { source: '[()](?!\\S*[*])', grows: 'restarted' },
  { source: '\\s*,', flags: 'y', grows: null },
  { source: 'x[^x]*y', grows: null },
  { source: 'x.{0,200}y', grows: null },
  { source: '^(?:\\d{1,100}\\d{1,100})y', grows: 'polynomial' },
  { source: '^(["\'])(.*)\\1$', grows: 'a back reference' },
  { source: '(?<=a+)b', grows: 'a lookbehind' },
  { source: '"(?:[^"\\\\]|\\\\.)*"', flags: 'y', grows: null },
]) {
  test(`/${source}/${flags} is ${grows ?? 'linear'}`, () => {
    const growth = growthOf(source, flags)
    assert.equal(grows === null ? growth : growth?.slice(0, grows.length), grows)
  })
}
