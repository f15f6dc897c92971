/** Copies for sealed checks. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { bubblewrapExecutor, bubblewrapProblem } from '../../../lib/agent/executors/bubblewrap.js'
import type { IsolatedCopy } from '../../../lib/agent/executor.js'
import { WorkspaceError } from '../../../lib/agent/errors.js'
import { bareSettings } from '../../../lib/agent/workspace/bare-repository.js'
import { attempt, Project } from '../../helpers/isolated.js'

const skip = (await bubblewrapProblem()) ?? false

/** A repository with two commits and something that is not committed. */
function repository(t: TestContext): Project {
  const project = new Project(t).write({ 'a.txt': 'one\n', '.gitignore': 'ignored\n' })
  project.run('git init -q -b main && git add . && git commit -qm one')
  project.write({ 'a.txt': 'two\n' }).run('git commit -qam two && git tag v1')
  return project.write({ 'a.txt': 'three\n' })
}

test('git reads the repository of a sealed copy as that of the original', async (t) => {
  const project = repository(t)
  const { root } = await project.isolate('run', { sealed: true })
  for (const command of ['git log --format=%H%s', 'git status --porcelain', 'git diff', 'git tag']) {
    assert.deepEqual(attempt(command, root), attempt(command, project.cwd), command)
  }
  assert.ok(!existsSync(join(root, '.git/hooks')))
})

test('a repository with other hashes is read in a sealed copy', async (t) => {
  const project = new Project(t).write({ 'a.txt': 'one\n' })
  project.run('git init -q -b main --object-format=sha256 && git add . && git commit -qm one')
  const { root } = await project.isolate('run', { sealed: true })
  assert.match(attempt('git log --format=%H', root).output, /^[0-9a-f]{64}\n$/)
})

/** Ways in which an agent has git run `evil`, or takes settings from elsewhere. */
const attacks: Readonly<Record<string, (project: Project) => void>> = {
  'a monitor of the file system': (project) => void project.run(
    'git config core.fsmonitor "$PWD/evil"',
  ),
  'an alias': (project) => void project.run('git config alias.st "!$PWD/evil"'),
  'a filter': (project) => void project.run(
    'git config filter.x.clean "$PWD/evil" && echo "* filter=x" > .git/info/attributes',
  ),
  'a filter that the work names': (project) => void project.run(
    'git config filter.x.clean "$PWD/evil" && echo "* filter=x" > .gitattributes',
  ),
  'a pager and a program that shows differences': (project) => void project.run(
    'git config diff.external "$PWD/evil" && git config core.pager "$PWD/evil"',
  ),
  'included settings': (project) => void project.run(
    'printf "[core]\\n fsmonitor = $PWD/evil\\n" > more && git config include.path "$PWD/more"',
  ),
  'settings of a working tree': (project) => void project.run(
    `git config extensions.worktreeConfig true && git config core.repositoryformatversion 1 &&
     git config --worktree core.fsmonitor "$PWD/evil"`,
  ),
  'hooks': (project) => void project.run(
    'mkdir -p .git/hooks && cp evil .git/hooks/post-index-change && cp evil .git/hooks/pre-commit',
  ),
  'hooks in another folder': (project) => void project.run(
    'mkdir h && cp evil h/post-index-change && git config core.hooksPath "$PWD/h"',
  ),
  'settings that are a link': (project) => void project.run(
    `git config core.fsmonitor "$PWD/evil" && mv .git/config settings &&
     ln -s ../settings .git/config`,
  ),
  'hooks that are a link': (project) => void project.run(
    'mkdir h && cp evil h/post-index-change && rm -rf .git/hooks && ln -s ../h .git/hooks',
  ),
  'a link in place of the repository': (project) => void project.run(
    'git config core.fsmonitor "$PWD/evil" && mv .git repo && ln -s repo .git',
  ),
  'a file in place of the repository': (project) => void project.run(
    'git config core.fsmonitor "$PWD/evil" && mv .git repo && echo "gitdir: repo" > .git',
  ),
  'a repository whose settings are in another folder': (project) => void project.run(
    `git config core.fsmonitor "$PWD/evil" && cp -r .git repo && echo ../repo > .git/commondir`,
  ),
  'a file with the folder of the settings that is too large': (project) => void project.run(
    `git config core.fsmonitor "$PWD/evil" && cp -r .git repo &&
     (echo ../repo; head -c 34000000 /dev/zero | tr '\\0' '\\n') > .git/commondir`,
  ),
  'a folder of work as the repository of a working tree': (project) => void project.run(
    `git config core.fsmonitor "$PWD/evil" && cp -r .git/objects .git/refs .git/config . &&
     mkdir .git/w && cp .git/HEAD .git/index .git/w/ && echo ../.. > .git/w/commondir &&
     mkdir sub && echo "gitdir: ../.git/w" > sub/.git`,
  ),
  'a submodule': (project) => void project.run(
    `git config core.fsmonitor "$PWD/evil" && mkdir -p .git/modules sub &&
     cp -r .git modules && mv modules .git/modules/sub &&
     echo "gitdir: ../.git/modules/sub" > sub/.git`,
  ),
  'a repository in a folder below': (project) => void project.run(
    `mkdir sub && cd sub && git init -q && git config core.fsmonitor "$PWD/../evil"`,
  ),
}

