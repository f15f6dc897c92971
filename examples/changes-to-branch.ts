/**
 * A run in a private copy of a git repository. The host takes its changes as a patch and commits
 * them to a branch of its own: neither the index, nor HEAD, nor a file of the user is touched.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { devNull, tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService, RunServiceClient } from 'runwright/server'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
const project = join(folder, 'project')

/** The host's own git, which obeys no configuration of the machine and runs no hooks. */
function git(args: readonly string[], input: Uint8Array | string = '', env: object = {}): string {
  const own = { GIT_CONFIG_GLOBAL: devNull, GIT_CONFIG_SYSTEM: devNull, ...env }
  const author = { GIT_AUTHOR_NAME: 'run', GIT_AUTHOR_EMAIL: 'run@example.test' }
  const committer = { GIT_COMMITTER_NAME: 'run', GIT_COMMITTER_EMAIL: 'run@example.test' }
  const { PATH = '' } = process.env
  return execFileSync('git', ['-C', project, '-c', `core.hooksPath=${devNull}`, ...args], {
    input,
    env: { PATH, ...own, ...author, ...committer },
    encoding: 'utf8',
  }).trim()
}

/**
 * Commits a patch to a new branch that begins at `base`, by an index of its own in place of a
 * working tree. Throws when the patch does not fit: the run began with other content than `base`.
 */
function commitPatch(branch: string, base: string, patch: Uint8Array, message: string): string {
  const index = { GIT_INDEX_FILE: join(folder, 'index') }
  git(['read-tree', base], undefined, index)
  git(['apply', '--cached', '--whitespace=nowarn'], patch, index)
  const tree = git(['write-tree'], undefined, index)
  const commit = git(['commit-tree', tree, '-p', base, '-m', message])
  git(['update-ref', `refs/heads/${branch}`, commit, ''])
  return commit
}

mkdirSync(project)
for (const [name, text] of Object.entries({
  'package.json': '{ "type": "module" }\n',
  'sum.js': '// Adds.\nexport const sum = (a, b) => a - b\n',
  'sum.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sum } from './sum.js'
test('one and two are three', () => assert.equal(sum(1, 2), 3))
test('two and two are four', () => assert.equal(sum(2, 2), 4))
`,
})) {
  writeFileSync(join(project, name), text)
}
git(['init', '--quiet', '--initial-branch=main'])
git(['add', '.'])
git(['commit', '--quiet', '-m', 'A sum that subtracts'])
writeFileSync(join(project, 'notes.txt'), 'staged, but not committed\n')
git(['add', 'notes.txt'])

const service = await createRunService({
  engine: {
    store: new FileStore({ directory: join(folder, 'data') }),
    roots: [project],
    providers: [repairModel()],
    defaultModel: 'builtin:repair',
  },
})
try {
  await using runs = RunServiceClient.inProcess(service)
  const base = git(['rev-parse', 'HEAD'])
  const before = git(['status', '--porcelain=v2', '--branch'])
  const { run_id } = await runs.create({ goal: 'node-test', workspace: 'isolated' })
  const { status, final_state } = await runs.wait(run_id)
  console.log(`${status}: ${final_state.goal_reason}`)

  const patch = await runs.patch(run_id)
  const branch = `runs/${run_id}`
  commitPatch(branch, base, patch, `Make the tests pass\n\nRun: ${run_id}`)
  console.log(git(['log', '--oneline', '--no-decorate', '--format=%s', branch]))
  console.log(git(['diff', 'main', branch]))
  const isSame = git(['status', '--porcelain=v2', '--branch']) === before
  console.log(`index, HEAD and files are ${isSame ? 'as' : 'not as'} before`)
  await runs.discard(run_id)
} finally {
  await service.close({ graceMs: 0 })
  rmSync(folder, { recursive: true, force: true })
}
