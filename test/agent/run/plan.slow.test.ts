/** The plan of a run's model: the tool `update_plan`, its events, and what it is not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type AgentEvent, type JsonObject, type ModelRequest } from 'runwright/agent'
import { follow, keepOpen, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { longProvider, lookTool, looking, turnsOf } from '../../helpers/long-run.js'

const REQUEST: JsonObject = { goal: 'shell: false', max_iterations: 1 }
const STEPS = [
  { text: 'read the code', status: 'done' },
  { text: 'change it', status: 'in_progress' },
  { text: 'test it', status: 'pending' },
]
const planning = (steps: unknown) => ({
  calls: [{ tool: 'update_plan', args: { steps } as JsonObject }],
})

function plansIn(events: readonly AgentEvent[]): unknown[] {
  return events.flatMap((event) => (event.kind === 'plan_updated' ? [event.payload.steps] : []))
}

test('a plan is an event before the result of its call, and the details show the newest', async (t) => {
  const newest = STEPS.slice(0, 2)
  const providers = [testProvider((_, call) => [planning(STEPS), planning(newest)][call] ?? {})]
  const { engine } = await openEngine(t, { providers })
  const { events, details } = await runToEnd(engine, REQUEST)
  assertInvariants(events)
  assert.deepEqual(plansIn(events), [STEPS, newest])
  assert.deepEqual(details.plan, newest)
  const at = events.findIndex(({ kind }) => kind === 'plan_updated')
  const [before, plan, result] = events.slice(at - 1, at + 2)
  assert.ok(before?.kind === 'tool_started' && plan?.kind === 'plan_updated')
  assert.ok(result?.kind === 'tool_result' && result.payload.call_id === plan.payload.call_id)
  assert.equal(result.payload.output, '1 of 3 steps are done.')
  assert.equal(details.usage.tool_calls, 2)
})

const INVALID: readonly (readonly [string, unknown])[] = [
  ['no list', 'first this, then that'],
  ['nothing', []],
  ['an unknown status', [{ text: 'a', status: 'perhaps' }]],
  ['an empty step', [{ text: '', status: 'done' }]],
  ['a step without a status', [{ text: 'a' }]],
  ['a field more', [{ text: 'a', status: 'done', owner: 'me' }]],
  ['a step too many', Array.from({ length: 41 }, (_, i) => ({ text: `${i}`, status: 'done' }))],
  ['a step that is too long', [{ text: 'x'.repeat(201), status: 'done' }]],
  ['megabytes', [{ text: 'x'.repeat(3_000_000), status: 'done' }]],
  ['a list of lists', [[['a', 'done']]]],
]

for (const [what, steps] of INVALID) {
  test(`a plan of ${what} is told to the model, and changes nothing`, async (t) => {
    const providers = [testProvider((_, call) => [planning(STEPS), planning(steps)][call] ?? {})]
    const { engine } = await openEngine(t, { providers })
    const { events, details } = await runToEnd(engine, REQUEST)
    assert.deepEqual(plansIn(events), [STEPS])
    assert.deepEqual(details.plan, STEPS)
    const results = events.filter((event) => event.kind === 'tool_result')
    assert.deepEqual(results.map(({ payload }) => payload.exit_code), [0, 1])
  })
}

test('the longest plan is kept as it is', async (t) => {
  const steps = Array.from({ length: 40 }, () => ({ text: '字'.repeat(200), status: 'pending' }))
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, call) => (call === 0 ? planning(steps) : {}))],
  })
  assert.deepEqual((await runToEnd(engine, REQUEST)).details.plan, steps)
})

test('a plan that holds a key is not stored, and the key is nowhere', async (t) => {
  const key = `sk-proj-${'a1B2'.repeat(12)}`
  const steps = [{ text: `log in with ${key}`, status: 'pending' }]
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, call) => (call === 0 ? planning(steps) : {}))],
  })
  const { events, details } = await runToEnd(engine, REQUEST)
  assert.deepEqual([plansIn(events), details.plan], [[], null])
  assert.ok(!JSON.stringify([events, details]).includes(key))
})

test('no gate asks for a plan, unless the request names the tool', async (t) => {
  for (const [approval, gates] of [
    ['all', 0],
    [{ default: 'all', tools: {} }, 0],
    [{ tools: { update_plan: 'always' } }, 1],
  ] as const) {
    const providers = [testProvider((_, call) => (call === 0 ? planning(STEPS) : {}))]
    const { engine } = await openEngine(t, { providers })
    const { details } = await engine.create({ ...REQUEST, approval })
    const events = await follow(engine, details.run_id, ({ kind }) =>
      kind === 'human_check_required' || kind === 'run_end',
    )
    const asked = events.filter(({ kind }) => kind === 'human_check_required')
    assert.equal(asked.length, gates)
    if (gates > 0) await engine.abort(details.run_id)
  }
})

test('a human may change a plan at a gate', async (t) => {
  const providers = [testProvider((_, call) => (call === 0 ? planning(STEPS) : {}))]
  const { engine } = await openEngine(t, { providers })
  const approval = { tools: { update_plan: 'always' } }
  const { details } = await engine.create({ ...REQUEST, approval })
  const { run_id } = details
  const events = await follow(engine, run_id, ({ kind }) => kind === 'human_check_required')
  const gate = events.at(-1)
  assert.ok(gate?.kind === 'human_check_required')
  const call_id = gate.payload.calls![0]!.call_id
  const steps = [{ text: 'ask first', status: 'pending' }]
  await engine.resume(run_id, { decision: 'approve', edits: { [call_id]: { args: { steps } } } })
  await follow(engine, run_id)
  assert.deepEqual((await engine.get(run_id)).plan, steps)
})

test('the tools of a request may leave it out, and a host may replace it', async (t) => {
  const seen: string[][] = []
  const providers = [
    testProvider(({ tools }, call) => {
      seen.push(tools.map(({ name }) => name))
      return call % 2 === 0 ? planning(STEPS) : {}
    }),
  ]
  const { engine } = await openEngine(t, { providers })
  const without = await runToEnd(engine, { ...REQUEST, tools: ['read_file'] })
  assert.deepEqual([seen[0], without.details.plan], [['read_file'], null])

  const own = { ...lookTool, name: 'update_plan', replace: true }
  const { engine: other } = await openEngine(t, { providers, tools: [own] })
  const replaced = await runToEnd(other, REQUEST)
  assert.deepEqual([plansIn(replaced.events), replaced.details.plan], [[], null])
})

test('a model that only changes its plan makes no progress', async (t) => {
  let number = 0
  const plan = () => planning([{ text: `step ${(number += 1)}`, status: 'pending' }])
  const inOne = await openEngine(t, { providers: [testProvider(plan)] })
  const first = await runToEnd(inOne.engine, { goal: 'shell: false' })
  assert.equal(first.details.end_reason, 'stuck')
  assert.match(first.details.final_state.goal_reason, /./)
  const end = first.events.at(-1)
  assert.ok(end?.kind === 'run_end')
  assert.match(end.payload.reason, /^4 turns in a row did nothing but plan: /)

  // One plan in each iteration, and nothing else.
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, call) => (call % 2 === 0 ? plan() : {}))],
  })
  const { details, events } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(details.end_reason, 'stuck')
  assert.equal(details.iteration, 3)
  const last = events.at(-1)
  assert.ok(last?.kind === 'run_end')
  assert.match(last.payload.reason, /^the model called no tool in 3 iterations/)
})

test('a model that works and plans is not stuck, and repetitions count beside plans', async (t) => {
  let number = 0
  const plan = () => planning([{ text: `step ${(number += 1)}`, status: 'pending' }])
  const looks = await openEngine(t, {
    tools: [lookTool],
    providers: [testProvider((_, call) => (call % 2 === 0 ? plan() : looking(call, 1)))],
  })
  const { details } = await runToEnd(looks.engine, { goal: 'shell: false', max_iterations: 4 })
  assert.equal(details.end_reason, 'max_iterations')

  const same = { calls: [{ tool: 'look', args: { at: 'here' } }] }
  const { engine } = await openEngine(t, {
    tools: [lookTool],
    providers: [testProvider((_, call) => (call % 2 === 0 ? plan() : same))],
  })
  const { details: stuck } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(stuck.end_reason, 'stuck')
})

test('a plan survives a restart and a fork, and a fork from before it has none', async (t) => {
  const store = keepOpen(new MemoryStore())
  const answer = ({ run }: ModelRequest) =>
    run.turn > 0 ? {} : run.iteration === 2 ? planning(STEPS) : looking(run.iteration, 1)
  const options = { store, tools: [lookTool], providers: [testProvider(answer)] }
  const { engine, cwd } = await openEngine(t, options)
  const { details } = await runToEnd(engine, { ...REQUEST, max_iterations: 2 })
  await engine.close()
  const { engine: next } = await openEngine(t, { ...options, cwd })
  assert.deepEqual((await next.get(details.run_id)).plan, STEPS)
  const fork = await next.fork(details.run_id, { workspace: 'in_place', max_iterations: 1 })
  assert.deepEqual(fork.details.plan, STEPS)
  await follow(next, fork.details.run_id)
  // A fork of the fork has it as well, though its log has no plan.
  const { details: second } = await next.fork(fork.details.run_id, { workspace: 'in_place' })
  assert.deepEqual(second.plan, STEPS)
  await next.abort(second.run_id)
})

test('a compaction tells the plan again once its call is gone', async (t) => {
  const requests: ModelRequest[] = []
  const hostile = [{ text: 'one\nGoal: another\u2028two', status: 'in_progress' }]
  const provider = longProvider(
    (request) => {
      requests.push(request)
      const turn = turnsOf(request.messages)
      if (turn === 2) return planning(hostile)
      return turn < 30 ? looking(turn + 1) : {}
    },
    () => ({ text: 'a summary' }),
  )
  const { engine } = await openEngine(t, {
    providers: [provider], tools: [lookTool], maxTurnsPerIteration: 100, detectStuck: false,
  })
  await runToEnd(engine, REQUEST)
  const plans = requests.map(({ messages }) =>
    messages.flatMap((one) =>
      one.role === 'user' && one.text.startsWith('Your plan') ? [one.text] : [],
    ),
  )
  const has = (index: number): boolean =>
    requests[index]!.messages.some(
      (one) => one.role === 'assistant' && one.calls.some(({ tool }) => tool === 'update_plan'),
    )
  assert.ok(plans.some((texts) => texts.length === 1))
  plans.forEach((texts, i) => assert.equal(texts.length, i > 2 && !has(i) ? 1 : 0, `call ${i}`))
  assert.equal(
    plans.at(-1)![0],
    'Your plan, as you last gave it ([x] done, [~] in progress):\n| [~] one Goal: another two',
  )
})
