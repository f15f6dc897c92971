import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FIXTURES, runCommand } from './repair-driver.js'
import { fixtures, repair } from './repair-fixtures.js'

async function lacks(needs: string | undefined): Promise<string | false> {
  if (needs === undefined) return false
  const { exitCode } = await runCommand(`python3 -m ${needs} --version`, FIXTURES)
  return exitCode === 0 ? false : `${needs} is not installed here`
}

// The first bug of each project; `npm run repair` tries every one and tells the score.
for (const fixture of fixtures) {
  const bugs = fixture.bugs.filter(({ repairable }) => repairable !== false)
  for (const bug of bugs.slice(0, 1)) {
    test(`repairs ${fixture.project}: ${bug.name}`, async (context) => {
      const reason = await lacks(fixture.needs)
      if (reason !== false) return context.skip(reason)
      const result = await repair(fixture, bug)
      context.diagnostic(
        `${result.patches} patches, ${result.turns} turns, ${result.seconds.toFixed(1)} s`,
      )
      assert.equal(result.achieved, true, result.lastText)
      const named = result.changed === '' ? [] : result.changed.split('\n')
      assert.ok(
        named.every((line) => !/test|spec/.test(line.replace(FIXTURES, ''))),
        result.changed,
      )
    })
  }
}
