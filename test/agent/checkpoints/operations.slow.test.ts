import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { StoreError, type JsonObject, type RunDetails, type RunEngine } from 'runwright/agent'
import { hash } from '../../../lib/internal/hash.js'
import { nextTurn } from '../../../lib/internal/time.js'
import { atGate, follow, write } from '../../helpers/engine.js'
import { World } from '../../helpers/world.js'
import { MortalProcess } from '../../helpers/mortal-process.js'

/** Runs that write `a` and `b`, and operations on their files. */
class Operations extends World {
  constructor(t: TestContext) {
    super(t, {
      files: { a: 'old\n', b: 'old\n', c: 'old\n' },
      turns: ({ messages }) =>
        messages.some(({ role }) => role === 'tool')
          ? { text: 'done' }
          : write({ a: 'new\n', b: 'new\n' }),
    })
    mkdirSync(join(this.cwd, 'sub'))
  }

  async ran(request: JsonObject = {}): Promise<RunDetails> {
    const { details } = await this.run({ goal: 'shell: grep -q new a', ...request })
    assert.equal(details.status, 'achieved')
    return details
  }

  /** The checkpoint of the start of a run. */
  async start(engine: RunEngine, runId: string): Promise<string> {
    return (await engine.workspaces.checkpoints(runId))[0]!.checkpoint_id
  }

  /** The files of a folder: a word for each. */
  files(folder: string = this.cwd): string {
    const names = ['a', 'b', 'c'].filter((name) => this.has(name, folder))
    return names.map((name) => this.read(name, folder).trim()).join(' ')
  }

  /** Calls `then` once the next intent to change files is durable. */
  atIntent(then: () => void | Promise<void>): void {
    const append = this.store.append.bind(this.store)
    this.store.append = async (runId, records) => {
      await append(runId, records)
      if (!records.some(({ kind }) => kind === 'files_changing')) return
      this.store.append = append
      await then()
    }
  }

  /** What an engine began is cut off when its intent is durable. */
  async cutOff(work: (engine: RunEngine) => Promise<unknown>): Promise<void> {
    const process = new MortalProcess(this.store, () => true)
    const engine = await this.open({ store: process.store })
    // Before the engine is closed, which waits for what it has asked for.
    this.after(() => process.bury())
    let die: () => void = () => undefined
    const died = new Promise<void>((resolve) => (die = resolve))
    this.atIntent(() => {
      process.dieAfter(0)
      die()
    })
    await Promise.race([work(engine), died])
    assert.equal(process.isDead, true)
  }

  /** Resolves when no operation on the files of a run is open. */
  async settled(runId: string): Promise<void> {
    while ((await this.store.head(runId))?.operation !== null) await nextTurn()
  }
}

/** What the newest `files_changed` of a run names. */
async function lastChange(engine: RunEngine, runId: string): Promise<unknown> {
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  const last = events.findLast((event) => event.kind === 'files_changed')
  return [last?.payload.paths, last?.payload.skipped]
}

test('what somebody changes between the look and the change is left alone and named', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  world.atIntent(() => world.write({ a: 'mine\n' }))
  const restored = await engine.workspaces.restore(run_id, { checkpoint_id })
  assert.deepEqual([restored.paths, restored.skipped], [['b'], ['a']])
  assert.equal(world.files(), 'mine old old')
  world.write({ a: 'old\n' })
  const isolated = await world.ran({ workspace: 'isolated' })
  world.atIntent(() => world.write({ b: 'mine\n' }))
  const { applied, skipped } = await engine.workspaces.apply(isolated.run_id, {})
  assert.deepEqual([applied, skipped], [['a'], ['b']])
  assert.equal(world.files(), 'new mine old')
  assert.equal((await engine.get(isolated.run_id)).changes, 'pending')
})

test('a checkpoint is restored where its content was last: in the copy, or where it was applied', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran({ workspace: 'isolated' })
  const restore = (checkpoint_id: string) => engine.workspaces.restore(run_id, { checkpoint_id })
  const start = await world.start(engine, run_id)
  const copy = world.copyOf(run_id)
  assert.equal(world.files(copy), 'new new old')
  const inCopy = await restore(start)
  assert.deepEqual([world.files(copy), world.files()], ['old old old', 'old old old'])
  await restore(inCopy.checkpoint_id)
  assert.deepEqual([world.files(copy), world.files()], ['new new old', 'old old old'])
  // Before the apply, the folder had what the run began with.
  const some = await engine.workspaces.apply(run_id, { paths: ['a'] })
  assert.equal(some.checkpoint_id, start)
  assert.equal(world.files(), 'new old old')
  const undone = await restore(start)
  assert.deepEqual([world.files(copy), world.files()], ['new new old', 'old old old'])
  await restore(undone.checkpoint_id)
  assert.deepEqual([world.files(copy), world.files()], ['new new old', 'new old old'])
  await engine.workspaces.apply(run_id, {})
  assert.equal(existsSync(copy), false)
  await restore(start)
  assert.equal(world.files(), 'old old old')
})

