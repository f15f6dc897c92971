/** What `builtin:repair` reads from trials, and what it tells of them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { CommandResult } from '../../lib/agent/executor.js'
import { brief, briefOutcomes, isBriefProgress } from '../../lib/repair/brief.js'
import { type Counts, counted, countsIn, isSuccess }
  from '../../lib/repair/counted.js'
import { Executed } from '../../lib/repair/executed.js'
import { diffOfChange, farewell, newRecord, noteMiss }
  from '../../lib/repair/farewell.js'
import { partOf } from '../../lib/repair/project.js'
import { parseOutcomes } from '../../lib/repair/read-report.js'
import { type Outcomes, passCount } from '../../lib/repair/report.js'
import { parseSource, type SourceFile } from '../../lib/repair/source.js'
import { parseTrials, type TrialReport, type Use }
  from '../../lib/repair/trial-report.js'
import { describeReport } from '../../lib/repair/trials/try-patches.js'
import type { Trial, TrialReport as Told } from '../../lib/repair/trials/trial.js'
import { scratch } from '../helpers/engine.js'
import { Random } from '../helpers/random.js'

const parse = (...lines: readonly string[]): TrialReport | null =>
  parseTrials({ output: lines.join('\n'), exitCode: 0 })

const BASE = ['Without a patch: exit code 1 (12 ms)', '  one', '  two', '  three']

/** The only run of a text, with the output of {@link BASE} before. */
const runOf = (...lines: readonly string[]): unknown =>
  parse('1 patch tried', ...lines, ...BASE)!.runs[0]

describe('results of try_patches', () => {
  for (const [what, lines, output] of [
    ['a changed line', ['@@ -2,1 +2,1 @@', '-two', '+2'], 'one\n2\nthree'],
    ['a line at the start', ['@@ -1,0 +1,1 @@', '+zero'], 'zero\none\ntwo\nthree'],
    ['a line at the end', ['@@ -4,0 +4,1 @@', '+four'], 'one\ntwo\nthree\nfour'],
    ['two changes', ['@@ -1,1 +1,0 @@', '-one', '@@ -3,1 +2,2 @@', '-three', '+3', '+'],
      'two\n3\n'],
    ['no output', ['@@ -1,3 +1,0 @@', '-one', '-two', '-three'], ''],
    ['lines that look like places', ['@@ -2,1 +2,2 @@', '-two', '+@@ -1,1 +1,1 @@', '+-one'],
      'one\n@@ -1,1 +1,1 @@\n-one\nthree'],
    ['changes that were cut', ['@@ -2,1 +2,9 @@', '-two', '+2', '… 7 more lines'], null],
    ['an output that was cut', ['@@ -2,1 +2,3 @@', '-two', '+2', '+[… 9 bytes left out …]', '+4'],
      null],
  ] as const) {
    test(what, () => assert.deepEqual(
      runOf('Patch 1: exit code 0 (3 ms)', ...lines.map((line) => `  ${line}`)),
      { exitCode: 0, timedOut: false, output },
    ))
  }

  for (const [told, expected] of [
    ['exit code 1 (3 ms), same output',
      { exitCode: 1, timedOut: false, output: 'one\ntwo\nthree' }],
    ['exit code 124 (reached its time limit of 2000 ms), same output',
      { exitCode: 124, timedOut: true, output: 'one\ntwo\nthree' }],
    ['exit code -1 (0 ms), same output',
      { exitCode: -1, timedOut: false, output: 'one\ntwo\nthree' }],
    ['not tried', 'not tried'],
    ['could not be made: old_text was not found in a.js', 'impossible'],
    ['could not be made: there is no file exit code 0 (1 ms), same output', 'impossible'],
  ] as const) {
    test(told, () => assert.deepEqual(runOf(`Patch 1: ${told}`), expected))
  }

  test('without an output there are no lines', () => {
    const report = parse(
      'Patch 1: exit code 0 (1 ms), same output', 'Patch 2: exit code 0 (1 ms)',
      '  @@ -1,0 +1,1 @@', '  +now', 'Without a patch: exit code 1 (reached the time limit after 9 ms)',
    )
    assert.deepEqual(report, {
      base: { exitCode: 1, timedOut: true, output: '', shown: '' },
      runs: [
        { exitCode: 0, timedOut: false, output: '' },
        { exitCode: 0, timedOut: false, output: 'now' },
      ],
      tested: null,
    })
  })

  test('nothing is known of outputs when that without a patch was cut', () => {
    const report = parse(
      'Patch 1: exit code 0 (1 ms), same output', 'Patch 2: exit code 0 (1 ms)',
      '  @@ -1,1 +1,1 @@', '  -a', '  +b',
      'Without a patch: exit code 1 (1 ms)', '  a', '  [… 7 bytes left out …]', '  z',
    )
    assert.equal(report!.base.output, null)
    assert.equal(report!.base.shown, 'a\n[… 7 bytes left out …]\nz')
    assert.deepEqual(report!.runs, [
      { exitCode: 0, timedOut: false, output: null },
      { exitCode: 0, timedOut: false, output: null },
    ])
  })

  test('what is no such result is none', () => {
    for (const text of ['', 'no copy can be made', '  Without a patch: exit code 0 (1 ms)',
      'Without a patch: nothing', 'Patch 1: exit code 0 (1 ms), same output']) {
      assert.equal(parse(text), null, text)
    }
  })

  test('lines that tests ran', () => {
    const { tested } = parse(
      'Lines run by failing tests, of 2 failing and 31 other ones:',
      '  src/a.js', '    3: 2 failing, 0 other', '    5-7: 1 failing, 31 other',
      '  lib/b c.py', '    1: 1 failing, 2 other', '  … and more', ...BASE,
    )!
    const use = (failed: number, passed: number): Use => ({ failed, passed })
    assert.deepEqual(tested, {
      failed: 2,
      passed: 31,
      files: new Map([
        ['src/a.js',
          new Map([[3, use(2, 0)], [5, use(1, 31)], [6, use(1, 31)], [7, use(1, 31)]])],
        ['lib/b c.py', new Map([[1, use(1, 2)]])],
      ]),
    })
  })
})

