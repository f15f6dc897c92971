/** Engines that were not given the model. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, RunEngine } from 'runwright/agent'
import { atGate, follow, keepOpen, openEngine, payloads, scratch } from '../helpers/engine.js'

test('a stored run of builtin:repair opens without the model, and fails by its name', async (t) => {
  const cwd = scratch(t)
  const store = keepOpen(new MemoryStore())
  const first = await openEngine(t, { cwd, store })
  const request = { goal: 'shell: false', approval: 'all', max_iterations: 3 }
  const { run_id } = (await first.engine.create(request)).details
  await follow(first.engine, run_id, atGate)
  await first.engine.close()

  const engine = await RunEngine.open({ store, roots: [cwd], checkpoints: 'off' })
  t.after(() => engine.close())
  const { model_name, status } = await engine.get(run_id)
  assert.deepEqual([model_name, status], ['builtin:repair', 'awaiting_human'])
  await engine.resume(run_id, { decision: 'approve' })
  const events = await follow(engine, run_id)
  assert.equal((await engine.get(run_id)).status, 'failed')
  assert.match(payloads(events, 'run_end')[0]!.reason, /there is no model "builtin:repair"/)
})

test('an engine without models offers none, and says how to get one', async (t) => {
  const engine = await RunEngine.open({ store: new MemoryStore(), roots: [scratch(t)] })
  t.after(() => engine.close())
  assert.deepEqual(engine.models(), [])
  assert.ok(!engine.tools().some(({ name }) => name === 'try_patches'))
  for (const [request, problem] of [
    [{ goal: 'shell: true' }, /^this host has no model: .*runwright\/repair$/],
    [{ goal: 'shell: true', model_name: 'builtin:repair' }, /^there is no model "builtin:repair"/],
  ] as const) {
    await assert.rejects(engine.create(request), (error: { violations?: unknown }) => {
      const [{ pointer, detail } = { pointer: '', detail: '' }] =
        error.violations as { pointer: string; detail: string }[]
      assert.equal(pointer, '/model_name')
      assert.match(detail, problem)
      return true
    })
  }
})
