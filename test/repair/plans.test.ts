import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { planCheck } from '../../lib/repair/check.js'
import { failingFiles } from '../../lib/repair/files.js'
import { obstacleOf } from '../../lib/repair/obstacle.js'
import {
  parseFailures,
  parseOutcomes,
  recogniseOutput,
} from '../../lib/repair/read-report.js'
import { isProgress } from '../../lib/repair/report.js'
import { scratch } from '../helpers/engine.js'
import { runCommand } from './driver.js'

const SCRIPTS = {
  test: 'npm run lint && npm run test:unit',
  lint: 'eslint .',
  'test:unit': 'cross-env A=1 nyc --reporter lcov mocha -R spec --bail test/*.js',
  tape: 'standard && tape test/*.js',
  built: 'tsc -p . && ava',
  loop: 'npm run loop',
  two: 'node --test a && node --test b',
}

describe('commands of runners', () => {
  for (const [check, kind, whole, leftOut] of [
    ['npm test', 'lines', "A=1 mocha --reporter json-stream --no-parallel --no-bail test/*.js", 1],
    ['yarn test:unit', 'lines', 'A=1 mocha --reporter json-stream', 0],
    ['npm run test:unit -- --grep x', 'lines', 'mocha --grep x --reporter json-stream', 0],
    ['./node_modules/.bin/mocha -t 5000', 'lines', './node_modules/.bin/mocha -t 5000 --rep', 0],
    ['node node_modules/mocha/bin/mocha.js', 'lines', 'node node_modules/mocha/bin/mocha.js --', 0],
    ['npx jest --coverage src', 'lines', 'jest --json --silent --runInBand', 0],
    ['pnpm exec vitest', 'tap', 'vitest run --reporter=tap-flat', 0],
    ['npx --no-install vitest run -c a.mjs', 'tap', 'vitest run -c a.mjs --reporter=tap', 0],
    ['npx ava -v', 'tap', 'ava --tap --no-color --concurrency=1', 0],
    ['npm run tape', 'tap', 'tape test/*.js', 1],
    ['npx tap test', 'tap', 'tap -R tap -j 1 test', 0],
    ['npm run built', 'tap', 'tsc -p . >/dev/null 2>&1 && {', 0],
    ['npm run two', 'tap', '--test a', 0],
    ['c8 node --test', 'tap', 'node --test-reporter=tap --test', 0],
    ['pytest -n 4 --cov pkg -k "a or b" tests', 'pytest', "pytest -k 'a or b' -q -rA", 0],
    ['npm run loop', 'any', 'npm run loop', 0],
    ['cd a && mocha', 'any', 'cd a && mocha', 0],
    ['mocha; true', 'any', 'mocha; true', 0],
    ['echo $X && mocha', 'any', 'echo $X && mocha', 0],
  ] as const) {
    test(check, () => {
      const plan = planCheck(check, SCRIPTS)
      assert.equal(plan.kind, kind)
      assert.ok(plan.whole.outcomes.includes(whole), plan.whole.outcomes)
      assert.equal(plan.leftOut?.length ?? 0, leftOut)
    })
  }

  test('tests of two commands run one after the other', () => {
    const { whole } = planCheck('npm run two', SCRIPTS)
    assert.match(whole.details, /^\(.*--test a 2>&1\); \(.*--test b 2>&1\)$/)
  })

  test('names of tests are quoted for the pattern and for the shell', () => {
    const only = planCheck('mocha', {}).file('a.js')[0]!.only!(["it's > $x (1+1)"])
    assert.ok(only.includes("'--grep=^(?:it'\\''s (?:> )?\\$x \\(1\\+1\\))$' "), only)
    const node = planCheck('node --test', {}).file('a.js')[0]!.only!(['s', 's > a/b'])
    assert.ok(node.includes("'--test-name-pattern=/^(?:a\\/b|s (?:> )?a\\/b)$/' a.js"), node)
  })

  test('a file that prints a report is run alone once its kind is known', () => {
    const plan = planCheck('node test/all.js', {})
    assert.equal(plan.kind, 'any')
    const read = plan.readAs!('tap')
    assert.equal(read.kind, 'tap')
    assert.ok(read.file('test/a.js')[0]!.outcomes.endsWith('node test/a.js 2>&1'))
    const python = planCheck('python3 tests/test_a.py', {}).readAs!('unittest')
    assert.ok(python.whole.details.endsWith('python3 tests/test_a.py -v -b 2>&1'))
  })
})

