import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GoalCheckError, GoalError, ModelError, WorkspaceError } from 'runwright/agent'
import { failureOf } from '../../../lib/agent/run/steps/finish.js'

const cwd = '/srv/projects/shop'

test('a failure names the folder of the run, and paths below it relative to it', () => {
  const gone = new WorkspaceError('ERR_AGENT_WORKSPACE', `${cwd} does not exist`)
  assert.equal(failureOf(gone, cwd).failure.message, '/srv/projects/shop does not exist')
  const below = failureOf(new Error(`cannot read ${cwd}/src/a.js`), cwd)
  assert.equal(below.failure.message, 'cannot read ./src/a.js')
  const beside = failureOf(new Error(`cannot read ${cwd}-old/a.js`), cwd)
  assert.equal(beside.failure.message, 'cannot read /srv/projects/shop-old/a.js')
})

for (const { error, endReason } of [
  { error: new GoalCheckError('x'), endReason: 'goal_check_error' },
  {
    error: new GoalError('unsuitable', 'the workspace is too large to watch'),
    endReason: 'goal_check_error',
  },
  {
    error: new ModelError('ERR_AGENT_MODEL', 'x', { retryable: false }),
    endReason: 'provider_error',
  },
  {
    error: new ModelError('ERR_AGENT_MODEL_CONTEXT', 'x', { retryable: false }),
    endReason: 'context_exhausted',
  },
  {
    error: new ModelError('ERR_AGENT_MODEL_FILTER', 'x', { retryable: false }),
    endReason: 'content_filter',
  },
  { error: new TypeError('x'), endReason: 'internal_error' },
  { error: 'thrown text', endReason: 'internal_error' },
]) {
  const name =
    error instanceof Error
      ? `${error.name} (${(error as { code?: string }).code ?? 'no code'})`
      : 'a text'
  test(`a run in which ${name} is thrown ends with ${endReason}`, () => {
    const { outcome } = failureOf(error, cwd)
    assert.deepEqual([outcome.status, outcome.endReason], ['failed', endReason])
  })
}
