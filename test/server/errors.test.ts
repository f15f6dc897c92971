import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CheckpointError,
  CursorError,
  CwdBusyError,
  EngineClosedError,
  ExhaustedError,
  FileOperationError,
  ForeignFolderError,
  GoalError,
  IdempotencyError,
  InvalidRequestError,
  QueueFullError,
  RunStateError,
  StoreError,
  UnknownRunError,
  WorkspaceChangedError,
  WorkspaceError,
  WorkspaceTooLargeError,
} from 'runwright/agent'
import { ProblemError } from 'runwright/server'
import { problemOf, toProblemError } from '../../lib/server/errors.js'
import { openService } from './open-service.js'
import { FakeEngine } from './fake-engine.js'

const invalid = new InvalidRequestError([
  { pointer: '/goal', detail: 'is required' },
  { pointer: '/hitl_enable', detail: 'is not known' },
])

for (const { error, status, code, pointers = [] } of [
  { error: invalid, status: 422, code: 'invalid_request', pointers: ['/goal', '/hitl_enable'] },
  { error: new GoalError('unknown', 'm'), status: 422, code: 'goal_unknown', pointers: ['/goal'] },
  {
    error: new GoalError('unsuitable', 'm'),
    status: 422,
    code: 'goal_unsuitable',
    pointers: ['/goal'],
  },
  {
    error: new GoalError('not_verifiable', 'm'),
    status: 422,
    code: 'goal_not_verifiable',
    pointers: ['/goal'],
  },
  {
    error: new GoalError('dependencies_missing', 'm'),
    status: 422,
    code: 'dependencies_missing',
    pointers: ['/setup'],
  },
  {
    error: new WorkspaceError('ERR_AGENT_OUTSIDE_WORKSPACE', 'm'),
    status: 422,
    code: 'invalid_request',
    pointers: ['/cwd'],
  },
  { error: new UnknownRunError('r'), status: 404, code: 'run_not_found' },
  { error: new RunStateError('not_waiting', 'm'), status: 409, code: 'not_waiting' },
  { error: new RunStateError('stale_gate', 'm'), status: 409, code: 'stale_gate' },
  { error: new RunStateError('already_decided', 'm'), status: 409, code: 'already_decided' },
  { error: new RunStateError('ended', 'm'), status: 409, code: 'run_ended' },
  { error: new RunStateError('live', 'm'), status: 409, code: 'run_live' },
  { error: new RunStateError('child', 'm'), status: 409, code: 'child_run' },
  { error: new RunStateError('no_changes', 'm'), status: 409, code: 'no_changes' },
  { error: new RunStateError('too_many_messages', 'm'), status: 429, code: 'too_many_messages' },
  { error: new WorkspaceChangedError('changed', ['a']), status: 409, code: 'workspace_changed' },
  { error: new WorkspaceChangedError('in_the_way', ['a']), status: 409, code: 'files_in_the_way' },
  { error: new FileOperationError('no_room', 'm'), status: 507, code: 'no_room' },
  { error: new FileOperationError('fault', 'm'), status: 503, code: 'machine_fault' },
  { error: new FileOperationError('refused', 'm'), status: 409, code: 'files_refused' },
  { error: new FileOperationError('unfinished', 'm'), status: 503, code: 'files_unfinished' },
  { error: new ExhaustedError('m'), status: 503, code: 'machine_fault' },
  { error: new WorkspaceChangedError('conflict', ['a']), status: 409, code: 'apply_conflict' },
  { error: new WorkspaceTooLargeError('/a', 9), status: 422, code: 'workspace_too_large' },
  { error: new CheckpointError('unknown', 'm'), status: 404, code: 'checkpoint_not_found' },
  { error: new CheckpointError('not_kept', 'm'), status: 410, code: 'content_not_kept' },
  { error: new CheckpointError('off', 'm'), status: 409, code: 'checkpoints_off' },
  { error: new CheckpointError('redacted', 'm', ['a']), status: 403, code: 'redacted' },
  { error: new CheckpointError('too_large', 'm'), status: 422, code: 'patch_too_large' },
  { error: new CheckpointError('unsupported', 'm'), status: 501, code: 'unsupported' },
  {
    error: new WorkspaceError('ERR_AGENT_WORKSPACE_LOST', 'm'),
    status: 409,
    code: 'workspace_lost',
  },
  { error: new QueueFullError(256), status: 429, code: 'queue_full' },
  { error: new CwdBusyError('r'), status: 409, code: 'cwd_busy' },
  { error: new ForeignFolderError(), status: 403, code: 'forbidden_cwd' },
  {
    error: new IdempotencyError(),
    status: 422,
    code: 'idempotency_mismatch',
    pointers: ['/idempotency-key'],
  },
  { error: new EngineClosedError(), status: 503, code: 'draining' },
  { error: new CursorError(9, 3), status: 409, code: 'cursor_ahead' },
  { error: new StoreError('ERR_AGENT_STORE', 'secret path'), status: 500, code: 'internal_error' },
  { error: new Error('secret'), status: 500, code: 'internal_error' },
  {
    error: Object.assign(new Error('secret'), { code: 'toString' }),
    status: 500,
    code: 'internal_error',
  },
  { error: 'secret', status: 500, code: 'internal_error' },
  { error: null, status: 500, code: 'internal_error' },
]) {
  const name =
    error instanceof Error
      ? `${error.name} ${(error as { problem?: string }).problem ?? ''}`
      : String(error)
  test(`${name.trim()} is answered with ${status} ${code}`, () => {
    const problem = problemOf(toProblemError(error, false), null)
    assert.equal(problem.status, status)
    assert.equal(problem.code, code)
    assert.equal(problem.type, 'about:blank')
    assert.deepEqual(
      (problem.errors ?? []).map(({ pointer }) => pointer),
      pointers,
    )
    assert.deepEqual(problem.paths ?? [], (error as { paths?: string[] } | null)?.paths ?? [])
    assert.doesNotMatch(JSON.stringify(problem), /secret/)
    assert.match(problem.title, /^[A-Z]/)
  })
}

