/** Operations on files whose process is killed at a write, and what the next start makes of it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { FileStore, RunEngine, type AgentEvent, type JsonObject } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { bundle } from '../../helpers/bundle.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { wholeTree } from '../../helpers/whole-tree.js'

/** What the run does: changes, removes, renames, links and adds files. */
const COMMAND =
  'echo 2 > a; rm gone; mv moved sub/moved; chmod +x mode; ln -s a link; mkdir -p new/deep; ' +
  'echo n > new/deep/n; rm -r old; echo file > old'
export const GOAL = 'shell: test -L link'

/** With 1, there is a kill at each write. */
const STEP = Number(process.env['RUNWRIGHT_KILLS'] ?? 5)

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

export function fill(cwd: string): void {
  mkdirSync(join(cwd, 'old'), { recursive: true })
  mkdirSync(join(cwd, 'sub'))
  for (const name of ['a', 'gone', 'moved', 'mode', 'old/o', 'sub/kept']) {
    writeFileSync(join(cwd, name), `${name}\n`)
  }
  chmodSync(join(cwd, 'mode'), 0o644)
  symlinkSync('sub', join(cwd, 'kept'))
}

export function content(folder: string): Files {
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
export async function ranOnce(t: TestContext, request: JsonObject): Promise<World> {
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

interface Killed {
  readonly operation: 'restore' | 'apply' | 'discard' | 'run'
  readonly request: JsonObject
  /** Writes from one kill to the next. */
  readonly step?: number
  /** Starts again after a kill, looks, and says whether the operation was found begun. */
  readonly recovers: (engine: RunEngine, hint: string) => Promise<boolean>
}

/** Kills a child at each of its writes; each time the next start must find or make a whole. */
export async function killEverywhere(
  t: TestContext,
  { root, cwd, runId, template }: World,
  wanted: Files,
  { operation, request, step = STEP, recovers }: Killed,
): Promise<void> {
  const script = bundleChild(root)
  cpSync(cwd, join(root, 'kept'), { recursive: true, verbatimSymlinks: true })
  const directory = join(root, 'data')
  const plan = { directory, root: cwd, runId, operation, request, command: COMMAND }
  let finished = 0
  let kills = 0
  for (let killAt = 1; ; killAt += step) {
    for (const folder of [directory, cwd]) rmSync(folder, { recursive: true, force: true })
    cpSync(template, directory, { recursive: true, verbatimSymlinks: true })
    cpSync(join(root, 'kept'), cwd, { recursive: true, verbatimSymlinks: true })
    const given = JSON.stringify({ ...plan, killAt })
    const child = spawnSync(process.execPath, [script, given], { encoding: 'utf8' })
    if (child.status === 0) {
      assert.deepEqual(content(cwd), wanted)
      break
    }
    kills += 1
    assert.equal(child.signal, 'SIGKILL', child.stderr)
    const engine = await open(directory, cwd)
    try {
      if (await recovers(engine, `${operation}, killed at write ${killAt}`)) finished += 1
    } finally {
      await engine.close()
    }
  }
  t.diagnostic(`${kills} kills, after ${finished} of them the operation was found begun`)
  assert.ok(kills > 0 && finished > 0)
}

/** The child, and beside it the worker that looks at folders and copies them. */
function bundleChild(folder: string): string {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const worker = new URL('../../../lib/agent/workspace/tree-worker.ts', import.meta.url)
  renameSync(bundle(worker, folder), join(folder, 'tree-worker.js'))
  return bundle(new URL('operation-child.ts', import.meta.url), folder)
}

/** The events of a run of which no operation is open, as is waited for. */
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
export function finishes(
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

/** Kills restores of what the run began with. */
export async function killRestores(t: TestContext, request: JsonObject): Promise<void> {
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
}