const TAPE = `TAP version 13
# adds
not ok 1 should be strictly equal
  ---
    operator: equal
    expected: |-
      3
    actual: |-
      -1
    at: Test.<anonymous> (/p/test/add.js:3:25)
    stack: |-
      Error: should be strictly equal
          at Test.assert [as _assert] (/p/node_modules/tape/lib/test.js:548:48)
          at Test.<anonymous> (/p/test/add.js:3:25)
  ...
ok 2 zero # x
# empty
# fine
ok 3 lists
# throws
/p/src/add.js:2
TypeError: no list
    at exports.list (/p/src/add.js:2:39)
    at Test.<anonymous> (/p/test/add.js:7:25)
`
const NODE_TAP = `TAP version 14
# Subtest: test/add.test.js
    # Subtest: adds
        not ok 1 - should be equal
          ---
          compare: ===
          at:
            fileName: test/add.test.js
            lineNumber: 3
            columnNumber: 27
          stack: |
            Test.<anonymous> (test/add.test.js:3:27)
          diff: |
            --- expected
            +++ actual
            @@ -1,1 +1,1 @@
            -3
            +-1
          ...
        ok 2 - zero \\# x
        1..2
    not ok 1 - adds # time=40.973ms
    # Subtest: after
        ok 1 - expect truthy value
        1..1
    ok 2 - after # time=1ms
    1..2
not ok 1 - test/add.test.js # time=300ms
1..1
`
const VITEST = `TAP version 13
1..3
not ok 1 - test/add.test.mjs > many > lists # time=4.91ms
    ---
    error:
        name: "AssertionError"
        message: "expected [ 1 ] to deeply equal [ 2 ]"
    at: "/p/test/add.test.mjs:5:66"
    actual: "Array [
  1,
]"
    expected: "Array [
  2,
]"
    ...
ok 2 - test/add.test.mjs > many > later # SKIP
ok 3 - test/add.test.mjs > nothing # time=0.46ms
`
const AVA = `TAP version 13
not ok 1 - add › adds
  ---
    name: AssertionError
    assertion: t.is()
    details:
      'Difference (- actual, + expected):': |-
        - -1
        + 3
    message: ''
    at: 'exports.list (/p/src/add.js:2:39)'
  ...
ok 2 - add › adds nothing
#   logged
ok 3 - more › adds

1..3
`
const LINES = `noise["pass",{"title":"adds","fullTitle":"many adds","file":"/p/test/a.js"}]
["fail",{"title":"fails","fullTitle":"many deep fails","file":"/p/test/b.js",\
"err":"expected 1 to equal 3","stack":"AssertionError: expected 1 to equal 3\\n\
    at f (src/m.js:4:2)\\n\
    at Context.<anonymous> (test/b.js:3:25)"}]
["skip",{"title":"later","fullTitle":"later","file":"/p/test/b.js"}]
["end",{"tests":3}]
`

