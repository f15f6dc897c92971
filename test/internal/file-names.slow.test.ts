import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOfName, nameOfBytes } from '../../lib/internal/bytes.js'

test('every name of one or two bytes, and of four seeded ones, has a text of its own', () => {
  const seen = new Set<string>()
  const check = (...bytes: number[]): void => {
    const name = nameOfBytes(Buffer.from(bytes))
    assert.deepEqual([...bytesOfName(name)], bytes)
    seen.add(name)
  }
  for (let a = 0; a < 256; a++) {
    check(a)
    for (let b = 0; b < 256; b++) check(a, b)
  }
  assert.equal(seen.size, 256 + 65_536)
  let state = 1
  const next = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    // Bytes of long sequences are more interesting than letters.
    return state >>> 31 === 0 ? 0x80 | ((state >>> 16) & 0x3f) : (state >>> 16) & 0xff
  }
  for (let i = 0; i < 2_000; i++) check(next(), next(), next(), next())
})
