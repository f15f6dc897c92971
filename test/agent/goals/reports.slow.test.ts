import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

import { junitTests } from '../../../lib/agent/goals/reports/bun.js'
import { cargoTests } from '../../../lib/agent/goals/reports/cargo.js'
import { readGo } from '../../../lib/agent/goals/reports/go.js'
import { collectTests, MAX_LISTED } from '../../../lib/agent/goals/reports/outcomes.js'
import type { ReportedTest } from '../../../lib/agent/goals/reports/types.js'
import { Pursuit, put, workspace, type Files } from './support.js'
import { GO_EVENTS, programs } from './report-samples.js'

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
