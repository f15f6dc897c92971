import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, NO_USAGE, type AgentEvent, type Usage } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const usage: Usage = { ...NO_USAGE, input_tokens: 100, output_tokens: 10 }
const counted = (events: readonly AgentEvent[]): number[] =>
  events.flatMap((event) => (event.kind === 'llm_usage' ? [event.payload.input_tokens] : []))

for (const [title, error, expected] of [
  ['a retried call', { retryable: true, retryAfterMs: 0, usage }, [100, 7]],
  ['an unusable turn', { retryable: false, modelMistake: true, usage }, [100, 7]],
  ['a call that is not retried', { retryable: false, usage }, [100]],
  ['a call without reported usage', { retryable: true, retryAfterMs: 0 }, [7]],
] as const) {
  test(`tokens of ${title} count like any others`, async (t) => {
    const provider = testProvider((_, call) => {
      if (call === 0) throw new ModelError('ERR_AGENT_MODEL', 'broken', error)
      return { tokens: [7, 1] }
    })
    const { engine } = await openEngine(t, { providers: [provider], random: () => 0 })
    const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
    assertInvariants(events)
    assert.deepEqual(counted(events), expected)
    const tokens = expected.reduce((sum: number, input) => sum + (input === 100 ? 110 : 8), 0)
    assert.equal(details.final_state.total_tokens, tokens)
    assert.ok(details.final_state.estimated_cost_usd > 0)
  })
}
