import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, RunEngine, type JsonObject } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { bundleWithWorkers } from '../../helpers/bundle.js'
import { runToEnd, scratch, testProvider } from '../../helpers/engine.js'
import { wholeTree } from '../../helpers/whole-tree.js'

/** What the run does: changes, removes, renames, links and adds files. */
const COMMAND =
  'echo 2 > a; rm gone; mv moved sub/moved; chmod +x mode; ln -s a link; mkdir -p new/deep; ' +
  'echo n > new/deep/n; rm -r old; echo file > old'

interface World {
  readonly root: string
  readonly cwd: string
  /** The data of the store after the run. */
  readonly template: string
  readonly runId: string
  /** What the folder had before and after the run. */
  readonly before: Record<string, string>
  readonly after: Record<string, string>
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

function content(folder: string): Record<string, string> {
  const all = wholeTree(folder, { times: false, links: false })
  // Empty folders are no part of a checkpoint, and may stay.
  return Object.fromEntries(Object.entries(all).filter(([, what]) => !what.startsWith('folder')))
}

async function ranOnce(t: TestContext, request: JsonObject): Promise<World> {
  const root = scratch(t)
  const [cwd, template] = [join(root, 'work'), join(root, 'template')]
  fill(cwd)
  const before = content(cwd)
  const provider = testProvider((_, n) =>
    n === 0 ? { calls: [{ tool: 'bash', args: { command: COMMAND } }] } : { text: 'done' },
  )
  const store = new FileStore({ directory: template })
  const options = { store, roots: [cwd], providers: [provider], defaultModel: 'test:m' }
  const engine = await RunEngine.open(options)
  const { details } = await runToEnd(engine, { goal: 'shell: test -L link', cwd, ...request })
  assert.equal(details.status, 'achieved')
  const after = content(cwd)
  await engine.close()
  return { root, cwd, template, runId: details.run_id, before, after }
}

/** Kills a child at each of its writes; each time the next start must find or make a whole folder. */
async function killEverywhere(
  t: TestContext,
  world: World,
  operation: 'restore' | 'apply',
  request: JsonObject,
  wanted: Record<string, string>,
): Promise<void> {
  const { root, cwd, runId } = world
  const script = bundleWithWorkers(new URL('operation-child.ts', import.meta.url), root)
  const current = content(cwd)
  cpSync(cwd, join(root, 'kept'), { recursive: true, verbatimSymlinks: true })
  let finished = 0
  const step = process.env['RUNWRIGHT_KILLS'] === undefined ? 4 : 1
  for (let killAt = 1; ; killAt += step) {
    const directory = join(root, 'data')
    for (const folder of [directory, cwd]) rmSync(folder, { recursive: true, force: true })
    cpSync(world.template, directory, { recursive: true, verbatimSymlinks: true })
    cpSync(join(root, 'kept'), cwd, { recursive: true, verbatimSymlinks: true })
    const plan = { directory, root: cwd, runId, operation, request, killAt }
    const child = spawnSync(process.execPath, [script, JSON.stringify(plan)], { encoding: 'utf8' })
    if (child.status === 0) {
      assert.deepEqual(content(cwd), wanted)
      assert.ok(killAt > 20 && finished > 4, `${killAt} writes, ${finished} were finished`)
      t.diagnostic(`killed at up to ${killAt - step} writes, ${finished} operations finished by the next start`)
      return
    }
    assert.equal(child.signal, 'SIGKILL', child.stderr)
    if (await recovers(directory, world, killAt, current, wanted)) finished += 1
  }
}

/** Starts again after a kill; true when the operation had begun and was finished. */
async function recovers(
  directory: string,
  { cwd, runId }: World,
  killAt: number,
  current: Record<string, string>,
  wanted: Record<string, string>,
): Promise<boolean> {
  const store = new FileStore({ directory })
  const engine = await RunEngine.open({ store, roots: [cwd] })
  try {
    while ((await store.head(runId))?.operation !== null) await nextTurn()
    const events = await engine.events(runId, { after: 0, limit: 1_000 })
    const count = (kind: string): number => events.filter((event) => event.kind === kind).length
    const begun = count('files_changing')
    assert.equal(count('files_changed'), begun, `kill ${killAt}`)
    assert.deepEqual(content(cwd), begun === 1 ? wanted : current, `kill ${killAt}`)
    assert.deepEqual(store.quarantined, [])
    if (begun === 0) return false
    const [changed] = events.filter((event) => event.kind === 'files_changed')
    assert.deepEqual(changed?.payload.skipped, [])
    const undo = events.findLast(({ kind, seq }) => kind === 'checkpoint' && seq < changed!.seq)
    const { checkpoint_id } = undo!.payload as { readonly checkpoint_id: string }
    await engine.workspaces.restore(runId, { checkpoint_id })
    assert.deepEqual(content(cwd), current, `undone after kill ${killAt}`)
    return true
  } finally {
    await engine.close()
  }
}

test('a restore that is killed at any write is finished by the next start', async (t) => {
  const world = await ranOnce(t, {})
  cpSync(world.template, join(world.root, 'look'), { recursive: true })
  const engine = await RunEngine.open({
    store: new FileStore({ directory: join(world.root, 'look') }),
    roots: [world.cwd],
  })
  const [start] = await engine.workspaces.checkpoints(world.runId)
  await engine.close()
  const request = { checkpoint_id: start!.checkpoint_id }
  await killEverywhere(t, world, 'restore', request, world.before)
})

test('an apply that is killed at any write is finished by the next start', async (t) => {
  const world = await ranOnce(t, { workspace: 'isolated' })
  assert.deepEqual(world.after, world.before)
  const twin = await ranOnce(t, {})
  await killEverywhere(t, world, 'apply', {}, twin.after)
})
