import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../helpers/random.js'
import { merge, randomTriple } from './random-merges.js'

const CASES: Readonly<Record<string, readonly [string, string, string, string | null]>> = {
  'nothing changed': ['1\n', '1\n', '1\n', '1\n'],
  'one side changed': ['1\n2\n', '1\n2\n', '1\ntwo\n', '1\ntwo\n'],
  'both changed other lines': ['1\n2\n3\n', 'x\n2\n3\n', '1\n2\ny\n', 'x\n2\ny\n'],
  'both made the same change': ['1\n2\n3\n', '1\nx\n3\n', '1\nx\n3\n', '1\nx\n3\n'],
  'both made the same change and each another': [
    '1\n2\n3\n4\n5\n', '1\n2\nx\n4\n5\n6\n', '0\n1\n2\nx\n4\n5\n', '0\n1\n2\nx\n4\n5\n6\n',
  ],
  'the same line': ['1\n2\n3\n', '1\nx\n3\n', '1\ny\n3\n', null],
  'neighbouring lines': ['1\n2\n3\n4\n', '1\nx\n3\n4\n', '1\n2\ny\n4\n', null],
  'insertions at one place': ['1\n2\n', '1\nx\n2\n', '1\ny\n2\n', null],
  'equal insertions': ['1\n2\n', '1\nx\n2\n', '1\nx\n2\n', '1\nx\n2\n'],
  'an insertion where lines were deleted': ['1\n2\n3\n', '1\n3\n', '1\nx\n2\n3\n', null],
  'deletions that overlap': ['1\n2\n3\n4\n', '1\n4\n', '1\n2\n4\n', null],
  'no newline at the end on one side': ['1\n2\n3\n', '1\n2\n3', 'x\n2\n3\n', 'x\n2\n3'],
  'no newline at the end on any side': ['1\n2\n3', '1\n2\n3', 'x\n2\n3', 'x\n2\n3'],
  'CRLF of one side': ['1\r\n2\r\n3\r\n', 'x\r\n2\r\n3\r\n', '1\r\n2\r\ny\r\n', 'x\r\n2\r\ny\r\n'],
  'other line ends and other content': ['1\n2\n', '1\r\n2\r\n', '1\nx\n', null],
  'an empty base': ['', 'x\n', 'y\n', null],
  'an emptied side': ['1\n2\n', '', '1\n2\n', ''],
  'NUL bytes': ['1\n2\n3\n', '1\n2\n3\n', '\0\n2\n3\n', null],
  'bytes that are not UTF-8': ['\xff\n2\n3\n', '\xff\n2\n\xfe\n', '\xe9\n2\n3\n', '\xe9\n2\n\xfe\n'],
}

for (const [name, [base, ours, theirs, merged]] of Object.entries(CASES)) {
  test(`merging texts: ${name}`, () => {
    assert.equal(merge(base, ours, theirs), merged)
    assert.equal(merge(base, theirs, ours), merged, 'the other way round')
  })
}

test('one side that changed nothing, and two that are equal, merge to the other one', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(Math.imul(seed, 0x9e3779b1))
    const [base, ours, theirs] = randomTriple(random, seed % 2 === 0)
    assert.equal(merge(base, ours, base), ours)
    assert.equal(merge(base, base, theirs), theirs)
    assert.equal(merge(base, ours, ours), ours)
    assert.equal(merge(base, ours, theirs), merge(base, theirs, ours))
  }
})
