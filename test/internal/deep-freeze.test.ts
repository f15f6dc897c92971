import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deepFreeze, deepFreezeList } from '../../lib/internal/freeze.js'

test('lists and plain objects are frozen at every depth, instances of classes are not', () => {
  const signal = new AbortController().signal
  const bare = Object.assign(Object.create(null) as object, { a: [{ b: 1 }] })
  const value = deepFreeze({ list: [{ deep: { x: [] } }], bare, signal, text: 'a', none: null })
  const inner = [value, value.list, value.list[0]!, value.list[0]!.deep.x, bare]
  assert.deepEqual(inner.map((part) => Object.isFrozen(part)), inner.map(() => true))
  assert.ok(!Object.isFrozen(signal))
})

test('of a list, entries that were frozen before are not looked at', () => {
  const first = { a: { b: 1 } }
  const list = deepFreezeList([first, { a: { b: 2 } }], 1)
  assert.deepEqual(
    [list, first, list[1], list[1]!.a].map((part) => Object.isFrozen(part)),
    [true, false, true, true],
  )
})
