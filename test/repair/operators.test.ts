import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Naturalness } from '../../lib/repair/naturalness.js'
import { parseSource } from '../../lib/repair/source.js'
import { candidatesFor, rankOf } from './ranks.js'

const LIMITS = `export function limits(value, most) {
  if (value === undefined) return null
  if (typeof value === 'string' && value.length > most) return value.slice(0, most)
  return value
}
`

describe('patches of JavaScript', () => {
  for (const [what, before, after, most] of [
    [
      'a condition that is always true',
      'if (true) return null',
      'if (value === undefined) return null',
      40,
    ],
    [
      'a condition that is always false',
      'if (false) return null',
      'if (value === undefined) return null',
      40,
    ],
    [
      'a part of a condition that is missing',
      'if (value.length > most) return value.slice',
      "if (typeof value === 'string' && value.length > most) return value.slice",
      100,
    ],
    [
      'a part of a condition that is too much',
      "if (typeof value === 'string' && value.length > most && value) return",
      "if (typeof value === 'string' && value.length > most) return",
      40,
    ],
    ['an offset of a bound', 'value.slice(0, most - 1)', 'value.slice(0, most)', 40],
    ['a method of the family', 'value.splice(0, most)', 'value.slice(0, most)', 40],
    ['arguments in the wrong order', 'value.slice(most, 0)', 'value.slice(0, most)', 40],
    ['an emptied string', "typeof value === ''", "typeof value === 'string'", 75],
  ] as const) {
    test(what, () => {
      const wanted = `${LIMITS}export function cut(value, most) {
  if (typeof value === 'string' && value.length > most) return value.slice(0, most)
  if (value === undefined) return null
  return ''
}
`
      const broken = wanted.replace(after, () => before)
      const whole = broken === wanted ? wanted.replace(after.split('\n')[0]!, () => before) : broken
      assert.notEqual(whole, wanted, 'the snippet is broken')
      const rank = rankOf('a.js', whole, wanted)
      assert.ok(rank > 0 && rank <= most, `rank ${rank}`)
    })
  }

  for (const [what, broken, wanted, most] of [
    [
      'a parameter that is used nowhere takes the place of a wrong name',
      'export function f(left, right) {\n  return left * 2 + left\n}\n',
      'export function f(left, right) {\n  return left * 2 + right\n}\n',
      6,
    ],
    [
      'an early exit like that of a similar function',
      'function a(list) {\n  if (list.length === 0) return null\n  return list[0]\n}\n' +
        'function b(items) {\n  return items[items.length - 1]\n}\n',
      'function a(list) {\n  if (list.length === 0) return null\n  return list[0]\n}\n' +
        'function b(items) {\n  if (items.length === 0) return null\n  return items[items.length - 1]\n}\n',
      150,
    ],
    [
      'a block that was emptied',
      'export function name(user) {\n}\n',
      'export function name(user) {\n  return user\n}\n',
      10,
    ],
    [
      'a result that is always the same',
      'export const same = (a, b) => {\n  return true\n}\n',
      'export const same = (a, b) => {\n  return a === b\n}\n',
      20,
    ],
    [
      'a loop that never runs',
      'export function f(list) {\n  for (let i = 0; false; i++) use(list[i])\n}\n',
      'export function f(list) {\n  for (let i = 0; i < list.length; i++) use(list[i])\n}\n',
      8,
    ],
    ['a negation of a value', 'const f = (x) => g(x)\n', 'const f = (x) => !g(x)\n', 8],
    ['a sign', 'const f = (x) => +x\n', 'const f = (x) => -x\n', 5],
    [
      'a fallback',
      'function f(o) {\n  const m = o.m\n  return m\n}\n',
      'function f(o) {\n  const m = o.m || {}\n  return m\n}\n',
      30,
    ],
    [
      'a default of a parameter',
      'function f(a, o) {\n  return o[a]\n}\n',
      'function f(a, o = {}) {\n  return o[a]\n}\n',
      20,
    ],
    [
      'a flag of a regular expression',
      "const f = (s) => s.replace(/a/, 'b')\n",
      "const f = (s) => s.replace(/a/g, 'b')\n",
      10,
    ],
    ['a quantifier', 'const p = /^[a-z]-\\d+$/\n', 'const p = /^[a-z]+-\\d+$/\n', 40],
    ['a negated character class', 'const p = /[a-z]+/\n', 'const p = /[^a-z]+/\n', 10],
    ['the kind of a lookahead', 'const p = /a(?!b)/\n', 'const p = /a(?=b)/\n', 10],
    ['a trailing call', 'const f = (s) => s\n', 'const f = (s) => s.trim()\n', 15],
    [
      'what no value has as its type',
      "const f = (s) => typeof s === ''\n",
      "const f = (s) => typeof s === 'string'\n",
      4,
    ],
    [
      'the same on the left side',
      "const f = (s) => 'undefine' !== typeof s\n",
      "const f = (s) => 'undefined' !== typeof s\n",
      4,
    ],
    [
      'the case of a type',
      "switch (typeof a) {\n  case '':\n    b()\n}\n",
      "switch (typeof a) {\n  case 'object':\n    b()\n}\n",
      8,
    ],
    [
      'a bracket that a string lacks',
      "const f = (s) => s === '[object Array'\n",
      "const f = (s) => s === '[object Array]'\n",
      6,
    ],
    ['a default for what is missing', 'const a = b && []\n', 'const a = b ?? []\n', 8],
    [
      'the field of what has the usual values',
      'const f = (o, base) => ({\n  a: o.a || base.a,\n  b: o.b,\n  c: 1,\n})\n',
      'const f = (o, base) => ({\n  a: o.a || base.a,\n  b: o.b || base.b,\n  c: 1,\n})\n',
      20,
    ],
    [
      'a guard at the end of a block',
      'function f(l) {\n  for (const a of l) {\n    if (!a) return false\n    const ok = g(a)\n' +
        '  }\n  const ok = g(l)\n  if (!ok) return false\n  return true\n}\n',
      'function f(l) {\n  for (const a of l) {\n    if (!a) return false\n    const ok = g(a)\n' +
        '    if (!ok) return false\n' +
        '  }\n  const ok = g(l)\n  if (!ok) return false\n  return true\n}\n',
      60,
    ],
    [
      'an access to what may be missing',
      'const f = (s) => s.a.b\n',
      'const f = (s) => s.a?.b\n',
      30,
    ],
    [
      'an element that a similar list has',
      "const a = ['x', 'y', 'z']\nconst b = ['x', 'y']\n",
      "const a = ['x', 'y', 'z']\nconst b = ['x', 'y', 'z']\n",
      25,
    ],
    [
      'an await',
      'async function f() {\n  const r = g()\n  return r\n}\n',
      'async function f() {\n  const r = await g()\n  return r\n}\n',
      8,
    ],
    ['a compound assignment', 'let x = 0\nx -= 1\n', 'let x = 0\nx += 1\n', 5],
  ] as const) {
    test(what, () => {
      const rank = rankOf('a.js', broken, wanted)
      assert.ok(rank > 0 && rank <= most, `rank ${rank}`)
    })
  }
})

