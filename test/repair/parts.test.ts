import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { rankCandidates } from '../../lib/repair/candidates.js'
import { planCheck } from '../../lib/repair/check.js'
import { readClues } from '../../lib/repair/clues.js'
import { applyPatch, editOf } from '../../lib/repair/edit.js'
import {
  failingFiles,
  importsOf,
  isSourcePath,
  isTestPath,
} from '../../lib/repair/files.js'
import { parseFailures, parseOutcomes } from '../../lib/repair/read-report.js'
import { isProgress, type Outcomes } from '../../lib/repair/report.js'
import { parseSource } from '../../lib/repair/source.js'
import { tokenizeJavaScript } from '../../lib/repair/tokenize-javascript.js'
import { tokenizePython } from '../../lib/repair/tokenize-python.js'

describe('tokens of JavaScript', () => {
  for (const [source, expected] of [
    ['a / b / c', 'a / b / c'],
    ['x = /a\\/[/"]b/gi.test(y)', 'x = /a\\/[/"]b/gi . test ( y )'],
    ["f('it''s', \"a // b\") // gone", "f ( 'it' 's' , \"a // b\" )"],
    ['/* < */ a <= b', 'a <= b'],
    ['`a ${b < `c ${d}`} e` + f', '`a ${ b < `c ${ d }` } e` + f'],
    ['a?.b ?? c?.5:1', 'a ?. b ?? c ? .5 : 1'],
    ['this.#x ||= 1_000n', 'this . #x ||= 1_000n'],
    ['return /re/', 'return /re/'],
  ] as const) {
    test(source, () =>
      assert.equal(
        tokenizeJavaScript(source)
          .map(({ text }) => text)
          .join(' '),
        expected,
      ),
    )
  }

  test('keywords used as property names are not keywords', () => {
    const kinds = tokenizeJavaScript('map.delete(x); const o = { new: 1 }').map(({ kind }) => kind)
    assert.equal(kinds[2], 'name')
    assert.equal(tokenizeJavaScript('const o = { new: 1 }')[4]!.kind, 'name')
  })

  test('names of Object.prototype’s properties are plain names', () => {
    const source = parseSource('a.js', 'class A { constructor() { this.toString = valueOf < 1 } }')!
    const clues = readClues([], [source], [])
    assert.ok(rankCandidates([source], clues, { score: () => 1, failing: () => 0 }).length > 0)
  })
})

describe('tokens of Python', () => {
  for (const [source, expected] of [
    ['x = 1 # < 2', 'x = 1'],
    ["a = '''<\n'x' >''' + r'\\d'", "a = '''<\n'x' >''' + r'\\d'"],
    ['f\'{a}\' if b else rb"c"', 'f\'{a}\' if b else rb"c"'],
    ['a //= b ** 2 != c', 'a //= b ** 2 != c'],
  ] as const) {
    test(source, () =>
      assert.equal(
        tokenizePython(source)
          .map(({ text }) => text)
          .join(' '),
        expected,
      ),
    )
  }

  test('a logical line continues inside brackets and after a backslash', () => {
    const tokens = tokenizePython('a = (1,\n  2)\nb = 3 + \\\n  4\n')
    assert.deepEqual(
      tokens.filter(({ first }) => first).map(({ text }) => text),
      ['a', 'b'],
    )
  })
})

test('strings, comments and regular expressions are not code', () => {
  const source = parseSource(
    'a.js',
    "// a < b\nexport const f = (x) => x.replace(/a<b/, 'c < d') /* e < f */\n",
  )!
  const clues = readClues([], [source], [])
  const found = rankCandidates([source], clues, { score: () => 1, failing: () => 0 })
  assert.equal(found.filter(({ operator }) => operator === 'comparison').length, 0)
})

