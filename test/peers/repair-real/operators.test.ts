import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutated } from './bug.js'
import { own } from './mutations.js'

/** What the mutations of an operator make of a text. */
function made(language: 'javascript' | 'python', operator: string, text: string): string[] {
  return own(language, 'a.js', text)
    .filter((mutation) => mutation.operator === operator)
    .map((mutation) => mutated(text, mutation))
}

const JAVASCRIPT: readonly (readonly [operator: string, text: string, ...wanted: string[]])[] = [
  ['removed guard', 'function f(a) { if (!a) return 1; g() }', 'function f(a) { ; g() }'],
  ['removed guard', 'function f(a) { if (!a) return 1; else g() }'],
  ['removed call', 'f(); g = 1', '; g = 1'],
  ['removed return', 'function f() { return a + b }', 'function f() { a + b; }'],
  ['missing await', 'async () => { x = await f() }', 'async () => { x = f() }'],
  [
    'off by one in a loop', 'for (let i = 0; i < n; i++) {}',
    'for (let i = 1; i < n; i++) {}', 'for (let i = 0; i <= n; i++) {}',
  ],
  ['off by one in a slice', 'a.slice(1, n - 1)', 'a.slice(2, n - 1)', 'a.slice(1, n - 1 + 1)', 'a.slice(1, n)'],
  ['other method of the family', 'a.indexOf(b)', 'a.lastIndexOf(b)'],
  ['other method of the family', 'indices.of(b)'],
  ['swapped arguments', 'f(a, b, b)', 'f(b, a, b)'],
  ['dropped conjunct', 'x = a && b', 'x = a', 'x = b'],
  ['dropped alternative or default', 'x = a ?? b', 'x = a'],
  ['missing default', 'function f(a = 1) {}', 'function f(a) {}'],
  ['missing element', 'x = [a, b]', 'x = [b]', 'x = [a]'],
  ['other number', 'x = 2', 'x = 3', 'x = 1'],
  ['other text', "'use strict'; x = 'abc'", "'use strict'; x = 'ab'"],
  ['other expression', 'x = /^[0-9]+/g', 'x = /^[0-9]*/g', 'x = /^[1-9]+/g', 'x = /[0-9]+/g', 'x = /^[0-9]+/'],
  ['wrong name', 'function f(a, b) { return a.b }', 'function f(a, b) { return b.b }'],
]
const PYTHON: typeof JAVASCRIPT = [
  ['removed guard', 'def f(a):\n    if a:\n        return\n    g()\n', 'def f(a):\n    pass\n    g()\n'],
  ['removed call', 'f()\n', 'pass\n'],
  ['removed return', 'def f(a):\n    return a\n', 'def f(a):\n    a\n'],
  ['off by one in a slice', 'x = a[1:n]', 'x = a[2:n]', 'x = a[1:n + 1]'],
  ['off by one in a loop', 'for i in range(n): pass', 'for i in range(n + 1): pass'],
  ['other method of the family', 'é = "é𝄞" + a.startswith(b)', 'é = "é𝄞" + a.endswith(b)'],
  ['swapped arguments', 'f(a,  b)', 'f(b,  a)'],
  ['dropped conjunct', 'x = a and b', 'x = b', 'x = a'],
  ['other comparison', 'x = a <b', 'x = a <= b'],
  ['other arithmetic', 'x = a + b', 'x = a - b'],
  ['dropped negation', 'x = not a', 'x = a'],
  ['missing element', 'x = (a, b)', 'x = (b,)', 'x = (a,)'],
  ['other truth', 'x = True', 'x = False'],
  ['other number', 'x = 1', 'x = 2'],
  ['other text', '"""about"""\nx = "ab"', '"""about"""\nx = "a"'],
  ['wrong name', 'def f(a, b):\n    return a\n', 'def f(a, b):\n    return b\n'],
]

for (const [language, table] of [['javascript', JAVASCRIPT], ['python', PYTHON]] as const) {
  test(`operators for ${language} plant what they say`, () => {
    for (const [operator, text, ...wanted] of table) {
      assert.deepEqual(made(language, operator, text).sort(), wanted.sort(), `${operator}: ${text}`)
    }
  })
}
