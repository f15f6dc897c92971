import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { bubblewrapExecutor, bubblewrapProblem } from '../../../lib/agent/executors/bubblewrap.js'
import { redirectedEnvironment } from '../../../lib/agent/executors/environment.js'
import { executorNamed } from '../../../lib/agent/executors/named.js'
import { processExecutor } from '../../../lib/agent/executors/process.js'
import type { CommandResult, Executor, IsolatedCopy } from '../../../lib/agent/executor.js'
import { Project } from '../../helpers/isolated.js'

const skip = (await bubblewrapProblem()) ?? false

/** Runs a command as the engine does, in a folder of the copy. */
async function inCopy(
  executor: Executor,
  isolated: IsolatedCopy,
  command: string,
  cwd: string = isolated.root,
): Promise<CommandResult> {
  return await executor.run(command, {
    cwd, isolated, env: {}, timeoutMs: 20_000, maxOutputBytes: 10_000, mark: 'isolated',
    writable: [], signal: new AbortController().signal,
  })
}

/** A project with packages that are mounted, its copy, and a sandbox that hides the data folder. */
async function sandboxed(
  t: TestContext,
  below?: string,
): Promise<{ project: Project; copy: IsolatedCopy; executor: Executor }> {
  const project = new Project(t, below)
  const packages = Array.from({ length: 210 }, (_, i) => [
    `node_modules/p${i}/index.js`, `module.exports = ${i}`,
  ])
  project.write({ 'package.json': '{}', 'a.txt': 'original', ...Object.fromEntries(packages) })
  writeFileSync(join(project.top, 'beside.txt'), 'beside')
  mkdirSync(join(project.top, 'data/runs'), { recursive: true })
  writeFileSync(join(project.top, 'data/runs/1.jsonl'), 'log')
  const executor = bubblewrapExecutor({
    closed: [join(project.top, 'data')],
    // As if the host let commands read everything.
    readOnly: [project.top],
  })
  await project.isolate('other')
  const mounts = (await executor.mountsFolders?.()) ?? false
  return { project, executor, copy: await project.isolate('run', { mounts }) }
}

test('a sandbox shows the copy and nothing else of the closed folder', { skip }, async (t) => {
  const { project, copy, executor } = await sandboxed(t)
  const { output } = await inCopy(executor, copy, `cat a.txt; echo new > a.txt; echo made > made
    find ${project.top}/data -maxdepth 3 | sort`)
  const data = join(project.top, 'data')
  const seen = [data, `${data}/workspaces`, `${data}/workspaces/run`, copy.root]
  assert.equal(output, `original${seen.join('\n')}\n`)
  assert.equal(readFileSync(join(copy.root, 'a.txt'), 'utf8'), 'new\n')
  assert.equal(readFileSync(join(copy.root, 'made'), 'utf8'), 'made\n')
})

test('a sandbox does not show the original, even in a folder that commands may read', { skip }, async (t) => {
  const { project, copy, executor } = await sandboxed(t)
  const before = project.outside()
  const { output } = await inCopy(executor, copy, `ls -A ${project.cwd}; cat ${project.cwd}/a.txt
    cat ${project.top}/beside.txt; echo x > ${project.cwd}/a.txt; mkdir ${project.top}/data/x
    echo x > ${project.top}/data/workspaces/run/x; rm -rf ${project.cwd} ${project.top}`)
  assert.match(output, /a\.txt: No such file/)
  assert.match(output, /beside/)
  project.assertUntouched(before)
  assert.ok(existsSync(join(project.top, 'data/runs/1.jsonl')))
  assert.ok(!existsSync(join(project.top, 'data/workspaces/run/x')))
})

test('packages of the original are used in a sandbox, and cannot be changed', { skip }, async (t) => {
  const { project, copy, executor } = await sandboxed(t)
  assert.equal(copy.readOnly.length, 1)
  const before = project.outside()
  const { output } = await inCopy(executor, copy, `node -e 'console.log(require("p7"))'
    echo x > node_modules/p7/index.js; mkdir node_modules/new; rm -rf node_modules
    chmod 777 node_modules
    node -e 'console.log(require("p8"))'`)
  assert.match(output, /^7\n/)
  assert.match(output, /Read-only file system/)
  assert.match(output, /\n8\n$/)
  project.assertUntouched(before)
})

