import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileStore, MemoryStore, type RunStore } from 'runwright/agent'
import { openEngine, payloads, runToEnd, scratch, type Cleanups } from '../../helpers/engine.js'
import { assertStorable, BAD, BAD_RUNS, badWriters, REFUSED } from '../../helpers/bad-writers.js'
import { assertInvariants } from '../../helpers/invariants.js'

const STORES: Readonly<Record<string, (t: Cleanups) => RunStore>> = {
  MemoryStore: () => new MemoryStore(),
  FileStore: (t) => new FileStore({ directory: scratch(t) }),
}

for (const [name, newStore] of Object.entries(STORES)) {
  test(`${name}: whatever models and tools write is storable in the log`, async (t) => {
    const store = newStore(t)
    const { engine } = await openEngine(t, { store, ...badWriters() })
    for (const [request, endReason] of BAD_RUNS) {
      const { events, details } = await runToEnd(engine, request)
      assertInvariants(events)
      assert.equal(details.end_reason, endReason, JSON.stringify(request))
      await assertStorable(store, details.run_id)
    }
  })
}

test('a call with NUL or half of a character in its arguments is not run', async (t) => {
  const { engine } = await openEngine(t, badWriters())
  const { events } = await runToEnd(engine, BAD_RUNS[0]![0])
  const results = payloads(events, 'tool_result')
  const outputs = (tool: string): readonly string[] =>
    results.filter((result) => result.tool === tool).map(({ output }) => output)
  for (const tool of ['update_plan', 'write_file']) {
    assert.ok(outputs(tool).length > 0)
    for (const output of outputs(tool)) assert.match(output, REFUSED)
  }
  const shown = BAD.replaceAll(/[\0\p{Surrogate}]/gu, '\ufffd')
  assert.deepEqual(outputs('says'), [shown])
  assert.deepEqual(outputs('throws'), [`throws failed: ${shown}`])
  assert.deepEqual(payloads(events, 'reasoning')[0]?.text, shown)
})
