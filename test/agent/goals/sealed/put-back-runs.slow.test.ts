/** Files of the check that a run has changed: sealed checks have them as in the first checkpoint. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore, processExecutor, type JsonObject, type RunDetails, type RunEngine,
} from 'runwright/agent'
import { follow, openEngine, scratch, testProvider } from '../../../helpers/engine.js'
import { put } from '../support.js'

type Files = { readonly [path: string]: string }

/** `helpers/each.js` is used by tests alone. */
const PROJECT: Files = {
  'package.json': '{"name": "shop", "main": "src/cart.js"}',
  'src/cart.js': 'exports.total = (items) => items.length\n',
  'helpers/each.js': 'exports.each = (rows, run) => { for (const row of rows) run(...row) }\n',
  'checks/cart.test.js': `const assert = require('node:assert')
const { test } = require('node:test')
const { each } = require('../helpers/each')
const { total } = require('../src/cart')
test('adds up', () => each([[[2, 3], 5]], (items, want) => assert.equal(total(items), want)))
`,
}
const EASIER = { 'helpers/each.js': 'exports.each = () => {}\n' }
const CODE = 'exports.total = (items) => items.reduce((sum, item) => sum + item, 0)\n'

interface Ended {
  readonly engine: RunEngine
  readonly cwd: string
  readonly details: RunDetails
  readonly reason: string
  /** What the model was told last of a check. */
  readonly output: string
}

/** A run that writes files, each of the lists in an iteration of its own. */
async function run(
  t: TestContext,
  changes: readonly Files[],
  request: JsonObject = {},
): Promise<Ended> {
  const outputs: string[] = []
  const { engine, cwd } = await openEngine(t, {
    store: new MemoryStore(),
    checkpoints: 'auto',
    sealedChecks: 'require',
    executor: processExecutor(),
    workspaceFolder: scratch(t),
    detectStuck: false,
    providers: [
      testProvider(({ messages }) => {
        const last = messages.at(-1)
        const done = messages.filter(({ role }) => role === 'assistant').length
        if (last?.role === 'user') outputs.push(last.text)
        const files = Object.entries(changes[done / 2] ?? {})
        return {
          calls: files.map(([path, content = '']) => ({
            tool: 'write_file', args: { path, content },
          })),
        }
      }),
    ],
  })
  await put(cwd, PROJECT)
  const goal = { goal: 'node-test', cwd, max_iterations: changes.length + 1 }
  const { details } = await engine.create({ ...goal, ...request })
  const events = await follow(engine, details.run_id)
  const checks = events.flatMap(({ kind, payload }) => (kind === 'goal_check' ? [payload] : []))
  return {
    engine, cwd,
    details: await engine.get(details.run_id),
    reason: checks.at(-1)!.reason,
    output: outputs.at(-1) ?? '',
  }
}

test('a change to a file of the check achieves nothing, and is no offence', async (t) => {
  const { cwd, details, output } = await run(t, [EASIER, { 'src/cart.js': CODE }])
  assert.equal(details.status, 'achieved')
  assert.match(output, /sealed check: 1 of 1 tests fail/)
  assert.match(output, /were as at the start:\n- helpers\/each\.js \(put back: a program that no/)
  assert.equal(readFileSync(join(cwd, 'helpers/each.js'), 'utf8'), EASIER['helpers/each.js'])
})

test('without checkpoints, such a change is named, and where sealing is required refused', async (t) => {
  const { details, reason } = await run(t, [EASIER], { checkpoints: 'off' })
  assert.equal(details.status, 'failed')
  assert.equal(reason, 'sealed check: helpers/each.js was changed, and is not stored')
})

test('a fork has files of the check as its source found them', async (t) => {
  const { engine, details } = await run(t, [EASIER], { workspace: 'isolated' })
  assert.equal(details.status, 'failed')
  const forked = await engine.fork(details.run_id, { message: 'go on', max_iterations: 1 })
  await follow(engine, forked.details.run_id)
  const { status, final_state: state } = await engine.get(forked.details.run_id)
  assert.equal(status, 'failed', JSON.stringify(state))
})