describe('reports of runners', () => {
  for (const { what, kind, output, outcomes, failure, files } of [
    {
      what: 'tape: assertions belong to their test, and a crash fails the test it happens in',
      kind: 'tap',
      output: TAPE,
      outcomes: { adds: 'fail', fine: 'pass', throws: 'fail' },
      failure: { expected: '3', actual: '-1', line: 3, file: '/p/test/add.js' },
      files: ['test/add.js'],
    },
    {
      what: 'node-tap: assertions tell why their test failed',
      kind: 'tap',
      output: NODE_TAP,
      outcomes: {
        'test/add.test.js > adds': 'fail',
        'test/add.test.js > after': 'pass',
        'test/add.test.js': 'fail',
      },
      failure: { expected: '3', actual: '-1', line: 3, file: 'test/add.test.js' },
      files: ['test/add.test.js'],
    },
    {
      what: 'vitest: quoted values go on over several lines',
      kind: 'tap',
      output: VITEST,
      outcomes: {
        'test/add.test.mjs > many > lists': 'fail',
        'test/add.test.mjs > many > later': 'skip',
        'test/add.test.mjs > nothing': 'pass',
      },
      failure: {
        expected: 'Array [\n  2,\n]',
        actual: 'Array [\n  1,\n]',
        line: 5,
        file: '/p/test/add.test.mjs',
      },
      files: ['test/add.test.mjs'],
    },
    {
      what: 'AVA: logs are no tests',
      kind: 'tap',
      output: AVA,
      outcomes: { 'add › adds': 'fail', 'add › adds nothing': 'pass', 'more › adds': 'pass' },
      failure: { expected: '3', actual: '-1', line: 2, file: '/p/src/add.js' },
      files: ['test/add.js', 'test/add.test.js', 'test/add.test.mjs'],
    },
    {
      what: 'lines of Mocha and Jest, after output that does not end its line',
      kind: 'lines',
      output: LINES,
      outcomes: { 'many > adds': 'pass', 'many deep > fails': 'fail', later: 'skip' },
      failure: { expected: '3', actual: '1', line: 4, file: 'src/m.js' },
      files: ['test/b.js'],
    },
  ] as const) {
    test(what, () => {
      assert.deepEqual(Object.fromEntries(parseOutcomes(kind, output, 1)), outcomes)
      const [first] = parseFailures(kind, output)
      assert.equal(first!.expected, failure.expected)
      assert.equal(first!.actual, failure.actual)
      assert.deepEqual(first!.frames[0], { file: failure.file, line: failure.line })
      const failing = Object.entries(outcomes).flatMap(([name, now]) =>
        now === 'fail' ? [name] : [],
      )
      const paths = ['src/add.js', 'test/add.js', 'test/add.test.js', 'test/add.test.mjs']
      assert.deepEqual(failingFiles(kind, output, failing, [...paths, 'test/b.js']), files)
    })
  }

  test('tests and suites that a pattern of names leaves out are not reported', () => {
    const output = `# Subtest: a
not ok 1 - a
# Subtest: good
    # Subtest: fine
    ok 1 - fine # SKIP test name does not match pattern
    1..1
ok 2 - good
`
    assert.deepEqual([...parseOutcomes('tap', output, 1)], [['a', 'fail']])
  })

  test('an error before any test stands for the tests, and vanishes when they load', () => {
    const output = '\n Exception during run: ReferenceError: x is not defined\n    at /p/src/m.js:1:2\n'
    const before = parseOutcomes('lines', output, 1)
    assert.deepEqual([...before.values()], ['fail'])
    assert.deepEqual(parseFailures('lines', output)[0]!.frames, [{ file: '/p/src/m.js', line: 1 }])
    assert.ok(isProgress(before, parseOutcomes('lines', LINES, 1)))
  })

  test('a test module in a package that cannot be imported is a failure', () => {
    const name = 'tests.test_a (unittest.loader._FailedTest.tests.test_a)'
    const outcomes = parseOutcomes('unittest', `${name} ... ERROR\n\nERROR: ${name}\n`, 1)
    assert.deepEqual([...outcomes], [['unittest.loader._FailedTest.tests.test_a', 'fail']])
  })

  test('a set-up of a class that works makes room for its tests', () => {
    const before = parseOutcomes('unittest', 'setUpClass (t.S) ... ERROR\nERROR: setUpClass (t.S)', 1)
    assert.ok(isProgress(before, parseOutcomes('unittest', 'test_a (t.S.test_a) ... ok\n', 0)))
  })

  test('parameters of pytest may hold anything', () => {
    const output = 'PASSED t.py::a[x] - y]\nFAILED t.py::a[b [c] d] - assert [1] == [2]\n'
    assert.deepEqual(
      [...parseOutcomes('pytest', output, 1)],
      [
        ['t.py::a[x] - y]', 'pass'],
        ['t.py::a[b [c] d]', 'fail'],
      ],
    )
  })

  for (const [output, kind] of [
    [TAPE, 'tap'],
    ['....\n-----\nRan 4 tests in 0.001s\n\nOK\n', 'unittest'],
    ['===== test session starts =====\n', 'pytest'],
    ['ok 1 thing done\n', null],
    ['all good\n', null],
  ] as const) {
    test(`${JSON.stringify(output.slice(0, 20))} is ${kind ?? 'no report'}`, () => {
      assert.equal(recogniseOutput(output), kind)
    })
  }
})

