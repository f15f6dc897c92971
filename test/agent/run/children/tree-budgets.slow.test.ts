/** The budgets of a run hold for all runs of its tree together, and throw no work away. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineTool, type Tool } from 'runwright/agent'
import { follow, payloads, runToEnd } from '../../../helpers/engine.js'
import { assertInvariants } from '../../../helpers/invariants.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { HOUR, ShiftedClock } from '../../../helpers/shifted-clock.js'
import { openFamily, writes, type Brain } from './support.js'

const GOAL = 'shell: grep -q good answer.txt'

/** A tool that must not be called more often than allowed, and how often it was. */
function counter(): { readonly tool: Tool; readonly ran: () => number } {
  let ran = 0
  const tool = defineTool({
    name: 'count',
    description: 'Counts.',
    parameters: { type: 'object', properties: {} },
    effect: 'unsafe',
    execute: () => Promise.resolve({ output: `${++ran}`, exitCode: 0 }),
  })
  return { tool, ran: () => ran }
}

const burst: Brain = () => ({
  calls: Array.from({ length: 10 }, () => ({ tool: 'count', args: {} })),
  tokens: [1, 1],
})

test('attempts that work at once make no more tool calls than their run may', async (t) => {
  const { tool, ran } = counter()
  const { engine, cwd } = await openFamily(t, { burst }, { tools: [tool], maxConcurrentRuns: 4 })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details, events } = await runToEnd(engine, {
    goal: GOAL, attempts: { count: 4 }, max_tool_calls: 10,
  })
  assertInvariants(events)
  assert.equal(ran(), 10)
  assert.equal(details.usage.tool_calls, 10)
  assert.deepEqual([details.status, details.end_reason], ['failed', 'tool_call_budget'])
  const [end] = payloads(events, 'run_end')
  assert.match(end?.reason ?? '', /^10 of 10 tool calls were made/)
  for (const { status, run_id } of details.attempts?.runs ?? []) {
    assert.equal(status, 'failed', 'each ends by itself')
    const { end_reason } = await engine.get(run_id)
    assert.equal(end_reason, 'tool_call_budget')
  }
})

test('delegates of delegates keep to the tool calls of the run at the top', async (t) => {
  const { tool, ran } = counter()
  const asks = (part: string): Brain => (_, turn) =>
    turn > 0
      ? { text: 'done' }
      : {
          calls: [1, 2].map((n) => ({
            tool: 'delegate', args: { goal: `${part} ${n}`, check: 'false' },
          })),
        }
  const { engine, cwd } = await openFamily(
    t,
    {
      m: (request, turn) => {
        const text = JSON.stringify(request.messages[0])
        const brain = text.includes('leaf') ? burst : asks(text.includes('node') ? 'leaf' : 'node')
        return brain(request, turn)
      },
    },
    { tools: [tool], maxConcurrentRuns: 6 },
  )
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, delegation: { depth: 2, children: 2 }, max_tool_calls: 17,
  })
  assert.deepEqual([details.status, details.end_reason], ['failed', 'tool_call_budget'])
  assert.equal(details.usage.tool_calls, 17)
  const { runs } = await engine.list()
  const delegated = runs.reduce((sum, { delegates }) => sum + delegates, 0)
  assert.equal(ran(), 17 - delegated)
})

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`a delegate gets the time that is left, time of day set by ${jump / HOUR} h`, async (t) => {
    const clock = new ShiftedClock()
    const asking: Brain = (request, turn) => {
      if (turn > 0 || JSON.stringify(request.messages[0]).includes('part')) return { text: 'done' }
      clock.advance(40_000)
      clock.shiftMs = jump
      return { calls: [{ tool: 'delegate', args: { goal: 'part', check: 'true' } }] }
    }
    const { engine } = await openFamily(t, { asking }, { clock })
    const { details } = await runToEnd(engine, {
      goal: 'shell: false', delegation: { depth: 1 }, max_seconds: 100, max_iterations: 1,
    })
    assert.equal(details.end_reason, 'max_iterations')
    const { runs } = await engine.list({ parent: details.run_id })
    const children = await Promise.all(runs.map(({ run_id }) => engine.get(run_id)))
    assert.deepEqual(children.map(({ max_seconds }) => max_seconds), [60])
  })
}

