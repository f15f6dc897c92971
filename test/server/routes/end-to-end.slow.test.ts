/** The routes of files, forks and messages over the real engine. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, type EngineOptions } from 'runwright/agent'
import { RunServiceClient, RunServiceError, type RunServiceOptions } from 'runwright/server'
import { scratch, type Said } from '../../helpers/engine.js'
import { openReal, shell, type Real } from '../real.js'

const SECRET = `ghp_${'a1B2'.repeat(9)}`

interface World extends Real {
  readonly runs: RunServiceClient
}

/** A service whose runs may change `root`, which has `file` and a folder `ok`. */
async function openWorld(
  t: TestContext,
  answer: (call: number) => Said | Promise<Said>,
  service: Omit<RunServiceOptions, 'engine'> = {},
  engine: Partial<EngineOptions> = {},
): Promise<World> {
  const store = new FileStore({ directory: scratch(t) })
  const real = await openReal(t, {
    answer: (_, call) => answer(call),
    service,
    engine: { store, checkpoints: 'auto', ...engine },
  })
  const baseUrl = `http://127.0.0.1:${real.port}`
  const runs = new RunServiceClient({ baseUrl, trustEnv: false, retry: null })
  t.after(() => runs.close())
  return Object.assign(real, { runs })
}

async function codeOf(call: Promise<unknown>): Promise<[string, readonly string[]]> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof RunServiceError, String(error))
  return [error.code, error.paths]
}

const write = (text: string, name = 'file'): Said => shell(`printf '${text}' > ${name}`)

test('what a run changed is seen, taken back, and brought again', async (t) => {
  const { root, runs, call } = await openWorld(t, (n) => (n === 0 ? write('new\n', 'made') : {}))
  const { run_id } = await runs.create({ goal: 'shell: test -e made' })
  assert.equal((await runs.wait(run_id)).status, 'achieved')
  for (const rest of ['checkpoints', 'changes', 'changes?to=now', 'files', 'files/made']) {
    assert.equal((await call('GET', `/api/runs/${run_id}/${rest}`)).status, 200, rest)
  }
  const { changes, from } = await runs.changes(run_id)
  assert.deepEqual(changes.map(({ path, status }) => [path, status]), [['made', 'added']])
  const patch = await runs.patch(run_id)
  rmSync(join(root, 'made'))
  execFileSync('patch', ['-sp1'], { cwd: root, input: patch })
  assert.equal(readFileSync(join(root, 'made'), 'utf8'), 'new\n')
  const undo = await runs.restore(run_id, { checkpoint_id: from! })
  assert.throws(() => readFileSync(join(root, 'made')))
  // Somebody else is at work: nothing of theirs is overwritten, unless that is wanted.
  writeFileSync(join(root, 'made'), 'theirs')
  const again = { checkpoint_id: undo.checkpoint_id }
  assert.deepEqual(await codeOf(runs.restore(run_id, again)), ['workspace_changed', ['made']])
  assert.equal(readFileSync(join(root, 'made'), 'utf8'), 'theirs')
  await runs.restore(run_id, { ...again, force: true })
  assert.equal(readFileSync(join(root, 'made'), 'utf8'), 'new\n')
  const unknown = runs.restore(run_id, { checkpoint_id: 'a'.repeat(64) })
  assert.equal((await codeOf(unknown))[0], 'checkpoint_not_found')
  // Their events follow run_end in every view of the log.
  const { last_seq } = await runs.get(run_id)
  const kinds: string[] = []
  for await (const { kind } of runs.events(run_id)) kinds.push(kind)
  assert.equal(kinds.length, last_seq)
  assert.ok(kinds.indexOf('files_changed') > kinds.indexOf('run_end'))
})

