import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type EngineOptions, type Message, type RunEngine } from 'runwright/agent'
import {
  follow,
  openEngine,
  runToEnd,
  scratch,
  testProvider,
  type Said,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const write = (path: string, content: string): Said => ({
  calls: [{ tool: 'write_file', args: { path, content } }],
})

/** Each iteration of a run writes its number to the file n; one that is told "show" reads it. */
async function engineOf(
  t: TestContext,
  options: Partial<EngineOptions> = {},
): Promise<{ readonly engine: RunEngine; readonly cwd: string; readonly read: string[] }> {
  const read: string[] = []
  const said = (messages: readonly Message[], iteration: number): Said => {
    const last = messages.at(-1)
    if (last?.role === 'tool') {
      if (last.tool === 'read_file') read.push(last.output)
      return {}
    }
    const shows = messages.some((one) => one.role === 'user' && one.text.endsWith('show'))
    if (shows) return { calls: [{ tool: 'read_file', args: { path: 'n' } }] }
    return write('n', `n${iteration}`)
  }
  const { engine, cwd } = await openEngine(t, {
    store: new MemoryStore(),
    checkpoints: 'auto',
    workspaceFolder: scratch(t),
    providers: [testProvider(({ messages, run }) => said(messages, run.iteration))],
    ...options,
  })
  return { engine, cwd, read }
}

const changed = (paths: readonly string[]) => ({ code: 'ERR_AGENT_WORKSPACE_CHANGED', paths })

test('an isolated fork begins with the files of its point, also of a deleted source', async (t) => {
  const { engine, cwd, read } = await engineOf(t)
  writeFileSync(join(cwd, 'n'), 'n0')
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 3 })
  for (const [at, content] of [
    ['end', 'n3'], [{ iteration: 2 }, 'n2'], [{ iteration: 1 }, 'n1'], ['start', 'n0'],
  ] as const) {
    const request = { at, message: 'show', max_iterations: 1 }
    const fork = await engine.fork(details.run_id, request)
    if (at === 'start') await engine.delete(details.run_id)
    assertInvariants(await follow(engine, fork.details.run_id))
    assert.match(read.at(-1) ?? '', new RegExp(content), JSON.stringify(at))
    const again = await engine.fork(fork.details.run_id, { ...request, at: 'start' })
    await follow(engine, again.details.run_id)
    assert.match(read.at(-1) ?? '', new RegExp(content), `again at ${JSON.stringify(at)}`)
  }
  assert.equal(readFileSync(join(cwd, 'n'), 'utf8'), 'n3')
  assert.equal(read.length, 8)
})

test('a restore of the folder that was meant is none of the copy, for forks', async (t) => {
  const store = new MemoryStore()
  const { engine, cwd, read } = await engineOf(t, { store })
  const request = { goal: 'shell: test -e n', cwd, workspace: 'isolated', max_iterations: 1 }
  const { details } = await runToEnd(engine, request)
  const { checkpoint_id } = await engine.workspaces.apply(details.run_id, {})
  const undo = { checkpoint_id: checkpoint_id! }
  assert.deepEqual((await engine.workspaces.restore(details.run_id, undo)).paths, ['n'])
  const again = { at: 'end', message: 'show', max_iterations: 1 }
  const fork = await engine.fork(details.run_id, again)
  await follow(engine, fork.details.run_id)
  assert.match(read[0] ?? '', /n1/)
  const [created] = await store.read(fork.details.run_id, 0, 1)
  assert.doesNotMatch(JSON.stringify(created), /A human has given/)
})

test('a live run is forked while it waits, and both go on', async (t) => {
  const { engine, cwd, read } = await engineOf(t)
  const request = { goal: 'shell: false', hitl_enabled: true, max_iterations: 3 }
  const { details } = await engine.create(request)
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const fork = await engine.fork(details.run_id, {
    message: 'show', hitl_enabled: false, max_iterations: 1,
  })
  assertInvariants(await follow(engine, fork.details.run_id))
  assert.match(read[0] ?? '', /n1/)
  await engine.resume(details.run_id, { decision: 'approve' })
  await follow(engine, details.run_id, ({ kind, iteration }) =>
    kind === 'human_check_required' && iteration === 2,
  )
  assert.equal(readFileSync(join(cwd, 'n'), 'utf8'), 'n2')
  await engine.abort(details.run_id)
})

test('a fork in place needs the folder as it was', async (t) => {
  const { engine, cwd, read } = await engineOf(t)
  writeFileSync(join(cwd, 'other'), 'one')
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
  const fork = { workspace: 'in_place', message: 'show', max_iterations: 1 }
  const early = { ...fork, at: { iteration: 1 } }
  await assert.rejects(engine.fork(details.run_id, early), changed(['n']))
  writeFileSync(join(cwd, 'other'), 'two')
  await assert.rejects(engine.fork(details.run_id, fork), changed(['other']))
  writeFileSync(join(cwd, 'other'), 'one')
  const { details: forked } = await engine.fork(details.run_id, fork)
  assertInvariants(await follow(engine, forked.run_id))
  assert.match(read[0] ?? '', /n2/)
  writeFileSync(join(cwd, 'n'), 'n1')
  const back = await engine.fork(details.run_id, early)
  await follow(engine, back.details.run_id)
  assert.match(read[1] ?? '', /n1/)
})

test('a message to pending changes is a fork that goes on in the same copy', async (t) => {
  const { engine, cwd, read } = await engineOf(t)
  const request = { goal: 'shell: test -f n', workspace: 'isolated', max_iterations: 2 }
  const { details } = await runToEnd(engine, request)
  assert.deepEqual([details.status, details.changes], ['achieved', 'pending'])
  const fork = await engine.fork(details.run_id, { message: 'show' })
  assertInvariants(await follow(engine, fork.details.run_id))
  const { status, iteration, workspace } = await engine.get(fork.details.run_id)
  assert.deepEqual([status, iteration, workspace], ['achieved', 1, 'isolated'])
  assert.match(read[0] ?? '', /n1/)
  assert.throws(() => readFileSync(join(cwd, 'n')))
})

test('what somebody did in the copy after its run is named when a fork takes it back', async (t) => {
  const workspaceFolder = scratch(t)
  const { engine, cwd, read } = await engineOf(t, { workspaceFolder })
  const request = { goal: 'shell: test -f n', workspace: 'isolated', max_iterations: 2 }
  const { details } = await runToEnd(engine, request)
  const copy = join(workspaceFolder, details.run_id, basename(cwd))
  writeFileSync(join(copy, 'n'), 'mine')
  const more = Array.from({ length: 20 }, (_, i) => `mine${String(i).padStart(2, '0')}`)
  for (const name of more) writeFileSync(join(copy, name), 'mine')
  const fork = await engine.fork(details.run_id, { message: 'show' })
  const told = (await follow(engine, fork.details.run_id)).flatMap((event) =>
    event.kind === 'log' ? [event.payload.message] : [],
  )
  const taken = told.filter((message) => message.endsWith(`: ${[...more, 'n'].join(', ')}.`))
  assert.equal(taken.length, 1, told.join('\n'))
  assert.match(read[0] ?? '', /n1/)
})
