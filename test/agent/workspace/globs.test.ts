import assert from 'node:assert/strict'
import { test } from 'node:test'

import { compileGlobs, isLiteral } from '../../../lib/agent/workspace/globs.js'

for (const { glob, matching, not } of [
  { glob: '*.js', matching: ['a.js', '.js'], not: ['a/b.js', 'a.jsx', 'ajs'] },
  {
    glob: '**/*.test.{js,ts}',
    matching: ['a.test.js', 'x/y/a.test.ts'],
    not: ['a.test.css', 'a.test.js/b'],
  },
  {
    glob: '**/test/**',
    matching: ['test/a', 'x/test/y/z.txt'],
    not: ['test', 'tests/a', 'latest/a'],
  },
  { glob: 'a?c', matching: ['abc'], not: ['ac', 'a/c'] },
  { glob: '.mocharc*', matching: ['.mocharc', '.mocharc.json'], not: ['xmocharc', 'a/.mocharc'] },
  { glob: '{a,b}{,.x}', matching: ['a', 'b.x'], not: ['ab', 'x'] },
  { glob: 'a+(b).[c]^$', matching: ['a+(b).[c]^$'], not: ['aab.c'] },
  { glob: 'package.json', matching: ['package.json'], not: ['packageXjson', 'a/package.json'] },
  { glob: '{open', matching: ['open'], not: ['{open'] },
]) {
  test(`the glob ${glob} matches what it should and nothing else`, () => {
    const matches = compileGlobs([glob])
    for (const path of matching) assert.ok(matches(path), path)
    for (const path of not) assert.ok(!matches(path), path)
  })
}

test('a glob with an exclamation mark excludes paths, wherever it is in the list', () => {
  const matches = compileGlobs(['!**/dist/**', '**/*.js'])
  assert.deepEqual(['a.js', 'dist/a.js', 'x/dist/y/a.js'].map(matches), [true, false, false])
})

test('a literal names one path only', () => {
  assert.deepEqual(['a/b.js', '*.js', '!a', '{a,b}'].map(isLiteral), [true, false, false, false])
})

test('a list of globs goes on matching after it has seen more names than it keeps', () => {
  const matches = compileGlobs(['**/*.test.js', '{a,b}?/**', '**/*a*a*a*a*a*b'])
  for (let i = 0; i < 30_000; i++) {
    const name = String.fromCharCode(0x4e00 + (i % 20_000))
    assert.equal(matches(`x/${name}${i % 7}.js`), false)
  }
  assert.deepEqual(['x/y.test.js', 'bc/d', 'a'.repeat(5_000)].map(matches), [true, true, false])
})
