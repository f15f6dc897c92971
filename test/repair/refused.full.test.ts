/** Patches of `builtin:repair` that nobody lets it make, and files that it cannot work on. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentEvent, JsonObject, RunDetails } from 'runwright/agent'
import { openEngine, scratch } from '../helpers/engine.js'
import { builtinRepair, drive, writeFiles } from './driver.js'

const HEAD = "import assert from 'node:assert'\nimport { test } from 'node:test'\n"
const ADD = {
  'package.json': '{ "type": "module" }\n',
  'src/add.js': 'export const add = (a, b) => a - b\n',
  'test/add.test.js': `${HEAD}import { add } from '../src/add.js'
test('a sum', () => assert.equal(add(2, 3), 5))
`,
}
const IS_LARGE = {
  'src/isLarge.js': 'export const isLarge = (n) => n > 10\n',
  'test/isLarge.test.js': `${HEAD}import { isLarge } from '../src/isLarge.js'
test('a bound', () => assert.equal(isLarge(10), true))
`,
}

interface Answered {
  readonly cwd: string
  readonly details: RunDetails
  /** The new texts of the edits that waited at a gate, in order. */
  readonly asked: readonly string[]
}

/** Repairs both files; calls wait for an answer. */
async function repairAsking(
  t: TestContext,
  approval: 'writes' | 'all',
  approves: (args: JsonObject) => boolean,
): Promise<Answered> {
  const cwd = scratch(t)
  writeFiles(cwd, { ...ADD, ...IS_LARGE })
  const { engine } = await openEngine(t, { cwd })
  const { details } = await engine.create({ goal: 'repair', check: 'node --test', cwd, approval })
  const asked: string[] = []
  let calls: JsonObject[] = []
  for await (const batch of await engine.subscribe(details.run_id)) {
    for (const { json } of batch) {
      const { kind, payload } = JSON.parse(json) as AgentEvent
      if (kind === 'tool_call') calls.push(payload.args as JsonObject)
      if (kind !== 'human_check_required') continue
      const approved = calls.every(approves)
      for (const { new_text } of calls) if (typeof new_text === 'string') asked.push(new_text)
      calls = []
      await engine.resume(details.run_id, {
        gate_id: payload.gate_id,
        decision: approved ? 'approve' : 'reject',
        ...(approved ? {} : { feedback: 'not like this' }),
      })
    }
  }
  return { cwd, details: await engine.get(details.run_id), asked }
}

test('patches that a person refuses give way to others that help', async (t) => {
  const refused = ['>=', '<=']
  const { details, asked } = await repairAsking(t, 'writes', ({ new_text }) =>
    !refused.some((operator) => String(new_text).includes(operator)))
  assert.equal(details.end_reason, 'goal_achieved', details.answer ?? '')
  for (const operator of refused)
    assert.equal(asked.filter((text) => text.includes(operator)).length, 1, asked.join('\n'))
  assert.equal(asked.length, 4)
})

test('a person who refuses all that helps is asked once, and the rest is repaired', async (t) => {
  const { details, asked } = await repairAsking(t, 'writes', ({ new_text }) =>
    !String(new_text).includes('add'))
  assert.equal(details.end_reason, 'stuck')
  assert.deepEqual(asked, [
    'export const add = (a, b) => a + b', 'export const isLarge = (n) => n >= 10',
  ])
  assert.match(
    details.answer!,
    new RegExp(
      'No other one made another test pass\\. Kept, because they help:\n' +
        '- src/isLarge\\.js:1 \\(comparison\\) `>` → `>=`\n' +
        'Not made, though they help:\n' +
        '- src/add\\.js:1 \\(arithmetic\\) `-` → `\\+`: .*not like this$',
    ),
  )
})

test('a file that is no UTF-8 text is not looked at, and named', async (t) => {
  const cwd = scratch(t)
  writeFiles(cwd, ADD)
  writeFileSync(
    join(cwd, 'src/add.js'), Buffer.from(`// caf\xe9\n${ADD['src/add.js']}`, 'latin1'),
  )
  const { gaveUp, lastText } = await drive({ model: builtinRepair(), cwd, check: 'node --test' })
  assert.equal(gaveUp, true)
  assert.match(lastText, /Not looked at \(no UTF-8 text, or too long\): src\/add\.js\./)
})

test('a source that counts as a test by its name is not changed, and named', async (t) => {
  const cwd = scratch(t)
  const { 'src/add.js': add, 'test/add.test.js': tests, ...others } = ADD
  writeFiles(cwd, {
    ...others,
    'src/testing/add.js': add,
    'test/add.test.js': tests.replace('src/add.js', 'src/testing/add.js'),
  })
  const { gaveUp, lastText } = await drive({ model: builtinRepair(), cwd, check: 'node --test' })
  assert.equal(gaveUp, true)
  assert.match(lastText, /tests by their names, which are not changed: src\/testing\/add\.js\./)
  assert.equal(readFileSync(join(cwd, 'src/testing/add.js'), 'utf8'), add)
})

test('a test file for which no trial may run leaves the others to be repaired', async (t) => {
  const { cwd, details } = await repairAsking(t, 'all', ({ command }) =>
    !String(command).includes('add.test'))
  assert.equal(details.end_reason, 'stuck')
  assert.match(readFileSync(join(cwd, 'src/isLarge.js'), 'utf8'), /n >= 10/, details.answer!)
})

test('patches that cannot be made once and again leave others to be tried', async (t) => {
  const cwd = scratch(t)
  const seven = 'export const seven = () => 8\n'
  writeFiles(cwd, {
    ...IS_LARGE,
    'package.json': ADD['package.json'],
    'src/a.js': seven,
    // Of this one they can be made.
    'src/b.js': seven.replace('seven', 'eight'),
    'test/a.test.js': `${HEAD}import { seven } from '../src/a.js'
import { eight } from '../src/b.js'
test('seven', () => assert.deepEqual([seven(), eight()], [7, 8]))
`,
  })
  const { lastText } = await drive({
    model: builtinRepair(),
    cwd,
    check: 'node --test',
    // Whenever its test runs alone, another program has just changed the line.
    beforeCall: async ({ args }) => {
      const isAlone = String(args['command']).includes('a.test')
      writeFileSync(join(cwd, 'src/a.js'), isAlone ? seven.replace('8', '2 * 4') : seven)
    },
  })
  assert.match(readFileSync(join(cwd, 'src/isLarge.js'), 'utf8'), /n >= 10/, lastText)
})
