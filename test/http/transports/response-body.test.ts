import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResponseBody } from '../../../lib/http/transports/response-body.js'

const source = { waiting: () => {}, pause: () => {}, resume: () => {}, abandon: () => {} }
const pieces = Array.from({ length: 20_000 }, (_, i) => Buffer.from(String(i % 7)))

test('bytes that arrive one by one are merged into few chunks', () => {
  const body = new ResponseBody(source)
  for (const piece of pieces) body.push(piece)
  body.end()
  const chunks = body.takeWhole()!
  assert.ok(chunks.length < 20, String(chunks.length))
  assert.deepEqual(Buffer.concat(chunks), Buffer.concat(pieces))
})

test('small and large chunks keep their order, however they are read', async () => {
  const body = new ResponseBody(source)
  const sent: Buffer[] = []
  const taken: Uint8Array[] = []
  for (let i = 0; i < 60; i++) {
    const chunk = Buffer.alloc(i % 5 === 0 ? 3_000 : i * 7 + 1, String(i % 10))
    sent.push(chunk)
    body.push(chunk)
    if (i % 9 === 0) taken.push((await body.next()).value!)
    if (i === 30) taken.push(...body.takeReady().chunks)
  }
  body.end()
  for await (const chunk of body) taken.push(chunk)
  assert.deepEqual(Buffer.concat(taken), Buffer.concat(sent))
})
