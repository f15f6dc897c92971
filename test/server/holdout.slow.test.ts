/** Held-out tests over the API: what it takes, and what it never says. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeFileSync } from 'node:fs'
import { openReal } from './real.js'

const NAME = 'Kc4HeldOutName'

test('a run with held-out tests answers, streams and ends as described', async (t) => {
  const real = await openReal(t)
  writeFileSync(join(real.root, 'code'), '')
  const files = { [`held/${NAME}.sh`]: `echo ${NAME}; exit 1` }
  const holdout = { files, command: 'sh held/*.sh' }
  const goal = 'shell: test -f code'
  const body = { goal, max_iterations: 1, sealed_checks: 'prefer', holdout }
  const created = await real.call('POST', '/api/runs', { body })
  assert.equal(created.status, 201, created.text)
  const runId: string = created.json.run_id
  using client = await real.socket(`/api/ws/${runId}`)
  const { events } = await client.rest()
  const evaluation = events.find(({ kind }) => kind === 'holdout_evaluation')
  assert.deepEqual(evaluation.payload, { number: 1, of: 3 })
  const details = await real.call('GET', `/api/runs/${runId}`)
  assert.equal(details.json.final_state.goal_reason, 'held-out tests fail (evaluation 1 of 3)')
  assert.deepEqual(details.json.assurance, {
    by: 'exit_code', sealed: true, canaries: false, holdout: false,
  })
  for (const text of [created.text, JSON.stringify(events), details.text])
    assert.equal(text.includes(NAME), false, text)
})

test('held-out tests that cannot be taken are refused without being quoted', async (t) => {
  const real = await openReal(t)
  for (const [holdout, pointer] of [
    [{ folder: `/srv/${NAME}`, command: 'true' }, '/holdout/folder'],
    [{ files: { [`../${NAME}`]: NAME }, command: 'true' }, '/holdout/files'],
    [{ files: { [NAME]: [NAME] }, command: 'true' }, '/holdout/files'],
    [{ files: { a: NAME }, command: 'true', tell: NAME }, '/holdout/tell'],
  ] as const) {
    const body = { goal: 'shell: true', holdout }
    const answer = await real.call('POST', '/api/runs', { body })
    assert.deepEqual([answer.status, answer.json.errors[0].pointer], [422, pointer])
    assert.equal(answer.text.includes(NAME), false, answer.text)
  }
})
