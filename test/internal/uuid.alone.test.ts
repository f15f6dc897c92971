/** Ids never go back in time, and other tests create ids of today, so it has a process of its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuidV7 } from '../../lib/internal/hash.js'

test('a UUIDv7 has the version, the variant and the time (RFC 9562, section 5.7)', () => {
  const id = uuidV7(0x17f22e279b0)
  assert.match(id, /^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('ids sort in order of creation, also within a millisecond or if time goes back', () => {
  const ids = Array.from({ length: 20_000 }, (_, n) => uuidV7(2_000_000_000_000 - (n % 7)))
  assert.deepEqual(ids, [...ids].sort())
  assert.equal(new Set(ids).size, ids.length)
})
