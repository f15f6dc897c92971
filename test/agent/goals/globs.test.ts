import assert from 'node:assert/strict'
import { test } from 'node:test'

import { compileGlobs, isLiteral } from '../../../lib/agent/goals/globs.js'

for (const { glob, holds, not } of [
  { glob: '*.js', holds: ['a.js', '.js'], not: ['a/b.js', 'a.jsx', 'ajs'] },
  {
    glob: '**/*.test.{js,ts}',
    holds: ['a.test.js', 'x/y/a.test.ts'],
    not: ['a.test.css', 'a.test.js/b'],
  },
  { glob: '**/test/**', holds: ['test/a', 'x/test/y/z.txt'], not: ['test', 'tests/a', 'latest/a'] },
  { glob: 'a?c', holds: ['abc'], not: ['ac', 'a/c'] },
  { glob: '.mocharc*', holds: ['.mocharc', '.mocharc.json'], not: ['xmocharc', 'a/.mocharc'] },
  { glob: '{a,b}{,.x}', holds: ['a', 'b.x'], not: ['ab', 'x'] },
  { glob: 'a+(b).[c]^$', holds: ['a+(b).[c]^$'], not: ['aab.c'] },
  { glob: 'package.json', holds: ['package.json'], not: ['packageXjson', 'a/package.json'] },
  { glob: '{open', holds: ['open'], not: ['{open'] },
]) {
  test(`the glob ${glob} holds what it should and nothing else`, () => {
    const held = compileGlobs([glob])
    for (const path of holds) assert.ok(held(path), path)
    for (const path of not) assert.ok(!held(path), path)
  })
}

test('a glob with an exclamation mark takes paths out wherever it stands in the list', () => {
  const held = compileGlobs(['!**/dist/**', '**/*.js'])
  assert.deepEqual([held('a.js'), held('dist/a.js'), held('x/dist/y/a.js')], [true, false, false])
})

test('a literal names one path only', () => {
  assert.deepEqual(['a/b.js', '*.js', '!a', '{a,b}'].map(isLiteral), [true, false, false, false])
})
