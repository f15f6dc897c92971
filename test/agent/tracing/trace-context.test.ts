import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  newSpanId,
  parseTraceparent,
  readTraceContext,
} from '../../../lib/agent/tracing/trace-context.js'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

for (const { text, sampled } of [
  { text: `00-${TRACE}-${PARENT}-01`, sampled: true },
  { text: `00-${TRACE}-${PARENT}-00`, sampled: false },
  { text: `00-${TRACE}-${PARENT}-03`, sampled: true },
  { text: ` 00-${TRACE}-${PARENT}-01\t`, sampled: true },
  // Of a later version the known fields are read (section 4.3).
  { text: `cc-${TRACE}-${PARENT}-01`, sampled: true },
  { text: `cc-${TRACE}-${PARENT}-01-what-the-future-brings`, sampled: true },
]) {
  test(`traceparent ${JSON.stringify(text)} is parsed, sampled: ${sampled}`, () => {
    assert.deepEqual(parseTraceparent(text), { traceId: TRACE, spanId: PARENT, sampled })
  })
}

for (const [why, value] of [
  ['nothing', undefined],
  ['a list', [`00-${TRACE}-${PARENT}-01`]],
  ['an empty text', ''],
  ['upper case', `00-${TRACE.toUpperCase()}-${PARENT}-01`],
  ['version ff', `ff-${TRACE}-${PARENT}-01`],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
  ['a parent id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['a short trace id', `00-${TRACE.slice(1)}-${PARENT}-01`],
  ['more behind version 00', `00-${TRACE}-${PARENT}-01-more`],
  ['something stuck to a later version', `cc-${TRACE}-${PARENT}-01.more`],
  ['two headers made one', `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`],
] as const) {
  test(`a traceparent with ${why} is ignored`, () => {
    assert.equal(parseTraceparent(value), null)
    assert.equal(readTraceContext({ traceparent: value, tracestate: 'a=1' }), null)
  })
}

test('a tracestate requires a traceparent, and an invalid one is dropped alone', () => {
  const traceparent = `00-${TRACE}-${PARENT}-01`
  const read = (tracestate: unknown): string | null | undefined =>
    readTraceContext({ traceparent, tracestate })?.tracestate
  assert.equal(read('congo=t61rcWkgMzE,rojo=00f0'), 'congo=t61rcWkgMzE,rojo=00f0')
  assert.equal(read(['congo=1', 'rojo=2']), 'congo=1,rojo=2')
  for (const bad of [undefined, null, 7, '', 'a=1\r\nx: y', `a=${'x'.repeat(512)}`, 'ü=1']) {
    assert.equal(read(bad), null, String(bad))
  }
})

test('a traceparent is sent in version 00', () => {
  const context = readTraceContext({ traceparent: `cc-${TRACE}-${PARENT}-09-more` })
  assert.equal(context?.traceparent, `00-${TRACE}-${PARENT}-01`)
})

test('span ids are unique and have 16 hexadecimal digits', () => {
  const ids = Array.from({ length: 1000 }, newSpanId)
  assert.ok(ids.every((id) => /^(?!0{16})[0-9a-f]{16}$/.test(id)))
  assert.equal(new Set(ids).size, ids.length)
})
