import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOfName, nameOfBytes } from '../../lib/internal/bytes.js'
import { Random } from '../helpers/random.js'

test('names in UTF-8 are their own text, and any other byte a lone surrogate', () => {
  for (const [bytes, name] of [
    ['61', 'a'],
    ['c3a9', 'é'],
    ['f09f9880', '😀'],
    ['efbbbf61', '\ufeffa'],
    ['efbfbd', '\ufffd'],
    ['ff', '\udcff'],
    ['61ff62', 'a\udcffb'],
    ['c3', '\udcc3'],
    ['c0af', '\udcc0\udcaf'],
    ['eda080', '\udced\udca0\udc80'],
    ['f4908080', '\udcf4\udc90\udc80\udc80'],
    ['f09f98ff', '\udcf0\udc9f\udc98\udcff'],
    ['f09f9880ff', '😀\udcff'],
  ] as const) {
    assert.equal(nameOfBytes(Buffer.from(bytes, 'hex')), name, bytes)
    assert.equal(bytesOfName(name).toString('hex'), bytes)
  }
})

test('names of one and two bytes have a text each, and back', () => {
  const texts = new Set<string>()
  let rounds = 0
  const some = [1, 0x2e, 0x7f, 0x80, 0xa9, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xf0, 0xff]
  for (let first = 1; first < 0x100; first += first < 0x80 ? 9 : 1) {
    for (const bytes of [[first], ...some.map((second) => [first, second])]) {
      const name = nameOfBytes(Uint8Array.from(bytes))
      texts.add(name)
      rounds += 1
      assert.deepEqual([...bytesOfName(name)], bytes)
    }
  }
  assert.equal(texts.size, rounds)
})

test('random names survive as text', () => {
  const random = new Random(7)
  const texts = ['a', 'é', '😀', '\ud83d', '\udc80', '\ufffd', '\ufeff']
  const parts = texts.map((text) => Buffer.from(text))
  for (let round = 0; round < 500; round++) {
    const pieces = Array.from({ length: random.integer(0, 8) }, () => {
      const part = random.pick(parts)
      if (random.chance(0.4)) return Buffer.of(random.integer(1, 255))
      return part.subarray(0, random.integer(1, part.length))
    })
    const bytes = Buffer.concat(pieces)
    assert.deepEqual(bytesOfName(nameOfBytes(bytes)), bytes)
  }
})
