import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CheckpointError, InvalidRequestError, RunStateError, WorkspaceChangedError,
} from 'runwright/agent'
import { bearerKeys } from 'runwright/server'
import { FakeEngine } from '../fake-engine.js'
import { NEWEST, START } from '../fake-workspaces.js'
import { openService } from '../open-service.js'

const caller = { owner: { id: null, tenant: null } }

test('checkpoints are listed, oldest first', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const { status, json } = await opened.call('GET', `/api/runs/${run}/checkpoints`)
  assert.equal(status, 200)
  assert.deepEqual(
    json.map(({ checkpoint_id, reason }: any) => [checkpoint_id, reason]),
    [[START, 'start'], [NEWEST, 'end']],
  )
})

test('the files of the check are listed with their reasons', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const { status, json } = await opened.call('GET', `/api/runs/${run}/check-files`)
  assert.equal(status, 200)
  assert.deepEqual(json, {
    files: [{ path: 'test/add.test.js', reason: 'a test file that the report names' }],
    observed: true,
    sealed_unavailable: null,
  })
})

test('changes are JSON by default, with secrets redacted', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine, readFiles: true })
  const { status, json, text } = await opened.call('GET', `/api/runs/${run}/changes`)
  assert.equal(status, 200)
  assert.deepEqual([json.from, json.to, json.more, json.note], [START, NEWEST, 0, null])
  assert.equal(json.changes.find(({ path }: any) => path === 'keys.txt').redacted, true)
  assert.doesNotMatch(text, /hunter2/)
  await opened.call('GET', `/api/runs/${run}/changes?from=${START}&to=now&only=delivered`)
  const range = { from: START, to: 'now', only: 'delivered' }
  assert.deepEqual(engine.calls.at(-1), ['changes', run, range, caller])
  const refused = await opened.call('GET', `/api/runs/${run}/changes?only=verified`)
  assert.equal(refused.status, 422)
  assert.match(refused.text, /only/)
})

test('changes are one patch by Accept, for download only', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.workspaces.secrets.clear()
  await using opened = await openService({ engine })
  const headers = { accept: 'text/x-diff' }
  const answer = await opened.call('GET', `/api/runs/${run}/changes?from=start`, { headers })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'text/x-diff')
  assert.match(String(answer.headers['content-disposition']), /^attachment; filename=".+\.patch"/)
  assert.match(String(answer.headers['content-security-policy']), /sandbox/)
  assert.match(answer.text, /console\.log\(1\)/)
  const other = await opened.call('GET', `/api/runs/${run}/changes`, {
    headers: { accept: 'text/html' },
  })
  assert.equal(other.status, 406)
})

test('a patch with secrets is refused by name, unless the host lets the caller read', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  const headers = { accept: 'text/x-diff', authorization: 'Bearer ann-key-0123456789' }
  const seen: unknown[] = []
  for (const { readFiles, status } of [
    { readFiles: undefined, status: 403 },
    { readFiles: false, status: 403 },
    { readFiles: true, status: 200 },
    {
      readFiles: (principal: unknown) => {
        seen.push(principal)
        return true
      },
      status: 200,
    },
    { readFiles: () => false, status: 403 },
  ]) {
    const authorize = bearerKeys({ ann: 'ann-key-0123456789' })
    await using opened = await openService({ engine, readFiles, authorize })
    const answer = await opened.call('GET', `/api/runs/${run}/changes`, { headers })
    assert.equal(answer.status, status)
    if (status === 200) assert.match(answer.text, /hunter2/)
    else {
      assert.deepEqual([answer.json.code, answer.json.paths], ['redacted', ['keys.txt']])
      assert.doesNotMatch(answer.text, /hunter2/)
    }
    const { authorization } = headers
    const files = `/api/runs/${run}/files`
    const file = await opened.call('GET', `${files}/keys.txt`, { headers: { authorization } })
    assert.equal(file.status, status)
    const plain = await opened.call('GET', `${files}/readme.md`, { headers: { authorization } })
    assert.equal(plain.status, 200, 'files without secrets are for everybody')
  }
  assert.deepEqual(seen[0], { id: 'ann', tenant: null })
})

test('a rule that answers with anything but true or false opens nothing', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  const rejected = (): Promise<never> => Promise.reject(new Error('no such user'))
  for (const rule of [() => Promise.resolve(true), rejected, () => 'yes', () => 1, () => null]) {
    const readFiles = rule as unknown as () => boolean
    await using opened = await openService({ engine, readFiles })
    const headers = { accept: 'text/x-diff' }
    const answer = await opened.call('GET', `/api/runs/${run}/changes`, { headers })
    assert.equal(answer.status, 500)
    assert.match(String(opened.errors[0]), /readFiles must return true or false/)
  }
})