const result = (output: string, exitCode = 1): CommandResult => ({
  output, exitCode, timedOut: false, durationMs: 5, truncated: false,
})

/** What the tool says of a report. */
async function tell(report: Told): Promise<TrialReport> {
  const output = await describeReport(report)
  const parsed = parseTrials({ output, exitCode: 0 })
  assert.notEqual(parsed, null, output)
  return parsed!
}

/** Outputs with lines that mean something in the result. */
const LINES = [
  '', ' ', '  ', 'ok 1 - adds', 'not ok 2 - takes away', '  ---', '+', '-', '+a', '-a', '\r', 'é☃😀',
  '@@ -1,1 +1,1 @@', '@@ -2,0 +1,3 @@', '… 3 more lines', '… and more', 'not tried',
  'Patch 1: exit code 0 (1 ms), same output', 'Patch 9: not tried', '  Patch 2: not tried',
  'Without a patch: exit code 0 (1 ms)', '    3: 2 failing, 0 other',
  'Lines run by failing tests, of 1 failing and 0 other ones:', '[… 1 bytes left out …] no',
]

/** The tool says nothing of a last line break. */
const bare = (text: string): string => (text.endsWith('\n') ? text.slice(0, -1) : text)

const OUTPUTS = Number(process.env['RUNWRIGHT_TRIAL_OUTPUTS'] ?? 60)
const FIRST_SEED = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)

