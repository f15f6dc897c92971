/**
 * A process that forks a run and talks to the fork is killed at its writes, one after the other;
 * the next one does everything again with the same keys.
 */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, RunEngine, type AgentEvent } from 'runwright/agent'
import { IsolatedFolders } from '../../../lib/agent/isolation/isolated-folders.js'
import { runToEnd, scratch } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { Children, deaths, KILLS } from '../../helpers/kill.js'
import {
  disturb, filesIn, talk, talkProvider, TALK_FILES, TALK_GOAL, type TalkPlan,
} from './talk.js'

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)

interface World {
  readonly root: string
  readonly cwd: string
  readonly source: string
  /** The data of the store after the run that is forked. */
  readonly template: string
  readonly log: readonly AgentEvent[]
}

/** An isolated run that has met its goal, in whose copy others have been. */
async function openWorld(t: TestContext): Promise<World> {
  const root = scratch(t)
  const [cwd, template] = [join(root, 'work'), join(root, 'template')]
  mkdirSync(cwd)
  for (const [name, text] of Object.entries(TALK_FILES.start)) writeFileSync(join(cwd, name), text)
  const engine = await open(template, cwd, null)
  const { details, events } = await runToEnd(engine, {
    goal: TALK_GOAL, cwd, workspace: 'isolated', max_iterations: 1,
  })
  assert.deepEqual([details.status, details.changes], ['achieved', 'pending'])
  await engine.close()
  const source = details.run_id
  const copy = join(template, 'workspaces', source, 'work')
  assert.deepEqual(filesIn(copy), TALK_FILES.end)
  disturb(copy)
  return { root, cwd, source, template, log: events }
}

function open(directory: string, cwd: string, at: TalkPlan['at'] | null): Promise<RunEngine> {
  return RunEngine.open({
    store: new FileStore({ directory }),
    roots: [cwd],
    sealedChecks: 'off',
    providers: [talkProvider(at)],
    defaultModel: 'talk:m',
  })
}

for (const [name, at, deletes] of [
  ['in the copy of its source', 'end', false],
  ['in the copy of a deleted source', 'end', true],
  ['from the start of its source', 'start', false],
] as const) {
  test(`a fork ${name} survives a kill at any write, and so do messages`, async (t) => {
    const world = await openWorld(t)
    const directory = join(world.root, 'data')
    const plan: TalkPlan = { directory, root: world.cwd, source: world.source, at, deletes }
    const live = (dieAt: number) => {
      rmSync(directory, { recursive: true, force: true })
      cpSync(world.template, directory, { recursive: true, verbatimSymlinks: true })
      return children.run('talkToFork', plan, { dieAt })
    }
    let killed = 0
    for await (const { dieAt, signal, steps, lines } of deaths(live, KILLS / 3)) {
      if (dieAt === 0) t.diagnostic(`${steps} writes`)
      if (signal !== null) killed += 1
      await goesOn(world, plan, lines).catch((cause: unknown) => {
        throw new Error(`killed at write ${dieAt}`, { cause })
      })
    }
    t.diagnostic(`killed at ${killed} writes`)
    assert.ok(killed > 0)
  })
}

/** Does everything again with what a killed process has left, and asserts what must hold. */
async function goesOn(world: World, plan: TalkPlan, said: readonly string[]): Promise<void> {
  const { cwd, source, log } = world
  const { directory, at, deletes } = plan
  const engine = await open(directory, cwd, at)
  const again: string[] = []
  let fork: string
  try {
    fork = await talk(engine, plan, (line) => again.push(line))
    const events = await engine.events(fork, { after: 0, limit: 1_000 })
    assertInvariants(events)
    const { status, changes, iteration, error } = await engine.get(fork)
    assert.deepEqual([error, status, changes], [null, 'achieved', 'pending'])
    // A command whose outcome is unknown does not run again.
    assert.ok(iteration >= 1 && iteration <= 3)
    // What was answered is answered again, and is in the log, in order.
    assert.deepEqual(again.filter((line) => said.includes(line)), said)
    const sent = events.flatMap((event) =>
      event.kind === 'user_message' ? [event.payload.message_id] : [],
    )
    const answers = again.filter((line) => line.startsWith('message'))
    const answered = answers.map((line) => line.split(' ')[1])
    assert.deepEqual(answered, sent)
    const heard = events.flatMap((event) =>
      event.kind === 'model_turn' ? (event.payload.heard ?? []) : [],
    )
    const first = events[0]?.kind === 'run_created' ? events[0].payload.messages : []
    assert.equal(heard[0], first?.[0]?.message_id)
    assert.equal(first?.[0]?.text, 'forked')
    if (deletes) await assert.rejects(engine.get(source), { code: 'ERR_AGENT_UNKNOWN_RUN' })
    else assert.deepEqual(await engine.events(source, { after: 0, limit: 1_000 }), log)
    const { runs } = await engine.list()
    assert.deepEqual(runs.map(({ run_id }) => run_id), deletes ? [fork] : [fork, source])
  } finally {
    await engine.close()
  }
  assert.deepEqual(filesIn(cwd), TALK_FILES.start)
  // Each copy belongs to a run, and is whole.
  const copies = join(directory, 'workspaces')
  const folders = new IsolatedFolders({ folder: copies, maxBytes: 1e9, closed: [] })
  assert.equal(readdirSync(copies).length, at === 'end' ? 1 : 2)
  assert.equal((await folders.find(source)) === null, at === 'end')
  const { root } = (await folders.find(fork))!
  assert.deepEqual(filesIn(root), { ...TALK_FILES[at], n: 'fork\n' })
}
