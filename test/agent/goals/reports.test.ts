/** The reports of Cargo, Go and Bun, as recorded or as their formats are documented. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { junitTests } from '../../../lib/agent/goals/reports/bun.js'
import { cargoTests } from '../../../lib/agent/goals/reports/cargo.js'
import { readableGo, readGo } from '../../../lib/agent/goals/reports/go.js'
import type { ReportedTest, ReportProblem } from '../../../lib/agent/goals/reports/types.js'
import { Pursuit, workspace } from './support.js'
import { GO_EVENTS, programs } from './report-samples.js'

function named(tests: readonly ReportedTest[] | ReportProblem): unknown {
  if (typeof tests === 'string') return tests
  return Object.fromEntries(tests.map(({ names, outcome }) => [names.join(' > '), outcome]))
}

/** Recorded from Cargo 1.95: one test each that passes, fails, panics and is ignored. */
const CARGO_LIST = `tests::adds: test
tests::fails: test
tests::later: test
tests::panics: test
`
const CARGO_LOG = `ok tests::adds
ignored: slow tests::later
failed tests::fails
ok tests::panics
`

test("cargo's tests have the outcomes of the log, by program and module", async () => {
  assert.deepEqual(named(await cargoTests('sums sums', CARGO_LIST, CARGO_LOG)), {
    'sums sums > tests > adds': 'pass',
    'sums sums > tests > fails': 'fail',
    'sums sums > tests > later': 'skip',
    'sums sums > tests > panics': 'pass',
  })
})

test('a listed cargo test without an outcome, or with two, has failed', async () => {
  const cut = CARGO_LOG.split('\n').slice(0, 1).join('\n')
  assert.deepEqual(named(await cargoTests('p', CARGO_LIST, cut)), {
    'p > tests > adds': 'pass',
    'p > tests > fails': 'fail',
    'p > tests > later': 'fail',
    'p > tests > panics': 'fail',
  })
  const forged = named(await cargoTests('p', 'a: test\n', 'ok a\nfailed a\nok a\n'))
  assert.deepEqual(forged, { 'p > a': 'fail' })
})

test("go's tests come from its own events, not from what tests print", async () => {
  assert.deepEqual(named(await readGo(GO_EVENTS)), {
    'example.org/sums > TestAdd': 'fail',
    'example.org/sums > TestAdd > small': 'fail',
    'example.org/sums > TestLater': 'skip',
    'example.org/sums > TestLost': 'fail',
    'example.org/broken': 'fail',
  })
  assert.equal(await readGo('ok  example.org/sums 0.01s\n'), 'absent')
  assert.equal(await readGo(GO_EVENTS.split('\n').slice(0, 8).join('\n')), 'incomplete')
})

test("go's events are shown as the output that they carry", async () => {
  const shown = await readableGo(GO_EVENTS)
  assert.match(shown, /^# a line that is no event\n=== RUN {3}TestAdd\n/)
  assert.match(shown, /\nFAIL\n.\/a\.go:1: oops\n$/)
})

/** In the form that Bun's own tests of its JUnit reporter expect. */
const BUN_XML = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="5" assertions="3" failures="1" skipped="2" time="0.02">
  <testsuite name="a.test.ts" file="a.test.ts" tests="5" failures="1" skipped="2" time="0">
    <testcase name="a &lt;b&gt; &amp; &quot;c&quot; &#65;" classname="" time="0.1" file="a.test.ts" line="2" assertions="1" />
    <testsuite name="outer" file="a.test.ts" line="3" tests="4">
      <testcase name="adds" classname="outer" time="0" file="a.test.ts" line="4" assertions="1">
        <failure type="AssertionError" message="&lt;skipped />"><![CDATA[<testcase name="forged" />]]></failure>
      </testcase>
      <testsuite name="inner" tests="3">
        <testcase name="later" classname="inner &gt; outer" line="6"><skipped /></testcase>
        <testcase name="todo" classname="inner &gt; outer" line="7"><skipped message="TODO" /></testcase>
        <testcase name="deep" classname="inner &gt; outer" line="8" />
      </testsuite>
    </testsuite>
  </testsuite>
  <testsuite name="broken.test.ts" file="broken.test.ts" tests="0" failures="0" errors="1" time="0" />
</testsuites>
`

test("bun's tests come from its JUnit report, by file and suites", async () => {
  assert.deepEqual(named(await junitTests(BUN_XML)), {
    'a.test.ts > a <b> & "c" A': 'pass',
    'a.test.ts > outer > adds': 'fail',
    'a.test.ts > outer > inner > later': 'skip',
    'a.test.ts > outer > inner > todo': 'skip',
    'a.test.ts > outer > inner > deep': 'pass',
    'broken.test.ts': 'fail',
  })
  assert.equal(await junitTests(BUN_XML.slice(0, -15)), 'incomplete')
})

test('bun-test names a private file for the report, and needs that report', async (t) => {
  const cwd = await workspace(t, { 'a.test.ts': '' })
  const run = await Pursuit.start(cwd, 'bun-test')
  const writing = `#!/bin/sh
for word in "$@"; do case $word in --reporter-outfile=*) cat > "\${word#*=}" <<'EOF'
${BUN_XML}EOF
esac; done
exit 1
`
  run.executor.env = await programs(t, { bun: writing })
  const first = await run.check()
  assert.deepEqual([first.reason, first.counts?.skipped], ['2 of 6 tests fail', 2])
  run.executor.env = await programs(t, { bun: '#!/bin/sh\necho " 6 pass"\n' })
  assert.equal((await run.check()).reason, 'no tests ran under the test runner')
})

test('a long report lets other work run while it is read', async () => {
  const event = '{"Action":"pass","Package":"p","Test":"T"}\n'
  let turns = 0
  let timer = setImmediate(function count() {
    turns += 1
    timer = setImmediate(count)
  })
  await readGo(`${event.repeat(50_000)}{"Action":"pass","Package":"p"}\n`)
  clearImmediate(timer)
  assert.ok(turns > 1, `${turns} turns`)
})