test(`every output that the tool tells of is read as it was (seed ${FIRST_SEED})`, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + OUTPUTS; seed++) {
    const random = new Random(seed)
    const line = (): string => random.chance(0.2) ? `${random.integer(0, 9)}` : random.pick(LINES)
    const text = (lines: readonly string[]): string =>
      lines.join('\n') + (random.chance(0.5) ? '\n' : '')
    const lines = Array.from({ length: random.integer(0, 12) }, line)
    const base = result(text(lines), random.integer(0, 2))
    const trials = Array.from({ length: random.integer(0, 6) }, (): Trial => {
      if (random.chance(0.1)) return { state: 'not tried' }
      if (random.chance(0.1)) return { state: 'impossible', problem: `no ${line()}\n${line()}` }
      const changed = [...lines]
      for (let edits = random.integer(0, 4); edits > 0; edits--) {
        const added = Array.from({ length: random.integer(0, 2) }, line)
        changed.splice(random.integer(0, changed.length), random.integer(0, 2), ...added)
      }
      return { state: 'ran', result: result(text(changed), random.integer(0, 2)) }
    })
    const files = new Map([['a.js', [
      { line: 3, failed: 1, passed: 0 }, { line: 4, failed: 1, passed: 0 },
      { line: 6, failed: 1, passed: 2 },
    ]]])
    const tested = random.chance(0.5) ? { failed: 1, passed: 2, files } : null
    const report = await tell({ base, timeoutMs: 2_000, trials, tested })
    const run = ({ output, exitCode, timedOut }: CommandResult): unknown =>
      ({ output: bare(output), exitCode, timedOut })
    const { shown, ...told } = report.base
    assert.deepEqual(told, run(base), `seed ${seed}`)
    assert.equal(shown, told.output)
    assert.deepEqual(
      report.runs,
      trials.map((trial) => (trial.state === 'ran' ? run(trial.result) : trial.state)),
      `seed ${seed}`,
    )
    assert.deepEqual(report.tested, tested && {
      ...tested,
      files: new Map([...files].map(([path, uses]) =>
        [path, new Map(uses.map(({ line: at, ...use }) => [at, use]))])),
    }, `seed ${seed}`)
  }
})

test('outputs that the tool cuts are not taken for whole', async () => {
  const long = Array.from({ length: 20_000 }, (_, at) => `line ${at}`)
  const few = ['one', 'two']
  const ran = (lines: readonly string[]): Trial =>
    ({ state: 'ran', result: result(lines.join('\n')) })
  const told = { timeoutMs: 2_000, tested: null }
  const cutBase = await tell({ ...told, base: result(long.join('\n')), trials: [ran(long)] })
  assert.equal(cutBase.base.output, null)
  assert.deepEqual(cutBase.runs, [{ exitCode: 1, timedOut: false, output: null }])
  const cutTrial = await tell({
    ...told, base: result(few.join('\n')), trials: [ran(long), ran(['two'])],
  })
  assert.deepEqual(cutTrial.runs, [
    { exitCode: 1, timedOut: false, output: null }, { exitCode: 1, timedOut: false, output: 'two' },
  ])
})

