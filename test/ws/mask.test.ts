import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unmask } from '../../lib/ws/mask.js'
import { random } from './random.js'

/** The rule as RFC 6455, section 5.3, states it. */
function obvious(
  bytes: Uint8Array,
  start: number,
  end: number,
  key: number,
  phase: number,
): Uint8Array {
  const keys = [key >>> 24, (key >>> 16) & 255, (key >>> 8) & 255, key & 255]
  return bytes.map((byte, i) =>
    i < start || i >= end ? byte : byte ^ keys[(i - start + phase) & 3]!,
  )
}

test('unmasking follows the rule for every length, offset, phase and key (RFC 6455 §5.3)', () => {
  const next = random(53)
  const below = (limit: number): number => Math.floor(next() * limit)
  for (let round = 0; round < 4_000; round++) {
    const whole = Buffer.from(Array.from({ length: below(20) }, () => below(256)))
    const bytes = round % 20 === 0 ? Buffer.alloc(1_000 + below(3_000), below(256)) : whole
    const shifted = bytes.subarray(Math.min(below(4), bytes.length))
    const [start, end] = [below(shifted.length + 1), below(shifted.length + 1)].sort(
      (a, b) => a - b,
    ) as [number, number]
    const [key, phase] = [round % 7 === 0 ? 0 : below(2 ** 32) | 0, below(1_000)]
    const expected = obvious(shifted, start, end, key, phase)
    unmask(shifted, start, end, key, phase)
    assert.deepEqual(Buffer.from(shifted), Buffer.from(expected), `round ${round}`)
  }
})

test('the result tells whether a short payload is ASCII', () => {
  for (const [payload, ascii] of [
    ['plain', true],
    ['grün', false],
    ['', true],
    ['abcd\x7f', true],
  ] as const) {
    const bytes = Buffer.from(payload)
    assert.equal(unmask(bytes, 0, bytes.length, 0, 0) < 0x80, ascii)
  }
  assert.equal(unmask(Buffer.alloc(5_000), 0, 5_000, 0, 0), 0xff)
})
