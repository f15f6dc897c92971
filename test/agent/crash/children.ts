/** Child processes that use an engine until they are killed; tests start them by `Children`. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileStore, RunEngine } from 'runwright/agent'
import { follow, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import type { Life } from '../../helpers/mortal-child.js'
import * as programs from './programs.js'
import type { DrivePlan } from './scenario.js'
import { talk, talkProvider, type TalkPlan } from './talk.js'

/** The folder of a file store. */
interface FilePlace {
  readonly directory: string
}

/** Drives runs over a file store. Steps: appends. */
export async function drive(plan: DrivePlan & FilePlace, life: Life): Promise<void> {
  const store = new FileStore({ directory: plan.directory, segmentBytes: 64 << 10 })
  life.countAppends(store)
  await programs.drive(plan, { store, life })
}

/** Drives a tree of runs to its end. Steps: writes. */
export async function driveTree(plan: programs.TreePlan & FilePlace, life: Life): Promise<void> {
  await programs.driveTree(plan, { store: await storeOf(plan.directory, life), life })
}

/** A store in a process whose steps are its writes: appends and changes of files. */
async function storeOf(directory: string, life: Life): Promise<FileStore> {
  const store = new FileStore({ directory })
  life.countAppends(store)
  await life.countFiles()
  return store
}

/** Talks to a fork until it has ended, and says what {@link talk} tells. Steps: writes. */
export async function talkToFork(plan: TalkPlan, life: Life): Promise<void> {
  const { directory, root, at } = plan
  const store = await storeOf(directory, life)
  const engine = await RunEngine.open({
    store, roots: [root], providers: [talkProvider(at)], defaultModel: 'talk:m',
    sealedChecks: 'off',
  })
  life.begin()
  await talk(engine, plan, (line) => life.say(line))
  await engine.close()
}

/**
 * Drives a run whose log fills the file system, and lets it go on when there is room again; then
 * the same, but stops the engine while the file system is full.
 */
export async function fillDisk(
  { mount, root }: { readonly mount: string; readonly root: string },
  life: Life,
): Promise<void> {
  const ballast = join(mount, 'ballast')
  writeFileSync(ballast, Buffer.alloc(400_000))
  for (const name of ['loud', 'quiet', 'late']) mkdirSync(join(root, name))
  const store = new FileStore({ directory: join(mount, 'data'), segmentBytes: 100_000 })
  let refused: () => void = () => undefined
  let full = new Promise<void>((resolve) => (refused = resolve))
  let hasRoom = false
  const append = store.append.bind(store)
  store.append = async (runId, records) => {
    try {
      await append(runId, records)
    } catch (error) {
      refused()
      throw error
    }
  }
  const loud = testProvider(({ run }, n) =>
    run.cwd.endsWith('loud') && !hasRoom
      ? {
          text: `${n}`,
          calls: [
            { tool: 'write_file', args: { path: 'a', content: `${n} ${'x'.repeat(20_000)}` } },
          ],
        }
      : { stop: 'refusal' },
  )
  const engine = await RunEngine.open({
    store,
    roots: [root],
    sealedChecks: 'off',
    providers: [loud],
    defaultModel: 'test:m',
    maxTurnsPerIteration: 50,
  })

  const quiet = await engine.create({ goal: 'shell: false', cwd: join(root, 'quiet') })
  await follow(engine, quiet.details.run_id)
  const { details } = await engine.create({
    goal: 'shell: false',
    cwd: join(root, 'loud'),
    max_iterations: 1000,
  })
  const followed = follow(engine, details.run_id)
  await full
  const denied = await engine
    .create({ goal: `shell: : ${'x'.repeat(32_000)}`, cwd: join(root, 'late') })
    .catch((error: Error) => error)
  assert.equal((denied as { code?: string }).code, 'ERR_AGENT_STORE_UNAVAILABLE')
  const problem = await engine.check().catch((error: Error) => error.message)
  const { status } = await engine.get(details.run_id)
  life.say(`${status}, while ${problem}`)
  hasRoom = true
  rmSync(ballast)
  const events = await followed
  assertInvariants(events)
  assert.equal((await engine.get(details.run_id)).end_reason, 'stuck')
  const asked = events.filter(({ kind }) => kind === 'tool_call')
  const results = events.filter((event) => event.kind === 'tool_result')
  assert.equal(results.length, asked.length)
  assert.ok(results.every(({ payload }) => payload.exit_code === 0), 'every result was kept')
  assert.equal((await engine.get(quiet.details.run_id)).end_reason, 'stuck')
  await engine.check()
  const after = await engine.create({ goal: 'shell: true', cwd: join(root, 'late') })
  await follow(engine, after.details.run_id)
  assert.equal((await engine.get(after.details.run_id)).status, 'achieved')

  hasRoom = false
  full = new Promise<void>((resolve) => (refused = resolve))
  writeFileSync(ballast, Buffer.alloc(200_000))
  const last = await engine.create({
    goal: 'shell: false',
    cwd: join(root, 'loud'),
    max_iterations: 1000,
  })
  await full
  await engine.close()
  life.say('closed while the disk is full')
  hasRoom = true
  rmSync(ballast)
  const again = new FileStore({ directory: join(mount, 'data') })
  const next = await RunEngine.open({
    store: again,
    roots: [root],
    sealedChecks: 'off',
    providers: [loud],
    defaultModel: 'test:m',
  })
  const stored = await follow(next, last.details.run_id)
  assertInvariants(stored)
  assert.equal((await next.get(last.details.run_id)).end_reason, 'stuck')
  assert.deepEqual(again.quarantined, [])
  assertInvariants(await again.read(details.run_id, 0, 100_000))
  await next.close()
}
