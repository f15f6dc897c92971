import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOfName, nameOfBytes } from '../../lib/internal/bytes.js'

for (const { bytes, name } of [
  { bytes: 'main.js', name: 'main.js' },
  { bytes: '\xc3\xa4', name: 'ä' },
  { bytes: '\xef\xbb\xbfx', name: '\ufeffx' },
  { bytes: '\xf0\x9f\x98\x80', name: '😀' },
  { bytes: 'a\xff', name: 'a\udcff' },
  { bytes: '\xc3', name: '\udcc3' },
  { bytes: '\xc3(', name: '\udcc3(' },
  // Overlong, a surrogate, and beyond Unicode: no UTF-8 (RFC 3629, section 3).
  { bytes: '\xc0\xaf', name: '\udcc0\udcaf' },
  { bytes: '\xe0\x80\xaf', name: '\udce0\udc80\udcaf' },
  { bytes: '\xed\xb2\x80', name: '\udced\udcb2\udc80' },
  { bytes: '\xf4\x90\x80\x80', name: '\udcf4\udc90\udc80\udc80' },
  { bytes: '\xf8\x88\x80\x80\x80', name: '\udcf8\udc88\udc80\udc80\udc80' },
]) {
  test(`the bytes ${Buffer.from(bytes, 'latin1').toString('hex')} have one text, and back`, () => {
    assert.equal(nameOfBytes(Buffer.from(bytes, 'latin1')), name)
    assert.equal(bytesOfName(name).toString('latin1'), bytes)
  })
}

test('a lone surrogate that stands for no byte becomes U+FFFD', () => {
  assert.equal(bytesOfName('a\ud800b\udc7f').toString(), 'a\ufffdb\ufffd')
})