describe('progress', () => {
  const outcomes = (text: string): Outcomes =>
    new Map(
      text
        .split(' ')
        .filter((part) => part !== '')
        .map((part) => {
          const [name, outcome] = part.split('=')
          return [name!, outcome === '+' ? 'pass' : outcome === '-' ? 'fail' : 'skip']
        }),
    )
  for (const [what, before, after, expected] of [
    ['one more passes', 'a=+ b=-', 'a=+ b=+', true],
    ['nothing changes', 'a=+ b=-', 'a=+ b=-', false],
    ['one passes and another fails', 'a=+ b=- c=-', 'a=- b=+ c=+', false],
    ['a passing test is gone', 'a=+ b=- c=-', 'b=+ c=+', false],
    ['a failing test is gone', 'a=+ b=- c=-', 'a=+ b=+', false],
    ['a failing test is skipped', 'a=+ b=- c=-', 'a=+ b=+ c=s', false],
    ['no test ran at all, as with a syntax error', 'a=+ b=-', '', false],
    ['only the file is reported, as with a syntax error', 'a=+ b=-', 'test/a.test.js=-', false],
    ['a file that could not be loaded shows its tests', 'test/a.test.js=-', 'a=+ b=-', true],
    ['a test that was not told of passes', 'a=+ b=-', 'a=+ b=- c=+', false],
  ] as const) {
    test(`${what}: ${expected ? 'progress' : 'no progress'}`, () => {
      assert.equal(isProgress(outcomes(before), outcomes(after)), expected)
    })
  }
})

describe('check commands', () => {
  for (const [check, kind, whole, file] of [
    [
      'node --test',
      'tap',
      'node --test-reporter=tap --test 2>&1',
      'node --test-reporter=tap a/b.test.js 2>&1',
    ],
    [
      'node --import tsx --test --test-reporter=spec test/x.ts',
      'tap',
      'node --import tsx --test-reporter=tap --test test/x.ts',
      'node --import tsx --test-reporter=tap a/b.test.js',
    ],
    [
      'npm test',
      'tap',
      'node --test-reporter=tap --test spec',
      'node --test-reporter=tap a/b.test.js',
    ],
    ['TZ=UTC node --test', 'tap', 'TZ=UTC node --test-reporter=tap --test', 'TZ=UTC node'],
    [
      'python3 -m pytest -x tests',
      'pytest',
      'python3 -m pytest -q -rA --color=no --tb=short -p no:cacheprovider tests',
      'no:cacheprovider a/b.test.js',
    ],
    ['pytest', 'pytest', 'pytest -q -rA', 'a/b.test.js'],
    [
      'python3 -m unittest',
      'unittest',
      'python3 -m unittest -v -b',
      'python3 -m unittest discover -p b.test.js -v -b',
    ],
    [
      'python3 -m unittest discover -s t -p x_*.py',
      'unittest',
      'python3 -m unittest discover -s t -p x_*.py -v -b',
      'python3 -m unittest discover -s t -p b.test.js -v -b',
    ],
    ['node check.js', 'any', 'node check.js', null],
    ['npm run lint && node --test', 'tap', 'node --test-reporter=tap --test', 'a/b.test.js'],
    ['node --test | tee log', 'any', 'node --test | tee log', null],
  ] as const) {
    test(check, () => {
      const plan = planCheck(check, { test: 'node --test spec' })
      assert.equal(plan.kind, kind)
      assert.ok(plan.whole.details.includes(whole), plan.whole.details)
      const [narrow] = plan.file('a/b.test.js')
      if (file === null) assert.equal(narrow, undefined)
      else assert.ok(narrow!.details.includes(file), narrow!.details)
    })
  }
})

