/** Suites that are too big for their tests to be kept by name. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { HashedTests, KeptTests, TestOutcome } from 'runwright/agent'
import { changeOf, countTests, failureOf } from '../../../lib/agent/goals/compare-tests.js'
import { readLines } from '../../../lib/agent/goals/reports/lines.js'
import { TestCollector } from '../../../lib/agent/goals/reports/outcomes.js'
import { isFile } from '../../../lib/agent/goals/reports/test-names.js'
import { TestTable } from '../../../lib/agent/goals/reports/test-table.js'
import type { ComparedReport } from '../../../lib/agent/goals/reports/types.js'
import { areHashed } from '../../../lib/agent/test-outcomes.js'
import { Random } from '../../helpers/random.js'

type Outcomes = Readonly<Record<string, TestOutcome>>

const OUTCOMES = ['pass', 'pass', 'pass', 'fail', 'skip'] as const
const LARGE = 20_001

/** What a check would say of these outcomes after that baseline. */
async function saidOf(report: ComparedReport, baseline: KeptTests): Promise<string | null> {
  return (await failureOf(report.tests, baseline)) ?? (await changeOf(report, baseline))
}

/** As it comes back from a log. */
async function packed(tests: Outcomes): Promise<HashedTests> {
  const kept = await (await TestTable.of(tests)).pack()
  return JSON.parse(JSON.stringify(kept)) as HashedTests
}

/** The same with what only names could tell left out. */
function vague(text: string | null): string | null {
  return text?.replace(/^tests changed: .*/, 'tests changed') ?? null
}

test('hashed tests give the verdict that named ones give, in random histories', async () => {
  const random = new Random(17)
  const below = (limit: number): number => random.integer(0, limit - 1)
  const nameOf = (): string => {
    const file = `test/${below(4)}.js`
    return below(9) === 0 ? file : `${file} > ${'suite > '.repeat(below(3))}${below(6)}`
  }
  const some = (): Outcomes =>
    Object.fromEntries(
      Array.from({ length: 1 + below(12) }, () => {
        const name = nameOf()
        return [name, isFile(name) ? 'fail' : OUTCOMES[below(5)]!] as const
      }),
    )
  const seen = new Set<string | null>()
  for (let round = 0; round < 4_000; round++) {
    const before = some()
    let now: Record<string, TestOutcome> = below(3) === 0 ? some() : { ...before, ...some() }
    if (below(2) === 0)
      now = Object.fromEntries(Object.keys(now).map((n) => [n, OUTCOMES[below(2)]!]))
    for (const name of Object.keys(now)) {
      if (isFile(name) && below(2) === 0) delete now[name]
      if (below(9) === 0) delete now[name]
    }
    const files = ['test/0.js', 'test/1.js'].filter(() => below(2) === 0)
    const idle = below(3) === 0 ? null : files
    const named = await saidOf({ tests: now, idle }, before)
    const table = await TestTable.of(now)
    const [hashed, hashedBefore] = [{ tests: table, idle }, await packed(before)]
    const context = JSON.stringify({ before, now, idle })
    assert.deepEqual(countTests(table), countTests(now), context)
    for (const [report, baseline] of [
      [hashed, hashedBefore],
      [hashed, before],
      [{ tests: now, idle }, hashedBefore],
    ] as const) {
      assert.equal(vague(await saidOf(report, baseline)), vague(named), context)
    }
    seen.add(vague(named))
  }
  assert.ok(seen.size > 20 && seen.has(null) && seen.has('tests changed'), [...seen].join('\n'))
})

test('of a hashed baseline, missing tests are counted, and files and skipped tests named', async () => {
  const before = await packed({
    'a.js > one': 'pass', 'a.js > two': 'fail', 'b.js > one': 'pass', 'c.js > later': 'skip',
    'd.js': 'fail',
  })
  const now = { 'a.js > one': 'pass', 'b.js > one': 'pass', 'c.js > later': 'skip' } as const
  const said = (tests: Outcomes, idle: readonly string[] = []): Promise<string | null> =>
    changeOf({ tests, idle }, before)
  assert.equal(await said({ ...now, 'a.js > two': 'pass' }), null)
  assert.equal(await said(now), 'tests changed: 1 test of the first check is missing in "a.js"')
  const none = '4 tests of the first check are missing, one of them in "a.js"'
  assert.equal(await said({}), `tests changed: ${none}`)
  assert.equal(await said({}, ['d.js']), 'tests changed: "d.js" reports no tests (and 4 more)')
  const skipped = { ...now, 'a.js > two': 'skip' } as const
  assert.equal(await said(skipped), 'tests changed: "a.js > two" is skipped')
  const both = { ...skipped, 'b.js > one': 'skip', 'c.js > later': 'pass' } as const
  assert.equal(await said(both), 'tests changed: "b.js > one" is skipped (and 1 more)')
  const { 'b.js > one': _, ...less } = skipped
  const missing = '1 test of the first check is missing in "b.js" (and 1 more)'
  assert.equal(await said(less), `tests changed: ${missing}`)
})

