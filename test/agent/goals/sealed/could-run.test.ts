import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { GoalSpec, GoalVerdict, TestOutcomes, TestReporter } from 'runwright/agent'
import { couldNotRun } from '../../../../lib/agent/goals/sealed/could-run.js'

interface Row {
  readonly what: string
  readonly reporter?: TestReporter | null
  readonly exit?: number
  readonly reason?: string
  readonly tests?: TestOutcomes | null
  readonly output?: string
  readonly achieved?: boolean
  /** The copy's real path, if it is given. */
  readonly copy?: string
  readonly expected: string | null
}

const FAILS: TestOutcomes = { 'test/a.test.js > adds': 'fail', 'test/a.test.js > takes': 'pass' }
const SERVICE = 'a service on this machine could not be reached'

const rows: readonly Row[] = [
  { what: 'a met goal', achieved: true, output: 'connect ECONNREFUSED 127.0.0.1:1', expected: null },
  { what: 'a test that fails', output: 'Expected 1 to equal 2', expected: null },
  { what: 'an exit code alone', reporter: null, tests: null, reason: 'exit code 1', expected: null },
  { what: 'a changed test', reason: 'tests changed: a was modified', exit: 127, expected: null },
  { what: 'a check that took too long', reason: 'check timed out after 2 s', tests: null, expected: null },
  {
    what: 'a report that was tampered with',
    reason: 'the report of the test runner was tampered with',
    tests: null,
    expected: null,
  },
  {
    what: 'a report that is too large',
    reason: 'the report of the test runner is too large to be read',
    tests: null,
    expected: null,
  },
  {
    what: 'a module that the work has to make',
    output: "Error: Cannot find module '../src/new.js'\nRequire stack:\n- /c/test/a.test.js",
    expected: null,
  },
  {
    what: 'a module of the workspace by its full path',
    output: "Cannot find module '/c/work/src/new.js' imported from /c/work/test/a.test.js",
    expected: null,
  },
  {
    what: 'a file that the work has to write',
    output: "Error: ENOENT: no such file or directory, open '/c/work/out.json'\n at /c/work/test/a.test.js:1",
    expected: null,
  },
  {
    what: 'a temporary file that is gone',
    output: "ENOENT: no such file or directory, open '/tmp/x/y'\n at /c/work/test/a.test.js:1",
    expected: null,
  },
  { what: 'a refusal of another host', output: 'connect ECONNREFUSED 10.1.2.3:80', expected: null },
  { what: 'one file of several that did not load', tests: { 'b.js': 'fail', ...FAILS }, expected: null },
  { what: 'a message about what was not found', output: 'user 7: order not found today', expected: null },
  {
    what: 'a program that was not found',
    reporter: null,
    tests: null,
    exit: 127,
    expected: 'a program of the check was not found',
  },
  {
    what: 'a program that is named as not found',
    tests: null,
    exit: 127,
    output: 'sh: 1: mocha: not found',
    expected: 'a program was not found (mocha)',
  },
  {
    what: 'a program that a test starts',
    output: 'Error: spawn convert ENOENT',
    expected: 'a program was not found (convert)',
  },
  {
    what: 'a program of a makefile',
    reporter: null,
    tests: null,
    exit: 2,
    output: '/bin/sh: 1: cargo: not found\nmake: *** [Makefile:2: test] Error 127',
    expected: 'a program was not found (cargo)',
  },
  {
    what: 'a program that could not be started',
    reporter: null,
    tests: null,
    exit: 126,
    expected: 'a program of the check could not be started',
  },
  {
    what: 'no report',
    tests: null,
    reason: 'no tests ran under the test runner',
    expected: 'the test runner reported no tests (no tests ran under the test runner)',
  },
  {
    what: 'no file that loads',
    tests: { 'test/a.test.js': 'fail', 'test/b.test.js': 'fail' },
    expected: 'no file of tests could be loaded',
  },
  {
    what: 'a service that refuses, as Node says it',
    output: 'Error: connect ECONNREFUSED 127.0.0.1:5432',
    expected: `${SERVICE} (127.0.0.1:5432)`,
  },
  {
    what: 'a service that refuses, by IPv6',
    output: 'Error: connect ECONNREFUSED ::1:6379',
    expected: `${SERVICE} (::1:6379)`,
  },
  {
    what: 'a service that refuses, as Python says it',
    output: "HTTPConnectionPool(host='localhost', port=80): [Errno 111] Connection refused",
    expected: `${SERVICE} (localhost)`,
  },
  {
    what: 'a service that refuses, as psql says it',
    output: 'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused',
    expected: `${SERVICE} (localhost)`,
  },
  {
    what: 'a missing package',
    output: "Error: Cannot find module 'left-pad'\nRequire stack:",
    expected: 'a package was not found (left-pad)',
  },
  {
    what: 'a missing package for an ECMAScript module',
    output: "Cannot find package '@a/b' imported from /c/test/a.test.js",
    expected: 'a package was not found (@a/b)',
  },
  {
    what: 'a missing Python module',
    reporter: 'pytest',
    output: "ModuleNotFoundError: No module named 'numpy'",
    expected: 'a package was not found (numpy)',
  },
  {
    what: 'a file system that can only be read',
    output: "Error: EROFS: read-only file system, mkdir '/var/lib/app'",
    expected: 'a file system can only be read',
  },
  {
    what: 'a place without permission',
    output: "EACCES: permission denied, open '/opt/app/state'",
    expected: 'no permission (/opt/app/state)',
  },
  {
    what: 'a file without permission in the workspace',
    output: "EACCES: permission denied, open '/c/work/x'\n at /c/work/test/a.test.js:1",
    expected: null,
  },
  {
    what: 'a path to the workspace itself',
    output: "ENOENT: no such file or directory, open '/home/me/shop/data.json'\n at /c/work/test/a.test.js:1",
    expected: 'a path was not found (/home/me/shop/data.json)',
  },
  {
    what: 'settings of TypeScript above the folder',
    reporter: null,
    copy: '/tmp/s/run/work',
    output: "tsconfig.json(1,12): error TS5083: Cannot read file '/tmp/s/run/base.json'.",
    expected: 'a path was not found (/tmp/s/run/base.json)',
  },
  {
    what: 'a file of the copy itself',
    reporter: null,
    copy: '/tmp/s/run/work',
    output: "ENOENT: no such file or directory, open '/tmp/s/run/work/answer.txt'",
    expected: null,
  },
  {
    what: 'a package that is a link to another folder',
    reporter: null,
    copy: '/tmp/s/run/work',
    output: "Error: Cannot find module '/tmp/s/run/work/node_modules/typescript/bin/tsc'",
    expected: 'a package was not found (node_modules/typescript/bin/tsc)',
  },
  {
    what: 'a path that Python does not find',
    reporter: 'pytest',
    output: "FileNotFoundError: [Errno 2] No such file or directory: '/opt/models/a.bin'",
    expected: 'a path was not found (/opt/models/a.bin)',
  },
]

