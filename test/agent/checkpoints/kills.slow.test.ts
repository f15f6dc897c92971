/** Operations on files whose process is killed at a write, and what the next start makes of it. */
import assert from 'node:assert/strict'
import {
  chmodSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, RunEngine, type AgentEvent, type JsonObject } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { Children, deaths, KILLS } from '../../helpers/kill.js'
import { wholeTree } from '../../helpers/whole-tree.js'
import type { OperationPlan } from './kill-child.js'

const children = new Children<typeof import('./kill-child.js')>(
  new URL('kill-child.ts', import.meta.url),
)

/** What the run does: changes, removes, renames, links and adds files. */
const COMMAND =
  'echo 2 > a; rm gone; mv moved sub/moved; chmod +x mode; ln -s a link; mkdir -p new/deep; ' +
  'echo n > new/deep/n; rm -r old; echo file > old'
const GOAL = 'shell: test -L link'

type Files = Readonly<Record<string, string>>

interface World {
  readonly root: string
  readonly cwd: string
  /** The data of the store after the run. */
  readonly template: string
  readonly runId: string
  readonly start: string
  /** What the folder had before and after the run. */
  readonly before: Files
  readonly after: Files
}

function fill(cwd: string): void {
  mkdirSync(join(cwd, 'old'), { recursive: true })
  mkdirSync(join(cwd, 'sub'))
  for (const name of ['a', 'gone', 'moved', 'mode', 'old/o', 'sub/kept']) {
    writeFileSync(join(cwd, name), `${name}\n`)
  }
  chmodSync(join(cwd, 'mode'), 0o644)
  symlinkSync('sub', join(cwd, 'kept'))
}

function content(folder: string): Files {
  const all = wholeTree(folder, { times: false, links: false })
  // Empty folders are no part of a checkpoint, and may stay.
  return Object.fromEntries(Object.entries(all).filter(([, what]) => !what.startsWith('folder')))
}

async function open(directory: string, cwd: string): Promise<RunEngine> {
  const provider = testProvider(({ messages }) =>
    messages.every(({ role }) => role !== 'tool')
      ? { calls: [{ tool: 'bash', args: { command: COMMAND } }] }
      : { text: 'done' },
  )
  const store = new FileStore({ directory })
  return await RunEngine.open({
    store, roots: [cwd], providers: [provider], defaultModel: 'test:m', sealedChecks: 'off',
  })
}

/** A run that has ended, or that waits at its first gate. */
async function ranOnce(t: TestContext, request: JsonObject): Promise<World> {
  const root = scratch(t)
  const [cwd, template] = [join(root, 'work'), join(root, 'template')]
  fill(cwd)
  const before = content(cwd)
  const engine = await open(template, cwd)
  const { details } = await engine.create({ goal: GOAL, cwd, ...request })
  const runId = details.run_id
  await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
  const [first] = await engine.workspaces.checkpoints(runId)
  const after = content(cwd)
  await engine.close()
  return { root, cwd, template, runId, before, after, start: first!.checkpoint_id }
}

interface Killed extends Pick<OperationPlan, 'operation' | 'request'> {
  /** Starts again after a kill, looks, and returns whether the operation was found begun. */
  readonly recovers: (engine: RunEngine, hint: string) => Promise<boolean>
}

/** Kills a child at its writes; each time the next start must find or make a whole. */
async function killEverywhere(
  t: TestContext,
  { root, cwd, runId, template }: World,
  wanted: Files,
  { operation, request, recovers }: Killed,
): Promise<void> {
  cpSync(cwd, join(root, 'kept'), { recursive: true, verbatimSymlinks: true })
  const directory = join(root, 'data')
  const plan = { directory, root: cwd, runId, operation, request, command: COMMAND }
  const live = (dieAt: number) => {
    for (const folder of [directory, cwd]) rmSync(folder, { recursive: true, force: true })
    cpSync(template, directory, { recursive: true, verbatimSymlinks: true })
    cpSync(join(root, 'kept'), cwd, { recursive: true, verbatimSymlinks: true })
    return children.run('operate', plan, { dieAt })
  }
  let finished = 0
  let kills = 0
  for await (const { dieAt, signal, steps } of deaths(live, KILLS / 5)) {
    if (dieAt === 0) t.diagnostic(`${steps} writes`)
    if (signal === null) {
      assert.deepEqual(content(cwd), wanted)
      continue
    }
    kills += 1
    const engine = await open(directory, cwd)
    try {
      if (await recovers(engine, `${operation}, killed at write ${dieAt}`)) finished += 1
    } finally {
      await engine.close()
    }
  }
  t.diagnostic(`${kills} kills, after ${finished} of them the operation was found begun`)
  assert.ok(kills > 0 && finished > 0)
}

