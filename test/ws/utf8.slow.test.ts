import { isUtf8 } from 'node:buffer'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkUtf8, UTF8_BAD, UTF8_BOUNDARY } from '../../lib/ws/utf8.js'
import { random, splits } from './random.js'

/** The offset of the first byte at which `bytes` stop being valid UTF-8, or their length. */
function firstBad(bytes: Buffer): number {
  const tails = [
    '',
    '80',
    '8080',
    '808080',
    'bf',
    'bfbf',
    'bfbfbf',
    'a080',
    '9080',
    '908080',
    '9080 80',
  ].map((hex) => Buffer.from(hex.replace(' ', ''), 'hex'))
  for (let end = 1; end <= bytes.length; end++) {
    const head = bytes.subarray(0, end)
    if (!tails.some((tail) => isUtf8(Buffer.concat([head, tail])))) return end - 1
  }
  return bytes.length
}

function* interesting(): Generator<Buffer> {
  for (let a = 0; a < 256; a++) {
    yield Buffer.from([a])
    for (const b of [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff]) {
      yield Buffer.from([a, b])
      for (const c of [0x41, 0x80, 0xbf, 0xc2]) {
        yield Buffer.from([a, b, c])
        yield Buffer.from([a, b, c, 0x80, 0x41])
      }
    }
  }
}

test('fed byte by byte, it fails exactly at the first invalid one (RFC 6455 §8.1)', () => {
  for (const bytes of interesting()) {
    let state = UTF8_BOUNDARY
    let at = 0
    while (at < bytes.length) {
      state = checkUtf8(bytes, at, at + 1, state)
      if (state === UTF8_BAD) break
      at++
    }
    assert.equal(at, firstBad(bytes), bytes.toString('hex'))
    if (at === bytes.length)
      assert.equal(state === UTF8_BOUNDARY, isUtf8(bytes), bytes.toString('hex'))
  }
})

test('the result does not depend on how the input is cut', () => {
  const next = random(3629)
  const alphabet = ['a', 'é', '€', '\u{10000}', '\u{10ffff}', '\ud7ff', '\ue000', '\0']
  for (let round = 0; round < 500; round++) {
    const bytes = Buffer.from(
      Array.from(
        { length: 1 + Math.floor(next() * 30) },
        () => alphabet[Math.floor(next() * alphabet.length)],
      ).join(''),
    )
    if (round % 2 === 0) bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256)
    for (const pieces of splits(bytes, 4, round)) {
      let state = UTF8_BOUNDARY
      for (const piece of pieces) {
        state = checkUtf8(piece, 0, piece.length, state)
        if (state === UTF8_BAD) break
      }
      assert.equal(state === UTF8_BOUNDARY, isUtf8(bytes), bytes.toString('hex'))
    }
  }
})

test('UTF8_BAD is final, and only the given range is read', () => {
  assert.equal(checkUtf8(Buffer.from('abc'), 0, 3, UTF8_BAD), UTF8_BAD)
  assert.equal(checkUtf8(Buffer.from([0xff, 0x41, 0xff]), 1, 2, UTF8_BOUNDARY), UTF8_BOUNDARY)
  assert.equal(checkUtf8(Buffer.alloc(0), 0, 0, UTF8_BOUNDARY), UTF8_BOUNDARY)
})
