import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AgentEvent } from 'runwright/agent'
import { follow, openEngine, runToEnd, testProvider } from '../helpers/engine.js'
import { assertInvariants } from '../helpers/invariants.js'
import { write, kinds, last } from './run-events.js'

test('a run plans, acts, is checked and ends as achieved, event by event', async (t) => {
  const turns = [
    { ...write('done', 'yes'), tokens: [1200, 340] as const },
    { tokens: [10, 5] as const },
  ]
  const { engine, cwd } = await openEngine(t, {
    providers: [testProvider((_, n) => turns[n] ?? {})],
  })
  const { events, details } = await runToEnd(engine, { goal: 'shell: test -f done' })
  assert.deepEqual(kinds(events), [
    'run_created',
    'run_started',
    'goal_check',
    'step_start plan',
    'llm_usage',
    'model_turn',
    'step_start act',
    'tool_call',
    'tool_started',
    'tool_result',
    'llm_usage',
    'model_turn',
    'step_start evaluate',
    'goal_check',
    'iteration_complete',
    'run_end',
  ])
  assertInvariants(events)
  assert.deepEqual(
    events.map(({ iteration }) => iteration),
    [0, 0, 0, ...Array(13).fill(1)],
  )
  assert.equal(details.status, 'achieved')
  assert.equal(details.end_reason, 'goal_achieved')
  assert.equal(details.error, null)
  assert.deepEqual(details.final_state, {
    iteration: 1,
    goal_achieved: true,
    goal_reason: details.final_state.goal_reason,
    total_tokens: 1555,
    estimated_cost_usd: (1210 * 1 + 345 * 2) / 1e6,
  })
  assert.equal(last(events).total_tokens, 1555)
  assert.equal(readFileSync(join(cwd, 'done'), 'utf8'), 'yes')
})

test('max_iterations ends a run as failed, without an error', async (t) => {
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, n) => (n % 2 === 0 ? write('a', `${n}`) : {}))],
  })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 3 })
  assertInvariants(events)
  assert.equal(details.status, 'failed')
  assert.equal(details.end_reason, 'max_iterations')
  assert.equal(details.error, null)
  assert.equal(last(events).iterations, 3)
})

test('late, early and resuming readers get the same gap-free list', async (t) => {
  const provider = testProvider((_, n) => (n < 12 ? write('a', `${n}`) : { stop: 'refusal' }))
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false' })
  const early = follow(engine, details.run_id)
  const middle: AgentEvent[] = await follow(engine, details.run_id, ({ seq }) => seq === 9)
  const rest: AgentEvent[] = []
  for await (const batch of await engine.subscribe(details.run_id, { after: 9 })) {
    rest.push(...batch.map(({ json }) => JSON.parse(json) as AgentEvent))
  }
  const all = await early
  assertInvariants(all)
  assert.deepEqual([...middle, ...rest], all)
  assert.deepEqual(await follow(engine, details.run_id), all)
  assert.deepEqual(await engine.events(details.run_id, { after: 0, limit: 1000 }), all)
  await assert.rejects(engine.subscribe(details.run_id, { after: all.length + 1 }), {
    code: 'ERR_AGENT_CURSOR',
  })
  assert.ok(!all.some((event) => 'private' in event || 'v' in event))
})
