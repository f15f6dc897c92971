import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FIXTURES, runCommand } from './repair-driver.js'
import { fixtures, repair } from './repair-fixtures.js'

/** The first bug of each project, or with `RUNWRIGHT_REPAIR=all` every one. */
const isComplete = process.env['RUNWRIGHT_REPAIR'] === 'all'

async function lacks(needs: string | undefined): Promise<string | false> {
  if (needs === undefined) return false
  const { exitCode } = await runCommand(`python3 -m ${needs} --version`, FIXTURES)
  return exitCode === 0 ? false : `${needs} is not installed here`
}

const tally = { repaired: 0, total: 0 }

for (const fixture of fixtures) {
  const bugs = fixture.bugs.filter(({ repairable }) => repairable !== false)
  for (const bug of isComplete ? bugs : bugs.slice(0, 1)) {
    test(`repairs ${fixture.project}: ${bug.name}`, async (context) => {
      const reason = await lacks(fixture.needs)
      if (reason !== false) return context.skip(reason)
      const result = await repair(fixture, bug)
      tally.total++
      context.diagnostic(
        `${result.achieved ? 'repaired' : 'not repaired'}: ${result.patches} patches, ${result.turns} turns, ${result.seconds.toFixed(1)} s`,
      )
      if (result.achieved) tally.repaired++
      else assert.ok(isComplete, result.lastText)
      const named = result.changed === '' ? [] : result.changed.split('\n')
      assert.ok(
        named.every((line) => !/test|spec/.test(line.replace(FIXTURES, ''))),
        result.changed,
      )
    })
  }
}

test('at least four of five planted bugs are repaired', () => {
  assert.ok(
    tally.total >= 10 && tally.repaired >= 0.8 * tally.total,
    `${tally.repaired} of ${tally.total}`,
  )
})