describe('reports', () => {
  const tap = `TAP version 13
# Subtest: suite
    # Subtest: adds
    not ok 1 - adds
      ---
      location: '/project/test/a.test.js:6:51'
      failureType: 'testCodeFailure'
      error: |-
        Expected values to be strictly equal:

        1 !== 3

      expected: 3
      actual: 1
      stack: |-
        add (file:///project/src/a.js:2:43)
        TestContext.<anonymous> (file:///project/test/a.test.js:6:71)
      ...
    # Subtest: waits
    ok 2 - waits # SKIP
    1..2
not ok 1 - suite
  ---
  failureType: 'subtestsFailed'
  error: '1 subtest failed'
  ...
ok 2 - other
`
  test('the Test Anything Protocol of node:test', () => {
    assert.deepEqual(
      [...parseOutcomes('tap', tap, 1)],
      [
        ['suite > adds', 'fail'],
        ['suite > waits', 'skip'],
        ['suite', 'fail'],
        ['other', 'pass'],
      ],
    )
    const [failure, ...rest] = parseFailures('tap', tap)
    assert.deepEqual(rest, [])
    assert.equal(failure!.expected, '3')
    assert.equal(failure!.actual, '1')
    assert.deepEqual(failure!.frames[0], { file: '/project/src/a.js', line: 2 })
    assert.deepEqual(failure!.at, { file: '/project/test/a.test.js', line: 6 })
    assert.deepEqual(failingFiles('tap', tap, [], ['test/a.test.js', 'src/a.js']), [
      'test/a.test.js',
    ])
  })

  for (const [what, told, ends, outcome] of [
    ['an outcome on the next line', ['a word', 'ok'], true, 'pass'],
    ['an outcome in one word with it', ['wordok'], true, 'pass'],
    ['no outcome, and a failure below', ['word', 'FAIL: test_a (m.T.test_a)'], true, 'fail'],
    ['ok on a line of its own, and a failure below', ['ok', 'FAIL: test_a (m.T.test_a)'], true, 'fail'],
    ['an end before its outcome', ['wor'], false, 'fail'],
    ['a skip on the next line', ['a word', "skipped 'later'"], true, 'skip'],
  ] as const) {
    test(`unittest, with output of the code: ${what}`, () => {
      const end = ends ? ['', 'Ran 1 test in 0.001s', ''] : []
      const output = `test_a (m.T.test_a) ... ${[...told, ...end].join('\n')}`
      assert.deepEqual([...parseOutcomes('unittest', output, 1)], [['m.T.test_a', outcome]])
    })
  }

  test('unittest, with a name in any script', () => {
    const output = 'test_größe (m.Tür.test_größe) ... ok\nFAIL: test_été (m.Tür.test_été)\n'
    assert.deepEqual([...parseOutcomes('unittest', output, 1)], [
      ['m.Tür.test_größe', 'pass'], ['m.Tür.test_été', 'fail'],
    ])
  })

  test('unittest, with a docstring and an error', () => {
    const output = `test_add (tests.test_m.T.test_add) ... FAIL
test_boom (tests.test_m.T.test_boom)
Docs here ... ERROR
test_ok (tests.test_m.T.test_ok) ... ok
test_off (tests.test_m.T.test_off) ... skipped 'later'

======================================================================
ERROR: test_boom (tests.test_m.T.test_boom)
Docs here
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/project/tests/test_m.py", line 8, in test_boom
    boom({})
  File "/project/m.py", line 4, in boom
    return x['foo'].bar
KeyError: 'foo'

======================================================================
FAIL: test_add (tests.test_m.T.test_add)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/project/tests/test_m.py", line 5, in test_add
    self.assertEqual(add(1,2), 3)
AssertionError: -1 != 3

----------------------------------------------------------------------
Ran 4 tests in 0.001s
`
    assert.deepEqual(
      [...parseOutcomes('unittest', output, 1)],
      [
        ['tests.test_m.T.test_add', 'fail'],
        ['tests.test_m.T.test_boom', 'fail'],
        ['tests.test_m.T.test_ok', 'pass'],
        ['tests.test_m.T.test_off', 'skip'],
      ],
    )
    const [boom, add] = parseFailures('unittest', output)
    assert.deepEqual(boom!.frames[0], { file: '/project/m.py', line: 4 })
    assert.equal(add!.actual, '-1')
    assert.equal(add!.expected, '3')
    assert.deepEqual(
      failingFiles('unittest', output, ['tests.test_m.T.test_add'], ['m.py', 'tests/test_m.py']),
      ['tests/test_m.py'],
    )
  })

  test('pytest', () => {
    const output = `=== FAILURES ===
___ T.test_add ___
tests/test_m.py:5: in test_add
    assert add(1, 2) == 3
E   assert -1 == 3
E    +  where -1 = add(1, 2)
=== short test summary info ===
PASSED tests/test_m.py::test_ok[a - b]
FAILED tests/test_m.py::T::test_add - assert -1 == 3
FAILED tests/test_m.py::test_list[x] - assert [1] == [2]
ERROR tests/test_n.py - ImportError: no
`
    assert.deepEqual(
      [...parseOutcomes('pytest', output, 1)],
      [
        ['tests/test_m.py::test_ok[a - b]', 'pass'],
        ['tests/test_m.py::T::test_add', 'fail'],
      ['tests/test_m.py::test_list[x]', 'fail'],
        ['ERROR tests/test_n.py', 'fail'],
      ],
    )
    const [failure] = parseFailures('pytest', output)
    assert.equal(failure!.actual, '-1')
    assert.equal(failure!.expected, '3')
    assert.deepEqual(failure!.at, { file: 'tests/test_m.py', line: 5 })
  })

  test('colours in a report are ignored', () => {
    const output = '\u001b[32mPASSED\u001b[0m tests/test_m.py::\u001b[1mtest_ok\u001b[0m\n'
    assert.deepEqual([...parseOutcomes('pytest', output, 0).keys()], ['tests/test_m.py::test_ok'])
  })

  test('a check without a report is one test that passes with exit code 0', () => {
    assert.deepEqual([...parseOutcomes('any', 'whatever', 0).values()], ['pass'])
    assert.deepEqual([...parseOutcomes('any', 'whatever', 3).values()], ['fail'])
    const [failure] = parseFailures('any', 'file:///project/src/a.js:3:5\nAssertionError: no')
    assert.deepEqual(failure!.frames, [{ file: '/project/src/a.js', line: 3 }])
  })
})

