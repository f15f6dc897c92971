import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  bubblewrapExecutor,
  bubblewrapProblem,
  defineTool,
  MemoryStore,
  processExecutor,
  RunEngine,
  type EngineOptions,
  type Executor,
  type JsonObject,
  type RunRecord,
  type Tool,
} from 'runwright/agent'
import { follow, runToEnd, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { failingExecutor } from '../../helpers/executor.js'
import { assertInvariants } from '../../helpers/invariants.js'

const noSandbox = (await bubblewrapProblem()) ?? false
const hasDescriptors = process.platform === 'linux' ? false : 'needs /proc'

/** `parent/folder` is the folder of a run; `other/folder`, below the same root, is another one. */
interface World {
  readonly top: string
  readonly root: string
  readonly cwd: string
  readonly other: string
}

function world(t: TestContext): World {
  const top = scratch(t)
  const root = join(top, 'root')
  for (const parent of ['parent', 'other']) {
    fs.mkdirSync(join(root, parent, 'folder'), { recursive: true })
  }
  const other = join(root, 'other/folder')
  fs.writeFileSync(join(other, 'secret'), 'the secret')
  return { top, root, cwd: join(root, 'parent/folder'), other }
}

type Swap = (world: World) => void

const swaps: Readonly<Record<string, Swap>> = {
  'a link': ({ cwd, other }) => {
    fs.renameSync(cwd, `${cwd}-moved`)
    fs.symlinkSync(other, cwd)
  },
  'another folder': ({ cwd, other }) => {
    fs.renameSync(cwd, `${cwd}-moved`)
    fs.renameSync(other, cwd)
    fs.symlinkSync(cwd, other)
  },
  'a new folder': ({ cwd }) => {
    fs.rmSync(cwd, { recursive: true })
    fs.mkdirSync(cwd)
  },
  'a link in the place of its parent': ({ root }) => {
    fs.renameSync(join(root, 'parent'), join(root, 'moved'))
    fs.symlinkSync('other', join(root, 'parent'))
  },
}

const call = (tool: string, args: JsonObject): Said => ({ calls: [{ tool, args }] })

interface Outcome {
  readonly error: string | undefined
  readonly message: string
  readonly endReason: string | null
  /** Everything that the log says, as one text. */
  readonly log: string
  /** Names in the other folder, wherever it is now. */
  readonly others: readonly string[]
}

/** A run whose folder is swapped between its first command, a check, and its first turn. */
async function swapped(
  t: TestContext,
  place: World,
  swap: Swap,
  executor: Executor,
  said: Said,
  tools: readonly Tool[] = [],
): Promise<Outcome> {
  // Without a change there is no second check.
  const first = said.calls === undefined ? [call('write_file', { path: 'first', content: '' })] : []
  const turns = [...first, said]
  const provider = testProvider((_, turn) => {
    if (turn === turns.length - 1) swap(place)
    return turns[turn] ?? {}
  })
  const store = new MemoryStore()
  const engine = await RunEngine.open({
    store,
    executor,
    tools,
    roots: [place.root],
    sealedChecks: 'off',
    providers: [provider],
    defaultModel: 'test:m',
  })
  t.after(() => engine.close())
  const request = { goal: 'shell: test -e secret', cwd: place.cwd, max_iterations: 2 }
  const { details, events } = await runToEnd(engine, request)
  assertInvariants(events)
  const { error, end_reason } = details
  return {
    error: error?.code,
    message: error?.message ?? '',
    endReason: end_reason,
    log: JSON.stringify(events),
    others: readdirSync(place.other),
  }
}

function assertLost(outcome: Outcome, cwd: string): void {
  assert.equal(outcome.error, 'ERR_AGENT_WORKSPACE_LOST', outcome.log)
  assert.equal(outcome.endReason, 'internal_error')
  assert.ok(outcome.message.startsWith(`the run's folder ${cwd} was `), outcome.message)
  assert.match(outcome.message, /retry the run/)
  assert.ok(!outcome.log.includes('the secret'), outcome.log)
  assert.deepEqual(outcome.others, ['secret'])
}

for (const [name, make, skip] of [
  ['process', processExecutor, false],
  ['bubblewrap', bubblewrapExecutor, noSandbox],
] as const) {
  for (const [what, swap] of Object.entries(swaps)) {
    test(`${name}: a run ends when its folder is replaced by ${what}`, { skip }, async (t) => {
      const place = world(t)
      const said = call('bash', { command: 'cat secret; echo two > second' })
      assertLost(await swapped(t, place, swap, make(), said), place.cwd)
    })
  }
}

for (const [what, said] of Object.entries({
  'a file is read': call('read_file', { path: 'secret' }),
  'a file is written': call('write_file', { path: 'second', content: 'x' }),
  'a file is edited': call('edit_file', { path: 'secret', old_text: 'secret', new_text: 'x' }),
  'a folder is listed': call('list_files', {}),
  'files are searched': call('search_files', { pattern: 'secret' }),
  'the goal is checked': {},
})) {
  test(`a run whose folder was replaced ends before ${what}`, async (t) => {
    const place = world(t)
    assertLost(await swapped(t, place, swaps['a link']!, processExecutor(), said), place.cwd)
  })
}

/** A tool of the host that runs a command in a folder of the workspace. */
function commandTool(folder: string): Tool {
  return defineTool({
    name: 'look',
    description: 'Shows what is there.',
    parameters: { type: 'object' },
    effect: 'read',
    execute: async (_, { run, workspace }) =>
      await run('pwd; cat secret', { cwd: join(workspace.root, folder) }),
  })
}

test('a run whose folder was replaced ends before a tool of the host runs a command', async (t) => {
  const place = world(t)
  const tools = [commandTool('.')]
  const swap = swaps['a link']!
  const outcome = await swapped(t, place, swap, processExecutor(), call('look', {}), tools)
  assertLost(outcome, place.cwd)
})

test('a tool of the host runs its commands in folders of the workspace only', async (t) => {
  const place = world(t)
  fs.mkdirSync(join(place.cwd, 'real'))
  const said = {
    calls: ['inside', 'outside'].map((tool) => ({ tool, args: {} })),
  }
  fs.symlinkSync('real', join(place.cwd, 'inside'))
  fs.symlinkSync(place.other, join(place.cwd, 'outside'))
  const tools = ['inside', 'outside'].map((name) => ({ ...commandTool(name), name }))
  const outcome = await swapped(t, place, () => undefined, processExecutor(), said, tools)
  assert.equal(outcome.error, undefined, outcome.message)
  assert.ok(outcome.log.includes(`"output":"${place.cwd}/real\\n`), outcome.log)
  assert.match(outcome.log, /outside leads outside the workspace/)
  assert.ok(!outcome.log.includes('the secret'), outcome.log)
})

/** An executor that swaps the folder before one command, just after it was compared. */
function racing(executor: Executor, place: World, undo: boolean): Executor {
  let isSwapped = false
  return {
    name: executor.name,
    killMarked: (mark) => executor.killMarked(mark),
    run: (command, options) => {
      if (!command.includes('second') || isSwapped) return executor.run(command, options)
      isSwapped = true
      swaps['a link']!(place)
      const restore = (): void => {
        if (!undo) return
        fs.rmSync(place.cwd)
        fs.renameSync(`${place.cwd}-moved`, place.cwd)
      }
      return executor.run(command, {
        ...options,
        // The process exists by now, and is in its folder.
        onStart: async (pgid) => {
          restore()
          await options.onStart?.(pgid)
        },
      })
    },
  }
}

const second = call('bash', { command: 'cat secret; pwd; echo two > second' })

test('process: a folder swapped just before a command starts is not entered', async (t) => {
  const place = world(t)
  const executor = racing(processExecutor(), place, false)
  assertLost(await swapped(t, place, () => undefined, executor, second), place.cwd)
})

test('process: a swap that is undone leaves the command in the right folder', async (t) => {
  const place = world(t)
  const executor = racing(processExecutor(), place, true)
  const outcome = await swapped(t, place, () => undefined, executor, second)
  assert.deepEqual(outcome.others, ['secret'])
  assert.ok(!outcome.log.includes('the secret'))
  if (hasDescriptors !== false) return
  assert.equal(outcome.error, undefined, outcome.message)
  assert.deepEqual(fs.readdirSync(place.cwd), ['second'])
  assert.ok(outcome.log.includes(`${place.cwd}\\n`), 'the folder has its own name')
})

/**
 * A program `bwrap` that swaps the folder for a link while the real one starts. It is alone on PATH
 * with what commands need, since those of the system come first.
 */
async function swappedSandbox(t: TestContext, place: World): Promise<Outcome> {
  const shelf = scratch(t)
  const path = process.env['PATH'] ?? ''
  const folders = path.split(':')
  const real = (name: string): string =>
    folders.map((folder) => join(folder, name)).find((file) => fs.existsSync(file))!
  const needed = ['cat', 'grep', 'ln', 'mkfifo', 'mv', 'sh']
  for (const name of needed) fs.symlinkSync(real(name), join(shelf, name))
  const script = `#!/bin/sh
    case "$*" in *second*)
      mv '${place.cwd}' '${place.cwd}-moved'; ln -s '${place.other}' '${place.cwd}';;
    esac
    exec '${real('bwrap')}' "$@"`
  fs.writeFileSync(join(shelf, 'bwrap'), script, { mode: 0o755 })
  process.env['PATH'] = shelf
  try {
    return await swapped(t, place, () => undefined, bubblewrapExecutor(), second)
  } finally {
    process.env['PATH'] = path
  }
}

test(
  'bubblewrap: a folder that is swapped while it is mounted is not entered',
  { skip: noSandbox },
  async (t) => {
    const place = world(t)
    assertLost(await swappedSandbox(t, place), place.cwd)
  },
)

test('bubblewrap: a command gets no descriptor of its folder', { skip: noSandbox }, async (t) => {
  const place = world(t)
  // Descriptors come and go while they are listed.
  const command = 'ls -l /proc/[0-9]*/fd 2> /dev/null | grep -o "root/.*"; pwd; echo "$PWD"'
  const said = call('bash', { command })
  const { log } = await swapped(t, place, () => undefined, bubblewrapExecutor(), said)
  assert.ok(log.includes(`"output":"${place.cwd}\\n${place.cwd}\\n"`), log)
})

/** The records of a run that waits at its gate after one iteration. */
async function waiting(place: World): Promise<readonly RunRecord[]> {
  const store = new MemoryStore()
  const engine = await RunEngine.open({ ...restarted(place), store })
  const cwd = place.cwd
  const request = { goal: 'shell: test -e done', cwd, hitl_enabled: true, max_iterations: 2 }
  const { run_id: runId } = (await engine.create(request)).details
  await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
  const records = await store.read(runId, 0, 1_000)
  await engine.close()
  return records
}

function restarted({ root }: World): Pick<EngineOptions, 'roots' | 'providers' | 'defaultModel'> {
  return { roots: [root], providers: [testProvider(() => ({}))], defaultModel: 'test:m' }
}

/** Approves the gate in a new process, so to speak; resolves with how the run ends. */
async function goOn(place: World, records: readonly RunRecord[]): Promise<string> {
  const store = new MemoryStore()
  await store.open()
  const runId = records[0]!.run_id
  await store.append(runId, records)
  const engine = await RunEngine.open({ ...restarted(place), store })
  await engine.resume(runId, { decision: 'approve' })
  await follow(engine, runId)
  const { end_reason, error } = await engine.get(runId)
  await engine.close()
  return error?.code ?? String(end_reason)
}

test('after a restart, a run continues only in the folder in which it began', async (t) => {
  for (const [what, swap] of Object.entries(swaps)) {
    // Nothing holds the inode of a deleted folder while no process works in it.
    if (what === 'a new folder') continue
    const place = world(t)
    const records = await waiting(place)
    swap(place)
    assert.equal(await goOn(place, records), 'ERR_AGENT_WORKSPACE_LOST', what)
  }
  const place = world(t)
  const records = await waiting(place)
  assert.equal(await goOn(place, records), 'max_iterations')
})

for (const [what, folder] of [
  ['of an earlier version, which does not know its folder', undefined],
  ['whose folder is on another device since then', { device: '1', inode: '1' }],
] as const) {
  test(`after a restart, a run continues ${what}`, async (t) => {
    const place = world(t)
    const records = (await waiting(place)).map((record) =>
      record.kind === 'run_started'
        ? { ...record, private: { baseline: { files: {} }, ...(folder && { folder }) } }
        : record,
    )
    assert.equal(await goOn(place, records), 'max_iterations')
    fs.renameSync(place.cwd, `${place.cwd}-moved`)
    fs.symlinkSync(place.other, place.cwd)
    assert.equal(await goOn(place, records), 'ERR_AGENT_WORKSPACE_LOST', 'links never suffice')
  })
}

test('runs leave no descriptor open, however they end', { skip: hasDescriptors }, async (t) => {
  const open = (): number => readdirSync('/proc/self/fd').length
  const cwd = scratch(t)
  const provider = testProvider((_, count) => {
    if (count % 3 === 0) throw new Error('the model is broken')
    return count % 3 === 1 ? call('list_files', {}) : {}
  })
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [cwd],
    providers: [provider],
    defaultModel: 'test:m',
    executor: failingExecutor,
    cwdPolicy: 'allow',
  })
  t.after(() => engine.close())
  const some = async (count: number): Promise<void> => {
    const runs = Array.from({ length: count }, async (_, index) => {
      const request = { goal: 'shell: no', cwd, max_iterations: 2, hitl_enabled: index % 4 === 3 }
      const { run_id: runId } = (await engine.create(request)).details
      if (index % 5 === 4) await engine.abort(runId)
      const gated = await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
      const isOpen = gated.at(-1)?.kind === 'human_check_required'
      if (isOpen) await engine.resume(runId, { decision: 'abort' })
      await follow(engine, runId)
    })
    await Promise.all(runs)
  }
  await some(10)
  const before = open()
  await some(100)
  // Those of threads that are done close by themselves, some seconds later at most.
  for (const end = Date.now() + 20_000; open() > before && Date.now() < end; ) await nextTurn()
  assert.ok(open() <= before, `${before} before, ${open()} after`)
})
