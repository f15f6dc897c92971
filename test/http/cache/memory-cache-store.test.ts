import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryCacheStore, type CacheRecord } from 'runwright/http'
import { Random } from '../../helpers/random.js'

function record(bodyBytes: number, variants = 1): CacheRecord {
  const response = {
    statusCode: 200, reasonPhrase: 'OK', httpVersion: 'HTTP/1.1',
    headers: [['A', 'b']] as const, body: new Uint8Array(bodyBytes), vary: [],
    requestedAt: 0, receivedAt: 0,
  }
  return { version: 1, variants: Array.from({ length: variants }, () => response) }
}

test('a memory store forgets what was used longest ago', () => {
  const store = new MemoryCacheStore({ maxBytes: 30_000 })
  for (const key of ['a', 'b', 'c']) store.set(key, record(5000))
  assert.equal(store.size, 3)
  store.get('a')
  store.set('d', record(10_000))
  const kept = ['a', 'b', 'c', 'd'].filter((key) => store.get(key) !== null)
  assert.deepEqual(kept, ['a', 'c', 'd'])
})

test('a memory store counts the memory that content keeps, not only its length', () => {
  const store = new MemoryCacheStore()
  store.set('a', record(0))
  const empty = store.bytes
  const view = { ...record(0).variants[0]!, body: new Uint8Array(new ArrayBuffer(100_000), 0, 1) }
  store.set('a', { version: 1, variants: [view] })
  assert.equal(store.bytes, empty + 100_000)
})

test('a record that is larger than the whole store replaces nothing but its own key', () => {
  const store = new MemoryCacheStore({ maxBytes: 10_000 })
  store.set('a', record(10))
  store.set('b', record(10))
  store.set('b', record(20_000))
  assert.equal(store.get('b'), null)
  assert.notEqual(store.get('a'), null)
})

test('a memory store never exceeds its limit, and its count returns to 0', () => {
  const random = new Random(9111)
  const store = new MemoryCacheStore({ maxBytes: 100_000 })
  for (let i = 0; i < 2000; i++) {
    const key = String(random.integer(0, 30))
    if (random.chance(0.6)) store.set(key, record(random.integer(0, 30_000), random.integer(1, 3)))
    else if (random.chance(0.5)) store.get(key)
    else store.delete(key)
    assert.ok(store.bytes <= 100_000)
  }
  assert.ok(store.size > 0)
  for (let key = 0; key <= 30; key++) store.delete(String(key))
  assert.deepEqual([store.bytes, store.size], [0, 0])
  store.set('a', record(1))
  store.clear()
  assert.deepEqual([store.bytes, store.size], [0, 0])
})
