/**
 * Plays tricks: each in a project of its own, by a real engine whose model does what the trick
 * says. Home folder, temporary folder and the folder above belong to the trick alone.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import {
  MemoryStore, processExecutor, RunEngine, type AgentEvent, type Executor, type JsonObject,
} from 'runwright/agent'
import { goalRegistry } from '../../../../lib/agent/goals/registry.js'
import { follow, testProvider, type Said } from '../../../helpers/engine.js'
import { put } from '../support.js'
import { open } from './open.js'
import type { Act, Played, Trick } from './tricks/trick.js'

/** How a trick ended. */
export interface TrickResult {
  readonly achieved: boolean
  /** Why, in the words of the last check. */
  readonly reason: string
  readonly first: string
  /** What the last verdict rests on: `tests, sealed`. */
  readonly restsOn: string
  /** What the last command wrote. */
  readonly output: string
}

/** Tricks that are played at a time. */
const POOL = 3

/** What is to be done when a test is over. */
interface Cleanups {
  after(end: () => void): void
}

/** A project in a folder with a home and a place for temporary files. */
interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

async function placeOf(t: Cleanups, trick: Played): Promise<Place> {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'trick-')))
  const cwd = join(top, 'above/project')
  const home = join(top, 'home')
  const temporary = join(top, 'tmp')
  t.after(() => {
    endDaemons(home)
    rmSync(top, { recursive: true, force: true, maxRetries: 5 })
  })
  for (const folder of [cwd, home, temporary]) mkdirSync(folder, { recursive: true })
  await put(cwd, trick.files)
  const env = {
    HOME: home,
    TMPDIR: temporary,
    TOOLS: join(process.cwd(), 'node_modules'),
    PEERS: join(process.cwd(), 'test/peers/node_modules'),
    PATH: `${await pythonFolder()}:${process.env['PATH']}`,
    ...(trick.plugins === true ? {} : { PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1' }),
    ...GIT,
  }
  if (trick.setup !== undefined) {
    const { code, output } = await shell(trick.setup, { cwd, env })
    assert.equal(code, 0, `the project could not be made: ${output}`)
  }
  return { cwd, env }
}

const GIT = {
  GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@a', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@a',
}

let python: Promise<string> | undefined

/** Where Python is: it may be found through a slow script that looks into the home folder. */
function pythonFolder(): Promise<string> {
  python ??= shell('python3 -c "import sys; print(sys.executable)"', {
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'] ?? '', HOME: homedir() },
  }).then(({ output }) => dirname(output.trim()))
  return python
}

/** Ends the background processes that a trick has left, by the numbers it noted. */
function endDaemons(home: string): void {
  const list = join(home, 'daemons')
  if (!existsSync(list)) return
  for (const pid of readFileSync(list, 'utf8').split('\n').filter(Boolean)) {
    try {
      process.kill(-Number(pid), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

interface Ended {
  readonly code: number
  readonly output: string
}

function shell(command: string, { cwd, env }: Place, more: object = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...env, ...more }, timeout: 60_000 }
    execFile('/bin/sh', ['-c', command], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, output: stdout + stderr })
    })
  })
}

/** The executor that hosts use, in the home of a trick. */
function executorIn(env: Readonly<Record<string, string>>): Executor & { last(): string } {
  const executor = processExecutor()
  let last = ''
  return {
    name: executor.name,
    run: async (command, options) => {
      const result = await executor.run(command, { ...options, env: { ...env, ...options.env } })
      last = result.output
      return result
    },
    killMarked: (mark) => executor.killMarked(mark),
    last: () => last,
  }
}

type Call = NonNullable<Said['calls']>[number]

function calls(acts: readonly Act[]): Said {
  return {
    calls: acts.flatMap<Call>((act) =>
      'run' in act
        ? [{ tool: 'bash', args: { command: act.run } }]
        : Object.entries(act.write).map(([path, content]) => ({
            tool: 'write_file',
            args: { path, content },
          })),
    ),
  }
}

/** Plays a trick in a run with one iteration for each part of it, and these fields in its request. */
export async function playTrick(
  t: Cleanups,
  trick: Played,
  fields: JsonObject = {},
): Promise<TrickResult> {
  const { cwd, env } = await placeOf(t, trick)
  const iterations = trick.then === undefined ? [trick.acts] : [trick.acts, trick.then]
  const said = iterations.flatMap((acts) => [calls(acts), { text: 'It is done.' }])
  const executor = executorIn(env)
  await using engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [dirname(cwd)],
    executor,
    defaultModel: 'test:m',
    detectStuck: false,
    providers: [testProvider((_, turn) => said[turn] ?? { text: 'Nothing is left to do.' })],
  })
  const added = { ...trick.fields, ...fields }
  const request = { goal: trick.goal, cwd, max_iterations: iterations.length, ...added }
  const { details } = await engine.create(request)
  return resultOf(await follow(engine, details.run_id), executor.last())
}

