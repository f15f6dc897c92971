/** The table of an evaluation: what it says, and that it fits a terminal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatEvaluation,
  type EvaluationAttempt,
  type EvaluationReport,
} from 'runwright/agent/testing'
import { reportOf } from '../../../../lib/agent/testing/evaluation/report.js'
import { fitted, textWidth } from '../../../../lib/agent/testing/evaluation/table.js'

function attempt(fields: Partial<EvaluationAttempt>): EvaluationAttempt {
  return {
    task: 'a', model: 'm', attempt: 1, outcome: 'achieved', run_id: 'r',
    end_reason: 'goal_achieved', reason: '', iterations: 1, tokens: 100, cost_usd: 0.02, seconds: 2,
    assurance: { by: 'tests', sealed: true, canaries: false, holdout: false }, ...fields,
  }
}

function report(
  all: readonly EvaluationAttempt[],
  passAt: readonly number[] = [1],
): EvaluationReport {
  const names = (of: (one: EvaluationAttempt) => string): string[] => [...new Set(all.map(of))]
  const day = '2026-05-02T10:00:00.000Z'
  return reportOf({
    started_at: day, ended_at: day, pass_at: passAt,
    tasks: names(({ task }) => task), models: names(({ model }) => model),
    attempts: Math.max(...all.map((one) => one.attempt)),
  }, all)
}

test('a table has a row for each model of each task, and of all tasks', () => {
  const outcomes = ['achieved', 'failed', 'achieved', 'achieved'] as const
  const all = ['cart', 'mail'].flatMap((task) =>
    outcomes.map((outcome, i) => attempt({ task, outcome, attempt: i + 1, seconds: i * 90 })),
  )
  assert.equal(formatEvaluation(report(all, [1, 4])), [
    '     achieved  pass@1     pass@4       rests on       tokens  cost     time',
    'cart',
    '  m  3/4       75% 30-95  100% 76-100  tests, sealed  100     $0.0200  2.3 min',
    'mail',
    '  m  3/4       75% 30-95  100% 76-100  tests, sealed  100     $0.0200  2.3 min',
    'all 2 tasks',
    '  m  6/8       75% 43-89  100% 83-100  tests, sealed  100     $0.0200  2.3 min',
    '',
    'pass@k: the chance that one of k attempts achieves the task, and its 95 % interval.',
    'Tokens, cost and time are means of the attempts that ended by themselves.',
    '',
  ].join('\n'))
})

test('an unknown cost is unknown, and not zero', () => {
  const all = [attempt({}), attempt({ attempt: 2, cost_usd: null })]
  const { cells, totals } = report(all)
  assert.equal(cells[0]?.mean?.cost_usd, null)
  assert.deepEqual(totals[0]?.spent, { tokens: 200, cost_usd: null })
  assert.match(formatEvaluation(report(all)), / unknown /)
})

test('what broke is counted apart, and named once with how often it happened', () => {
  const broken = { outcome: 'error', assurance: null, reason: 'no key\nat all' } as const
  const all = [attempt({}), ...[2, 3].map((n) => attempt({ ...broken, attempt: n }))]
  const { cells } = report(all, [1, 3])
  assert.equal(cells[0]?.errors, 2)
  // One of one attempt that counts; for three there are not enough.
  assert.equal(cells[0]?.pass[0]?.estimate, 1)
  assert.equal(cells[0]?.pass[1], null)
  const text = formatEvaluation(report(all, [1, 3]))
  assert.match(text, /achieved {2}errors/)
  assert.match(text, / 1\/1 +2 +100% 21-100 +- /)
  assert.match(text, /Errors, which do not count:\n {2}a, m: no key at all \(2 times\)\n/)
})

test('there is no mean of some of the tasks, which could not be compared', () => {
  const all = [
    attempt({}), attempt({ attempt: 2, outcome: 'failed' }),
    attempt({ task: 'b' }), attempt({ task: 'b', attempt: 2, outcome: 'error' }),
  ]
  const { cells, totals } = report(all, [1, 2])
  assert.deepEqual(cells.map(({ pass }) => pass.map((one) => one?.estimate ?? null)), [
    [0.5, 1], [1, null],
  ])
  assert.deepEqual(totals[0]?.pass.map((one) => one?.estimate ?? null), [0.75, null])
  assert.match(formatEvaluation(report(all, [1, 2])), /-: some task has fewer than k attempts/)
})

test('without an attempt that counts there are no numbers', () => {
  const text = formatEvaluation(report([attempt({ outcome: 'aborted', assurance: null })]))
  assert.match(text, /0\/0 +- +- +- +- +-\n/)
  assert.match(text, /Aborted: 0 of 1 attempts have ended\./)
})

test('achieved runs that rest on different things are counted by them, the most first', () => {
  const judged = { by: 'judge', sealed: false, canaries: false, holdout: false } as const
  const all = [
    attempt({ assurance: judged }), attempt({ attempt: 2 }), attempt({ attempt: 3 }),
    attempt({ attempt: 4, assurance: null }),
  ]
  assert.match(formatEvaluation(report(all)), / 2 tests, sealed; 1 judge; 1 unknown /)
})

test('long and wide names are cut so that no line has more than 100 columns', () => {
  const names = ['模型', 'provider:', '🚀', 'e\u0301'].map((part) => part.repeat(99))
  const all = names.flatMap((model) =>
    names.map((task) => attempt({ model, task, outcome: 'error', reason: model + task })),
  )
  for (const line of formatEvaluation(report(all)).split('\n')) {
    assert.ok(textWidth(line) <= 100, `${textWidth(line)}: ${line}`)
  }
  const kinds = [true, false].flatMap((sealed) =>
    (['tests', 'exit_code', 'judge', 'schema'] as const).map((by) => ({
      by, sealed, canaries: false, holdout: false,
    })),
  )
  const varied = kinds.map((assurance, i) =>
    attempt({
      assurance, attempt: i + 1, model: names[0]!, tokens: 1e9, cost_usd: 98_765, seconds: 1e6,
    }),
  )
  const errors = [attempt({ model: names[0]!, outcome: 'error', attempt: 1000 })]
  for (const line of formatEvaluation(report([...varied, ...errors], [1, 8])).split('\n')) {
    assert.ok(textWidth(line) <= 100, `${textWidth(line)}: ${line}`)
  }
  const columns = formatEvaluation(report(names.map((model) => attempt({ model })))).split('\n')
  const starts = columns.filter((line) => line.includes('1/1')).map((line) => {
    return textWidth(line.slice(0, line.indexOf('1/1')))
  })
  assert.equal(new Set(starts).size, 1)
})

test('a name cannot control the terminal', () => {
  const text = formatEvaluation(report([attempt({ model: 'm\u001b[2J\u202e', task: 'a\nb' })]))
  assert.ok(text.includes('m\\u001b[2J\\u202e'))
  assert.ok(text.includes('\na b\n'))
})

for (const [text, width] of [
  ['', 0], ['abc', 3], ['日本語', 6], ['한국어', 6], ['ｗｉｄｅ', 8], ['e\u0301', 1],
  ['naïve', 5], ['🚀', 2],
  ['👍🏽', 2], ['🇩🇪', 2], ['❤️', 2], ['…', 1], ['\u200b', 0], ['ﾊﾝｶｸ', 4], ['Ж', 1], ['𠮷', 2],
] as const) {
  test(`${JSON.stringify(text)} takes ${width} columns`, () => {
    assert.equal(textWidth(text), width)
  })
}

for (const [text, width, expected] of [
  ['abc', 5, 'abc  '], ['abc', 3, 'abc'], ['abcd', 3, 'ab…'], ['日本語', 4, '日… '],
  ['日本語', 5, '日本…'], ['日', 1, '…'], ['', 2, '  '],
] as const) {
  test(`${text} in ${width} columns is ${JSON.stringify(expected)}`, () => {
    assert.equal(fitted(text, width), expected)
    assert.equal(textWidth(fitted(text, width)), width)
  })
}

for (const wrong of [null, 'x', {}, { version: 2, cells: [] }, { version: 1 }]) {
  test(`${JSON.stringify(wrong)} is no report`, () => {
    const message = /a report must be/
    assert.throws(() => formatEvaluation(wrong as never), { name: 'TypeError', message })
  })
}
