/** Sealed checks that write to packages which a sandbox mounts read-only. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { bubblewrapExecutor, bubblewrapProblem } from 'runwright/agent'
import type { Executor, RunDetails } from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider, write } from '../../../helpers/engine.js'
import { writeFiles } from '../../../helpers/files.js'

const skip = (await bubblewrapProblem()) ?? false

/** Plays a run with a check; resolves with its details, and the copies in which commands ran. */
async function play(
  t: TestContext,
  check: string,
  maxWorkspaceBytes = 1e9,
): Promise<{ details: RunDetails; cwd: string; copies: readonly string[] }> {
  const cwd = join(scratch(t), 'project')
  const packages = Array.from({ length: 210 }, (_, i) => [`node_modules/p${i}/index.js`, `${i}`])
  writeFiles(cwd, { 'check.sh': check, 'work.txt': 'wrong', ...Object.fromEntries(packages) })
  const copies: string[] = []
  const executor = bubblewrapExecutor()
  const watched: Executor = {
    name: executor.name,
    mountsFolders: () => Promise.resolve(true),
    killMarked: (mark) => executor.killMarked(mark),
    run: async (command, options) => {
      const { isolated } = options
      if (isolated !== undefined) copies.push(isolated.readOnly.length > 0 ? 'mounted' : 'whole')
      return await executor.run(command, options)
    },
  }
  const { engine } = await openEngine(t, {
    cwd, executor: watched, sealedChecks: 'require', maxWorkspaceBytes,
    workspaceFolder: join(scratch(t), 'copies'),
    providers: [testProvider((_, call) => (call === 0 ? write({ 'work.txt': 'right' }) : {}))],
  })
  const { details } = await runToEnd(engine, {
    goal: 'shell: sh check.sh', cwd, max_iterations: 2, hitl_enabled: false,
  })
  return { details, cwd, copies }
}

const WRITES = 'mkdir -p node_modules/.vitest && echo x > node_modules/.vitest/x || exit 1\n'

test('a check that writes to mounted packages is repeated with a copy of them', { skip }, async (t) => {
  const { details, copies } = await play(t, `${WRITES}grep -q right work.txt\n`)
  assert.equal(details.status, 'achieved', details.error?.message)
  assert.equal(details.assurance?.sealed, true)
  assert.deepEqual([...new Set(copies)], ['mounted', 'whole'])
})

test('a check that does not write to packages is not repeated', { skip }, async (t) => {
  const { details, copies } = await play(t, 'grep -q right work.txt\n')
  assert.equal(details.status, 'achieved', details.error?.message)
  assert.deepEqual([...new Set(copies)], ['mounted'])
})

test('packages that are too large for a copy stay read-only', { skip }, async (t) => {
  const { details, cwd } = await play(t, `${WRITES}grep -q right work.txt\n`, 20_000)
  assert.equal(details.status, 'failed')
  assert.match(details.error?.message ?? '', /a file system can only be read/)
  // The check ran in copies, before it could run in place.
  assert.equal(readFileSync(join(cwd, 'work.txt'), 'utf8'), 'wrong')
})