describe('edits', () => {
  const text = 'a\nx = 1\nb\nx = 1\nc\n'
  for (const [what, start, end, put] of [
    ['of a line that comes twice', 12, 13, '2'],
    ['that makes a line like another', 0, 1, 'x = 1'],
    ['that empties a line', 0, 1, ''],
    ['at the very end', text.length, text.length, 'd'],
    ['at the very start', 0, 0, 'd\n'],
  ] as const) {
    test(`${what} can be applied and reverted by text replacement`, () => {
      const patched = applyPatch(text, { start, end, text: put })
      const { oldText, newText } = editOf(text, { start, end, text: put })
      assert.equal(text.split(oldText).length, 2)
      assert.equal(
        text.replace(oldText, () => newText),
        patched,
      )
      assert.equal(patched.split(newText).length, 2)
      assert.equal(
        patched.replace(newText, () => oldText),
        text,
      )
    })
  }
})

describe('files', () => {
  for (const [path, source, isTest] of [
    ['src/a.js', true, false],
    ['lib/deep/a.ts', true, false],
    ['a.py', true, false],
    ['test/a.js', false, true],
    ['src/a.test.ts', false, true],
    ['tests/helper.py', false, true],
    ['test_a.py', false, true],
    ['pkg/a_test.py', false, true],
    ['conftest.py', false, true],
    ['node_modules/x/a.js', false, false],
    ['dist/a.js', false, false],
    ['build/a.js', false, false],
    ['packages/a/out/src/a.js', false, false],
    ['src/build/a.js', true, false],
    ['packages/a/lib/out/a.js', true, false],
    ['src/dist/a.js', false, false],
    ['tasks.py', true, false],
    ['a.d.ts', false, false],
    ['vite.config.ts', false, false],
    ['setup.py', false, false],
    ['README.md', false, false],
  ] as const) {
    test(`${path} may ${source ? '' : 'not '}be repaired`, () => {
      assert.equal(isSourcePath(path), source)
      assert.equal(isTestPath(path), isTest)
    })
  }

  test('imports resolve to files of the workspace', () => {
    const paths = new Set([
      'src/a.ts',
      'src/b/index.js',
      'pkg/mod.py',
      'pkg/__init__.py',
      'other.py',
    ])
    const script = parseSource(
      'test/x.js',
      "import { a } from '../src/a.js'\nconst b = require('../src/b')\nimport 'node:fs'",
    )!
    assert.deepEqual(importsOf(script, paths), ['src/a.ts', 'src/b/index.js'])
    const python = parseSource('tests/test_x.py', 'from pkg import mod\nimport other as o\n')!
    assert.deepEqual(importsOf(python, paths), ['pkg/__init__.py', 'pkg/mod.py', 'other.py'])
  })
})
