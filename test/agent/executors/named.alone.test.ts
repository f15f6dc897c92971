/** Tries bubblewrap while it is loaded, so it has a process of its own. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { bubblewrapProblem, MemoryStore, processExecutor, RunEngine } from 'runwright/agent'
import { executorNamed } from '../../../lib/agent/executors/named.js'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

const skip = (await bubblewrapProblem()) ?? false

test('an executor is selected by name, or given as an object', () => {
  assert.equal(executorNamed('process', []).name, 'process')
  assert.equal(executorNamed('bubblewrap', []).name, 'bubblewrap')
  const own = processExecutor()
  assert.equal(executorNamed(own, []), own)
})

test('an unknown executor name is refused; the error lists the known names', async (t) => {
  const options = { store: new MemoryStore(), roots: [scratch(t)], executor: 'docker' as 'auto' }
  await assert.rejects(RunEngine.open(options), {
    name: 'TypeError',
    message: "executor must be 'process', 'bubblewrap', 'auto' or an object, got docker",
  })
})

test('auto chooses when the first command runs, and then has the name of its choice', async (t) => {
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
  assert.equal(executor.name, skip === false ? 'bubblewrap' : 'process', String(skip))
  assert.equal(await executor.killMarked('unused-mark'), 0)
})

test(
  'a sandboxed run works in its folder, and cannot see the data of the store',
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
    const text = JSON.stringify(events)
    assert.ok(!text.includes('top secret') && !text.includes('never-shown-anywhere'), text)
  },
)