const COMMANDS = ['status', 'diff', 'add -A', 'st', 'commit -qm x', 'log', 'checkout .']

for (const [name, attack] of Object.entries(attacks)) {
  test(`git runs nothing in a sealed copy because of ${name}`, async (t) => {
    const project = repository(t)
    const mark = join(project.top, 'evil-has-run')
    project.write({ evil: `#!/bin/sh\ntouch ${mark}\n` }, 0o755)
    attack(project)
    const { root } = await project.isolate('run', { sealed: true })
    for (const at of [root, join(root, 'sub')].filter((path) => existsSync(path))) {
      for (const command of COMMANDS) attempt(`git ${command}`, at)
    }
    assert.ok(!existsSync(mark))
  })
}

test('submodules and linked working trees are read in a sealed copy', async (t) => {
  const project = repository(t)
  project.run(`git clone -q . ../other && git -c protocol.file.allow=always submodule add -q ../other sub
    git worktree add -q tree v1`)
  const { root } = await project.isolate('run', { sealed: true })
  for (const folder of ['sub', 'tree']) {
    const log = 'git log --format=%s'
    assert.equal(attempt(log, join(root, folder)).output, 'two\none\n', folder)
  }
})

test('settings keep what git needs, as plain words only', () => {
  const settings = `[core]
\trepositoryformatversion = 1\r
\tbare = false
\tfsmonitor = /evil
\tfilemode=true
[Extensions]
\tobjectFormat = sha256
\tpartialClone = origin
[core "x"]
\tbare = true
[extensions] refStorage = reftable
[core] eol = "lf"
\tautocrlf = true\\
\tignorecase = maybe
[remote "origin"]
\turl = x
`
  assert.equal(bareSettings(Buffer.from(settings)), `[core]
\trepositoryformatversion = 1
[core]
\tbare = false
[core]
\tfilemode = true
[extensions]
\tobjectformat = sha256
[extensions]
\trefstorage = reftable
`)
  assert.equal(bareSettings(Buffer.alloc(3_000_000, '[core] ')), '')
})

test('bytecode, caches and what is to be left out are not in a sealed copy', async (t) => {
  const project = new Project(t).write({
    'a.py': '', '__pycache__/a.cpython-311.pyc': 'x', 'pkg/__pycache__/b.pyc': 'x',
    'new.test.js': '', 'in/new.js': '', 'in/old.js': '', 'node_modules/.cache/x/y': '',
    'node_modules/.vite/y': '', 'node_modules/.vite-temp/y': '', 'sub/node_modules/.cache/y': '',
    'node_modules/a/.cache/x/y': '', 'node_modules/a/.cache/z/y': '', '.cache/y': '',
  }).link({ out: 'in', 'other/node_modules/.vite': '../../in' })
  const without = ['new.test.js', 'in/new.js', 'node_modules/a/.cache/x', 'out', 'absent']
  const { root } = await project.isolate('run', { sealed: true, without })
  const found = project.run('find . ! -type d | sort', root)
  assert.equal(found, './.cache/y\n./a.py\n./in/old.js\n./node_modules/a/.cache/z/y\n')
})

/** Runs a command in a sandbox, as the engine does. */
async function inSandbox(
  project: Project,
  isolated: IsolatedCopy,
  command: string,
): Promise<string> {
  const executor = bubblewrapExecutor({ closed: [join(project.top, 'data')] })
  const { output } = await executor.run(command, {
    cwd: isolated.root, isolated, env: {}, timeoutMs: 20_000, maxOutputBytes: 10_000,
    mark: 'sealed', writable: [], signal: new AbortController().signal,
  })
  return output
}

/** Packages that are worth mounting; each is its number. */
const packages = (folder: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 210 }, (_, i) => [
    `${folder}/p${i}/index.js`, `module.exports = ${i}`,
  ]))

const USE = `node -p 'require("p7")'; echo x > node_modules/p7/index.js`

