import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { commandGoal, type GoalDefinition, type JsonObject, type RunDetails } from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider } from '../../../helpers/engine.js'

/** A goal whose runner is an installed package. */
const goal: GoalDefinition = {
  name: 'own',
  description: 'tests under a runner of our own',
  usage: 'own',
  resolve: async (cwd) => {
    const spec = await commandGoal({ name: 'own', command: 'node --test qa/sums.js' }, cwd)
    return { ...spec, runner: ['node_modules/expecting'] }
  },
}

const PROJECT: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "commonjs" }',
  'lib/add.js': "exports.add = require('sum')\n",
  'node_modules/sum/package.json': '{ "name": "sum", "version": "1.0.0" }',
  'node_modules/sum/index.js': 'module.exports = (a, b) => a - b\n',
  'node_modules/expecting/package.json': '{ "name": "expecting", "version": "1.0.0" }',
  'node_modules/expecting/index.js': "module.exports = require('node:assert').equal\n",
  'qa/sums.js': `
const test = require('node:test')
const equal = require('expecting')
test('adds', () => equal(require('../lib/add.js').add(1, 2), 3))
`,
}

/** Ends a run whose model runs one command. */
async function pursue(
  t: TestContext,
  command: string,
  request: JsonObject = {},
): Promise<RunDetails> {
  const cwd = scratch(t)
  for (const [path, text] of Object.entries(PROJECT)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
  const provider = testProvider((_, call) =>
    call === 0 ? { calls: [{ tool: 'bash', args: { command } }] } : {},
  )
  const options = { cwd, providers: [provider], goals: [goal], sealedChecks: 'prefer' } as const
  const { engine } = await openEngine(t, options)
  return (await runToEnd(engine, { goal: 'own', max_iterations: 1, ...request })).details
}

const OTHER_SUM = "echo 'module.exports = (a, b) => a + b' > node_modules/sum/index.js"
const OTHER_RUNNER = "echo 'module.exports = () => {}' > node_modules/expecting/index.js"
const ALLOWED = { allow_dependency_changes: true }

test('a run that changes a dependency of the tests is told which, and what would allow it', async (t) => {
  const details = await pursue(t, OTHER_SUM)
  assert.equal(details.status, 'failed')
  assert.match(details.final_state.goal_reason, /node_modules\/sum.*allow_dependency_changes/)
})

test('a run that may change dependencies achieves its goal with another one', async (t) => {
  const details = await pursue(t, OTHER_SUM, ALLOWED)
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.equal(details.assurance?.sealed, true)
})

test('a package of the runner is as it was at the start', async (t) => {
  const details = await pursue(t, OTHER_RUNNER)
  assert.equal(details.status, 'failed')
  assert.match(details.final_state.goal_reason, /^tests changed: node_modules\/expecting/)
})

test('a run that may change dependencies may update its runner', async (t) => {
  const details = await pursue(t, `${OTHER_SUM}; ${OTHER_RUNNER}`, ALLOWED)
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
})