describe('patches of Python', () => {
  const body = (lines: string): string => `def f(text, count):\n${lines}`
  for (const [what, broken, wanted, most] of [
    [
      'a condition that is always true',
      body('    if True:\n        return text\n    return count\n'),
      body('    if not text:\n        return text\n    return count\n'),
      20,
    ],
    [
      'a missing guard',
      body('    return text[count]\n'),
      body('    if not text:\n        return\n    return text[count]\n'),
      60,
    ],
    [
      'a method of the family',
      body('    return text.lstrip(count)\n'),
      body('    return text.rstrip(count)\n'),
      8,
    ],
    [
      'the end of a slice',
      body('    return text[:count]\n'),
      body('    return text[:count + 1]\n'),
      15,
    ],
    [
      'division to whole numbers',
      body('    return text / count\n'),
      body('    return text // count\n'),
      6,
    ],
    ['identity', body('    return text is count\n'), body('    return text == count\n'), 8],
    ['membership', body('    return text in count\n'), body('    return text not in count\n'), 6],
    [
      'bounds of a range',
      body('    return list(range(count))\n'),
      body('    return list(range(count + 1))\n'),
      12,
    ],
    [
      'a class of exceptions',
      body("    raise TypeError('no')\n"),
      body("    raise ValueError('no')\n"),
      6,
    ],
    [
      'a field of an f-string',
      body("    return f'{text} {text}'\n"),
      body("    return f'{text} {count}'\n"),
      8,
    ],
    [
      'a default of a parameter',
      body('    return text\n'),
      'def f(text, count=None):\n    return text\n',
      12,
    ],
    [
      'elif',
      'def f(a):\n    if a > 1:\n        b = 1\n    if a > 0:\n        b = 2\n    return b\n',
      'def f(a):\n    if a > 1:\n        b = 1\n    elif a > 0:\n        b = 2\n    return b\n',
      30,
    ],
    [
      'a field without self',
      'class A:\n    def f(self):\n        self.n = 1\n        return n\n',
      'class A:\n    def f(self):\n        self.n = 1\n        return self.n\n',
      4,
    ],
    [
      'a negation',
      body('    if text:\n        return 1\n    return 2\n'),
      body('    if not text:\n        return 1\n    return 2\n'),
      8,
    ],
  ] as const) {
    test(what, () => {
      const rank = rankOf('a.py', broken, wanted)
      assert.ok(rank > 0 && rank <= most, `rank ${rank}`)
    })
  }

  test('never calls a method of JavaScript', () => {
    const text = body(
      "    a = text.replace('x', 'y').strip().find('z')\n    return a, text.append(count)\n",
    )
    const foreign = /\b(replaceAll|trim\w*|toLowerCase|indexOf|push|unshift|includes|forEach)\b/
    for (const candidate of candidatesFor('a.py', text))
      assert.doesNotMatch(candidate.text, foreign)
    assert.ok(candidatesFor('a.py', text).some(({ text: put }) => put === 'rfind'))
  })
})

