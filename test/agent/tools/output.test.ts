import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headAndTail, OutputKeeper } from '../../../lib/agent/output.js'

test('short text is kept unchanged', () => {
  assert.equal(headAndTail('short', 100), 'short')
  assert.equal(headAndTail('ä'.repeat(50), 100), 'ä'.repeat(50))
})

test('long text keeps its head and tail, with the size of the rest between them', () => {
  const text = `${'a'.repeat(600)}${'z'.repeat(600)}`
  assert.equal(
    headAndTail(text, 100),
    `${'a'.repeat(50)}\n[… 1100 bytes left out …]\n${'z'.repeat(50)}`,
  )
})

test('cuts never fall inside a character', () => {
  for (let max = 0; max < 60; max++) {
    for (const text of ['🙂'.repeat(40), 'ä'.repeat(80), 'aä🙂€'.repeat(20)]) {
      const cut = headAndTail(text, max)
      assert.ok(!cut.includes('\ufffd'), `${max}: ${cut}`)
      const kept = cut.replace(/\n\[… \d+ bytes left out …\]\n/, '')
      const left = Number(/\[… (\d+) /.exec(cut)?.[1])
      assert.equal(Buffer.byteLength(kept) + left, Buffer.byteLength(text))
    }
  }
})

test('a keeper keeps the same as headAndTail, however the bytes are split into chunks', () => {
  let state = 3
  const pick = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  for (let round = 0; round < 500; round++) {
    const text = Array.from({ length: pick(120) }, () => 'aä🙂€'.slice(pick(3))).join('')
    const max = 2 * pick(60)
    const bytes = Buffer.from(text)
    const keeper = new OutputKeeper(max)
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + pick(40)
      keeper.add(bytes.subarray(at, at + size))
      at += size
    }
    const { text: kept, truncated } = keeper.finish()
    assert.equal(keeper.total, bytes.length)
    assert.equal(truncated, bytes.length > max)
    assert.equal(kept, headAndTail(bytes.toString(), max), `round ${round}`)
  }
})

test('invalid UTF-8 is replaced and does not throw', () => {
  const keeper = new OutputKeeper(1_000)
  keeper.add(Buffer.from([0x61, 0xff, 0x62]))
  assert.equal(keeper.finish().text, 'a\ufffdb')
})

test('a keeper of zero bytes counts what it leaves out', () => {
  const keeper = new OutputKeeper(0)
  keeper.add(Buffer.from('abc'))
  assert.deepEqual(keeper.finish(), { text: '\n[… 3 bytes left out …]\n', truncated: true })
})
