import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { repairModel } from '../../../lib/agent/models/repair/index.js'
import { drive, FIXTURES, runCommand, scratchCopy } from './repair-driver.js'

test('the demo project is repaired, and only its sources change', async () => {
  const project = resolve(FIXTURES, '../../../examples/demo-project')
  await using copy = await scratchCopy(project)
  const result = await drive({ model: repairModel(), cwd: copy.path, check: 'node --test' })
  assert.equal(result.achieved, true, result.lastText)
  const changed = await runCommand(`diff -rq '${project}' '${copy.path}'`, copy.path)
  assert.deepEqual(
    changed.output.trim().split('\n').map((line) => /src\/\w+\.js/.exec(line)?.[0] ?? line),
    ['src/catalogue.js', 'src/fees.js', 'src/loans.js', 'src/statement.js'],
  )
})
