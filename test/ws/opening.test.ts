import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { Opening } from '../../lib/ws/opening.js'
import { readResponse } from '../../lib/ws/read-response.js'

test('the head of a refusal ends the time limit, so that slow content does not hide it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  const socket = new PassThrough()
  const opening = new Opening(undefined)
  opening.deadline(10_000, 'no response')
  const read = opening.run(() => readResponse(socket, () => opening.endDeadline()))
  t.mock.timers.tick(9_999)
  socket.write('HTTP/1.1 401 No\r\nContent-Length: 10\r\n\r\nfive!')
  await new Promise((resolve) => process.nextTick(resolve))
  t.mock.timers.tick(999)
  assert.equal(opening.signal.aborted, false)
  t.mock.timers.tick(1)
  const { head, rest } = await read
  assert.equal(head.status, 401)
  assert.equal(rest.toString(), 'five!')
})
