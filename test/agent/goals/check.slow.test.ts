import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { CommandOptions, CommandResult, GoalSpec } from 'runwright/agent'
import { checkGoal } from '../../../lib/agent/goals/check.js'
import { captureBaseline } from '../../../lib/agent/goals/protected-files.js'
import { RecordingExecutor, Pursuit, put, workspace } from './support.js'

for (const { command, reason, achieved = false, exitCode = 0 } of [
  { command: 'true', reason: 'exit code 0', achieved: true },
  { command: 'exit 2', reason: 'exit code 2', exitCode: 2 },
  { command: 'no-such-command-at-all', reason: 'exit code 127', exitCode: 127 },
]) {
  test(`shell: ${command} gives "${reason}"`, async (t) => {
    const verdict = await (await Pursuit.start(await workspace(t, {}), `shell: ${command}`)).check()
    assert.deepEqual(
      [
        verdict.achieved,
        verdict.reason,
        verdict.exit_code,
        verdict.counts,
        verdict.tests,
        verdict.assurance.by,
      ],
      [achieved, reason, exitCode, null, null, 'exit_code'],
    )
  })
}

test('a command that prints the output of a runner reports no tests', async (t) => {
  const cwd = await workspace(t, {
    'check.sh': 'printf "TAP version 13\\nok 1 - adds\\n1..1\\n# tests 1\\n# pass 1\\n"\n',
  })
  const verdict = await (await Pursuit.start(cwd, 'shell: sh check.sh')).check()
  assert.deepEqual([verdict.reason, verdict.counts], ['exit code 0', null])
  await put(cwd, { 'package.json': '{"scripts":{"test":"node fake.js"}}', 'test/a.test.js': '' })
  await put(cwd, { 'fake.js': 'console.log("ok 1 - node --test")' })
  const spec: GoalSpec = { ...(await Pursuit.start(cwd, 'npm-test')).spec, reporter: 'node-test' }
  const executor = new RecordingExecutor()
  const baseline = await captureBaseline(spec, cwd)
  const signal = new AbortController().signal
  const faked = await checkGoal(spec, {
    executor,
    cwd,
    mark: '',
    signal,
    baselineTests: null,
    baseline,
  })
  assert.deepEqual([faked.achieved, faked.reason], [false, 'no tests ran under the test runner'])
})

test('a changed check script fails the goal, and the output names it', async (t) => {
  const cwd = await workspace(t, { 'check.sh': '#!/bin/sh\nexit 1\n' })
  await chmod(join(cwd, 'check.sh'), 0o755)
  const run = await Pursuit.start(cwd, 'shell: ./check.sh')
  assert.equal((await run.check()).reason, 'exit code 1')
  await put(cwd, { 'check.sh': '#!/bin/sh\nexit 0\n' })
  const verdict = await run.check()
  assert.deepEqual(
    [verdict.achieved, verdict.reason],
    [false, 'tests changed: check.sh was modified'],
  )
  assert.match(
    verdict.output,
    /These files belong to the check and must be as they were:\n- check\.sh was modified\n$/,
  )
})

test('a check that changes its own script while it runs fails the goal', async (t) => {
  const cwd = await workspace(t, { 'check.sh': 'sh ./work\n', work: 'exit 1\n' })
  const run = await Pursuit.start(cwd, 'shell: sh check.sh', {})
  await put(cwd, { work: 'echo "exit 0" > check.sh\n' })
  const verdict = await run.check()
  assert.equal(verdict.exit_code, 0)
  assert.match(verdict.reason, /^tests changed: .*was modified/)
})

test('a check that times out says so, and reports no tests', async (t) => {
  const run = await Pursuit.start(await workspace(t, {}), 'shell: sleep 60')
  const { spec, cwd, baseline, executor } = run
  const verdict = await checkGoal(
    { ...spec, timeout_ms: 100 },
    {
      executor,
      cwd,
      baseline,
      mark: '',
      signal: new AbortController().signal,
      baselineTests: null,
    },
  )
  assert.deepEqual(
    [verdict.achieved, verdict.reason, verdict.exit_code, verdict.tests],
    [false, 'check timed out after 0.1 s', 124, null],
  )
})

test('an aborted check rejects with the reason of its signal and removes its folder', async (t) => {
  const run = await Pursuit.start(await workspace(t, { 'test/a.test.js': '' }), 'node-test')
  const aborting = new AbortController()
  const reason = new Error('enough')
  const { run: execute } = run.executor
  run.executor.run = (_command: string, options: CommandOptions): Promise<CommandResult> => {
    const running = execute.call(run.executor, 'sleep 60', options)
    aborting.abort(reason)
    return running
  }
  await assert.rejects(run.check(aborting.signal), (error) => error === reason)
  const { writable } = run.executor.calls[0]!.options
  assert.equal(existsSync(writable[0]!), false)
  await assert.rejects(run.check(aborting.signal), (error) => error === reason)
  assert.equal(
    run.executor.calls.length,
    1,
    'nothing is started when the signal is aborted already',
  )
})

test('the command gets its folder, mark, limits and private folder', async (t) => {
  const run = await Pursuit.start(await workspace(t, { 'test/a.test.js': '' }), 'node-test')
  await run.check()
  const { command, options } = run.executor.calls[0]!
  assert.equal(command, 'node --test')
  assert.deepEqual(
    [options.cwd, options.mark, options.timeoutMs, options.maxOutputBytes],
    [run.cwd, 'm', 300_000, 22 * 1024],
  )
  assert.match(options.writable[0]!, /runwright-check-[\w-]+$/)
  assert.equal(options.env['CI'], '1')
  assert.match(options.env['NODE_OPTIONS']!, /^--require=\S+process.cjs --test-reporter=file:/)
})

test('a perf goal takes the best of three runs, and stops at the first fast enough', async (t) => {
  const run = await Pursuit.start(await workspace(t, {}), 'perf: true < 500ms')
  assert.deepEqual([run.spec.command, run.spec.max_duration_ms], ['true', 500])
  const durations = [900, 700, 600, 450, 600, 600, 501]
  const exits = [0, 0, 0, 0, 0, 0, 3]
  run.executor.run = async () => ({
    exitCode: exits[0]! === 0 ? exits.shift()! : 3,
    output: '',
    truncated: false,
    timedOut: false,
    durationMs: durations.shift()!,
  })
  const reasons = [await run.check(), await run.check()].map((verdict) => verdict.reason)
  assert.deepEqual(reasons, [
    'took 600 ms, which is more than 500 ms',
    'took 450 ms, within 500 ms',
  ])
  assert.deepEqual([durations.length, (await run.check()).reason], [3, 'exit code 3'])
})

test('the private folder never lies in the workspace, even if that is TMPDIR', async (t) => {
  const outer = await mkdtemp(join(tmpdir(), 'goal-tmp-'))
  t.after(() => rm(outer, { recursive: true, force: true }))
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = outer
  t.after(() =>
    before === undefined ? delete process.env['TMPDIR'] : (process.env['TMPDIR'] = before),
  )
  const executor = new RecordingExecutor()
  await put(outer, { 'test/a.test.js': "import { test } from 'node:test'\ntest('a', () => {})\n" })
  const { spec } = await Pursuit.start(outer, 'node-test')
  const baseline = await captureBaseline(spec, outer)
  const signal = new AbortController().signal
  const verdict = await checkGoal(spec, {
    executor,
    cwd: outer,
    mark: '',
    signal,
    baselineTests: null,
    baseline,
  })
  assert.ok(!executor.calls[0]!.options.writable[0]!.startsWith(outer))
  assert.ok(verdict.achieved, verdict.reason)
})
