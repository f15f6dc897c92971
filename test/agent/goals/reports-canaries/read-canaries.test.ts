/** What the files of canaries say, line by line. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CANARY_FOLDER, readCanaries } from '../../../../lib/agent/goals/reports/canaries.js'
import { scratch } from '../../../helpers/engine.js'

type Line = readonly unknown[]
const begin: Line = ['n', 'begin', 'a']
const end = (...rest: readonly unknown[]): Line => ['n', 'end', 'a', ...rest]
const NOTHING = { ended: 0, unfinished: [], broken: [], seen: null, deeds: [] }

for (const [what, files, expected] of [
  ['no process', [], NOTHING],
  ['one that counts no tests', [[begin, end([], null)]], { ...NOTHING, ended: 1 }],
  [
    'two that count',
    [[begin, end([], [2, 1])], [begin, end(['ok'], [1, 0])]],
    { ...NOTHING, ended: 2, broken: ['ok'], seen: { passed: 3, failed: 1 } },
  ],
  [
    'one that counts, and one of another version that does not',
    [[begin, end([], null)], [begin, end([], [1, 2])]],
    { ...NOTHING, ended: 2, seen: { passed: Infinity, failed: 2 } },
  ],
  [
    'two that tell who did what, twice the same',
    [[begin, end([], null, [['a', 'b.js'], ['c', null]])], [begin, end([], null, [['a', 'b.js']])]],
    { ...NOTHING, ended: 2, deeds: [{ what: 'a', file: 'b.js' }, { what: 'c', file: null }] },
  ],
  ['one who did what that is no list', [[begin, end([], null, [['a']])]], 'invalid'],
  ['one that did not end', [[begin]], { ...NOTHING, unfinished: ['a'] }],
  ['an end without a beginning', [[end([], null)]], 'invalid'],
  ['two beginnings', [[begin, begin]], 'invalid'],
  ['a line of somebody else', [[['m', 'begin', 'a']]], 'invalid'],
  ['names that are none', [[begin, end([1], null)]], 'invalid'],
  ['a file that was changed', [[['n', 'changed', 'a']]], 'invalid'],
] as const satisfies readonly (readonly [string, readonly (readonly Line[])[], unknown])[]) {
  test(`canaries of ${what}`, async (t) => {
    const folder = scratch(t)
    mkdirSync(join(folder, CANARY_FOLDER))
    for (const [i, lines] of files.entries()) {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      writeFileSync(join(folder, CANARY_FOLDER, `${i}.jsonl`), text)
    }
    assert.deepEqual(await readCanaries({ folder, nonce: 'n' }), expected)
  })
}
