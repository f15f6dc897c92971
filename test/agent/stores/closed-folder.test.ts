import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore } from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

test('the directory of a file store is closed to the tools of runs, also inside a root', async (t) => {
  const cwd = scratch(t)
  const directory = join(cwd, 'data')
  const calls = [
    { tool: 'read_file', args: { path: 'data/mine' } },
    { tool: 'list_files', args: { path: 'data' } },
    { tool: 'search_files', args: { pattern: 'secret' } },
    { tool: 'write_file', args: { path: 'data/theirs', content: 'x' } },
  ]
  const store = new FileStore({ directory, sync: 'none' })
  const providers = [testProvider((_, n) => (n === 0 ? { calls } : {}))]
  const { engine } = await openEngine(t, { cwd, store, providers })
  writeFileSync(join(directory, 'mine'), 'top secret')
  const { events } = await runToEnd(engine, { goal: 'shell: test -e never', max_iterations: 1 })
  const results = events.filter(({ kind }) => kind === 'tool_result')
  assert.equal(results.length, calls.length)
  assert.ok(!JSON.stringify(results).includes('top secret'))
  assert.ok(!readdirSync(directory).includes('theirs'))
})
