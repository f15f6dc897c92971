import assert from 'node:assert/strict'
import { relative, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  detailsOf, FAILURE_OF, listFailed, type FailedTest,
} from '../../../lib/agent/goals/reports/failed-tests.js'
import { readGo } from '../../../lib/agent/goals/reports/go.js'
import { TestCollector } from '../../../lib/agent/goals/reports/outcomes.js'

/** A file of the folder `/project`, as from the folder of this process. */
const HERE = relative(process.cwd(), '/project/sum.js')

/** The function that reporters for JavaScript have in them. */
const failureOf = new Function(
  'relative', 'resolve', 'fileURLToPath', `${FAILURE_OF}; return failureOf`,
)(relative, resolve, fileURLToPath) as (error: unknown, root: string) => unknown[]

const STACK = `TypeError: no such thing
    at check (/project/node_modules/assert-more/index.js:3:9)
    at /project/my files/a(1).js:4:2
    at async add (file:///project/my%20files/sum.js:12:7)
    at Object.<anonymous> (/project/test/sum.test.js:3:1)`

for (const [what, error, expected] of [
  ['an error', Object.assign(new Error('no such thing'), { stack: STACK }),
    ['TypeError: no such thing', 'my files/sum.js', 12]],
  ['the text of an error', STACK, ['TypeError: no such thing', 'my files/sum.js', 12]],
  ['an error whose stack lacks its message',
    { message: 'expected 1', stack: 'Error\n    at /project/a.js:1:1' }, ['expected 1', 'a.js', 1]],
  ['an error with a relative place',
    { message: 'x', stack: `Error: x\n    at async node:fs:1:2\n    at sum (${HERE}:3:4)` },
    ['Error: x', 'sum.js', 3]],
  ['an error without a place in the project',
    { message: 'x', stack: 'Error: x\n    at /other/a.js:1:1' }, ['Error: x']],
  ['an error in colours', { message: 'x', stack: 'Error: \u001b[31mx\u001b[39m' }, ['Error: x']],
  ['a text', 'only text', ['only text']],
  ['nothing', undefined, ['']],
  ['an error that throws', { get message() { throw new Error('hidden') } }, []],
] as const) {
  test(`a reporter describes ${what}`, () => {
    assert.deepEqual(failureOf(error, '/project'), expected)
  })
}

test('a description is short, whatever is thrown', () => {
  const [message, ...place] = failureOf({ message: 'x'.repeat(10_000_000) }, '/project')
  assert.deepEqual([(message as string).length, place], [2_000, []])
})

test('details that no reporter writes are nothing', () => {
  const nothing = { message: '', at: null }
  for (const value of [undefined, null, {}, 'x', [], [1, 2, 3], [null, 'a.js', '1']])
    assert.deepEqual(detailsOf(value), nothing)
  assert.deepEqual(detailsOf([' no ', 'a.js', 3]), { message: 'no', at: 'a.js:3' })
})

test('a report keeps the first tests that fail, with their names in it', async () => {
  const collector = new TestCollector()
  for (let i = 0; i < 300; i++) {
    const outcome = i % 2 === 0 ? 'fail' : 'pass'
    await collector.addTest(['a.js', 'same'], outcome, { message: `${i}`, at: null })
  }
  await collector.addFile('b.js')
  const { failed } = collector.report(false)
  assert.equal(failed.length, 100)
  const names = failed.slice(0, 2).map(({ name, message }) => `${name}: ${message}`)
  assert.deepEqual(names, ['a.js > same: 0', 'a.js > same (3): 2'])
})

test('a file that is reported twice is listed once', async () => {
  const collector = new TestCollector()
  for (const name of ['a.js', 'b.js', 'a.js']) await collector.addFile(name)
  assert.deepEqual(collector.report(false).failed.map(({ name }) => name), ['a.js', 'b.js'])
})

test('failing tests are listed up to 4 000 characters', () => {
  const one = (name: string, message: string, at: string | null = null): FailedTest => ({
    name, message, at,
  })
  assert.equal(listFailed([], 0), '')
  assert.equal(
    listFailed([one('a > b', 'two\nlines', 'src/a.js:1'), one('c.js', '')], 3),
    'Failing tests:\n- a > b\n    two\n    lines\n    at src/a.js:1\n- c.js\n- and 1 more\n\n',
  )
  const many = Array.from({ length: 100 }, (_, i) => one(`t${i}`, 'x'.repeat(2_000)))
  const text = listFailed(many, 1_000)
  assert.ok(text.length < 4_100)
  const listed = text.split('\n').filter((line) => /^- t\d+$/.test(line)).length
  assert.match(text, new RegExp(`^- and ${1_000 - listed} more\n\n$`, 'm'))
})

test('what a failing test of Go printed is its message', async () => {
  const event = (action: string, more: object = {}): string =>
    JSON.stringify({ Action: action, Package: 'sums', ...more })
  const output = [
    event('run', { Test: 'TestAdd' }),
    event('output', { Test: 'TestAdd', Output: '    sum_test.go:7: got 1\n' }),
    event('fail', { Test: 'TestAdd' }),
    event('output', { Test: 'TestFine', Output: 'noise\n' }),
    event('pass', { Test: 'TestFine' }),
    event('fail'),
  ].join('\n')
  const tests = await readGo(output)
  assert.ok(typeof tests !== 'string')
  assert.deepEqual(tests, [
    { names: ['sums', 'TestAdd'], outcome: 'fail', message: '    sum_test.go:7: got 1\n' },
    { names: ['sums', 'TestFine'], outcome: 'pass' },
  ])
})
