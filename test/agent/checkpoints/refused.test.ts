/** Restores and applies that the system refuses, in part or as a whole. */
import assert from 'node:assert/strict'
import { chmodSync, chownSync, lstatSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentError, Clock, FileOperationError, RunEngine } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { atGate, bash, follow } from '../../helpers/engine.js'
import { FailingDisk, type Fault } from '../../helpers/faults.js'
import { World } from '../../helpers/world.js'

const FILES = { a: 'old\n', b: 'old\n', 'sub/c': 'old\n', gone: 'old\n' }
const COMMAND = 'echo new > a; echo new > b; echo new > sub/c; rm gone; echo new > added'

interface Ran {
  readonly world: World
  readonly engine: RunEngine
  readonly runId: string
  readonly start: string
}

async function ran(t: TestContext, clock?: Clock): Promise<Ran> {
  const world = new World(t, { files: FILES, turns: [bash(COMMAND)] })
  const engine = await world.open(clock === undefined ? {} : { clock })
  const { details, runId } = await world.run({ goal: 'shell: grep -q new added' })
  assert.equal(details.status, 'achieved')
  const [start] = await engine.workspaces.checkpoints(runId)
  return { world, engine, runId, start: start!.checkpoint_id }
}

function files(folder: string): string {
  return readdirSync(folder, { recursive: true }).sort().join(' ')
}

/** Fails the disk once the intent to change files is durable. */
function failAtIntent({ store }: World, disk: FailingDisk, fault: Fault): void {
  const append = store.append.bind(store)
  store.append = async (runId, records) => {
    await append(runId, records)
    if (records.some(({ kind }) => kind === 'files_changing')) disk.fail(fault)
  }
}

/** Resolves when a check of the engine has this result: no code when all is well. */
async function healthIs(engine: RunEngine, wanted: string): Promise<void> {
  for (let code: string | null = null; code !== wanted; ) {
    await nextTurn()
    code = await engine.check().then(() => '', (error: AgentError) => error.code)
  }
}

test('only the named paths are restored, and that is taken back', async (t) => {
  const { world, engine, runId, start } = await ran(t)
  const { workspaces } = engine
  const some = await workspaces.restore(runId, { checkpoint_id: start, paths: ['a', 'gone'] })
  assert.deepEqual(some.paths, ['a', 'gone'])
  assert.equal(`${world.read('a')}${world.read('b')}${world.read('gone')}`, 'old\nnew\nold\n')
  assert.ok(world.has('added'))
  const back = await workspaces.restore(runId, { checkpoint_id: some.checkpoint_id })
  assert.deepEqual(back.paths, ['a', 'gone'])
  const unknown = workspaces.restore(runId, { checkpoint_id: start, paths: ['a', 'nothing'] })
  await assert.rejects(unknown, ({ violations: [{ pointer, detail }] }) => {
    assert.equal(pointer, '/paths/1')
    assert.match(detail, /neither the checkpoint nor the folder/)
    return true
  })
})

test('a file takes the place of a folder, but not of what no checkpoint has', async (t) => {
  const world = new World(t, {
    files: { swap: 'file\n' },
    turns: [bash('rm swap; mkdir -p swap/deep; echo new > swap/deep/x')],
  })
  const engine = await world.open()
  const { runId } = await world.run({ goal: 'shell: test -d swap' })
  const [start, end] = await engine.workspaces.checkpoints(runId)
  const restore = (checkpoint_id: string) =>
    engine.workspaces.restore(runId, { checkpoint_id, force: true })
  world.write({ 'swap/.env': 'SECRET=1\n' })
  await assert.rejects(restore(start!.checkpoint_id), {
    code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'in_the_way', paths: ['swap/.env'],
  })
  assert.equal(world.read('swap/deep/x'), 'new\n')
  rmSync(join(world.cwd, 'swap/.env'))
  await restore(start!.checkpoint_id)
  assert.equal(world.read('swap'), 'file\n')
  await restore(end!.checkpoint_id)
  assert.equal(files(world.cwd), 'swap swap/deep swap/deep/x')
})

test('a dry run of a forced apply tells what is in the way', async (t) => {
  const world = new World(t, { files: { 'swap/x': 'x' }, turns: [bash('rm -r swap; echo > swap')] })
  const engine = await world.open()
  const { runId } = await world.run({ goal: 'shell: test -f swap', workspace: 'isolated' })
  world.write({ 'swap/.env': 'SECRET=1\n' })
  await assert.rejects(engine.workspaces.apply(runId, { dry_run: true, force: true }), {
    problem: 'in_the_way', paths: ['swap/.env'],
  })
})

test('a full disk changes nothing, and the error says how much is missing', async (t) => {
  using disk = await FailingDisk.open()
  const { world, engine, runId, start } = await ran(t)
  const before = files(world.cwd)
  failAtIntent(world, disk, { code: 'ENOSPC', at: 2, calls: Infinity })
  const refused = engine.workspaces.restore(runId, { checkpoint_id: start })
  await assert.rejects(refused, ({ code, message, missingBytes, problem }: FileOperationError) => {
    assert.deepEqual([code, problem], ['ERR_AGENT_FILE_OPERATION', 'no_room'])
    assert.match(message, /has changed nothing: the disk is full.*bytes are missing/)
    assert.ok(missingBytes !== null && missingBytes > 0)
    return true
  })
  disk.heal()
  assert.equal(files(world.cwd), before)
  assert.equal(world.read('a'), 'new\n')
  assert.equal((await world.store.head(runId))?.operation, null)
})

