/** Every end of a run, whole and streamed, is the same at once and byte by byte. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELIVERIES } from '../../helpers/deliveries.js'
import { ENDINGS } from './exchanges/endings.js'

for (const { dialect, title, isInBothForms = false, play } of ENDINGS)
  for (const streamed of isInBothForms ? [true, false] : [true]) {
    test(`${dialect}: ${title}${streamed ? '' : ', not streamed'}`, async (t) => {
      const outcomes = []
      for (const delivery of DELIVERIES)
        outcomes.push(await play({ t, dialect, delivery, streamed }))
      assert.deepEqual(outcomes[1], outcomes[0])
    })
  }
