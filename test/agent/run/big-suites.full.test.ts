/** A real run with a suite whose tests are kept by hash. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { follow, openEngine, testProvider } from '../../helpers/engine.js'

test('63 740 tests of node:test are achieved by a run that writes the code', async (t) => {
  const right = 'exports.double = (n) => 2 * n\n'
  const provider = testProvider((_, call) =>
    call % 2 === 0
      ? { calls: [{ tool: 'write_file', args: { path: 'double.js', content: right } }] }
      : {},
  )
  const { engine, cwd } = await openEngine(t, { providers: [provider] })
  mkdirSync(join(cwd, 'test'))
  for (const from of [0, 15_935, 31_870, 47_805]) {
    const code = `const assert = require('node:assert')
    const { describe, test } = require('node:test')
    const { double } = require('../double.js')
    for (let n = ${from}; n < ${from} + 15_935; n += 3_187) describe('from ' + n, () => {
      for (let i = n; i < n + 3_187; i++) test('doubles ' + i, () => assert.equal(double(i), i + i))
    })`
    writeFileSync(join(cwd, `test/from-${from}.test.js`), code)
  }
  const { details } = await engine.create({ goal: 'shell: node --test test', max_iterations: 2 })
  const events = await follow(engine, details.run_id)
  const reasons = events.flatMap((event) =>
    event.kind === 'goal_check' ? [event.payload.reason] : [],
  )
  assert.deepEqual(reasons, ['4 of 4 tests fail', 'all 63740 tests pass'])
  assert.equal((await engine.get(details.run_id)).status, 'achieved')
})