test('a fault before anything is changed is told as such, and leaves no intent', async (t) => {
  using disk = await FailingDisk.open()
  const { world, engine, runId, start } = await ran(t)
  const kinds = async (): Promise<number> =>
    (await engine.events(runId, { after: 0, limit: 1_000 })).length
  const before = await kinds()
  for (const [code, at] of [['EMFILE', 1], ['EIO', 1], ['EMFILE', 2], ['EIO', 4]] as const) {
    disk.fail({ code, at, calls: Infinity })
    const refused = engine.workspaces.restore(runId, { checkpoint_id: start })
    await assert.rejects(refused, { code: 'ERR_AGENT_FILE_OPERATION', problem: 'fault' }, code + at)
    disk.heal()
    assert.equal(await kinds(), before)
  }
  assert.equal(world.read('a'), 'new\n')
})

test('what cannot be undone stays open, refuses other operations, and is finished later', async (t) => {
  using disk = await FailingDisk.open()
  let wake: () => void = () => undefined
  const clock: Clock = {
    now: () => Date.now(),
    setTimeout: (callback, ms) => {
      if (ms < 5_000) wake = callback
      return { cancel: () => undefined }
    },
  }
  const { world, engine, runId, start } = await ran(t, clock)
  const other = await world.run({ goal: 'shell: false', max_iterations: 1 })
  failAtIntent(world, disk, { code: 'EROFS', at: 12, calls: Infinity })
  const restore = (id: string) => engine.workspaces.restore(id, { checkpoint_id: start })
  const unfinished = { code: 'ERR_AGENT_FILE_OPERATION', problem: 'unfinished' }
  await assert.rejects(restore(runId), { ...unfinished, message: /neither finished nor undone/ })
  assert.notEqual((await world.store.head(runId))?.operation, null)
  for (const id of [runId, other.runId]) {
    const [first] = await engine.workspaces.checkpoints(id)
    const refused = engine.workspaces.restore(id, { checkpoint_id: first!.checkpoint_id })
    await assert.rejects(refused, { ...unfinished, message: new RegExp(`${runId}.*read-only`) })
  }
  const next = await engine.create({ goal: 'shell: grep -q old a', cwd: world.cwd })
  await healthIs(engine, 'ERR_AGENT_EXHAUSTED')
  assert.equal((await engine.get(next.details.run_id)).status, 'pending')
  disk.heal()
  while ((await world.store.head(runId))?.operation !== null) {
    wake()
    await nextTurn()
  }
  await healthIs(engine, '')
  await follow(engine, next.details.run_id)
  assert.equal((await engine.get(next.details.run_id)).status, 'achieved')
  assert.equal(files(world.cwd), 'a b gone sub sub/c')
  assert.equal(world.read('a'), 'old\n')
})

test('a run at a gate tells that its files are half changed, and goes on when they are whole', async (t) => {
  using disk = await FailingDisk.open()
  const world = new World(t, { files: FILES, turns: [bash(COMMAND)] })
  const engine = await world.open()
  const { runId } = await world.run({ goal: 'shell: false', hitl_enabled: true }, atGate)
  const [start] = await engine.workspaces.checkpoints(runId)
  failAtIntent(world, disk, { code: 'EROFS', at: 12, calls: Infinity })
  const refused = engine.workspaces.restore(runId, { checkpoint_id: start!.checkpoint_id })
  await assert.rejects(refused, { problem: 'unfinished' })
  disk.heal()
  await engine.resume(runId, { decision: 'abort' })
  assert.equal(world.read('a'), 'old\n')
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  const told = events.filter(({ payload }) => /half changed/.test(JSON.stringify(payload)))
  assert.equal(told.length, 1)
})

test('a replaced file keeps its owner, and its mode is that of the checkpoint', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root gives files away')
  const { world, engine, runId, start } = await ran(t)
  chownSync(join(world.cwd, 'a'), 65534, 65534)
  chmodSync(join(world.cwd, 'sub/c'), 0o600)
  await engine.workspaces.restore(runId, { checkpoint_id: start, force: true })
  const { uid, gid } = lstatSync(join(world.cwd, 'a'))
  assert.deepEqual([uid, gid, lstatSync(join(world.cwd, 'b')).uid], [65534, 65534, 0])
  assert.equal(lstatSync(join(world.cwd, 'sub/c')).mode & 0o777, 0o644)
})

test('a mode is applied to a file that was changed since', async (t) => {
  const world = new World(t, { files: { a: '1\n2\n3\n' }, turns: [bash('chmod +x a')] })
  const engine = await world.open()
  const request = { goal: 'shell: test -x a', workspace: 'isolated' }
  const { runId } = await world.run(request)
  writeFileSync(join(world.cwd, 'a'), '1\n2\nof the user\n')
  const { applied } = await engine.workspaces.apply(runId, {})
  assert.deepEqual(applied, ['a'])
  assert.equal(world.read('a'), '1\n2\nof the user\n')
  assert.equal(lstatSync(join(world.cwd, 'a')).mode & 0o777, 0o755)
})