test('an isolated run is applied where it does not conflict, or discarded', async (t) => {
  const { root, runs } = await openWorld(t, (n) => (n % 2 === 0 ? write('ours') : {}))
  const start = async (): Promise<string> => {
    const request = { goal: 'shell: grep -q ours file', workspace: 'isolated' } as const
    const { run_id } = await runs.create(request)
    assert.equal((await runs.wait(run_id)).changes, 'pending')
    return run_id
  }
  const first = await start()
  assert.equal(readFileSync(join(root, 'file'), 'utf8'), 'x')
  writeFileSync(join(root, 'file'), 'theirs')
  assert.deepEqual(await codeOf(runs.apply(first)), ['apply_conflict', ['file']])
  assert.deepEqual((await runs.apply(first, { dry_run: true })).conflicts, ['file'])
  assert.equal(readFileSync(join(root, 'file'), 'utf8'), 'theirs')
  assert.deepEqual((await runs.apply(first, { force: true })).applied, ['file'])
  assert.equal(readFileSync(join(root, 'file'), 'utf8'), 'ours')
  assert.equal((await runs.get(first)).changes, 'applied')
  writeFileSync(join(root, 'file'), 'x')
  const second = await start()
  await runs.discard(second)
  assert.equal((await runs.get(second)).changes, 'discarded')
  assert.equal((await codeOf(runs.apply(second)))[0], 'no_changes')
  assert.equal(readFileSync(join(root, 'file'), 'utf8'), 'x')
})

for (const readFiles of [false, true]) {
  test(`a file with a secret is ${readFiles ? 'read' : 'refused by name'}`, async (t) => {
    // The command itself holds no secret: it would be refused.
    const command = 'x=a1B2; echo ghp_$x$x$x$x$x$x$x$x$x > käy; echo a > plain'
    const { runs } = await openWorld(t, (n) => (n === 0 ? shell(command) : {}), { readFiles })
    const { run_id } = await runs.create({ goal: 'shell: test -e plain' })
    await runs.wait(run_id)
    const shown = await runs.changes(run_id)
    assert.ok(!JSON.stringify(shown).includes(SECRET))
    assert.equal(shown.changes.find(({ path }) => path === 'käy')?.redacted, true)
    assert.equal(String(Buffer.from(await runs.file(run_id, 'plain'))), 'a\n')
    for (const read of [() => runs.file(run_id, 'käy'), () => runs.patch(run_id)]) {
      if (readFiles) assert.ok(Buffer.from(await read()).includes(SECRET))
      else assert.deepEqual(await codeOf(read()), ['redacted', ['käy']])
    }
  })
}

test('paths that lead elsewhere find nothing, at any time', async (t) => {
  const { call, runs, outside, errors } = await openWorld(t, () => ({}))
  writeFileSync(join(outside, 'x'), 'SECRET')
  const { run_id } = await runs.create({ goal: 'shell: false', max_iterations: 1 })
  await runs.wait(run_id)
  for (const at of ['newest', 'now']) {
    for (const path of ['out/x', 'out', 'nothing', 'file/x', '%2e%2e/x', '..%2fx', '.git/config']) {
      const answer = await call('GET', `/api/runs/${run_id}/files/${path}?at=${at}`)
      assert.ok(answer.status === 404 || answer.status === 422, `${path} ${at} ${answer.status}`)
      assert.doesNotMatch(answer.text, /SECRET/)
    }
    const file = await call('GET', `/api/runs/${run_id}/files/file?at=${at}`)
    assert.deepEqual([file.status, file.text], [200, 'x'])
  }
  assert.deepEqual(errors, [])
})

test('a run hears a message, and is forked with its files', async (t) => {
  const { runs } = await openWorld(t, (n) => (n === 0 ? write('first') : {}))
  const { run_id } = await runs.create({ goal: 'shell: grep -q never file', hitl_enabled: true })
  for await (const { kind } of runs.events(run_id)) {
    if (kind === 'human_check_required') break
  }
  const sent = await runs.message(run_id, { text: 'use tabs' }, { idempotencyKey: 'k' })
  assert.deepEqual(await runs.message(run_id, { text: 'use tabs' }, { idempotencyKey: 'k' }), sent)
  assert.equal((await codeOf(runs.fork(run_id, { workspace: 'in_place' })))[0], 'run_live')
  const changed = { max_iterations: 1, hitl_enabled: false }
  const fork = await runs.fork(run_id, { at: { iteration: 1 }, ...changed })
  assert.equal(fork.forked_from?.run_id, run_id)
  assert.equal(fork.workspace, 'isolated')
  assert.equal((await runs.wait(fork.run_id)).end_reason, 'max_iterations')
  assert.equal(String(Buffer.from(await runs.file(fork.run_id, 'file'))), 'first')
  await runs.abort(run_id)
  await runs.wait(run_id)
  assert.equal((await codeOf(runs.message(run_id, { text: 'x' })))[0], 'run_ended')
})