test('a command in a folder of the copy sees the whole copy', { skip }, async (t) => {
  const { copy, executor } = await sandboxed(t)
  mkdirSync(join(copy.root, 'sub'))
  const command = 'cat ../a.txt; echo x > ../b && ls ..'
  const { output } = await inCopy(executor, copy, command, join(copy.root, 'sub'))
  assert.match(output, /^original/)
  assert.match(output, /\nb\n/)
})

test('a copy that lies in the original is shown while the original is not', { skip }, async (t) => {
  const project = new Project(t, '.').write({ 'a.txt': 'original' })
  const executor = bubblewrapExecutor({ closed: [join(project.top, 'data')] })
  const copy = await project.isolate('run', { mounts: true })
  const { output } = await inCopy(executor, copy, `cat a.txt; ls -A ${project.cwd}; echo x > a.txt`)
  assert.equal(output, 'originaldata\n')
  assert.equal(readFileSync(join(project.cwd, 'a.txt'), 'utf8'), 'original')
})

test('packages that were moved away are missing, and commands run', { skip }, async (t) => {
  const { project, copy, executor } = await sandboxed(t)
  project.run('mv node_modules elsewhere')
  const { output, exitCode } = await inCopy(executor, copy, 'cat a.txt; ls node_modules')
  assert.deepEqual([output, exitCode], ['original', 0])
})

test('which executors mount folders', { skip }, async () => {
  assert.equal(await bubblewrapExecutor().mountsFolders?.(), true)
  assert.equal(processExecutor().mountsFolders, undefined)
  assert.equal(await executorNamed('auto', []).mountsFolders?.(), true)
})

test('tools of the original that the environment names are those of the copy', async (t) => {
  const tool = { 'node_modules/.bin/tool': '#!/bin/sh\nprintf "$0"\n' }
  const project = new Project(t).write(tool, 0o755)
  const copy = await project.isolate()
  const before = process.env['PATH']
  t.after(() => (process.env['PATH'] = before))
  process.env['PATH'] = `${project.cwd}/node_modules/.bin:${before}`
  const { output } = await inCopy(processExecutor(), copy, 'tool')
  assert.equal(output, join(copy.root, 'node_modules/.bin/tool'))
})

for (const [name, make, why] of [
  ['processes', processExecutor, false],
  ['sandboxes', bubblewrapExecutor, skip],
] as const) {
  test(`a variable that a caller passes is not redirected: ${name}`, { skip: why }, async (t) => {
    const project = new Project(t)
    project.write({ 'a.txt': 'original' })
    const copy = await project.isolate('run')
    const value = `${project.cwd}/a.txt:${project.cwd}`
    const { output } = await make().run('printf %s "$FROM"', {
      cwd: copy.root, isolated: copy, env: { FROM: value }, timeoutMs: 20_000,
      maxOutputBytes: 10_000, mark: 'isolated', writable: [], signal: new AbortController().signal,
    })
    assert.equal(output, value)
  })
}

test('only what is in the original is redirected in an environment', () => {
  const isolated = { root: '/copies/1/p', original: '/home/p', readOnly: [] }
  const given = {
    PATH: '/home/p/bin:/usr/bin:/home/p2/bin:/home/p', VIRTUAL_ENV: '/home/p/.venv', HOME: '/home',
    TEXT: 'see /home/p/x',
  }
  assert.deepEqual(redirectedEnvironment(given, isolated), {
    PATH: '/copies/1/p/bin:/usr/bin:/home/p2/bin:/copies/1/p', VIRTUAL_ENV: '/copies/1/p/.venv',
    HOME: '/home', TEXT: 'see /home/p/x',
  })
  assert.deepEqual(redirectedEnvironment(given, undefined), given)
})
