import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteCollector } from '../../lib/internal/bytes.js'

test('chunks of any sizes come back in their order', () => {
  const sizes = [0, 1, 3, 16_384, 5, 4_095, 4_097, 1, 70_000, 0, 16_383, 16_385, 2]
  for (let from = 0; from < sizes.length; from++) {
    const chunks = sizes.slice(from).map((size, i) => Buffer.alloc(size, i + 1))
    const collector = new ByteCollector()
    for (const chunk of chunks) collector.add(chunk)
    const all = Buffer.concat(chunks)
    assert.equal(collector.length, all.length)
    assert.deepEqual(Buffer.from(collector.take()), all)
    assert.equal(collector.length, 0)
    assert.equal(collector.take().length, 0)
  }
})

test('a single chunk is not copied', () => {
  const collector = new ByteCollector()
  const chunk = Buffer.from('x')
  collector.add(chunk)
  assert.equal(collector.take(), chunk)
})

for (const { name, sizes } of [
  { name: 'of one byte', sizes: [1] },
  { name: 'of one byte between large ones', sizes: [1, 16_384] },
  { name: 'that rarely fit into one block', sizes: [16_383, 16_382] },
]) {
  test(`chunks ${name} do not keep alive what they arrived with`, (t) => {
    const concat = t.mock.method(Buffer, 'concat')
    const collector = new ByteCollector()
    for (let i = 0; i < 500; i++) {
      collector.add(Buffer.allocUnsafeSlow(65_536).subarray(0, sizes[i % sizes.length]))
    }
    const { length } = collector
    collector.take()
    const kept = new Set(concat.mock.calls[0]!.arguments[0].map(({ buffer }) => buffer))
    const bytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0)
    assert.ok(bytes <= 5 * length + 2 * 65_536, `${bytes} bytes for ${length}`)
  })
}