test('packages above the folder are seen in a sandbox, read-only', { skip }, async (t) => {
  const project = new Project(t, 'mono/packages/a').write({ 'package.json': '{}', 'a.txt': 'a' })
  project.write(packages('../../node_modules'))
  const { root, readOnly } = await project.isolate('run', { sealed: true, mounts: true })
  const place = join(root, '../node_modules')
  assert.deepEqual(readOnly, [{ from: join(project.top, 'mono/node_modules'), to: place }])
  assert.deepEqual(readdirSync(place), [])
  const output = await inSandbox(project, { root, readOnly, original: project.cwd },
    `node -p 'require("p7")'; echo x > ../node_modules/p7/index.js`)
  assert.match(output, /^7\n.*Read-only file system\n$/s)
  assert.deepEqual((await project.isolate('plain', { mounts: true })).readOnly, [])
})

test('packages above that lead back into the folder are copied, and seen read-only', { skip }, async (t) => {
  const project = new Project(t, 'mono/packages/a')
    .write({ 'package.json': '{"main":"i.js"}', 'i.js': 'module.exports = __dirname' })
    .write(packages('../../node_modules')).link({ '../../node_modules/own': '../packages/a' })
  const copy = await project.isolate('run', { sealed: true, mounts: true })
  const copied = readFileSync(join(copy.root, '../node_modules/p7/index.js'), 'utf8')
  assert.equal(copied, 'module.exports = 7')
  const output = await inSandbox(project, copy,
    `node -p 'require("p7")'; node -p 'require("own")'; echo x > ../node_modules/p7/index.js`)
  assert.ok(output.startsWith(`7\n${copy.root}\n`), output)
  assert.match(output, /Read-only file system/)
})

test('a sealed copy of a copy sees the packages that are mounted into that', { skip }, async (t) => {
  const project = new Project(t).write({ 'package.json': '{}', ...packages('node_modules') })
  project.write(packages('sub/node_modules'))
  const copy = await project.isolate('run', { mounts: true })
  assert.equal(copy.readOnly.length, 2)
  const sealed = project.foldersWith({ folder: join(project.top, 'data/sealed') })
  const options = { sealed: true, mounts: true, mounted: copy.readOnly }
  const { notes: _, ...made } = await sealed.create('run', copy.root, options)
  assert.deepEqual(made.readOnly, copy.readOnly.map(({ from, to }) => ({
    from, to: to.replace(copy.root, made.root),
  })))
  assert.match(await inSandbox(project, made, USE), /^7\n.*Read-only file system\n$/s)
  assert.deepEqual(await sealed.find('run'), made)
  const unmounted = { ...options, mounts: false }
  await assert.rejects(sealed.create('run', copy.root, unmounted), WorkspaceError)
  assert.deepEqual(readdirSync(join(project.top, 'data/sealed')), [])
})

test('a sealed copy of a copy has the packages that were copied from above', async (t) => {
  const project = new Project(t, 'mono/packages/a')
    .write({ 'package.json': '{}', '../../node_modules/p/index.js': 'module.exports = 7' })
  const copy = await project.isolate('run')
  writeFileSync(join(copy.root, '../node_modules/p/index.js'), 'module.exports = 8')
  const sealed = project.foldersWith({ folder: join(project.top, 'data/sealed') })
  const made = await sealed.create('run', copy.root, { sealed: true, mounts: false })
  assert.equal(attempt(`node -p 'require("p")'`, made.root).output, '8\n')
})

test('caches that are left out are hidden in packages that are mounted', { skip }, async (t) => {
  const project = new Project(t).write({
    'package.json': '{}', ...packages('node_modules'), 'node_modules/.cache/planted/x': 'x',
    'node_modules/.vite/deps/x': 'x', 'node_modules/.vitest/x': 'x',
  })
  const caches = ['.cache/planted', '.vite', '.vite-temp', '.vitest']
  const without = caches.map((path) => `node_modules/${path}`)
  const copy = await project.isolate('run', { sealed: true, mounts: true, without })
  const look = `cd node_modules; find .cache .vite .vite-temp .vitest; touch .vite/x; touch .vitest/x`
  const [problem, ...shown] = (await inSandbox(project, copy, look)).split('\n').reverse().slice(1)
  assert.deepEqual(shown.reverse(), ['.cache', '.vite', '.vite-temp', '.vitest'])
  assert.match(problem!, /\.vitest\/x.*Read-only file system/)
})

test('the repository of a sealed copy cannot be changed in a sandbox', { skip }, async (t) => {
  const project = repository(t)
  const copy = await project.isolate('run', { sealed: true, mounts: true })
  assert.deepEqual(copy.readOnly, [{ from: join(copy.root, '.git'), to: join(copy.root, '.git') }])
  const output = await inSandbox(project, copy,
    'git log --format=%s; git status --porcelain; echo x > .git/config; touch made')
  assert.match(output, /^two\none\n M a\.txt\n.*Read-only file system\n$/s)
  assert.ok(existsSync(join(copy.root, 'made')))
})
