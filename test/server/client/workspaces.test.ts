import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CheckpointError, WorkspaceChangedError } from 'runwright/agent'
import { MockTransport, Response } from 'runwright/http'
import { RunServiceClient, RunServiceError } from 'runwright/server'
import { FakeEngine } from '../fake-engine.js'
import { NEWEST, START } from '../fake-workspaces.js'
import { openService } from '../open-service.js'

const caller = { owner: { id: null, tenant: null } }

test('checkpoints, changes and files of a run are read', async () => {
  const engine = new FakeEngine()
  const id = engine.add()
  await using opened = await openService({ engine, basePath: '/agents' })
  await using runs = RunServiceClient.inProcess(opened.service)
  assert.deepEqual(
    (await runs.checkpoints(id)).map(({ checkpoint_id }) => checkpoint_id),
    [START, NEWEST],
  )
  const { files, observed } = await runs.checkFiles(id)
  assert.deepEqual([files[0]?.path, observed], ['test/add.test.js', true])
  const { from, to } = await runs.changes(id, { from: NEWEST, to: 'now' })
  assert.deepEqual([from, to], [NEWEST, 'now'])
  assert.equal((await runs.changes(id)).from, START)
  await runs.changes(id, { only: 'delivered' })
  assert.deepEqual(engine.calls.at(-1)?.[2], { from: undefined, to: undefined, only: 'delivered' })
  engine.workspaces.secrets.clear()
  assert.match(Buffer.from(await runs.patch(id, { from: 'start' })).toString(), /console\.log/)
  assert.equal((await runs.files(id)).path, '')
  assert.equal((await runs.files(id, 'src', { at: START })).at, START)
  assert.equal(Buffer.from(await runs.file(id, 'readme.md')).toString(), 'hello\n')
})

for (const path of ['a b/ä#?%.txt', 'a\udcff/x', '...', "it's (1)!.js", 'a\\b', '%2e%2e', '\n']) {
  test(`the file ${JSON.stringify(path)} is found under its name`, async () => {
    const engine = new FakeEngine()
    const id = engine.add()
    engine.workspaces.files.set(path, Buffer.from([0, 255, 10]))
    await using opened = await openService({ engine })
    const baseUrl = `http://127.0.0.1:${opened.port}`
    await using runs = new RunServiceClient({ baseUrl, trustEnv: false })
    assert.deepEqual([...(await runs.file(id, path))], [0, 255, 10])
    const { entries } = await runs.files(id, path.includes('/') ? path.split('/')[0] : '')
    assert.ok(entries.some((entry) => entry.path === path))
  })
}

test('a path that would be the path of something else is refused before it is sent', async () => {
  const transport = new MockTransport(() => new Response(200, { json: {} }))
  await using runs = new RunServiceClient({ baseUrl: 'http://a.test', transport })
  for (const path of ['.', '..', '../x', 'a/../b', 'a//b', '/a', 'a/', 'a/.', null] as string[]) {
    await assert.rejects(async () => runs.file('x', path), TypeError)
    await assert.rejects(async () => runs.files('x', path), TypeError)
  }
  await assert.rejects(runs.files('x', '', { att: 'now' } as object), /att/)
  await assert.rejects(runs.changes('x', { form: 'start' } as object), /from/)
  assert.equal(transport.requests.length, 0)
})

test('restore, apply, discard, fork, message and update are sent once, with their fields', async () => {
  const engine = new FakeEngine()
  const id = engine.add()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  const last = (): unknown[] => engine.calls.at(-1)!
  assert.equal((await runs.restore(id, { checkpoint_id: START })).checkpoint_id, NEWEST)
  assert.deepEqual(last(), ['restore', id, { checkpoint_id: START }, caller])
  assert.equal((await runs.apply(id, { paths: ['a\udcff'], dry_run: true })).checkpoint_id, null)
  assert.deepEqual(last(), ['apply', id, { paths: ['a\udcff'], dry_run: true }, caller])
  await runs.discard(id)
  assert.deepEqual(last(), ['discard', id, caller])
  const fork = await runs.fork(id, { at: 'start', message: 'again' }, { idempotencyKey: 'k' })
  assert.equal(fork.forked_from?.run_id, id)
  assert.deepEqual(last().slice(0, 3), ['fork', id, { at: 'start', message: 'again' }])
  assert.equal((last()[3] as { idempotencyKey: string }).idempotencyKey, 'k')
  assert.deepEqual(await runs.message(id, { text: 'use tabs' }), { message_id: 'm1' })
  assert.match((last()[3] as { idempotencyKey: string }).idempotencyKey, /^[0-9a-f-]{36}$/)
  const update = { may_change: ['test/a.test.js'] }
  assert.deepEqual((await runs.update(id, update)).may_change, update.may_change)
  assert.deepEqual(last().slice(0, 3), ['update', id, update])
  assert.match((last()[3] as { idempotencyKey: string }).idempotencyKey, /^[0-9a-f-]{36}$/)
})

test('an error names the files concerned', async () => {
  const engine = new FakeEngine()
  const id = engine.add()
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  for (const [failure, status, code] of [
    [new WorkspaceChangedError('conflict', ['a', 'b']), 409, 'apply_conflict'],
    [new CheckpointError('redacted', 'm', ['a', 'b']), 403, 'redacted'],
  ] as const) {
    engine.failure = failure
    await assert.rejects(runs.apply(id), (error) => {
      assert.ok(error instanceof RunServiceError)
      assert.deepEqual([error.status, error.code, error.paths], [status, code, ['a', 'b']])
      return true
    })
  }
})

test('reads are repeated after a fault, and writes are not', async () => {
  const transport = new MockTransport(() => new Response(503, { content: '' }))
  await using runs = new RunServiceClient({
    baseUrl: 'http://a.test',
    transport,
    retry: { retries: 1, backoffMs: 0 },
  })
  const id = 'x'
  for (const [call, attempts] of [
    [() => runs.changes(id), 2],
    [() => runs.file(id, 'a'), 2],
    [() => runs.apply(id), 1],
    [() => runs.restore(id, { checkpoint_id: START }), 1],
    [() => runs.discard(id), 1],
    [() => runs.fork(id), 1],
    [() => runs.message(id, { text: 'x' }), 1],
    [() => runs.update(id, { may_change: [] }), 1],
  ] as const) {
    const before = transport.requests.length
    await assert.rejects(call, RunServiceError)
    assert.equal(transport.requests.length - before, attempts, String(call))
  }
})
