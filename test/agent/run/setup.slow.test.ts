/** A command sets a clone up before the first check. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  commandGoal, FileStore, processExecutor, type Executor, type GoalDefinition,
} from 'runwright/agent'
import { follow, payloads, runToEnd, scratch, write } from '../../helpers/engine.js'
import { writeFiles } from '../../helpers/files.js'
import { Children } from '../../helpers/kill.js'
import { World } from '../../helpers/world.js'
import { openFamily, writes, type Brain } from './children/support.js'
import { CLONE, FIX, installs, timesRun } from './setup-support.js'

const children = new Children<typeof import('./setup-crash-children.js')>(
  new URL('setup-crash-children.ts', import.meta.url),
)

const SLOW_GOAL: GoalDefinition = {
  name: 'slow', description: 'slow', usage: 'slow',
  resolve: (cwd) => commandGoal({ name: 'slow', command: 'true', timeoutMs: 900_000 }, cwd),
}

function clone(t: TestContext): { readonly world: World; readonly counter: string } {
  const world = new World(t, {
    files: CLONE, turns: [write({ 'lib/add.js': FIX })], engine: { sealedChecks: 'require' },
  })
  return { world, counter: join(world.top, 'counter') }
}

for (const workspace of ['in_place', 'isolated']) {
  test(`a clone that is set up ${workspace} is checked in a sealed copy`, async (t) => {
    const { world, counter } = clone(t)
    const setup = installs(counter)
    const { details, events } = await world.run({ goal: 'npm-test', setup, workspace })
    assert.equal(details.status, 'achieved', details.final_state.goal_reason)
    assert.deepEqual([details.assurance?.by, details.assurance?.sealed], ['tests', true])
    assert.equal(timesRun(counter), 1)
    assert.deepEqual(payloads(events, 'setup_started'), [{ command: setup }])
    const kinds = events.map(({ kind }) => kind)
    const ended = kinds.indexOf('setup_ended')
    assert.ok(kinds.indexOf('run_started') < ended && ended < kinds.indexOf('goal_check'))
    assert.ok(ended < kinds.indexOf('checkpoint'))
    assert.equal(world.has('node_modules'), workspace === 'in_place')
  })
}

test('files that the setup makes are part of the start', async (t) => {
  const { world } = clone(t)
  const setup = `${installs(join(world.top, 'counter'))} && echo 1 > made.txt && ` +
    "cp test/add.test.js test/made.test.js && echo '{}' > jest.config.json"
  const { details, runId } = await world.run({ goal: 'node-test', setup })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  const { files } = await (await world.open()).checkFiles(runId)
  assert.ok(files.some(({ path }) => path === 'test/made.test.js'))
})

test('a setup that fails ends the run before any call of a model', async (t) => {
  const { world } = clone(t)
  const setup = 'seq 3000; echo no registry here; exit 3'
  const { details, events } = await world.run({ goal: 'node-test', setup })
  assert.deepEqual([details.status, details.end_reason], ['failed', 'setup_failed'])
  const { goal_reason } = details.final_state
  const [end] = payloads(events, 'run_end')
  assert.match(end?.reason ?? '', /^the setup failed with exit code 3: [^]*no registry here$/)
  assert.ok((end?.reason.length ?? 0) < 3_000)
  assert.match(goal_reason, /no registry here/)
  const [ended] = payloads(events, 'setup_ended')
  assert.equal(ended?.exit_code, 3)
  assert.match(ended?.output ?? '', /no registry here\n$/)
  assert.equal(world.requests.length, 0)
  assert.deepEqual(payloads(events, 'goal_check'), [])
})

test('a setup has the time of a check, at least five minutes', async (t) => {
  const limits: number[] = []
  const plain = processExecutor()
  const executor: Executor = {
    ...plain,
    killMarked: (mark) => plain.killMarked(mark),
    run: async (_, { timeoutMs }) => {
      limits.push(timeoutMs)
      return { exitCode: 124, output: '', truncated: false, timedOut: true, durationMs: 1 }
    },
  }
  const world = new World(t, { engine: { executor, goals: [SLOW_GOAL] } })
  for (const goal of ['shell: true', 'slow']) {
    const { details } = await world.run({ goal, setup: 'sleep 600' })
    const { end_reason, final_state } = details
    assert.deepEqual([end_reason, final_state.goal_reason], [
      'setup_failed', 'the setup did not end in time',
    ])
  }
  assert.deepEqual(limits, [300_000, 900_000])
})

test('the time of the run stops its setup, and so does an abort', async (t) => {
  const world = new World(t)
  const { details } = await world.run({ goal: 'shell: true', setup: 'sleep 600', max_seconds: 1 })
  assert.equal(details.end_reason, 'time_budget')
  const engine = await world.open()
  const watcher = watch(world.cwd)
  t.after(() => watcher.close())
  const begun = once(watcher, 'change')
  const { details: { run_id: id } } = await engine.create({
    goal: 'shell: true', cwd: world.cwd, setup: 'touch begun && sleep 600',
  })
  await begun
  await engine.abort(id)
  await follow(engine, id)
  assert.equal((await engine.get(id)).end_reason, 'cancelled')
})

for (const [name, dieOn, runs] of [
  ['that a crash cuts off runs again', 'setup', 2],
  ['whose end is not recorded runs again', 'before setup_ended', 2],
  ['whose end is recorded never runs again', 'after setup_ended', 1],
] as const) {
  test(`a setup ${name}`, async (t) => {
    const { world, counter } = clone(t)
    const args = { directory: world.data, root: world.cwd, counter }
    assert.equal((await children.run('drive', args, { dieAt: 1, dieOn })).signal, 'SIGKILL')
    const { lines } = await children.run('drive', args, { dieAt: 0 })
    assert.deepEqual(JSON.parse(lines[0] ?? ''), { status: 'achieved', ends: 1 })
    assert.equal(timesRun(counter), runs)
  })
}

for (const crash of [false, true]) {
  const when = crash ? 'also after a crash in it' : 'before the run goes on'
  test(`a copy that is made anew is set up again, ${when}`, async (t) => {
    const { world, counter } = clone(t)
    const store = (): FileStore => new FileStore({ directory: world.data })
    const options = { workspaceFolder: undefined }
    const first = await world.open({ ...options, store: store() })
    const { details: { run_id: id } } = await first.create({
      goal: 'shell: node --test && false', setup: installs(counter), workspace: 'isolated',
      hitl_enabled: true, max_iterations: 2,
    })
    await follow(first, id, ({ kind }) => kind === 'human_check_required')
    await first.close()
    const file = join(world.data, 'workspaces', id, 'copy.json')
    const description = JSON.parse(readFileSync(file, 'utf8')) as object
    writeFileSync(file, JSON.stringify({ ...description, boot: 'earlier' }))
    const args = { directory: world.data, root: world.cwd, counter }
    if (crash) {
      const dead = await children.run('resume', args, { dieAt: 1, dieOn: 'setup' })
      assert.equal(dead.signal, 'SIGKILL')
    }
    const { lines } = await children.run('resume', args, { dieAt: 0 })
    const { ends, status, checks } = JSON.parse(lines[0] ?? '') as Record<string, unknown>
    // Without the package, the test would not pass, and the reason would be another one.
    assert.deepEqual([ends, status, checks], [2, 'failed', { passed: 1, failed: 0 }])
    assert.equal(timesRun(counter), crash ? 3 : 2)
  })
}

for (const workspace of ['in_place', 'isolated']) {
  test(`delegates of a run ${workspace} have what its setup made`, async (t) => {
    const delegates: Brain = ({ messages }, turn) => {
      const [first] = messages
      const isChild = first?.role === 'user' && first.text.includes('Goal: fix')
      if (isChild) return writes('lib/add.js', FIX)({ messages } as never, turn)
      const args = { goal: 'fix', check: 'node --test' }
      return turn === 0 ? { calls: [{ tool: 'delegate', args }], tokens: [1, 1] } : { text: 'done' }
    }
    const { engine, cwd } = await openFamily(t, { delegates })
    const counter = join(scratch(t), 'counter')
    writeFiles(cwd, CLONE)
    const { details, events } = await runToEnd(engine, {
      goal: 'node-test', setup: installs(counter), workspace, delegation: {}, max_iterations: 2,
    })
    assert.equal(details.status, 'achieved', details.final_state.goal_reason)
    const [end] = payloads(events, 'delegate_ended')
    assert.equal(end?.status, 'achieved', end?.reason)
    assert.equal(timesRun(counter), 1)
  })
}

test('attempts begin with what the setup of their run made, once and not in its folder', async (t) => {
  const { engine, cwd, copies } = await openFamily(t, {
    wrong: writes('lib/add.js', '//\n'), right: writes('lib/add.js', FIX),
  })
  const counter = join(scratch(t), 'counter')
  writeFiles(cwd, CLONE)
  const { details } = await runToEnd(engine, {
    goal: 'node-test', setup: installs(counter), max_iterations: 1,
    attempts: { count: 2, models: ['test:wrong', 'test:right'], choose: 'smallest' },
  })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.equal(details.attempts?.chosen, 2)
  assert.equal(timesRun(counter), 1)
  assert.equal(readFileSync(join(cwd, 'lib/add.js'), 'utf8'), FIX)
  assert.deepEqual(readdirSync(cwd).sort(), ['lib', 'package-lock.json', 'package.json', 'test'])
  await engine.close()
  assert.deepEqual(readdirSync(copies), [])
})

for (const [from, to] of [
  ['in_place', 'in_place'], ['in_place', 'isolated'], ['isolated', 'isolated'],
] as const) {
  test(`a fork ${to} of a run ${from} has what the setup of that made`, async (t) => {
    const { world, counter } = clone(t)
    const setup = installs(counter)
    const goal = 'shell: node --test && test -f done'
    const source = await world.run({ goal, setup, workspace: from, max_iterations: 1 })
    assert.equal(source.details.end_reason, 'max_iterations')
    const engine = await world.open()
    const { details } = await engine.fork(source.runId, {
      at: 'end', workspace: to, max_iterations: 1,
    })
    const checks = payloads(await follow(engine, details.run_id), 'goal_check')
    assert.deepEqual(checks[0]?.counts, { total: 1, passed: 1, failed: 0, skipped: 0 })
    assert.equal(timesRun(counter), 1)
  })
}

test('a fork whose source was set up in a copy that is gone is set up again', async (t) => {
  const { world, counter } = clone(t)
  const source = await world.run({
    goal: 'node-test', setup: installs(counter), workspace: 'isolated', max_iterations: 1,
  })
  const engine = await world.open()
  rmSync(join(world.copies, source.runId), { recursive: true })
  const { details } = await engine.fork(source.runId, { at: 'start' })
  const events = await follow(engine, details.run_id)
  const [started] = payloads(events, 'setup_started')
  assert.deepEqual([started?.again, timesRun(counter)], [true, 2])
})
