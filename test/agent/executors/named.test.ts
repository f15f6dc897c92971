import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { bubblewrapProblem, MemoryStore, processExecutor, RunEngine } from 'runwright/agent'
import { executorNamed } from '../../../lib/agent/executors/named.js'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

const skip = (await bubblewrapProblem()) ?? false

test('an executor goes by its name, or is the one that is given', () => {
  assert.equal(executorNamed('process', []).name, 'process')
  assert.equal(executorNamed('bubblewrap', []).name, 'bubblewrap')
  const own = processExecutor()
  assert.equal(executorNamed(own, []), own)
})

test('an unknown name of an executor is refused with those that are known', async (t) => {
  const options = { store: new MemoryStore(), roots: [scratch(t)], executor: 'docker' as 'auto' }
  await assert.rejects(RunEngine.open(options), {
    name: 'TypeError',
    message: "executor must be 'process', 'bubblewrap', 'auto' or an object, got docker",
  })
})

test('auto finds out what works when the first command runs, and says which', async (t) => {
  const executor = executorNamed('auto', [])
  assert.equal(executor.name, 'auto')
  const { output } = await executor.run('echo hi', {
    cwd: scratch(t),
    env: {},
    timeoutMs: 60_000,
    maxOutputBytes: 1_000,
    mark: 'named-test',
    writable: [],
    signal: new AbortController().signal,
  })
  assert.equal(output, 'hi\n')
  assert.equal(executor.name, skip === false ? 'bubblewrap' : 'process')
  assert.equal(await executor.killMarked('nobody-has-this-mark'), 0)
})

test(
  'a run in a sandbox works on its folder, and the data of the store is closed to it',
  { skip },
  async (t) => {
    const cwd = scratch(t)
    const data = join(cwd, 'data')
    mkdirSync(data)
    writeFileSync(join(data, 'journal'), 'top secret')
    const store = Object.assign(new MemoryStore(), { closedFolders: [data] })
    const command =
      'cat data/journal; ls -A data; echo made > made; cat /proc/$PPID/environ | tr "\\0" "\\n"'
    const provider = testProvider((_, n) =>
      n === 0 ? { calls: [{ tool: 'bash', args: { command } }] } : {},
    )
    process.env['SECRET_OF_THE_HOST_KEY'] = 'never-shown-anywhere'
    t.after(() => delete process.env['SECRET_OF_THE_HOST_KEY'])
    const { engine } = await openEngine(t, {
      cwd,
      store,
      executor: 'bubblewrap',
      providers: [provider],
    })
    const { details, events } = await runToEnd(engine, { goal: 'shell: test -f made' })
    assert.equal(details.status, 'achieved')
    const told = JSON.stringify(events)
    assert.ok(!told.includes('top secret') && !told.includes('never-shown-anywhere'), told)
  },
)