test('a checkpoint that only the copy had is not restored when the copy is gone', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran({ workspace: 'isolated' })
  const start = await world.start(engine, run_id)
  world.write({ c: 'mine\n' })
  const { checkpoint_id } = await engine.workspaces.apply(run_id, {})
  assert.notEqual(checkpoint_id, start)
  for (const force of [false, true]) {
    const again = engine.workspaces.restore(run_id, { checkpoint_id: start, force })
    await assert.rejects(again, { problem: 'not_kept' })
  }
  assert.equal(world.files(), 'new new mine')
})

test('a fork of a run whose apply was taken back has the files of the run, and hears nothing of that', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id, checkpoint_id: newest } = await world.ran({ workspace: 'isolated' })
  world.write({ c: 'mine\n' })
  const { checkpoint_id } = await engine.workspaces.apply(run_id, {})
  await engine.workspaces.restore(run_id, { checkpoint_id })
  assert.equal(world.files(), 'old old mine')
  const { details } = await engine.fork(run_id, { message: 'again' })
  await follow(engine, details.run_id)
  const before = await engine.workspaces.changes(details.run_id, { from: newest!, to: 'start' })
  assert.deepEqual(before.changes, [])
  assert.doesNotMatch(JSON.stringify(world.requests.at(-1)?.messages), /restored|gave the files/)
})

test('where runs share folders, none begins in one that is being restored', async (t) => {
  const world = new Operations(t)
  const engine = await world.open({ cwdPolicy: 'allow' })
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  mkdirSync(join(world.cwd, 'sub/deep'))
  const others: string[] = []
  world.atIntent(async () => {
    for (const cwd of [world.cwd, join(world.cwd, 'sub')]) {
      const { details } = await engine.create({ goal: 'shell: grep -q old ../a a', cwd })
      others.push(details.run_id)
    }
    // A run that has a copy does not wait.
    await world.ran({ workspace: 'isolated' })
    for (const id of others) assert.equal((await engine.get(id)).status, 'pending')
  })
  await engine.workspaces.restore(run_id, { checkpoint_id })
  for (const id of others) assert.equal((await follow(engine, id)).at(-1)?.kind, 'run_end')
})

test('what was cut off is finished by a host that makes no checkpoints', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  await engine.close()
  await world.cutOff((mortal) => mortal.workspaces.restore(run_id, { checkpoint_id }))
  assert.notEqual((await world.store.head(run_id))?.operation, null)
  await world.open({ checkpoints: 'off' })
  await world.settled(run_id)
  assert.equal(world.files(), 'old old old')
})

test('when a cut-off apply is finished, the copy is gone, and the folder can be restored at once', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const first = await world.ran()
  const checkpoint_id = await world.start(engine, first.run_id)
  await engine.workspaces.restore(first.run_id, { checkpoint_id })
  const { run_id } = await world.ran({ workspace: 'isolated' })
  await engine.close()
  await world.cutOff((mortal) => mortal.workspaces.apply(run_id, {}))
  assert.equal(existsSync(world.copyOf(run_id)), true)
  const next = await world.open()
  // Not refused as busy: the folder is free when the copy is gone.
  await next.workspaces.restore(first.run_id, { checkpoint_id, force: true })
  assert.equal((await next.get(run_id)).changes, 'applied')
  assert.equal(existsSync(world.copyOf(run_id)), false)
  assert.equal(world.files(), 'old old old')
})

test('a folder that a run works in is not waited for', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  rmSync(join(world.cwd, 'a'))
  await world.run({ goal: 'shell: false', hitl_enabled: true }, atGate)
  const busy = engine.workspaces.restore(run_id, { checkpoint_id })
  await assert.rejects(busy, { code: 'ERR_AGENT_CWD_BUSY' })
})

test('a cut-off apply is finished as it was asked for, and its copy is gone when the engine closes', async (t) => {
  for (const isForced of [false, true]) {
    const world = new Operations(t)
    const engine = await world.open()
    world.write(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`sub/${i}`, ''])))
    const { run_id } = await world.ran({ workspace: 'isolated' })
    await engine.close()
    if (isForced) world.write({ a: 'mine\n' })
    const request = isForced ? { paths: ['a'], force: true } : {}
    await world.cutOff((mortal) => mortal.workspaces.apply(run_id, request))
    const next = await world.open()
    await world.settled(run_id)
    assert.equal(world.files(), isForced ? 'new old old' : 'new new old')
    assert.equal((await next.get(run_id)).changes, isForced ? 'pending' : 'applied')
    await next.close()
    assert.equal(existsSync(world.copyOf(run_id)), isForced)
  }
})