test('errors that pass have Retry-After', () => {
  assert.match(toProblemError(new QueueFullError(1), false).headers['Retry-After']!, /^\d+$/)
  assert.match(toProblemError(new EngineClosedError(), false).headers['Retry-After']!, /^\d+$/)
})

test('a problem of the host keeps its own status and code', () => {
  const error = new ProblemError(402, 'out_of_credit', 'top up', { headers: { 'X-Hint': 'a' } })
  assert.equal(toProblemError(error, false), error)
  assert.deepEqual(problemOf(error, null), {
    type: 'about:blank',
    title: 'Client Error',
    status: 402,
    detail: 'top up',
    code: 'out_of_credit',
  })
  assert.throws(() => new ProblemError(200, 'x', 'y'), RangeError)
})

test('an unexpected error is a 500 without its text, and goes to onError', async () => {
  const engine = new FakeEngine()
  const calls: unknown[] = []
  await using opened = await openService({
    engine,
    onError: (error, call) => calls.push([String(error), call]),
  })
  engine.failure = new TypeError('secret inside')
  const answer = await opened.call('GET', '/api/runs?goal=hidden')
  assert.equal(answer.status, 500)
  assert.equal(answer.headers['content-type'], 'application/problem+json')
  assert.doesNotMatch(answer.text, /secret/)
  const requestId = answer.headers['x-request-id']
  const failed = { method: 'GET', path: '/api/runs', requestId }
  assert.deepEqual(calls, [['TypeError: secret inside', failed]])
})

test('a throwing log does not delay the response', async () => {
  const engine = new FakeEngine()
  engine.failure = new Error('x')
  await using opened = await openService({
    engine,
    onError: () => {
      throw new Error('disk full')
    },
  })
  assert.equal((await opened.call('GET', '/api/runs')).status, 500)
})

test('a restore that fails tells what was changed, and when to try again', () => {
  const facts = { checkpointId: 'c', missingBytes: 5 }
  const full = toProblemError(new FileOperationError('no_room', 'm', facts), false)
  const files = { changed: 'nothing', checkpoint_id: 'c', missing_bytes: 5 }
  assert.deepEqual([problemOf(full, null).files, full.headers], [files, {}])
  const half = toProblemError(new FileOperationError('unfinished', 'm'), false)
  assert.equal(problemOf(half, null).files?.changed, 'some')
  assert.equal(half.headers['Retry-After'], '5')
})