test('a run ends when the tokens of its siblings have used up the budget', async (t) => {
  const busy: Brain = (_, turn) => ({
    calls: [{ tool: 'write_file', args: { path: 'n', content: `${turn}\n` } }], tokens: [10, 0],
  })
  const { engine, cwd } = await openFamily(t, { busy }, { maxConcurrentRuns: 2 })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, attempts: { count: 4 }, max_total_tokens: 100,
  })
  assert.deepEqual([details.status, details.end_reason], ['failed', 'token_budget'])
  const used = details.final_state.total_tokens
  assert.ok(used === 100 || used === 110, `one call may be in flight: ${used} tokens`)
  const { runs } = await engine.list({ parent: details.run_id })
  for (const { run_id } of runs) {
    const { end_reason, final_state } = await engine.get(run_id)
    assert.equal(end_reason, 'token_budget')
    assert.ok(final_state.total_tokens < 100)
    const [end] = payloads(await follow(engine, run_id), 'run_end')
    assert.match(end?.reason ?? '', new RegExp(`budget of run ${details.run_id} is used up: 1`))
  }
})

const DONE: readonly (readonly [string, object])[] = [
  ['the last call of an attempt may overshoot the tokens', {
    attempts: { count: 1 }, max_total_tokens: 15,
  }],
  ['both attempts make their last tool call', {
    attempts: { count: 2, choose: 'smallest' }, max_tool_calls: 2,
  }],
  ['the tokens are used up by the calls that are in flight', {
    attempts: { count: 4, choose: 'smallest' }, max_total_tokens: 16,
  }],
]

for (const [title, request] of DONE) {
  test(`work that was done is checked, and can win: ${title}`, async (t) => {
    const good = writes('answer.txt', 'good\n', [10, 5])
    const { engine, cwd } = await openFamily(t, { good }, { maxConcurrentRuns: 4 })
    writeFiles(cwd, { 'answer.txt': 'none\n' })
    const { details } = await runToEnd(engine, { goal: GOAL, ...request })
    assert.deepEqual([details.status, details.end_reason], ['achieved', 'goal_achieved'])
    assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n' })
  })
}

test('an attempt that has achieved the goal wins when the others use up the budget', async (t) => {
  const busy: Brain = (_, turn) => ({
    calls: [{ tool: 'write_file', args: { path: 'n', content: `${turn}\n` } }], tokens: [10, 0],
  })
  const good = writes('answer.txt', 'good\n')
  const { engine, cwd } = await openFamily(t, { good, busy })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, max_total_tokens: 100,
    attempts: { count: 2, models: ['test:good', 'test:busy'], choose: 'smallest' },
  })
  assert.deepEqual([details.status, details.attempts?.chosen], ['achieved', 1])
  assert.deepEqual(details.attempts?.runs.map(({ status }) => status), ['achieved', 'failed'])
})

test('an attempt that had no slot before the budget was used up does not begin', async (t) => {
  const { engine, cwd } = await openFamily(
    t, { bad: writes('other.txt', 'x\n', [60, 60]) }, { maxConcurrentRuns: 1 },
  )
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, attempts: { count: 3 }, max_total_tokens: 100,
  })
  assert.equal(details.end_reason, 'token_budget')
  assert.equal(details.usage.model_calls, 1)
  const { runs } = await engine.list({ parent: details.run_id })
  assert.equal(runs.filter(({ started_at }) => started_at === null).length, 2)
})

test('a call that is approved after others have used up the budget does not run', async (t) => {
  const { tool, ran } = counter()
  const asks: Brain = (_, turn) => ({ calls: turn === 0 ? [{ tool: 'count', args: {} }] : [] })
  const { engine, cwd } = await openFamily(t, { asks }, { tools: [tool], maxConcurrentRuns: 2 })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await engine.create({
    goal: GOAL, attempts: { count: 2 }, max_tool_calls: 1, approval: 'all', max_iterations: 1,
  })
  const root = details.run_id
  const waiting = new Promise<string>((resolve) => {
    engine.observe(({ details: { root_run_id, run_id, status } }) => {
      if (root_run_id === root && status === 'awaiting_human') resolve(run_id)
    })
  })
  const first = await waiting
  const { gate } = await engine.get(first)
  await engine.resume(first, { decision: 'approve', gate_id: gate!.gate_id })
  await follow(engine, first)
  const { runs } = await engine.list({ parent: details.run_id })
  const second = runs.find(({ run_id }) => run_id !== first)!
  const open = await engine.get(second.run_id)
  // Opened before the budget was used up: its answer runs nothing.
  if (open.gate !== null)
    await engine.resume(second.run_id, { decision: 'approve', gate_id: open.gate.gate_id })
  await follow(engine, root)
  assert.equal(ran(), 1)
  assert.equal((await engine.get(root)).end_reason, 'tool_call_budget')
})