test('when the system refuses a change, those before it are taken back, and it can be tried again', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  const { rename } = promises
  let renamed = 0
  promises.rename = async (...given) => {
    const refused = Object.assign(new Error('EIO: refused'), { code: 'EIO', syscall: 'rename' })
    if ((renamed += 1) === 1) throw refused
    await rename(...given)
  }
  syncBuiltinESMExports()
  t.after(() => {
    promises.rename = rename
    syncBuiltinESMExports()
  })
  const refused = engine.workspaces.restore(run_id, { checkpoint_id })
  await assert.rejects(refused, { code: 'ERR_AGENT_FILE_OPERATION', problem: 'fault' })
  assert.equal(world.files(), 'new new old')
  assert.deepEqual(await lastChange(engine, run_id), [[], ['a', 'b']])
  const { paths } = await engine.workspaces.restore(run_id, { checkpoint_id })
  assert.deepEqual(paths, ['a', 'b'])
  assert.equal(world.files(), 'old old old')
})

test('an operation waits for contents that cannot be reached for a while', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  const objects = world.store.objects
  const get = objects.get.bind(objects)
  let refused = 0
  world.atIntent(() => {
    objects.get = async (hash) => {
      if ((refused += 1) > 2) return await get(hash)
      throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'away')
    }
  })
  const { paths } = await engine.workspaces.restore(run_id, { checkpoint_id })
  assert.ok(refused > 2)
  assert.deepEqual(paths, ['a', 'b'])
  assert.equal(world.files(), 'old old old')
})

test('an operation that was cut off in a folder that is gone ends, and names what was not done', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  await engine.close()
  await world.cutOff((mortal) => mortal.workspaces.restore(run_id, { checkpoint_id }))
  renameSync(world.cwd, `${world.cwd} away`)
  const warned = once(process, 'warning')
  const next = await world.open({ roots: [dirname(world.cwd)] })
  await world.settled(run_id)
  assert.match(String(await warned), /restore was cut off and cannot be finished/)
  assert.deepEqual(await lastChange(next, run_id), [[], ['a', 'b']])
})

test('what an earlier version left half done is finished, and its temporary files are gone', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran()
  const checkpoint_id = await world.start(engine, run_id)
  await engine.close()
  const append = world.store.append.bind(world.store)
  world.store.append = (runId, records) =>
    append(
      runId,
      records.map((record) => {
        if (record.kind !== 'files_changing') return record
        const { key: _, ...rest } = record.private!
        return { ...record, private: rest }
      }),
    )
  await world.cutOff((mortal) => mortal.workspaces.restore(run_id, { checkpoint_id }))
  const temporary = `.runwright-${hash('sha256', 'b').slice(0, 16)}.tmp`
  world.write({ a: 'old\n', [temporary]: 'ol' })
  await world.open()
  await world.settled(run_id)
  assert.equal(world.files(), 'old old old')
  assert.equal(world.has(temporary), false)
})

test('a restore that has nothing to change can be taken back all the same', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id, checkpoint_id } = await world.ran()
  // It is not stored, but the checkpoint names it, and so is another one.
  world.write({ '.env': 'left out\n' })
  const undo = await engine.workspaces.restore(run_id, { checkpoint_id: checkpoint_id! })
  assert.deepEqual(undo.paths, [])
  assert.notEqual(undo.checkpoint_id, checkpoint_id)
  const known = await engine.workspaces.checkpoints(run_id)
  assert.ok(known.some((one) => one.checkpoint_id === undo.checkpoint_id))
  const { paths } = await engine.workspaces.restore(run_id, { checkpoint_id: undo.checkpoint_id })
  assert.deepEqual(paths, [])
})

test('paths that hold a secret are refused, for they would be logged', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran({ workspace: 'isolated' })
  const paths = ['a', `sk-ant-api03-${'k'.repeat(80)}`]
  const refused = engine.workspaces.apply(run_id, { paths })
  await assert.rejects(refused, ({ violations: [{ pointer, detail }] }) => {
    assert.equal(pointer, '/paths/1')
    assert.match(detail, /would be logged/)
    return true
  })
  assert.doesNotMatch(String(await refused.catch(String)), /kkkk/)
})

test('a discard that cannot be stored leaves the copy', async (t) => {
  const world = new Operations(t)
  const engine = await world.open()
  const { run_id } = await world.ran({ workspace: 'isolated' })
  const append = world.store.append.bind(world.store)
  world.store.append = () => Promise.reject(new StoreError('ERR_AGENT_STORE', 'refused'))
  await assert.rejects(engine.workspaces.discard(run_id), { code: 'ERR_AGENT_STORE' })
  world.store.append = append
  assert.equal((await engine.get(run_id)).changes, 'pending')
  assert.equal(world.files(world.copyOf(run_id)), 'new new old')
})
