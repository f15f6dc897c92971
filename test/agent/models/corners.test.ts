/**
 * Each corner of the providers' wire formats, in each format: answered by a server at once and byte
 * by byte, whole and streamed, with the same outcome.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELIVERIES } from '../../helpers/deliveries.js'
import { DIALECTS } from './corners/dialects.js'
import { MONEY } from './corners/money.js'
import { REFUSALS } from './corners/refusals.js'
import { REQUESTS } from './corners/requests.js'
import { TAKEOVER } from './corners/takeovers.js'

const CORNERS = [...MONEY, ...REFUSALS, ...REQUESTS, ...TAKEOVER]

test('each corner has, in each format, cases or the reason why it cannot happen there', () => {
  for (const { name, cells } of CORNERS) {
    assert.deepEqual(Object.keys(cells).sort(), [...DIALECTS].sort(), name)
    for (const dialect of DIALECTS) {
      const cell = cells[dialect]
      assert.ok(cell.length > (typeof cell === 'string' ? 20 : 0), `${name}, ${dialect}`)
    }
  }
  const names = CORNERS.map(({ name }) => name)
  assert.deepEqual(names, [...new Set(names)])
})

for (const { name, cells } of CORNERS)
  for (const dialect of DIALECTS) {
    const cases = cells[dialect]
    if (typeof cases === 'string') continue
    for (const { title, once = false, play } of cases)
      for (const streamed of once ? [true] : [false, true]) {
        const form = once ? '' : streamed ? ', streamed' : ', whole'
        test(`${dialect}: ${name}: ${title}${form}`, async (t) => {
          const outcomes = []
          for (const delivery of DELIVERIES)
            outcomes.push(await play({ t, dialect, delivery, streamed }))
          assert.deepEqual(outcomes[1], outcomes[0])
        })
      }
  }