describe('reports that are only counted', () => {
  for (const [kind, lines, counts] of [
    ['tap', [
      'TAP version 13', '# Subtest: adds', 'ok 1 - adds', 'not ok 2 - fails',
      '    not ok 1 - in it', "  error: 'ok 3 - no'", 'ok 3 - ends', 'ok 4 - x # SKIP',
      'not ok 5 - y # TODO',
    ], [2, 2]],
    ['lines', [
      'printed["pass",{"title":"adds"}]', '["fail",{"title":"fails","err":"no"}]',
    ], [1, 1]],
    ['pytest', ['PASSED tests/a.py::one', 'FAILED tests/a.py::two - no', 'ERROR tests/a.py'], [1, 2]],
    ['unittest', [
      'test_one (a.A.test_one) ... ok', 'test_two (a.A.test_two) ... FAIL', 'Told. ... ERROR',
      'test_three (a.A.test_three) ... its output', 'ok',
    ], [2, 2]],
    // Only those that fail are named.
    ['pytest', [
      'FAILED tests/a.py::two - no', '==== 1 failed, 3 passed, 1 skipped, 2 warnings in 0.10s ====',
    ], [3, 1]],
    ['pytest', ['..F', 'FAILED a.py::two', '1 failed, 2 passed, 1 error in 61.20s (0:01:01)'], [2, 2]],
    ['unittest', [
      'F.Es', 'FAIL: test_two (a.A.test_two)', 'Ran 7 tests in 0.001s', '',
      'FAILED (failures=1, errors=1, skipped=1, expected failures=1, unexpected successes=1)',
    ], [3, 3]],
    ['unittest', ['...', 'Ran 3 tests in 0.001s', '', 'OK'], [3, 0]],
    // Subtests count as failures of their own, and modules that cannot be set up as no tests.
    ['unittest', ['Ran 1 test in 0.001s', '', 'FAILED (failures=2)'], [0, 2]],
    ['unittest', ['Ran 0 tests in 0.001s', '', 'FAILED (errors=1)'], [0, 1]],
  ] as const) {
    test(`${kind}: ${counts.join(' and ')} in ${lines.length} lines`, (t) => {
      const file = join(scratch(t), 'report')
      writeFileSync(file, `${lines.join('\n')}\n`)
      const command = counted(`cat '${file}'; (exit 3)`, kind)!
      const { stdout, status } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' })
      assert.equal(status, 3, 'the exit code of the command')
      const [passed, failed] = counts
      assert.deepEqual(countsIn(stdout), { passed, failed })
    })
  }

  test('an exit code cannot be counted', () => {
    assert.equal(counted('check', 'any'), null)
    assert.equal(countsIn('passed, failed'), null)
  })

  for (const [what, before, after, is] of [
    ['all pass', [1, 2], [3, 0], true],
    ['more pass than there were', [0, 1], [9, 0], true],
    ['one still fails', [1, 2], [2, 1], false],
    ['one is gone', [1, 2], [2, 0], false],
    ['nothing is left', [1, 2], [0, 0], false],
  ] as const) {
    test(`${what}: ${is ? 'a success' : 'none'}`, () => {
      const of = ([passed, failed]: readonly [number, number]): Counts => ({ passed, failed })
      assert.equal(isSuccess(of(before), of(after)), is)
    })
  }
})

test('an output that was cut is known from before, if what is left of it is the same', () => {
  const text = (base: readonly string[]): { output: string; exitCode: number } => ({
    exitCode: 0,
    output: [
      '1 patch tried, 0 with exit code 0, 0 reached the time limit',
      'Patch 1: exit code 1 (5 ms)', '  @@ -2,1 +2,1 @@', '  -b', '  +B',
      'Without a patch: exit code 1 (5 ms)', ...base.map((line) => `  ${line}`),
    ].join('\n'),
  })
  const cut = text(['a', '[\u2026 3 bytes left out \u2026]', 'd'])
  const whole = 'a\nb\nc\nd'
  assert.equal(parseTrials(cut)!.base.output, null)
  assert.equal(parseTrials(cut, whole)!.base.output, whole)
  assert.deepEqual(parseTrials(cut, whole)!.runs, [
    { exitCode: 1, timedOut: false, output: 'a\nB\nc\nd' },
  ])
  for (const other of ['x\nb\nc\nd', 'a\nb\nc\nx']) {
    assert.equal(parseTrials(cut, other)!.base.output, null, other)
  }
  assert.equal(parseTrials(text(['a', 'b']), whole)!.base.output, 'a\nb')
})

