import assert from 'node:assert/strict'
import { test } from 'node:test'
import { follow, openEngine, runToEnd, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const edit = (from: string, to: string): Said => ({
  calls: [{ tool: 'edit_file', args: { path: 'a', old_text: from, new_text: to } }],
})

for (const { name, turn, maxTurns, reason } of [
  {
    name: 'in one iteration',
    turn: () => ({ calls: [{ tool: 'read_file', args: { path: 'no' } }] }),
    maxTurns: 50,
    reason: /same calls failed 3 times/,
  },
  {
    name: 'over iterations of one turn',
    turn: () => ({ calls: [{ tool: 'list_files', args: {} }] }),
    maxTurns: 1,
    reason: /same results 4 times/,
  },
  {
    name: 'with edits that alternate',
    turn: (n: number) =>
      n === 0
        ? { calls: [{ tool: 'write_file', args: { path: 'a', content: 'x' } }] }
        : n % 2 === 1
          ? edit('x', 'y')
          : edit('y', 'x'),
    maxTurns: 1,
    reason: /repeated what had been done before/,
  },
] satisfies readonly {
  readonly name: string
  readonly turn: (n: number) => Said
  readonly maxTurns: number
  readonly reason: RegExp
}[]) {
  test(`a model that repeats itself ${name} is warned, then its run ends as stuck`, async (t) => {
    const received: string[] = []
    const provider = testProvider((request, n) => {
      const last = request.messages.findLast(({ role }) => role === 'tool')
      received.push(last?.role === 'tool' ? last.output : '')
      return turn(n)
    })
    const { engine } = await openEngine(t, {
      providers: [provider],
      maxTurnsPerIteration: maxTurns,
    })
    const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 50 })
    assertInvariants(events)
    assert.deepEqual([details.status, details.end_reason, details.error], ['failed', 'stuck', null])
    const end = events.at(-1)
    assert.ok(end?.kind === 'run_end')
    assert.match(end.payload.reason, reason)
    assert.ok(details.usage.model_calls < 12, `${details.usage.model_calls} calls`)
    assert.ok(
      maxTurns > 1 ||
        received.some((output) => /Repeating them once more ends the run/.test(output)),
    )
  })
}

test('approval at a gate gives a repeating run another chance', async (t) => {
  const provider = testProvider(() => ({ calls: [{ tool: 'list_files', args: {} }] }))
  const { engine } = await openEngine(t, { providers: [provider], maxTurnsPerIteration: 1 })
  const { details } = await engine.create({
    goal: 'shell: false',
    hitl_enabled: true,
    max_iterations: 7,
  })
  const events = await follow(engine, details.run_id, (event) => {
    if (event.kind === 'human_check_required')
      void engine.resume(details.run_id, { decision: 'approve' }).catch(() => undefined)
    return false
  })
  assertInvariants(events)
  assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
})
