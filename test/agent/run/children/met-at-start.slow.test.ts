import assert from 'node:assert/strict'
import { test } from 'node:test'
import { payloads, runToEnd } from '../../../helpers/engine.js'
import { writeFiles } from '../../../helpers/files.js'
import { openFamily, writes, type Brain } from './support.js'

const MET = 'shell: grep -q good answer.txt'

test('attempts at a goal that is met already achieve it, and change nothing', async (t) => {
  const { engine, cwd } = await openFamily(t, { m: writes('answer.txt', 'good\n') })
  writeFiles(cwd, { 'answer.txt': 'good\n' })
  const { details } = await runToEnd(engine, { goal: MET, attempts: { count: 2 } })
  assert.equal(details.status, 'achieved', JSON.stringify(details.error))
  assert.equal(details.usage.model_calls, 0)
})

test('a delegate whose goal is met already is a success without changes', async (t) => {
  const boss: Brain = (request, turn) =>
    turn > 0
      ? writes('done.txt', 'done\n')(request, turn - 1)
      : { calls: [{ tool: 'delegate', args: { goal: 'write good', check: MET.slice(7) } }] }
  const { engine, cwd } = await openFamily(t, { boss })
  writeFiles(cwd, { 'answer.txt': 'good\n' })
  const { events } = await runToEnd(engine, {
    goal: 'shell: test -s done.txt', delegation: {}, max_iterations: 1,
  })
  const [result] = payloads(events, 'tool_result')
  assert.equal(result?.exit_code, 0, result?.output)
})
