import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linearPattern } from '../../../lib/agent/json-schema/linear-pattern.js'
import { Random } from '../../helpers/random.js'

for (const [pattern, problem] of [
  ['(', /is not a regular expression/],
  ['(?=a)', /lookaround/],
  ['(?<!a)b', /lookaround/],
  ['(a)\\1', /back reference/],
  ['(?<n>a)\\k<n>', /back reference/],
  ['((a{1,100}){1,100}){1,100}', /too large/],
  ['a'.repeat(1_001), /more than 1000 characters/],
] as const) {
  test(`${pattern.slice(0, 30)} is refused`, () => {
    assert.match(linearPattern(pattern).problem ?? '', problem)
  })
}

const TEXTS = ['', 'a', 'ab', 'a b', 'é', '😀', '\ud83d', '\n', '0_9', 'A-Z', 'ÿ', '\u2028', 'a\nb', 'foo.bar@x.de']

for (const pattern of [
  '', '^$', 'a', '^a', 'a$', '^.$', '[^a]', '\\d', '\\D', '\\w+\\W\\w', '\\s', '\\bb', '\\Bb', 'a|^b', '(?:a|b)*$',
  '\\p{L}', '\\P{ASCII}', '\\u{1F600}', '\\uD83D\\uDE00', '\\uD83D', '[\\uD83D\\uDE00é]', '[a-z\\]-]', '\\x61', '\\u0061',
  '\\.', '\\/', '^(?<user>[^@\\s]+)@([^@\\s]+\\.)+[a-z]{2,}$', 'a{0}', '^a{2}$', '^(?:a?){3}$', '(a*)*b', '(|a)+$',
  '^(\\b|x)*$', '\\cJ', '[\\b]', 'a??', '(?:)*', '^^a$$', '\\0',
]) {
  test(`/${pattern}/ means what it means to RegExp`, () => {
    const { matcher, problem } = linearPattern(pattern)
    assert.ok(matcher !== null, problem ?? '')
    const expected = new RegExp(pattern, 'u')
    for (const text of TEXTS) {
      assert.equal(matcher.test(text), expected.test(text), JSON.stringify(text))
    }
  })
}

// Without surrogate pairs: V8 finds `\B` between their halves, where the specification never looks.
test('random expressions mean what they mean to RegExp', () => {
  const random = new Random(20_12)
  const pick = <T>(list: readonly T[]): T => random.pick(list)
  const make = (depth: number): string => {
    if (depth === 0) return pick(['a', 'b', '.', '[ab]', '[^a]', '\\w', '^', '$', '\\b', '\\B', '😀', ''])
    const part = (): string => make(depth - 1)
    return pick([
      () => part() + part(),
      () => `${part()}|${part()}`,
      () => `(${part()})`,
      () => `(?:${part()})${pick(['*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '+?', '??'])}`,
    ])()
  }
  for (let round = 0; round < 2_000; round++) {
    const pattern = make(1 + (round % 4))
    const { matcher, problem } = linearPattern(pattern)
    assert.ok(matcher !== null, `${pattern} ${problem}`)
    const expected = new RegExp(pattern, 'u')
    for (let i = 0; i < 8; i++) {
      const text = Array.from({ length: i }, () => pick(['a', 'b', ' ', 'é', '\n'])).join('')
      const about = `/${pattern}/ on ${JSON.stringify(text)}`
      assert.equal(matcher.test(text), expected.test(text), about)
    }
  }
})

test('an expression that RegExp takes for ever over is matched', () => {
  const { matcher } = linearPattern('^(a+)+$')
  assert.equal(matcher!.test(`${'a'.repeat(20_000)}!`), false)
  assert.equal(matcher!.test('a'.repeat(20_000)), true)
})