describe('obstacles', () => {
  const PATHS = ['src/m.js', 'mymod.py', 'helpers.py', 'test/a.test.js']
  const file = (error: string): string =>
    `TAP version 13\n# node:internal/modules/cjs/loader:1215\n# ${error}\n` +
    "# Subtest: /p/test/a.test.js\nnot ok 1 - /p/test/a.test.js\n  ---\n  error: 'test failed'\n" +
    "  code: 'ERR_TEST_FAILURE'\n  ...\n1..1\n"
  const python = (error: string): string =>
    `=== ERRORS ===\n____ ERROR collecting tests/test_a.py ____\nmymod.py:1: in <module>\n` +
    `E   ${error}\n=== short test summary info ===\nERROR tests/test_a.py\n`
  const setup = (error: string): string =>
    `=== ERRORS ===\n____ ERROR at setup of test_one ____\nfile /p/test_a.py, line 3\n` +
    `  def test_one(mocker):\nE       ${error}\n>       available fixtures: tmp_path\n` +
    '=== short test summary info ===\nERROR test_a.py::test_one\n'
  const failure = (text: string): string =>
    `=== FAILURES ===\n____ test_one ____\n${text}\n=== short test summary info ===\n` +
    'FAILED test_a.py::test_one - Failed\n'
  const isAsync = 'async def functions are not natively supported.\nYou need to install a plugin'
  for (const [check, output, exitCode, says] of [
    ['node --test', file("Error: Cannot find module 'left-padx'"), 1, /"left-padx" is not inst/],
    ['node --test', file("Error: Cannot find package '@a/b' imported from /p/x.mjs"), 1, /"@a\/b"/],
    ['node --test', file("Error: Cannot find module './nonex.js'"), 1, null],
    ['node --test', file("Error: Cannot find module '/p/src/nonex.js'"), 1, null],
    ['node --test', file("Error: Cannot find module 'src/n.js'"), 1, null],
    ['node --test', file("Error: Cannot find module '@/n.js'"), 1, null],
    ['node --test', file("SyntaxError: './m.js' does not provide an export named 'x'"), 1, null],
    [
      'node --test',
      `${file("Error: Cannot find module 'left-padx'")}# Subtest: fine\nok 2 - fine\n`,
      1,
      null,
    ],
    ['pytest', python("ModuleNotFoundError: No module named 'left_padx'"), 2, /"left_padx"/],
    ['pytest', python("ModuleNotFoundError: No module named 'mymodd'"), 2, null],
    ['pytest', python("ImportError: cannot import name 'x' from 'helpers'"), 2, null],
    ['python3 -m pytest', '/usr/bin/python3: No module named pytest\n', 1, /no module "pytest"/],
    ['pytest', 'no tests ran in 0.01s\n', 5, /no tests/],
    ['pytest', 'ERROR: Missing required plugins: pytest-django\n\n', 4, /plugins: pytest-django\./],
    ['pytest', setup("fixture 'mocker' not found"), 1, /the fixture "mocker"/],
    ['pytest', failure(isAsync), 1, /such as pytest-asyncio/],
    ['pytest', failure("E   AssertionError: fixture 'mocker' not found or so"), 1, null],
    ['pytest', `${setup("fixture 'mocker' not found")}PASSED test_a.py::test_two\n`, 1, null],
    [
      'python3 -m unittest discover -s tests',
      "Traceback (most recent call last):\n  File \"a.py\", line 1\nImportError: Start directory is " +
        "not importable: '/p/tests'\n",
      1,
      /cannot start: Start directory is not importable: '\/p\/tests'\./,
    ],
    ['node --test tests/', "Could not find '/p/tests'\n", 1, /no tests at \/p\/tests:/],
    [
      'npx jest',
      '● Validation Error:\n\n  Preset ts-jest not found relative to rootDir /p.\n\n  Configuration\n',
      1,
      /^Jest cannot start: Preset ts-jest not found/,
    ],
    ['mocha', 'sh: 1: mocha: not found\n', 127, /"mocha" is not installed/],
    ['mocha', ' Exception during run: Error: Cannot find module \'zz-y\'\n', 1, /"zz-y"/],
    ['mocha', " Exception during run: Error: Cannot find module './n'\n", 1, null],
    ['mocha', ' Exception during run: ReferenceError: y is not defined\n', 1, null],
    ['npx jest', 'No tests found, exiting with code 1\n', 1, /no tests/],
    ['pytest', 'pytest: error: unrecognized arguments: --covx=a\n', 4, /--covx/],
    ['node --zz --test', 'node: bad option: --zz\n', 9, /option --zz/],
    ['npx vitest', 'CACError: Unknown option `--fileParallelism`\n', 1, null],
    ['npm run zip', 'npm error Missing script: "zip"\n', 1, /no script "zip"/],
    ['node check.js', 'AssertionError: 1 == 2\n', 1, null],
    ['node check.js', "ok\nError: Cannot find module 'zz-y'\n", 0, null],
    [
      'node --test',
      file('/p/node_modules/newpkg/index.js:1\n# const x = 1 |> f\n# \n# SyntaxError: Unexpected'),
      1,
      /"newpkg" does not support/,
    ],
  ] as const) {
    test(`${check}: ${JSON.stringify(output.slice(0, 110))} is ${says ?? 'none'}`, () => {
      const found = obstacleOf(planCheck(check, {}), output, exitCode, PATHS)
      if (says === null) assert.equal(found, null)
      else assert.match(found ?? 'none', says)
    })
  }

  test('without the files of the project no Python module is said to be missing', () => {
    const output = python("ModuleNotFoundError: No module named 'left_padx'")
    assert.equal(obstacleOf({ kind: 'pytest' }, output, 2), null)
  })
})

test('times of tests are left out, so that only what a patch changes differs', async (t) => {
  const cwd = scratch(t)
  const bin = join(cwd, 'node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  const printed = '#!/bin/sh\nprintf "# Subtest: a.js\\n    ok 1 - b # time=$TIME\\n' +
    'not ok 2 - c # time=$TIME {\\n# time=$TIME\\n1..2\\n"; exit 1\n'
  for (const name of ['tap', 'vitest']) {
    writeFileSync(join(bin, name), printed, { mode: 0o755 })
    const { outcomes } = planCheck(`${name} a.js`, {}).whole
    const runs = await Promise.all(['1ms', '20.5ms', '3s'].map((time) =>
      runCommand(`export TIME=${time} PATH="${bin}:$PATH"; ${outcomes}`, cwd)))
    assert.equal(new Set(runs.map(({ output }) => output)).size, 1, name)
    assert.equal(runs[0]!.exitCode, 1)
    assert.match(runs[0]!.output, /^not ok 2 - c/m)
  }
})
