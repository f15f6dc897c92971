import assert from 'node:assert/strict'
import { test } from 'node:test'
import { traceOf, SCRIPT, RAN, TEST } from './hostile-traces.js'

test('tests and mentions are bounded: what is beyond the last test is left out', async (t) => {
  const many = Array.from({ length: 30_000 }, (_, test) => [
    ['t', test, `test.js > ${test}`, 110 + test],
    ['c', [test], [0]],
  ]).flat()
  const trace = await traceOf(t, [SCRIPT, RAN, ...many])
  assert.equal(trace.tests.length, 20_000)
  assert.equal(trace.files.get('src/a.js')!.get(1)!.length, 20_000)
})

test('huge numbers of ranges, owners and lines end soon', async (t) => {
  const ranges = Array.from({ length: 300_000 }, (_, at) => (at % 3 === 0 ? at % 7 : at % 11))
  const owners = Array.from({ length: 20_000 }, () => 0)
  const files = [['f', 0, 'a.py'], ['l', 1, 0, owners.map((_, at) => at + 1)]]
  const records = [SCRIPT, ['r', 0, 0, ranges], TEST, ...files]
  const mentions = Array.from({ length: 40 }, () => ['c', owners, [0, 1]])
  const trace = await traceOf(t, [...records, ...mentions])
  assert.equal(trace.files.get('a.py')!.size, 20_000)
})
