import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { processExecutor } from 'runwright/agent'
import { processGroup, waitUntilGone } from '../../../lib/agent/executors/process-tree.js'
import { programAt } from '../../helpers/programs.js'
import { Bench, testExecutor } from './executor-contract.js'

testExecutor('process', () => processExecutor(), false)

/**
 * True for a process with memory of its own, which an ending or ended process does not have. One
 * that starts its program in just that moment has none either, but has some when asked again.
 */
function lives(pid: string): boolean {
  return hasMemory(pid) || hasMemory(pid)
}

function hasMemory(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/maps`, 'latin1') !== ''
  } catch {
    return false
  }
}

const noProc = existsSync('/proc/self/stat') ? false : 'this system has no /proc'

test("process: an abort ends all of a command's processes", { skip: noProc }, async (t) => {
  const bench = new Bench(t, processExecutor())
  const running = bench.run(
    'sleep 600 & a=$!; setsid sleep 600 & b=$!; (sleep 600; true) & echo $$ $a $b $! > begun; wait',
  )
  const pids = (await bench.begun()).trim().split(' ')
  assert.equal(pids.filter(lives).length, 4)
  bench.abort()
  await running
  assert.deepEqual(pids.filter(lives), [])
})

test('process: background processes live on until killMarked', { skip: noProc }, async (t) => {
  const bench = new Bench(t, processExecutor())
  const { output } = await bench.run(
    'setsid sleep 600 > /dev/null & sleep 600 > /dev/null & echo $!',
  )
  assert.ok(lives(output.trim()))
  assert.equal(await bench.executor.killMarked(bench.mark), 2)
  assert.ok(!lives(output.trim()))
})

test('process: a timeout ends only its own command', { skip: noProc }, async (t) => {
  const bench = new Bench(t, processExecutor())
  const { output } = await bench.run('sleep 600 > /dev/null & echo $!')
  const result = await bench.run('sleep 600', { timeoutMs: 50 })
  assert.equal(result.exitCode, 124)
  assert.ok(lives(output.trim()))
})

test('process: variables are passed on by name or by prefix', async (t) => {
  process.env['MY_REGISTRY'] = 'one'
  process.env['TEAM_A'] = 'two'
  t.after(() => {
    delete process.env['MY_REGISTRY']
    delete process.env['TEAM_A']
  })
  const command = 'echo $MY_REGISTRY $TEAM_A'
  assert.equal((await new Bench(t, processExecutor()).run(command)).output, '\n')
  const bench = new Bench(t, processExecutor({ env: ['MY_REGISTRY', 'TEAM_*'] }))
  assert.equal((await bench.run(command)).output, 'one two\n')
})

test('process: the shell can be chosen; a missing one is a result, not an exception', async (t) => {
  const bench = new Bench(t, processExecutor({ shell: '/nonexistent/shell' }))
  const { exitCode, output } = await bench.run('true')
  assert.equal(exitCode, 127)
  assert.match(output, /not started: .*is not installed/)
})

test('process: a command held in onStart never runs if this process dies', async (t) => {
  const bench = new Bench(t, processExecutor())
  const args = [...programAt('test/agent/executors/hold-for-ever.ts'), bench.folder]
  const holder = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => holder.kill('SIGKILL'))
  const exited = once(holder, 'exit')
  const [line] = (await once(holder.stdout.setEncoding('utf8'), 'data')) as [string]
  const group = processGroup(Number(line))
  assert.equal((await group.members()).length, 1)
  holder.kill('SIGKILL')
  await exited
  assert.ok(await waitUntilGone([group], 20_000))
  assert.ok(!existsSync(bench.path('ran')))
})