/** The report of these tests, each in one file. */
async function collected(titles: Iterable<string>): Promise<ComparedReport> {
  const collector = new TestCollector()
  for (const title of titles) await collector.addTest(['a.js', title], 'pass')
  assert.equal(collector.isTooLarge, false)
  return collector.report(false)
}

function* numbers(count: number, form: (i: number) => string): Generator<string> {
  for (let i = 0; i < count; i++) yield form(i)
}

test('small suites are kept by name, and others compared with them by hash', async () => {
  const small = await collected(numbers(LARGE - 1, String))
  assert.equal(small.tests instanceof TestTable, false)
  const large = await collected(numbers(LARGE, String))
  assert.ok(large.tests instanceof TestTable)
  assert.equal(await changeOf(large, small.tests as Outcomes), null)
  const kept = await large.tests.pack()
  assert.equal(
    await changeOf(small, kept),
    'tests changed: 1 test of the first check is missing in "a.js"',
  )
  const other = await collected(numbers(LARGE, (i) => String(i + 1)))
  const first = 'tests changed: "a.js > 0" is missing'
  assert.equal(await changeOf(other, small.tests as Outcomes), first)
})

test('tests of one name are numbered in a big suite as in a small one', async () => {
  const titles = (count: number): Generator<string> =>
    numbers(count, (i) => (i % 5 === 0 ? 'twice (2)' : i % 2 === 0 ? 'twice' : `once ${i}`))
  const small = await collected(titles(LARGE - 1))
  const large = await collected(titles(LARGE + 99))
  assert.ok(large.tests instanceof TestTable)
  assert.equal(countTests(large.tests).total, LARGE + 99)
  assert.equal(await changeOf(large, small.tests as Outcomes), null)
})

test('duplicates are numbered without counting those before them again', async (t) => {
  let looks = 0
  const { has } = TestTable.prototype
  t.mock.method(TestTable.prototype, 'has', function look(this: TestTable, name: string) {
    looks += 1
    assert.ok(looks < 100_000, 'those before it are counted again')
    return has.call(this, name)
  })
  function* titles(): Generator<string> {
    yield* numbers(10_000, (i) => `t (${i})`)
    yield* numbers(10_000, () => 't')
    yield* numbers(10_000, () => 'u')
  }
  const { tests } = await collected(titles())
  assert.equal(countTests(tests as TestTable).total, 30_000)
})

test('names that are long, or of files, are bounded in a big suite as well', async () => {
  const long = new TestCollector()
  const name = 'n'.repeat(399)
  for (let i = 0; i < 22_000; i++) await long.addTest([`${i}.js`, name], 'pass')
  assert.equal(long.isTooLarge, false)
  const kept = await (long.report(false).tests as TestTable).pack()
  assert.ok(kept.hashed.files.length <= 20_000)
  assert.ok(JSON.stringify(kept).length < 22_000 * 12 + 2 * 1024 * 1024)
  for (let i = 0; i < 50_001; i++) await long.addFile(`${i}.js`)
  assert.equal(long.isTooLarge, true)
})

function reportFolder(t: TestContext): (content: string) => Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'report-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return async (content) => {
    writeFileSync(join(folder, 'report-1-1.jsonl'), content)
    const report = await readLines({ folder, nonce: 'n' })
    return typeof report === 'string' ? report : report.tests
  }
}

test('lines are read whole, however they lie in the pieces of their file', async (t) => {
  const read = reportFolder(t)
  const end = '["n","end"]\n'
  for (const length of [1, 65_000, 65_535 - 31, 65_536, 400_000]) {
    const title = 'ü'.repeat(Math.min(length, 60_000) / 2)
    const filler = ' '.repeat(length)
    const line = `${JSON.stringify(['n', 'test', ['a.js', title], 'pass'])}${filler}\n`
    const tests = (await read(`${line}${line}${end}`)) as Outcomes
    assert.deepEqual(Object.values(tests), ['pass', 'pass'])
  }
  const short = [...numbers(300, (i) => `${i}${' '.repeat(991)}`)]
  const lines = short.map((title) => `${JSON.stringify(['n', 'test', ['a.js', title], 'pass'])}\n`)
  const names = Object.keys((await read(`${lines.join('')}${end}`)) as Outcomes)
  assert.deepEqual(names, short.map((title) => `a.js > ${title.trim()} `))
  assert.equal(await read(''), 'incomplete')
  assert.equal(await read('["n","end"]'), 'incomplete')
  assert.equal(await read('["n","test",["a","b"],"pass"]\n'), 'incomplete')
  assert.equal(await read(`["m","test",["a","b"],"pass"]\n${end}`), 'invalid')
  assert.equal(await read(`${end}${end}`), 'invalid')
  assert.equal(await read(`["n","file","a"]${' '.repeat(1 << 20)}\n${end}`), 'too_large')
  assert.equal(await read(' '.repeat((1 << 20) + 100_000)), 'too_large')
})

test('only outcomes with hashes count as hashed', async () => {
  assert.equal(areHashed({ hashed: 'pass' }), false)
  assert.equal(areHashed({}), false)
  assert.equal(areHashed(null), false)
  assert.equal(areHashed(await packed({ 'a > b': 'pass' })), true)
})
