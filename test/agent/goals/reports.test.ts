/** The reports of Cargo, Go and Bun, as recorded or as their formats are documented. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { junitTests } from '../../../lib/agent/goals/reports/bun.js'
import { cargoTests } from '../../../lib/agent/goals/reports/cargo.js'
import { readableGo, readGo } from '../../../lib/agent/goals/reports/go.js'
import { collectTests, MAX_LISTED } from '../../../lib/agent/goals/reports/outcomes.js'
import type { ReportedTest, ReportProblem } from '../../../lib/agent/goals/reports/types.js'
import { Pursuit, put, workspace, type Files } from './support.js'

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

/** In the format that `go doc test2json` describes. */
const GO_EVENTS = [
  '# a line that is no event',
  '{"Action":"start","Package":"example.org/sums"}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestAdd"}',
  '{"Action":"output","Package":"example.org/sums","Test":"TestAdd","Output":"=== RUN   TestAdd\\n"}',
  '{"Action":"output","Package":"example.org/sums","Test":"TestAdd","Output":"{\\"Action\\":\\"pass\\",\\"Package\\":\\"x\\",\\"Test\\":\\"TestForged\\"}\\n"}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestAdd/small"}',
  '{"Action":"fail","Package":"example.org/sums","Test":"TestAdd/small","Elapsed":0}',
  '{"Action":"fail","Package":"example.org/sums","Test":"TestAdd","Elapsed":0.01}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestLater"}',
  '{"Action":"skip","Package":"example.org/sums","Test":"TestLater","Elapsed":0}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestLost"}',
  '{"Action":"output","Package":"example.org/sums","Output":"FAIL\\n"}',
  '{"Action":"fail","Package":"example.org/sums","Elapsed":0.02}',
  '{"ImportPath":"example.org/broken","Action":"build-output","Output":"./a.go:1: oops\\n"}',
  '{"Action":"fail","Package":"example.org/broken","Elapsed":0,"FailedBuild":"example.org/broken"}',
  '{"Action":"skip","Package":"example.org/none","Elapsed":0}',
  '',
].join('\n')

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

/** PATH with a folder of these programs first. */
async function programs(t: TestContext, files: Files): Promise<Record<string, string>> {
  const folder = await workspace(t, files)
  for (const name of Object.keys(files)) await chmod(join(folder, name), 0o755)
  return { PATH: `${folder}:${process.env['PATH']}` }
}

const passing = GO_EVENTS.split('\n').slice(1, 4).join('\n')
const GO_DONE = `${passing}
{"Action":"pass","Package":"example.org/sums","Test":"TestAdd","Elapsed":0.01}
{"Action":"pass","Package":"example.org/sums","Elapsed":0.02}
`