describe('brief reports', () => {
  for (const [what, kind, lines, failing, passed] of [
    ['tap', 'tap', [
      'TAP version 13', '# Subtest: adds', 'ok 1 - adds', '# Subtest: fails', 'not ok 2 - fails',
      '  ---', "  error: 'ok 3 - no'", '  ...', 'ok 3 - ends', '1..3',
    ], ['fails'], 2],
    ['nested tap', 'tap', [
      'TAP version 13', '# Subtest: group', '    # Subtest: in it', '    ok 1 - in it',
      '    # Subtest: wrong', '    not ok 2 - wrong', '    1..2', 'not ok 1 - group', '1..1',
    ], null, 1],
    ['pytest', 'pytest', [
      '=== short test summary info ===', 'PASSED tests/test_a.py::test_one',
      'PASSED tests/test_a.py::test_two[a b]', 'FAILED tests/test_a.py::test_three - assert 1 == 2',
    ], ['tests/test_a.py::test_three'], 2],
    ['unittest', 'unittest', [
      'test_one (tests.test_a.A.test_one) ... ok', 'test_two (tests.test_a.A.test_two) ... FAIL',
      'test_three (tests.test_a.A.test_three)', 'Tells what it is. ... ok',
      'test_four (tests.test_a.A.test_four)', 'Tells more. ... ERROR', '', '='.repeat(70),
      'FAIL: test_two (tests.test_a.A.test_two)', '-'.repeat(70), 'AssertionError: 1 != 2', '',
      'Ran 4 tests in 0.001s',
    ], ['tests.test_a.A.test_two', 'tests.test_a.A.test_four'], 2],
    ['lines', 'lines', [
      '["start",{"total":3}]', 'printed["pass",{"title":"adds","fullTitle":"many adds"}]',
      '["fail",{"title":"fails","fullTitle":"many fails","err":"[\\"pass\\",{\\"title\\":"}]',
      '["pass",{"title":"ends","fullTitle":"ends"}]', '["end",{"passes":2}]',
    ], ['many > fails'], 2],
    ['nothing that passes', 'tap', ['TAP version 13', 'not ok 1 - a', '1..1'], ['a'], 0],
  ] as const) {
    test(what, (t) => {
      const file = join(scratch(t), 'report')
      writeFileSync(file, `${lines.join('\n')}\n`)
      const command = brief(`cat '${file}'; (exit 3)`, kind)!
      const { stdout, status } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' })
      assert.equal(status, 3, 'the exit code of the command')
      const outcomes = briefOutcomes(kind, stdout, status)
      const whole = parseOutcomes(kind, lines.join('\n'), status)
      assert.deepEqual(failingOf(outcomes).sort(), failingOf(whole).sort(), 'as the whole report')
      if (failing !== null) assert.deepEqual(failingOf(outcomes).sort(), [...failing].sort())
      assert.equal(passCount(outcomes), passed)
      assert.equal(passCount(whole), passed)
    })
  }

  for (const [what, before, after, is] of [
    ['one passes', 'not ok 1 - a\nok 2 - b', 'ok 1 - a\nok 2 - b', true],
    ['one passes of two', 'not ok 1 - a\nnot ok 2 - b', 'ok 1 - a\nnot ok 2 - b', true],
    ['nothing changes', 'not ok 1 - a\nok 2 - b', 'not ok 1 - a\nok 2 - b', false],
    ['another one fails', 'not ok 1 - a\nok 2 - b', 'ok 1 - a\nnot ok 2 - b', false],
    [
      'two pass and another fails', 'not ok 1 - a\nnot ok 2 - b\nok 3 - c',
      'ok 1 - a\nok 2 - b\nnot ok 3 - c', false,
    ],
    ['one is gone', 'not ok 1 - a\nok 2 - b', 'ok 2 - b', false],
    ['one is gone, and one passes', 'not ok 1 - a\nok 2 - b\nok 3 - c', 'ok 1 - a\nok 2 - b', false],
  ] as const) {
    test(`${what}: ${is ? 'progress' : 'none'}`, () => {
      const outcomes = (text: string): Outcomes => {
        const lines = text.split('\n')
        const failing = lines.filter((line) => line.startsWith('not'))
        const passed = lines.length - failing.length
        const shown = ['TAP version 13', ...failing, `tests that passed: ${passed}`]
        return briefOutcomes('tap', shown.join('\n'), failing.length > 0 ? 1 : 0)
      }
      assert.equal(isBriefProgress(outcomes(before), outcomes(after)), is)
    })
  }

  test('an exit code cannot be', () => {
    assert.equal(brief('check', 'any'), null)
  })
})

function failingOf(outcomes: Outcomes): string[] {
  return [...outcomes].filter(([, outcome]) => outcome === 'fail').map(([name]) => name)
}

