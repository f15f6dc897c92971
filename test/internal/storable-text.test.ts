import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameOfBytes } from '../../lib/internal/bytes.js'
import { isStorable, isStorableName, storableName, storableText } from '../../lib/internal/text.js'
import { mapTexts } from '../../lib/internal/json.js'

for (const [text, asText, asName = asText] of [
  ['', ''],
  ['a 🙂 \ufffe \u202e \u0001', 'a 🙂 \ufffe \u202e \u0001'],
  ['\0', '\ufffd'],
  ['a\0\0b', 'a\ufffd\ufffdb'],
  ['\ud83d', '\ufffd'],
  ['\ude42\ud83d', '\ufffd\ufffd'],
  ['\ud83d🙂\ude42', '\ufffd🙂\ufffd'],
  ['a\udc80\udcff\udc7f\udd00', 'a\ufffd\ufffd\ufffd\ufffd', 'a\udc80\udcff\ufffd\ufffd'],
  ['\ud800\udc80', '\ud800\udc80'],
] as const) {
  test(`${JSON.stringify(text)} in storable form`, () => {
    assert.equal(storableText(text), asText)
    assert.equal(storableName(text), asName)
    assert.equal(isStorable(text), text === asText)
    assert.equal(isStorableName(text), text === asName)
  })
}

test('every name of a file is storable as one', () => {
  const names = Array.from({ length: 255 }, (_, i) => nameOfBytes(Uint8Array.of(97, i + 1, 98)))
  assert.deepEqual(names.filter((name) => !isStorableName(name) || storableName(name) !== name), [])
})

test('a value is mapped as a whole, and is the same object if nothing changes', () => {
  const value = { a: ['b', { c: 'd' }], e: null, f: 1 }
  assert.equal(mapTexts(value, (text) => text, ''), value)
  const mapped = mapTexts({ ...value, '\0': { g: '\0' } }, storableText, '')
  assert.deepEqual(mapped, { ...value, '\ufffd': { g: '\ufffd' } })
  assert.equal(mapped.a, value.a)
  let deep: unknown = 'x'
  for (let i = 0; i < 1_000; i++) deep = [deep]
  const cut = JSON.stringify(mapTexts(deep, (text) => text, 'too deep'))
  assert.match(cut, /^\[{129}"too deep"\]{129}$/)
})
