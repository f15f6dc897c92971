import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageCheck } from '../../lib/internal/web.js'

test('a list that goes round is noticed after a few rounds, whatever its length', () => {
  for (let start = 0; start < 40; start++) {
    for (let round = 1; round < 40; round++) {
      const check = new PageCheck()
      let pages = 0
      const cursor = (): string => String(pages < start ? pages : start + ((pages - start) % round))
      while (check.problem(cursor(), 1) === null) {
        pages += 1
        assert.ok(pages <= 4 * (start + round), `${start} and ${round}`)
      }
      assert.ok(pages >= start + round, 'not before it has gone round')
    }
  }
})

test('cursors that are all different lead on, with empty pages between others', () => {
  const check = new PageCheck()
  for (let i = 0; i < 10_000; i++) {
    assert.equal(check.problem(String(i), i % 60 === 0 ? 1 : 0), null)
  }
})

test('a list of empty pages has no end', () => {
  const check = new PageCheck()
  const problems = Array.from({ length: 64 }, (_, i) => check.problem(String(i), 0))
  assert.deepEqual(problems.slice(0, 63).filter((problem) => problem !== null), [])
  assert.equal(problems[63], 'has 64 empty pages in a row')
})
