import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RunServiceClient } from 'runwright/server'
import { openReal } from '../real.js'
import { refusal } from './refusal.js'

for (const over of ['a socket', 'the handler in process']) {
  test(`a run is started, read, controlled and deleted over ${over}`, async (t) => {
    const real = await openReal(t, { service: { basePath: '/agents' } })
    const baseUrl = `http://127.0.0.1:${real.port}/agents`
    await using runs =
      over === 'a socket'
        ? new RunServiceClient({ baseUrl, trustEnv: false })
        : RunServiceClient.inProcess(real.service)

    const created = await runs.create({
      goal: 'shell: false',
      hitl_enabled: true,
      metadata: { a: 'b' },
    })
    assert.equal(created.metadata['a'], 'b')
    for await (const event of runs.events(created.run_id)) {
      if (event.kind !== 'human_check_required') continue
      const { gate } = await runs.get(created.run_id)
      assert.equal(gate?.gate_id, event.payload.gate_id)
      const approves = event.iteration === 1
      const decision = approves ? 'approve' : 'abort'
      const answer = await runs.resume(created.run_id, { decision, gate_id: event.payload.gate_id })
      assert.equal(answer.decision, decision)
    }
    assert.equal((await runs.get(created.run_id)).end_reason, 'human_abort')
    assert.equal((await runs.abort(created.run_id)).status, 'aborted')

    const again = await runs.retry(created.run_id)
    assert.equal(again.parent_run_id, created.run_id)
    await runs.abort(again.run_id)
    assert.equal((await runs.wait(again.run_id)).status, 'aborted')
    assert.equal((await runs.list()).runs.length, 2)
    await runs.delete(again.run_id)
    assert.equal((await refusal(runs.get(again.run_id))).code, 'run_not_found')

    assert.ok((await runs.models()).some(({ name }) => name === 'builtin:repair'))
    assert.ok((await runs.goals()).some(({ name }) => name === 'node-test'))
    const health = await runs.health()
    assert.equal(health.status, 'ok')
    assert.equal(health.runs?.aborted, 1)
  })
}