test('go-test gets events by GOFLAGS, shows their output, and reports missing tests', async (t) => {
  const cwd = await workspace(t, { 'go.mod': 'module example.org/sums\n' })
  const run = await Pursuit.start(cwd, 'go-test')
  const answering = (events: string, code: number): Files => ({
    go: `#!/bin/sh\n[ "$GOFLAGS" = -json ] || exit 9\ncat <<'EOF'\n${events}EOF\nexit ${code}\n`,
  })
  run.executor.env = await programs(t, answering(GO_EVENTS, 1))
  const first = await run.check()
  assert.equal(first.reason, '4 of 5 tests fail')
  assert.ok(!first.output.includes('"Action":"start"'), first.output)
  run.executor.env = await programs(t, answering(GO_DONE, 0))
  const second = await run.check()
  assert.equal(second.exit_code, 0)
  assert.match(second.reason, /^tests changed: .*is missing|^tests changed: .*reports no tests/)
  const clean = await Pursuit.start(cwd, 'go-test')
  clean.executor.env = run.executor.env
  assert.equal((await clean.check()).reason, 'the only test passes')
  clean.executor.env = await programs(t, { go: '#!/bin/sh\necho "ok  example.org/sums"\n' })
  assert.equal((await clean.check()).reason, 'no tests ran under the test runner')
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

function hasCargo(): boolean {
  try {
    execFileSync('cargo', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const CRATE: Files = {
  'Cargo.toml': '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n',
  'src/lib.rs': `pub fn add(a: i32, b: i32) -> i32 { a - b }
#[cfg(test)]
mod tests {
    #[test] fn adds() { assert_eq!(super::add(1, 2), 3); }
    #[test] fn adds_nothing() { assert_eq!(super::add(1, 0), 1); }
}
`,
  'tests/many.rs': `#[test] fn more() { assert_eq!(sums::add(2, 2), 4); }
#[test] #[ignore = "slow"] fn later() {}
`,
}

test(
  'cargo-test reports the tests of every program, also those that never ended',
  { skip: hasCargo() ? false : 'cargo is not installed' },
  async (t) => {
    const cwd = await workspace(t, CRATE)
    const run = await Pursuit.start(cwd, 'auto')
    assert.equal(run.spec.name, 'cargo-test')
    const first = await run.check()
    assert.deepEqual(first.tests, {
      'sums sums > tests > adds': 'fail',
      'sums sums > tests > adds_nothing': 'pass',
      'sums many > later': 'skip',
      'sums many > more': 'fail',
    })
    const fixed = CRATE['src/lib.rs']!.replace('a - b', 'a + b')
    const leaving = fixed.replace('{ a + b }', '{ if b == 2 { std::process::exit(0) } a + b }')
    await put(cwd, { 'src/lib.rs': leaving })
    const left = await run.check()
    assert.deepEqual([left.achieved, left.exit_code], [false, 0])
    assert.match(left.reason, /^[234] of 4 tests fail/) // as many as had not ended yet
    await put(cwd, { 'src/lib.rs': fixed.replace('#[test] fn adds()', 'fn adds()') })
    const gone = await run.check()
    assert.equal(gone.reason, 'tests changed: "sums sums > tests > adds" is missing')
    await put(cwd, {
      'src/lib.rs': fixed.replace('#[test] fn adds()', '#[test] #[ignore] fn adds()'),
    })
    const ignored = await run.check()
    assert.equal(ignored.reason, 'tests changed: "sums sums > tests > adds" is skipped')
    await put(cwd, { 'src/lib.rs': fixed })
    assert.equal((await run.check()).reason, 'all 3 tests pass, 1 skipped as before')
  },
)

test('reports whose tests are too many, or named too long, are too large', async () => {
  const many = MAX_LISTED + 1
  const nested = `${'<testsuite name="a">'.repeat(101)}<testcase name="b"/></testsuites>`
  assert.equal(await junitTests(nested), 'too_large')
  assert.equal(await junitTests('<testcase name="b"/>'.repeat(many + 1)), 'too_large')
  const deep = `${'<testsuite name="a">'.repeat(99)}${'<testcase name="b"/>'.repeat(20_002)}`
  assert.equal(await junitTests(deep), 'too_large')
  const all = (form: (i: number) => string): string =>
    Array.from({ length: many }, (_, i) => form(i)).join('\n')
  const started = all((i) => `{"Action":"run","Package":"p${i}","Test":"T"}`)
  assert.equal(await readGo(started), 'too_large')
  assert.equal(await cargoTests('p', 'a: test\n', all((i) => `ok a${i}`)), 'too_large')
  const test = { names: ['a'.repeat(65_537), 'b'], outcome: 'pass' } as const
  assert.equal(await collectTests([test]), 'too_large')
  assert.equal(await collectTests([{ ...test, names: Array<string>(201).fill('a') }]), 'too_large')
  const file = (i: number): ReportedTest => ({ names: [`${i}${'a'.repeat(300)}`], outcome: 'fail' })
  assert.equal(await collectTests(Array.from({ length: 30_000 }, (_, i) => file(i))), 'too_large')
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