describe('how usual code is', () => {
  const loops = (count: number, odd: string): string =>
    Array.from({ length: count }, (_, at) =>
      `function f${at}(list) {\n  for (let i = 0; i < list.length; ${at === 2 ? odd : 'i++'}) g(i)\n}\n`,
    ).join('')

  test('what is unlike the rest of the code is changed first', () => {
    assert.equal(rankOf('a.js', loops(6, 'i--'), loops(6, 'i++')), 1)
  })

  test('what is like the rest of it is hardly changed', () => {
    // The less is known of the habits of a project, the less they count.
    const factors = [3, 12, 96].map((count) => {
      const file = parseSource('a.js', loops(count, 'i++'))!
      const start = file.text.indexOf('++')
      return new Naturalness([file]).factor(file, { start, end: start + 2, text: '--' })
    })
    assert.deepEqual(factors, factors.toSorted((a, b) => b - a))
    assert.ok(factors[0]! < 1 && factors[2]! < 0.3, factors.join())
  })

  test('it depends on nothing but the files, and stays within bounds', () => {
    const file = parseSource('a.js', loops(6, 'i--'))!
    const start = file.text.indexOf('--')
    const patches = ['++', '+ 1', 'list'.repeat(20), '', 'while (i) { i-- }'].map((text) => ({
      start, end: start + 2, text,
    }))
    const one = new Naturalness([file])
    const forwards = patches.map((patch) => one.factor(file, patch))
    const backwards = patches.toReversed().map((patch) => one.factor(file, patch)).toReversed()
    assert.deepEqual(forwards, backwards)
    assert.ok(forwards[0]! > 1, `${forwards}`)
    assert.ok(forwards.every((factor) => factor > 0.1 && factor < 8), `${forwards}`)
    assert.equal(one.factor(file, { start, end: start + 2, text: 'x'.repeat(10_000) }), 1)
    assert.equal(new Naturalness([]).factor(file, patches[0]!), 1)
  })
})

test('named arguments are the same in any order', () => {
  const text = 'x = f(a=g(1), b=h(2))\n'
  assert.equal(rankOf('a.py', text, 'x = f(b=h(2), a=g(1))\n'), 0)
})

test('names of Python that are labels elsewhere begin statements like others', () => {
  const before = 'def f(value):\n    default = g(value)\n    return default\n'
  const after = before.replace('    default', '    if value is None:\n        return\n    default')
  assert.ok(rankOf('a.py', before, after) > 0)
})
