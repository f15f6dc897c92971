import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSse, SseParser } from 'runwright/http'

const stream =
  '\ufeff: comment\r\nevent: ä\r\ndata: one\rdata:two\n\rid: 7\ndata\n\n' +
  'retry: 5\ndata: {"😀":1}\n\nid: x\0y\ndata:  z\n\n' +
  'event: none\n\ndata: lost'
const events = [
  { event: 'ä', data: 'one\ntwo', id: '', retry: null },
  { event: 'message', data: '', id: '7', retry: null },
  { event: 'message', data: '{"😀":1}', id: '7', retry: 5 },
  { event: 'message', data: ' z', id: '7', retry: null },
]

test('events are the same however the stream is split', () => {
  const bytes = Buffer.from(stream)
  for (let size = 1; size <= bytes.length; size++) {
    const parser = new SseParser()
    const found = []
    for (let at = 0; at < bytes.length; at += size) {
      found.push(...parser.feed(bytes.subarray(at, at + size)))
    }
    assert.deepEqual(found, events, `pieces of ${size}`)
  }
})

test('parseSse() yields the events of a stream', async () => {
  const found = []
  for await (const event of parseSse([Buffer.from(stream)])) found.push(event)
  assert.deepEqual(found, events)
})

test('an endless event is rejected at its limit, also when its lines are short', () => {
  assert.throws(
    () => new SseParser({ maxEventLength: 100 }).feed('data: ' + 'x'.repeat(200)),
    /longer than 100/,
  )
  assert.throws(
    () => new SseParser({ maxEventLength: 100 }).feed('data: x\n'.repeat(100)),
    /longer than 100/,
  )
})