describe('the last words of a run', () => {
  test('nothing to try', () => assert.equal(
    farewell(newRecord(), ['adds'], 1, false),
    'No candidate left: 1 of 1 test still fails (adds). ' +
      'There is no patch to try: no source file that could be the cause is known.',
  ))

  test('one patch', () => {
    const record = newRecord()
    record.tried = 1
    record.files.add('a.js')
    record.places.add('a.js add')
    assert.equal(
      farewell(record, ['adds'], 3, false),
      'No candidate left: 1 of 3 tests still fails (adds). ' +
        '1 patch was tried in 1 place of 1 file. None made another test pass.',
    )
  })

  test('many patches, late ones, a nearest miss and kept ones', () => {
    const record = newRecord()
    Object.assign(record, { tried: 12, late: 2 })
    for (const name of ['a.js', 'b.js']) record.files.add(name)
    for (const name of ['a', 'b', 'c']) record.places.add(name)
    const diff = (): string => '--- a/a.js\n+++ b/a.js\n@@ -1,1 +1,1 @@\n-a\n+b'
    noteMiss(record, { what: 'none', helped: 0, harmed: 0 }, diff)
    assert.equal(record.nearest, null)
    noteMiss(record, { what: 'bad', helped: 2, harmed: 4 }, () => 'of another')
    noteMiss(record, { what: 'good', helped: 2, harmed: 1 }, diff)
    noteMiss(record, { what: 'as good', helped: 3, harmed: 2 }, () => 'of another')
    record.kept.push('x', 'y')
    assert.equal(
      farewell(record, ['a', 'b', 'c', 'd', 'e', 'f'], 9, true),
      'No candidate left: 6 of 9 tests still fail (a; b; c; d; e; …). ' +
        '12 patches were tried in 3 places of 2 files, of which 2 reached the time limit. ' +
        'More could be tried, but a run tries no more. The nearest miss was good: ' +
        '2 more tests would pass, but 1 that passes now would fail. ' +
        'Kept, because they help:\n- x\n- y\n\n' +
        'The nearest miss:\n--- a/a.js\n+++ b/a.js\n@@ -1,1 +1,1 @@\n-a\n+b',
    )
    // Its lines are those of the one text and of the other.
    for (const [before, after] of [
      ['a', 'b'], ['a\nb\nc\nd\ne\nf\ng\n', 'a\nb\nc\nX\ne\nf\ng\n'], ['a\nb\n', 'X\na\nb\n'],
      ['a\na\na\n', 'a\na\n'], ['a\nb\nc\n', 'a\nc\n'], ['a\n', 'a\nb\n'],
    ] as const) {
      const lines = diffOfChange('a.js', before, after).split('\n').slice(2)
      const [, ...numbers] = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(lines[0]!)!
      const [from, old, , now] = numbers.map(Number)
      const side = (sign: string): string[] =>
        lines.slice(1).filter((line) => ` ${sign}`.includes(line[0]!)).map((line) => line.slice(1))
      assert.equal(side('-').length, old)
      assert.equal(side('+').length, now)
      const all = before.split('\n')
      assert.deepEqual(all.slice(from! - 1, from! - 1 + old!), side('-'))
      all.splice(from! - 1, old!, ...side('+'))
      assert.equal(all.join('\n'), after)
    }
    const long = diffOfChange('a.js', `${'x\n'.repeat(5_000)}${'y'.repeat(5_000)}`, '').split('\n')
    assert.equal(long.length, 61)
    assert.equal(long.at(-1), '… 4945 more lines')
    assert.equal(diffOfChange('a.js', 'y'.repeat(5_000), '').split('\n')[3]!.length, 401)
    for (let at = 0; at < 22; at++) record.refused.set(`${at}`, `z${at}`)
    assert.match(
      farewell(record, ['a'], 2, false), /\n- y\nNot made, though they help:\n- z0\n[^]*\n- z19\n- … and 2 more\n/,
    )
    record.refused.clear()
    record.nearest = { what: 'near', helped: 1, harmed: 0, diff: '' }
    assert.match(farewell(record, ['a'], 2, false), /miss was near: 1 more test would pass\. Kept/)
    record.nearest = { what: 'near', helped: 1, harmed: 3, diff: '' }
    assert.match(farewell(record, ['a'], 2, false), /but 3 that pass now would fail\. Kept/)
  })
})

