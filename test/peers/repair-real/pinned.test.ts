import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HALVES, pinnedBugs } from './bug.js'
import { PACKAGES } from './packages.js'
import { counted } from './suite.js'

test('the packages are many, and of all runners', () => {
  const names = PACKAGES.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  assert.ok(PACKAGES.filter(({ language }) => language === 'javascript').length >= 20)
  assert.ok(PACKAGES.filter(({ language }) => language === 'python').length >= 6)
  assert.equal(new Set(PACKAGES.map(({ runner }) => runner)).size, 9)
  for (const { version, tools } of PACKAGES) {
    for (const exact of [version, ...Object.values(tools)]) assert.match(exact, /^\d[\w.+~-]*$/)
  }
})

for (const half of HALVES) {
  const bugs = pinnedBugs(half)
  // The second half is drawn with a seed that is chosen when the engine no longer changes.
  const skip = half === 'second' && bugs.length === 0 && 'not drawn yet'
  test(`the ${half} half has enough bugs, each with every field`, { skip }, () => {
    assert.ok(bugs.length >= 30, `${bugs.length} bugs`)
    for (const bug of bugs) {
      const one = PACKAGES.find(({ name }) => name === bug.package)
      const told = JSON.stringify(bug)
      assert.ok(one !== undefined, told)
      assert.equal(bug.version, one.version, told)
      assert.match(bug.file, one.sources, told)
      assert.ok(bug.line >= 1 && bug.offset >= bug.line - 1 && bug.operator !== '', told)
      assert.ok(['stryker', 'own'].includes(bug.by), told)
      assert.ok(bug.original !== '' && bug.original !== bug.replacement, told)
      for (const path of bug.heldOut) assert.match(path, one.tests, told)
      assert.ok(bugs.filter((other) => other.package === bug.package).length <= 3, told)
    }
    const npm = bugs.filter(({ package: name }) => !name.startsWith('python3-'))
    const ownShare = npm.filter(({ by }) => by === 'own').length / npm.length
    assert.ok(ownShare >= 0.35 && ownShare <= 0.65, `${ownShare} of the bugs in npm packages`)
  })
}

test('no bug is in both halves', () => {
  const keys = HALVES.flatMap(pinnedBugs)
    .map(({ package: name, file, offset, replacement }) =>
      JSON.stringify([name, file, offset, replacement]))
  assert.equal(new Set(keys).size, keys.length)
})

test('the results of every runner are counted', () => {
  const printed = [
    ['tape', 'ok 1 a\nnot ok 2 b\nok 3 c\n\n1..3\n'],
    ['tap', '# Subtest: a.js\n    ok 1 - a\n    not ok 2 - b\n    not ok 3 - c # TODO\n    ok 4 - d\n    1..4\n'],
    ['node:test', '# tests 3\n# pass 2\n# fail 1\n'],
    ['node:test', 'ℹ tests 3\nℹ pass 2\nℹ fail 1\n'],
    ['mocha', '\n  2 passing (5ms)\n  1 failing\n'],
    ['jest', 'Test Suites: 1 failed, 1 total\nTests:       1 failed, 2 passed, 3 total\n'],
    ['vitest', ' Test Files  1 failed (1)\n      \x1b[2mTests\x1b[22m  1 failed | 2 passed (3)\n'],
    ['ava', '\n  1 test failed\n  2 tests passed\n'],
    ['pytest', '=== 1 failed, 2 passed in 0.10s ===\n'],
    ['unittest', 'Ran 3 tests in 0.1s\n\nFAILED (failures=1)\n'],
  ] as const
  for (const [runner, output] of printed) {
    assert.deepEqual(counted(runner, output), { passed: 2, failed: 1 }, runner)
  }
})
