/** How runs end in each format of the providers; each kind of end once. */
import { test } from 'node:test'
import { ENDINGS } from './exchanges/endings.js'

for (const { dialect, title, isRepetition = false, play } of ENDINGS) {
  if (isRepetition) continue
  test(`${dialect}: ${title}`, async (t) => {
    await play({ t, dialect, delivery: 'at once', streamed: true })
  })
}