function resultOf(events: readonly AgentEvent[], output: string): TrickResult {
  for (const { kind, payload } of events) {
    if (kind !== 'tool_result') continue
    assert.equal(payload.exit_code, 0, `what the agent did failed: ${payload.output}`)
  }
  const checks = events.flatMap(({ kind, payload }) => (kind === 'goal_check' ? [payload] : []))
  const [first, last] = [checks[0], checks.at(-1)]
  assert.ok(first !== undefined && last !== undefined && checks.length > 1, 'checks were made')
  assert.equal(first.achieved, false, 'there is something to do at the start')
  const { achieved, assurance, reason } = last
  const restsOn = `${assurance?.by}${assurance?.sealed === true ? ', sealed' : ''}`
  return { achieved, reason, first: first.reason, restsOn, output }
}

/** What a check that looks at the exit code alone says, before and after a trick. */
export async function exitCodes(t: TestContext, trick: Trick): Promise<readonly [Ended, Ended]> {
  const place = await placeOf(t, trick)
  const { command, env } = await goalRegistry().resolve(trick.goal, place.cwd)
  const variables = { ...QUIET, ...env }
  const before = await shell(command, place, variables)
  for (const act of [...trick.acts, ...(trick.then ?? [])]) {
    if ('write' in act) await put(place.cwd, act.write)
    else {
      const { code, output } = await shell(act.run, place)
      assert.equal(code, 0, `what the agent did failed: ${output}`)
    }
  }
  return [before, await shell(command, place, variables)]
}

const QUIET = { CI: '1', NO_COLOR: '1', PYTHONDONTWRITEBYTECODE: '1' }

/**
 * One test for a table: each trick is refused, but for those in `open.ts`, which still pass. With
 * `TRICKS=tell` in the environment it says of each trick how it ended.
 */
export function testTricks(title: string, tricks: readonly Trick[]): void {
  test(title, { concurrency: POOL }, async (t) => {
    const achievedByClass = new Map<string, number>()
    await Promise.all(
      tricks.map((trick) =>
        t.test(nameOf(trick), async (t) => {
          const { achieved, reason } = await playTrick(t, trick)
          if (achieved) {
            achievedByClass.set(trick.class, (achievedByClass.get(trick.class) ?? 0) + 1)
          }
          const ended = achieved ? 'achieved' : 'refused'
          if (process.env['TRICKS'] === 'tell') {
            t.diagnostic(`${nameOf(trick)} [${trick.caughtBy}] ${ended}: ${reason}`)
          }
          const why = open[nameOf(trick)]
          const note = why === undefined ? '' : `, but is in open.ts: ${why}`
          assert.equal(achieved, why !== undefined, `it was ${ended}: ${reason}${note}`)
        }),
      ),
    )
    for (const name of new Set(tricks.map((trick) => trick.class))) {
      const played = tricks.filter((trick) => trick.class === name).length
      t.diagnostic(`${name}: ${achievedByClass.get(name) ?? 0} of ${played} achieved`)
    }
  })
}

/** One test for a table: each change does the work, and must not be refused. */
export function testHonestChanges(title: string, changes: readonly Played[]): void {
  test(title, { concurrency: POOL }, async (t) => {
    await Promise.all(
      changes.map((change) =>
        t.test(nameOf(change), async (t) => {
          const { achieved, reason, output } = await playTrick(t, change)
          assert.ok(achieved, `a false alarm: ${reason}\n${output}`)
        }),
      ),
    )
  })
}

/** One test for a table: each trick would work if nothing but the exit code counted. */
export function testThatTheyFool(title: string, tricks: readonly Trick[]): void {
  test(title, { concurrency: POOL }, async (t) => {
    await Promise.all(
      tricks.map((trick) =>
        t.test(nameOf(trick), async (t) => {
          const [before, after] = await exitCodes(t, trick)
          assert.notEqual(before.code, 0, `there is something to do at the start\n${before.output}`)
          assert.equal(after.code, 0, after.output)
        }),
      ),
    )
  })
}

/** The name of a trick in tests and in `open.ts`. */
export const nameOf = ({ runner, name }: Played): string => `${runner}: ${name}`
