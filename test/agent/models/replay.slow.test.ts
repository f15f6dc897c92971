import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { InvalidRequestError, MemoryStore, ModelError, type AgentEvent } from 'runwright/agent'
import {
  follow,
  openEngine,
  runToEnd,
  scratch,
  testProvider,
  type Said,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const said: readonly Said[] = [
  {
    text: 'I look.',
    calls: [
      { tool: 'bash', args: { command: 'ls' } },
      { tool: 'list_files', args: {} },
    ],
    tokens: [100, 20],
  },
  { calls: [{ tool: 'write_file', args: { path: 'done', content: 'yes' } }], tokens: [200, 10] },
  { text: 'That is all.', tokens: [300, 5] },
]

/** The parts of a run's events that its replay must repeat. */
const gist = (events: readonly AgentEvent[]): unknown[] =>
  events.map(({ kind, payload, iteration }): unknown => {
    if (kind === 'llm_usage') return [kind, iteration, payload.input_tokens, payload.output_tokens]
    if (kind === 'model_turn') return [kind, iteration, payload.turn, payload.text, payload.stop]
    if (kind === 'tool_call') return [kind, iteration, payload]
    if (kind === 'tool_result') return [kind, payload.call_id, payload.exit_code]
    if (kind === 'run_end') return [kind, payload.status, payload.end_reason, payload.total_tokens]
    return [kind, iteration]
  })

test('a replayed run repeats the answers, event by event, and costs nothing', async (t) => {
  let calls = 0
  const provider = testProvider((_, n) => {
    calls += 1
    if (n === 1)
      throw new ModelError('ERR_AGENT_MODEL', 'half a call', {
        retryable: false,
        modelMistake: true,
      })
    return said[n === 0 ? 0 : n - 1] ?? {}
  })
  const { engine, cwd } = await openEngine(t, { providers: [provider] })
  const request = { goal: 'shell: test -f done', max_iterations: 2 }
  const first = await runToEnd(engine, request)
  assert.equal(first.details.status, 'achieved')
  const asked = calls
  rmSync(join(cwd, 'done'))
  const again = await runToEnd(engine, { ...request, model_name: `replay:${first.details.run_id}` })
  assertInvariants(again.events)
  assert.deepEqual(gist(again.events), gist(first.events))
  assert.equal(calls, asked, 'the provider was called')
  assert.equal(again.details.final_state.estimated_cost_usd, 0)
  assert.ok(first.details.final_state.estimated_cost_usd > 0)
  // And a replay can be replayed.
  rmSync(join(cwd, 'done'))
  const third = await runToEnd(engine, { ...request, model_name: `replay:${again.details.run_id}` })
  assert.deepEqual(gist(third.events), gist(first.events))
})

test('a replay fails when it is asked for more turns than were recorded', async (t) => {
  const { engine, cwd } = await openEngine(t, {
    providers: [testProvider((_, n) => said[n + 1] ?? {})],
  })
  const first = await runToEnd(engine, { goal: 'shell: test -f done' })
  rmSync(join(cwd, 'done'))
  const { details } = await runToEnd(engine, {
    goal: 'shell: false',
    max_iterations: 5,
    model_name: `replay:${first.details.run_id}`,
  })
  assert.equal(details.end_reason, 'provider_error')
  assert.match(details.error?.message ?? '', /the run had 2 turns, and turn 3 was asked for/)
})

test('only runs of the same tenant can be replayed; others look like missing ones', async (t) => {
  const folders: Readonly<Record<string, string>> = { a: scratch(t), b: scratch(t), '': scratch(t) }
  const { engine } = await openEngine(t, {
    providers: [testProvider(() => ({}))],
    store: new MemoryStore(),
    roots: (principal) => [folders[principal?.tenant ?? '']!],
  })
  const caller = (tenant: string) => ({ caller: { owner: { id: tenant, tenant } } })
  const { details } = await engine.create({ goal: 'shell: true' }, caller('a'))
  await follow(engine, details.run_id)
  const missing = '01999999-0000-7000-8000-000000000000'
  for (const [runId, tenant] of [[details.run_id, 'b'], [missing, 'a']] as const) {
    const request = { goal: 'shell: true', model_name: `replay:${runId}` }
    await assert.rejects(engine.create(request, caller(tenant)), (error) => {
      assert.ok(error instanceof InvalidRequestError)
      assert.deepEqual(error.violations, [
        { pointer: '/model_name', detail: `replay:${runId}: there is no run ${runId}` },
      ])
      return true
    })
  }
  await assert.rejects(
    engine.create({ goal: 'shell: true', model_name: 'replay:x' }),
    /write replay: and the id of a run/,
  )
  await engine.create({ goal: 'shell: true', model_name: `replay:${details.run_id}` }, caller('a'))
})
