import assert from 'node:assert/strict'
import { test } from 'node:test'

import { TextFinder } from '../../../lib/agent/tools/text-finder.js'
import { Random } from '../../helpers/random.js'

test('a long text is found where indexOf finds it', () => {
  const random = new Random(7)
  const letters = (length: number): string =>
    Array.from({ length }, () => random.pick(['a', 'b'])).join('')
  for (let i = 0; i < 500; i++) {
    const wanted = i % 2 === 0 ? letters(70) : `${'a'.repeat(40)}b${'a'.repeat(40)}`
    const text = letters(30) + wanted.slice(0, 65) + wanted + letters(20) + wanted
    const from = random.integer(0, 80)
    assert.equal(new TextFinder(wanted).indexIn(text, from), text.indexOf(wanted, from))
    assert.equal(new TextFinder(wanted).indexIn(wanted.slice(1)), -1)
  }
})
