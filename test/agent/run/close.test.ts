import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { defineTool, MemoryStore, type Clock } from 'runwright/agent'
import { follow, keepOpen, openEngine, testProvider } from '../../helpers/engine.js'

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

test('an engine that closes before a call has begun leaves no timer of that call', async (t) => {
  const timers = new Set<NodeJS.Timeout>()
  t.after(() => timers.forEach((timer) => clearTimeout(timer)))
  const clock: Clock = {
    now: () => Date.now(),
    setTimeout: (callback, ms) => {
      const timer = setTimeout(() => (timers.delete(timer), callback()), ms)
      timers.add(timer)
      return { cancel: () => (timers.delete(timer), clearTimeout(timer)) }
    },
  }
  let closed: Promise<void> | undefined
  const closes = defineTool({
    name: 'closes',
    description: 'Closes the engine.',
    parameters: { type: 'object', properties: {} },
    effect: 'read',
    async execute(_, { signal }) {
      const isStopped = once(signal, 'abort')
      closed = engine.close()
      await isStopped
      return 'closed'
    },
  })
  const calls = [
    { tool: 'closes', args: {} },
    { tool: 'write_file', args: { path: 'a', content: '' } },
  ]
  const { engine } = await openEngine(t, {
    clock,
    checkpoints: 'auto',
    tools: [closes],
    providers: [testProvider(() => ({ calls }))],
  })
  const { details } = await engine.create({ goal: 'shell: false' })
  await follow(engine, details.run_id)
  await closed
  assert.equal(timers.size, 0)
})