/** Waits until no operation of a run is open, and returns its events. */
async function settled(engine: RunEngine, runId: string): Promise<readonly AgentEvent[]> {
  for (;;) {
    const events = await engine.events(runId, { after: 0, limit: 1_000 })
    const count = (wanted: string): number => events.filter(({ kind }) => kind === wanted).length
    if (count('files_changing') === count('files_changed')) return events
    assert.ok(count('files_changing') > count('files_changed'))
    await nextTurn()
  }
}

/** The operation was finished, or not begun; done again it changes nothing, and can be undone. */
function finishes(
  { cwd, runId }: World,
  current: Files,
  wanted: Files,
  again: (engine: RunEngine) => Promise<unknown>,
): Killed['recovers'] {
  return async (engine, hint) => {
    const { status } = await engine.get(runId)
    const events = await settled(engine, runId)
    const changed = events.filter((event) => event.kind === 'files_changed')
    assert.ok(changed.length <= 1, hint)
    assert.deepEqual(content(cwd), changed.length === 1 ? wanted : current, hint)
    assert.deepEqual(engine.damage(), { runs: [], files: [] })
    if (changed.length === 0) return false
    assert.deepEqual(changed[0]!.payload.skipped, [])
    await again(engine)
    assert.deepEqual(content(cwd), wanted, hint)
    const undo = events.findLast(({ kind, seq }) => kind === 'checkpoint' && seq < changed[0]!.seq)
    const { checkpoint_id } = undo!.payload as { readonly checkpoint_id: string }
    await engine.workspaces.restore(runId, { checkpoint_id })
    assert.deepEqual(content(cwd), current, `undone: ${hint}`)
    assert.equal((await engine.get(runId)).status, status)
    return true
  }
}

for (const [name, request] of [
  ['after the end', {}],
  ['at a gate', { goal: 'shell: false', hitl_enabled: true }],
] as const) {
  test(`a restore ${name} that is killed at any write is finished by the next start`, async (t) => {
    const world = await ranOnce(t, request)
    const restore = { checkpoint_id: world.start }
    await killEverywhere(t, world, world.before, {
      operation: 'restore',
      request: restore,
      recovers: finishes(world, world.after, world.before, async (engine) => {
        const { paths } = await engine.workspaces.restore(world.runId, restore)
        assert.deepEqual(paths, [])
      }),
    })
  })
}

test('an apply that is killed at any write is finished by the next start', async (t) => {
  const world = await ranOnce(t, { workspace: 'isolated' })
  assert.deepEqual(world.after, world.before)
  const { after } = await ranOnce(t, {})
  await killEverywhere(t, world, after, {
    operation: 'apply',
    request: {},
    recovers: finishes(world, world.before, after, async (engine) => {
      await assert.rejects(engine.workspaces.apply(world.runId, {}), { problem: 'no_changes' })
    }),
  })
})

test('a discard that is killed at any write is done or not begun', async (t) => {
  const world = await ranOnce(t, { workspace: 'isolated' })
  const { runId, cwd, before } = world
  const copy = join(world.root, 'data/workspaces', runId)
  await killEverywhere(t, world, before, {
    operation: 'discard',
    request: {},
    recovers: async (engine, hint) => {
      assert.deepEqual(content(cwd), before, hint)
      const isDone = (await engine.get(runId)).changes === 'discarded'
      if (isDone) {
        await assert.rejects(engine.workspaces.discard(runId), { problem: 'no_changes' })
        while (existsSync(copy)) await nextTurn()
      } else {
        assert.equal(existsSync(copy), true, hint)
        assert.ok((await engine.workspaces.apply(runId, { dry_run: true })).applied.length > 0)
        await engine.workspaces.discard(runId)
      }
      assert.equal(existsSync(copy), false, hint)
      return isDone
    },
  })
})

test('a run that applies its changes and is killed at any write has applied them once', async (t) => {
  const world = await ranOnce(t, {})
  for (const folder of [world.cwd, world.template]) rmSync(folder, { recursive: true })
  mkdirSync(world.template)
  fill(world.cwd)
  const request = { goal: GOAL, cwd: world.cwd, workspace: 'isolated', apply: 'on_achieved' }
  await killEverywhere(t, world, world.after, {
    operation: 'run',
    request,
    recovers: async (engine, hint) => {
      const [{ run_id: runId } = assert.fail()] = (await engine.list()).runs
      const events = await follow(engine, runId)
      assert.deepEqual(content(world.cwd), world.after, hint)
      const { changes, status } = await engine.get(runId)
      assert.deepEqual([status, changes], ['achieved', 'applied'], hint)
      const applied = events.filter((event) => event.kind === 'files_changed')
      assert.deepEqual(applied.map(({ payload }) => payload.skipped), [[]], hint)
      const isWarning = (one: AgentEvent): boolean =>
        one.kind === 'log' && one.payload.level === 'warn'
      assert.deepEqual(events.filter(isWarning), [], hint)
      await assert.rejects(engine.workspaces.apply(runId, {}), { problem: 'no_changes' })
      return events.some(({ kind }) => kind === 'run_recovered')
    },
  })
})
