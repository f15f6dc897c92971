import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lowerBound } from '../../lib/internal/queues.js'

test('the first place that is not before is found, with few looks', () => {
  for (let count = 0; count <= 40; count++) {
    for (let first = 0; first <= count; first++) {
      let looks = 0
      const found = lowerBound(count, (at) => {
        looks += 1
        return at < first
      })
      assert.equal(found, first)
      assert.ok(looks <= 6, `${looks} looks at ${count} places`)
    }
  }
})
