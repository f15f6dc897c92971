import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { keepOpen, openEngine, testProvider } from '../../helpers/engine.js'

test('an engine that is closing does not begin a run that was created just before', async (t) => {
  const store = keepOpen(new MemoryStore())
  const { engine } = await openEngine(t, { store, providers: [testProvider(() => ({}))] })
  let closed: Promise<void> | undefined
  engine.observe(() => {
    // Longer than the run would take.
    closed ??= engine.close({ graceMs: 600_000 })
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  await closed
  const records = await store.read(details.run_id, 0, 10)
  assert.deepEqual(records.map(({ kind }) => kind), ['run_created'])
})
