import assert from 'node:assert/strict'
import { test } from 'node:test'
import { follow, openEngine, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

for (const { says, output_tokens, total } of [
  { says: '1e308', output_tokens: 1e308, total: 3e11 },
  { says: 'Infinity', output_tokens: Infinity, total: 3e11 },
  { says: 'NaN', output_tokens: NaN, total: 0 },
  { says: '-7', output_tokens: -7, total: 0 },
  { says: '2.75', output_tokens: 2.75, total: 6 },
  { says: 'a string of', output_tokens: '7' as unknown as number, total: 0 },
]) {
  test(`totals stay integers when a model reports ${says} tokens`, async (t) => {
    const tokens = [0, output_tokens] as const
    const provider = testProvider((_, n) =>
      n < 2
        ? { tokens, calls: [{ tool: 'bash', args: { command: `echo ${n}` } }] }
        : { tokens, text: 'done' },
    )
    const { engine } = await openEngine(t, { providers: [provider] })
    const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
    const events = await follow(engine, details.run_id)
    assertInvariants(events)
    const end = events.at(-1)
    assert.ok(end?.kind === 'run_end')
    assert.equal(end.payload.total_tokens, total)
    assert.equal((await engine.get(details.run_id)).usage.output_tokens, total)
  })
}
