import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseType } from '../../../lib/server/messages/accept.js'

const JSON_TYPE = 'application/json'
const STREAM = 'text/event-stream'

for (const { accept, gives } of [
  { accept: undefined, gives: JSON_TYPE },
  { accept: '*/*', gives: JSON_TYPE },
  { accept: 'application/*', gives: JSON_TYPE },
  { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', gives: JSON_TYPE },
  { accept: STREAM, gives: STREAM },
  { accept: 'TEXT/Event-Stream', gives: STREAM },
  { accept: 'text/event-stream, */*;q=0.1', gives: STREAM },
  { accept: 'application/json;q=0.5, text/event-stream;q=0.9', gives: STREAM },
  { accept: 'application/json;q=0, */*', gives: STREAM },
  { accept: 'application/json ; q=1.0 , text/html', gives: JSON_TYPE },
  { accept: 'text/html', gives: null },
  { accept: '*/*;q=0', gives: null },
  { accept: 'application/json;q=2', gives: null },
  { accept: '', gives: null },
]) {
  test(`Accept: ${accept ?? '(absent)'} is answered with ${gives ?? '406'}`, () => {
    if (gives === null)
      assert.throws(() => chooseType(accept, [JSON_TYPE, STREAM]), { status: 406 })
    else assert.equal(chooseType(accept, [JSON_TYPE, STREAM]), gives)
  })
}