test('restore, apply and discard are passed on', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}`
  const body = { checkpoint_id: START, force: true }
  const restored = await opened.call('POST', `${path}/restore`, { body })
  assert.deepEqual([restored.status, restored.json.restored], [200, START])
  assert.equal(restored.json.checkpoint_id, NEWEST)
  assert.deepEqual(engine.calls.at(-1), ['restore', run, body, caller])
  const applied = await opened.call('POST', `${path}/apply`)
  assert.deepEqual([applied.status, applied.json.merged], [200, ['readme.md']])
  assert.deepEqual(engine.calls.at(-1), ['apply', run, {}, caller])
  const dry = await opened.call('POST', `${path}/apply`, { body: { dry_run: true } })
  assert.equal(dry.json.checkpoint_id, null)
  const discarded = await opened.call('POST', `${path}/discard`)
  assert.deepEqual([discarded.status, discarded.text], [204, ''])
  assert.equal((await opened.call('POST', `${path}/discard`, { body: { x: 1 } })).status, 422)
  assert.equal((await opened.call('POST', `${path}/restore`)).status, 422)
})

for (const { error, status, code, paths } of [
  {
    error: new WorkspaceChangedError('changed', ['a', 'b']),
    status: 409, code: 'workspace_changed', paths: ['a', 'b'],
  },
  {
    error: new WorkspaceChangedError('conflict', ['a']),
    status: 409, code: 'apply_conflict', paths: ['a'],
  },
  { error: new CheckpointError('unknown', 'm'), status: 404, code: 'checkpoint_not_found' },
  {
    error: new CheckpointError('not_kept', 'm', ['a']),
    status: 410, code: 'content_not_kept', paths: ['a'],
  },
  { error: new CheckpointError('off', 'm'), status: 409, code: 'checkpoints_off' },
  { error: new CheckpointError('unsupported', 'm'), status: 501, code: 'unsupported' },
  { error: new RunStateError('live', 'm'), status: 409, code: 'run_live' },
  { error: new RunStateError('no_changes', 'm'), status: 409, code: 'no_changes' },
]) {
  test(`${code} is answered with ${status} and the paths`, async () => {
    const engine = new FakeEngine()
    const run = engine.add()
    await using opened = await openService({ engine })
    engine.failure = error
    const { status: got, json } = await opened.call('POST', `/api/runs/${run}/apply`)
    assert.deepEqual([got, json.code, json.paths], [status, code, paths])
    assert.deepEqual(opened.errors, [])
  })
}

test('a fork is a run of its own, at its own place', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine, basePath: '/agents' })
  const body = { at: { iteration: 2 }, message: 'try again' }
  const headers = {
    'idempotency-key': 'k1',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  }
  const answer = await opened.call('POST', `/agents/api/runs/${run}/fork`, { body, headers })
  assert.equal(answer.status, 201)
  assert.equal(answer.headers.location, `/agents/api/runs/${answer.json.run_id}`)
  assert.notEqual(answer.json.run_id, run)
  assert.deepEqual(answer.json.forked_from, { run_id: run, seq: 1 })
  const trace = { traceparent: headers.traceparent, tracestate: null }
  const options = { caller, idempotencyKey: 'k1', trace }
  assert.deepEqual(engine.calls.at(-1), ['fork', run, body, options])
  assert.equal((await opened.call('POST', `/agents/api/runs/${run}/fork`)).status, 201)
})

test('a message is accepted, and refused once the run has ended', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}/messages`
  const body = { text: 'use tabs', deliver: 'next_iteration' }
  const headers = { 'idempotency-key': 'k1' }
  const answer = await opened.call('POST', path, { body, headers })
  assert.deepEqual([answer.status, answer.json], [202, { message_id: 'm1' }])
  assert.deepEqual(engine.calls.at(-1), ['message', run, body, { caller, idempotencyKey: 'k1' }])
  assert.equal((await opened.call('POST', path)).status, 422)
  const empty = await opened.call('POST', path, { headers: { 'idempotency-key': '' } })
  assert.equal(empty.status, 422)
  engine.failure = new RunStateError('too_many_messages', '100 messages wait')
  const full = await opened.call('POST', path, { body })
  assert.deepEqual([full.status, full.json.code], [429, 'too_many_messages'])
  assert.match(String(full.headers['retry-after']), /^\d+$/)
  engine.finish(run)
  const late = await opened.call('POST', path, { body })
  assert.deepEqual([late.status, late.json.code], [409, 'run_ended'])
  assert.match(late.json.detail, /fork/)
})

test('a change of the request is stored, and refused once the run has ended', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}`
  const body = { may_change: ['test/a.test.js'] }
  const headers = { 'idempotency-key': 'k1' }
  const answer = await opened.call('PATCH', path, { body, headers })
  assert.deepEqual([answer.status, answer.json.run_id], [200, run])
  assert.deepEqual(answer.json.may_change, body.may_change)
  assert.deepEqual(engine.calls.at(-1), ['update', run, body, { caller, idempotencyKey: 'k1' }])
  const detail = 'must be a glob of paths in the working directory'
  engine.failure = new InvalidRequestError([{ pointer: '/may_change/1', detail }])
  const invalid = await opened.call('PATCH', path, { body })
  assert.deepEqual([invalid.status, invalid.json.errors], [
    422, [{ pointer: '/may_change/1', detail }],
  ])
  engine.failure = new RunStateError('ended', 'run x has ended: fork it')
  const late = await opened.call('PATCH', path, { body })
  assert.deepEqual([late.status, late.json.code], [409, 'run_ended'])
})

test('while the service drains, nothing is forked, and what is stored can be read', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const closing = opened.service.close({ graceMs: 0 })
  for (const [method, path] of [
    ['POST', `/api/runs/${run}/fork`],
    ['GET', `/api/runs/${run}/check-files`],
    ['GET', `/api/runs/${run}/checkpoints`],
  ] as const) {
    const answer = await opened.call(method, path)
    assert.deepEqual([answer.status, answer.json.code], [503, 'draining'], path)
  }
  await closing
})
