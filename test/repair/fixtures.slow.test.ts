import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixtures, missing, repair, type Fixture } from './fixtures.js'

/** Kind of a check command, such as `node --test`: one report parser serves each kind. */
const kindOf = ({ check }: Fixture): string => check.split(' ').slice(0, 3).join(' ')

// The first bug of one project of each kind; `npm run repair` tries all bugs and prints the score.
for (const fixture of new Map(
  fixtures.toReversed().map((fixture) => [kindOf(fixture), fixture]),
).values()) {
  const bug = fixture.bugs.find(({ repairable }) => repairable !== false)
  assert.ok(bug !== undefined, `no bug of ${fixture.project} can be repaired`)
  test(`repairs ${fixture.project}: ${bug.name}`, async (context) => {
    const reason = await missing(fixture)
    if (reason !== false) return context.skip(reason)
    const result = await repair(fixture, bug)
    context.diagnostic(
      `${result.patches} patches, ${result.turns} turns, ${result.seconds.toFixed(1)} s`,
    )
    assert.equal(result.achieved, true, result.lastText)
    assert.equal(result.touchedTests, false)
  })
}