for (const row of rows) {
  test(`${row.what} is ${row.expected === null ? 'no' : 'a'} reason to check in place`, () => {
    const { reporter = 'node-test', tests = FAILS, achieved = false } = row
    const verdict = {
      achieved,
      reason: row.reason ?? '1 of 2 tests fail',
      exit_code: row.exit ?? 1,
      tests,
      test_files: filesOf(tests),
      output: row.output ?? '',
    } as GoalVerdict
    assert.equal(couldNotRun(verdict, { reporter } as GoalSpec, row.copy), row.expected)
  })
}

/** The files of tests, as their runner reports them. */
function filesOf(tests: TestOutcomes | null): readonly string[] {
  return [...new Set(Object.keys(tests ?? {}).map((name) => name.split(' > ')[0]!))]
}

const FAILED = {
  achieved: false, reason: '', exit_code: 1, tests: FAILS, test_files: [],
} as unknown as GoalVerdict

test('hostile output is judged in linear time, and what is shown of it is one short line', () => {
  for (const part of [
    ...["ENOENT: no such file or directory, open '/", '/a: No such file ', "Cannot find module '"],
    ...['localhost ', ': not found', 'spawn ', '[::1', '/', ' ', 'ECONNREFUSED '],
  ]) {
    const output = part.repeat(Math.ceil((64 * 1024) / part.length))
    const verdict = { ...FAILED, output }
    const before = process.cpuUsage().user
    const cause = couldNotRun(verdict, { reporter: 'node-test' } as GoalSpec)
    assert.ok(process.cpuUsage().user - before < 1_000_000, part)
    assert.ok((cause ?? '').length < 300)
  }
  const output = `spawn a\u001b[31m${'x'.repeat(50)} ENOENT`
  const verdict = { ...FAILED, output }
  assert.doesNotMatch(couldNotRun(verdict, { reporter: null } as GoalSpec) ?? '', /\p{Cc}/u)
})