describe('lines by the tests that ran them', () => {
  const score = (file: SourceFile, uses: Readonly<Record<number, readonly [number, number]>>) => {
    const lines = new Map(Object.entries(uses).map(([line, [failed, passed]]) =>
      [Number(line), { failed, passed }]))
    const tested = { failed: 2, passed: 3, files: new Map([[file.path, lines]]) }
    const executed = new Executed(tested, [file])
    return (text: string): number => {
      const at = file.tokens.findIndex((token) => token.text === text)
      assert.ok(at >= 0, text)
      return executed.score(file, at)
    }
  }

  test('only failing, some, passing and no tests', () => {
    const file = parseSource('a.js', [
      'function f(x) {', '  if (x) {', '    onlyFailing()', '  }', '  some()', '  half()',
      '  if (y) onlyPassing()', '  if (z) {', '    never()', '  }', '}',
      'function g() {', '  away()', '}',
    ].join('\n'))!
    const of = score(file, { 3: [2, 0], 5: [2, 3], 6: [1, 3], 7: [0, 3] })
    const names = ['onlyFailing', 'some', 'half', 'onlyPassing', 'away']
    const scores = names.map(of)
    assert.equal(scores[0], 1, 'all failing tests and no other one')
    assert.deepEqual(scores, [...scores].sort((a, b) => b - a), scores.join())
    assert.equal(new Set(scores).size, names.length, 'each less than the one before')
    assert.equal(of('never'), of('onlyPassing'), 'no failing test ran either')
    assert.ok(of('never') > of('away'), 'in a function that failing tests ran')
    assert.ok(of('away') > 0)
  })

  test('a case is compared although nothing of it runs', () => {
    const file = parseSource('a.js', [
      'function f(x) {', '  switch (x) {', '    case one:', '      a()', '    case two:', '      b()',
      '    default:', '      c()', '  }', '}',
    ].join('\n'))!
    const of = score(file, { 1: [2, 3], 2: [2, 3], 7: [2, 3], 8: [2, 3] })
    assert.equal(of('two'), of('switch'))
    assert.ok(of('b') < of('two'))
  })

  test('a value at the top of a file counts where it is used', () => {
    const file = parseSource('a.js', [
      'const USED = limit * 2', 'const IDLE = other * 2', 'function f(x) {', '  return inside < USED', '}',
      'function g(x) {', '  return x < IDLE', '}',
    ].join('\n'))!
    const of = score(file, { 4: [2, 0], 7: [0, 3] })
    assert.ok(of('limit') > of('other'))
    assert.ok(of('limit') < of('inside'), 'less than the line that uses it')
  })

  test('the further lines of a statement of Python have what the first has', () => {
    const file = parseSource('a.py', 'def f(x):\n    return add(\n        x,\n        last)\n')!
    const of = score(file, { 2: [2, 0] })
    assert.equal(of('last'), 1)
  })
})

describe('parts of files', () => {
  const NOTE = '[… lines 3 to 9 of 9 are left out; read on with offset 3 …]'
  for (const [what, output, exitCode, expected] of [
    ['a whole file', 'a\nb\n', 0, { text: 'a\nb\n', next: null }],
    ['an empty one', '', 0, { text: '', next: null }],
    ['one with more', `a\nb\n${NOTE}`, 0, { text: 'a\nb\n', next: 3 }],
    ['one that has such a line', `${NOTE}\nb\n`, 0, { text: `${NOTE}\nb\n`, next: null }],
    ['a line that is too long', '[… line 1 is left out: it is too long …]', 0,
      { text: null, next: null }],
    ['no file', 'there is no a.js', 1, { text: null, next: null }],
  ] as const) {
    test(what, () => assert.deepEqual(partOf({ output, exitCode }), expected))
  }
})
