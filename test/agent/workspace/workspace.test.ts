import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { openWorkspace, WorkspaceError } from 'runwright/agent'
import { resolveUnderRoots } from '../../../lib/agent/workspace/open.js'
import { world, text } from './workspace-world.js'

const isOutside = (error: unknown): boolean =>
  error instanceof WorkspaceError && error.code === 'ERR_AGENT_OUTSIDE_WORKSPACE'
const refusal =
  (message: RegExp) =>
  (error: unknown): boolean =>
    error instanceof WorkspaceError &&
    error.code === 'ERR_AGENT_WORKSPACE' &&
    message.test(error.message)

test('files are read and written by relative and by absolute path', async (t) => {
  const { workspace, root } = await world(t)
  assert.equal(await text(workspace, 'src/a.txt'), 'one\ntwo\n')
  assert.equal(await text(workspace, join(root, 'src/../src/a.txt')), 'one\ntwo\n')
  const change = await workspace.writeFile('src/a.txt', 'one\n2\n')
  assert.deepEqual(
    { ...change, diff: change.diff.split('\n').slice(0, 2) },
    {
      path: 'src/a.txt',
      change: 'modified',
      added_lines: 1,
      removed_lines: 1,
      diff: ['--- a/src/a.txt', '+++ b/src/a.txt'],
      before_sha256: hash('sha256', 'one\ntwo\n'),
      after_sha256: hash('sha256', 'one\n2\n'),
    },
  )
  assert.equal(fs.readFileSync(join(root, 'src/a.txt'), 'utf8'), 'one\n2\n')
})

test('writing creates missing folders and leaves no temporary file', async (t) => {
  const { workspace, root } = await world(t)
  const change = await workspace.writeFile('new/deep/er/b.bin', Buffer.from([0, 255]))
  assert.deepEqual(change, {
    path: 'new/deep/er/b.bin',
    change: 'created',
    added_lines: 0,
    removed_lines: 0,
    diff: '',
    before_sha256: null,
    after_sha256: hash('sha256', Buffer.from([0, 255])),
  })
  assert.deepEqual(fs.readdirSync(join(root, 'new/deep/er')), ['b.bin'])
})

test('a replaced file keeps its permissions, without set-user-id', async (t) => {
  const { workspace, root } = await world(t)
  const file = join(root, 'src/a.txt')
  fs.chmodSync(file, 0o4755)
  await workspace.writeFile('src/a.txt', 'x')
  assert.equal(fs.statSync(file).mode & 0o7777, 0o755)
})

for (const path of [
  '../outside/secret',
  'src/../../outside/secret',
  '/etc/hostname',
  '..',
  '/',
  '../../x',
]) {
  test(`${path} leads outside, for reading, writing and listing`, async (t) => {
    const { workspace, top } = await world(t)
    await assert.rejects(workspace.readFile(path), isOutside)
    await assert.rejects(workspace.writeFile(path, 'x'), isOutside)
    await assert.rejects(workspace.list(path), isOutside)
    await assert.rejects(workspace.resolve(path, { forWriting: true }), isOutside)
    assert.equal(fs.readFileSync(join(top, 'outside/secret'), 'utf8'), 'secret')
  })
}

test('a folder whose name starts with that of the workspace is outside', async (t) => {
  const { workspace, root } = await world(t)
  fs.mkdirSync(`${root}-other`)
  await assert.rejects(workspace.writeFile('../work-other/x', 'x'), isOutside)
})

for (const [name, make] of [
  [
    'a link to a file outside',
    (root: string) => fs.symlinkSync('../outside/secret', join(root, 'link')),
  ],
  [
    'an absolute link to a file outside',
    (root: string) => fs.symlinkSync(join(root, '../outside/secret'), join(root, 'link')),
  ],
  [
    'a link to a link',
    (root: string) => {
      fs.symlinkSync('link2', join(root, 'link'))
      fs.symlinkSync('../outside/secret', join(root, 'link2'))
    },
  ],
  [
    'a dangling link to the outside',
    (root: string) => fs.symlinkSync('../outside/new', join(root, 'link')),
  ],
] as const) {
  test(`${name} is neither read nor written`, async (t) => {
    const { workspace, root, top } = await world(t)
    make(root)
    await assert.rejects(workspace.readFile('link'), isOutside)
    await assert.rejects(workspace.writeFile('link', 'x'), isOutside)
    assert.deepEqual(fs.readdirSync(join(top, 'outside')), ['secret'])
    assert.equal(fs.readFileSync(join(top, 'outside/secret'), 'utf8'), 'secret')
  })
}

test('a link to a folder outside is not entered', async (t) => {
  const { workspace, root, top } = await world(t)
  fs.symlinkSync('../outside', join(root, 'folder'))
  fs.symlinkSync('../outside/none', join(root, 'dangling'))
  for (const path of ['folder/secret', 'folder', 'dangling/x/y', 'folder/new/x']) {
    await assert.rejects(workspace.writeFile(path, 'x'), isOutside, path)
    await assert.rejects(workspace.readFile(path), isOutside, path)
  }
  await assert.rejects(workspace.list('folder'), isOutside)
  assert.deepEqual(fs.readdirSync(join(top, 'outside')), ['secret'])
})

test('links that stay inside are followed; a dangling one is refused', async (t) => {
  const { workspace, root } = await world(t)
  fs.symlinkSync('src', join(root, 'alias'))
  fs.symlinkSync('src/none', join(root, 'dangling'))
  assert.equal(await text(workspace, 'alias/a.txt'), 'one\ntwo\n')
  assert.equal((await workspace.writeFile('alias/a.txt', 'x')).path, 'src/a.txt')
  assert.equal(fs.lstatSync(join(root, 'alias')).isSymbolicLink(), true)
  await assert.rejects(workspace.writeFile('dangling', 'x'), refusal(/target does not exist/))
})

test('a link that leads to itself is an error, not a loop', async (t) => {
  const { workspace, root } = await world(t)
  fs.symlinkSync('loop', join(root, 'loop'))
  await assert.rejects(workspace.readFile('loop'), refusal(/leads to itself/))
})

const ofGit = refusal(/belongs to git, so it is neither read nor written/)

for (const path of [
  '.git/hooks/pre-commit',
  '.GIT/config',
  'src/.Git/x',
  'src/../.git/config',
  '.git',
  '.git./x',
  '.g\u200cit/x',
  'GIT~1/config',
]) {
  test(`${JSON.stringify(path)} is never written`, async (t) => {
    const { workspace, root } = await world(t)
    await assert.rejects(workspace.writeFile(path, 'x'), ofGit)
    assert.deepEqual(fs.readdirSync(root), ['src'])
  })
}

/** What git keeps in a repository; its settings hold a token. */
function repository(folder: string): void {
  for (const name of ['objects', 'refs', 'hooks']) {
    fs.mkdirSync(join(folder, name), { recursive: true })
  }
  fs.writeFileSync(join(folder, 'HEAD'), 'ref: refs/heads/main\n')
  fs.writeFileSync(join(folder, 'config'), 'token')
}

for (const [what, make, paths] of [
  ['a repository', (root: string) => repository(join(root, '.git')), ['.git/config']],
  ['one in a subfolder', (root: string) => repository(join(root, 'src/.git')), ['src/.git/config']],
  ['one with another case', (root: string) => repository(join(root, '.Git')), ['.Git/config']],
  [
    'one behind a link',
    (root: string) => {
      repository(join(root, '.git'))
      fs.symlinkSync('.git', join(root, 'alias'))
      fs.symlinkSync('.git/config', join(root, 'settings'))
    },
    ['alias/config', 'settings', 'alias/../.git/config'],
  ],
  [
    'one in a folder of another name, to which .git is a link',
    (root: string) => {
      repository(join(root, 'meta'))
      fs.symlinkSync('meta', join(root, '.git'))
    },
    ['.git/config', 'meta/config', 'meta/hooks/../config'],
  ],
  [
    'one in a folder that the file .git names, as for worktrees and submodules',
    (root: string) => {
      repository(join(root, 'meta'))
      fs.writeFileSync(join(root, '.git'), 'gitdir: meta')
    },
    ['.git', 'meta/config'],
  ],
  [
    'one whose .git is a link to a folder without objects, as of a worktree',
    (root: string) => {
      fs.mkdirSync(join(root, 'meta'))
      fs.symlinkSync('meta', join(root, '.git'))
    },
    ['.git/config'],
  ],
  ['a bare one', (root: string) => repository(join(root, 'src/bare.git')), ['src/bare.git/config']],
  ['the workspace itself', repository, ['config']],
] as const) {
  test(`settings of git are neither read, nor listed, nor written: ${what}`, async (t) => {
    const { workspace, root } = await world(t)
    await workspace.changes()
    make(root)
    for (const path of paths) {
      await assert.rejects(workspace.readFile(path), ofGit, path)
      await assert.rejects(workspace.writeFile(path, 'x'), ofGit, path)
      await assert.rejects(workspace.list(path), ofGit, path)
      await assert.rejects(workspace.resolve(path), ofGit, path)
    }
    const listed = await workspace.list('', { recursive: true }).catch(() => [])
    assert.deepEqual(listed.filter(({ path }) => /config|HEAD/.test(path)), [])
    assert.ok(!JSON.stringify(await workspace.changes()).includes('token'))
  })
}

test('.git is not written through a link either', async (t) => {
  const { workspace, root } = await world(t)
  fs.mkdirSync(join(root, '.git'))
  fs.symlinkSync('.git', join(root, 'innocent'))
  await assert.rejects(workspace.writeFile('innocent/config', 'x'), ofGit)
  assert.deepEqual(fs.readdirSync(join(root, '.git')), [])
})

test('files whose names only start with .git are written', async (t) => {
  const { workspace } = await world(t)
  await workspace.writeFile('.gitignore', 'x')
  await workspace.writeFile('.github/workflow.yml', 'x')
  assert.equal(await text(workspace, '.gitignore'), 'x')
})

test('pipes, sockets and devices are refused without waiting for them', async (t) => {
  const { workspace, root } = await world(t)
  execFileSync('mkfifo', [join(root, 'pipe')])
  const server = createServer().listen(join(root, 'socket'))
  await once(server, 'listening')
  t.after(() => server.close())
  for (const path of ['pipe', 'socket']) {
    await assert.rejects(workspace.readFile(path), refusal(/device, pipe or socket/))
    await assert.rejects(workspace.writeFile(path, 'x'), refusal(/device, pipe or socket/))
  }
})

test('an error says what is wrong with a path', async (t) => {
  const { workspace } = await world(t)
  await assert.rejects(workspace.readFile('none'), refusal(/^none does not exist$/))
  await assert.rejects(workspace.readFile('src'), refusal(/is a folder, not a file/))
  await assert.rejects(workspace.writeFile('src', 'x'), refusal(/is a folder, not a file/))
  await assert.rejects(workspace.writeFile('.', 'x'), refusal(/the workspace itself/))
  await assert.rejects(workspace.readFile('src/a.txt/b'), refusal(/does not exist/))
  await assert.rejects(workspace.writeFile('src/a.txt/b', 'x'), refusal(/leads through a file/))
  await assert.rejects(workspace.list('src/a.txt'), refusal(/is not a folder/))
  await assert.rejects(workspace.readFile('a\0b'), refusal(/NUL/))
  await assert.rejects(workspace.readFile('x/'.repeat(4_000)), refusal(/longer than 4096/))
  await assert.rejects(
    workspace.writeFile('n'.repeat(300), 'x'),
    refusal(/too long for|cannot be reached/),
  )
})

test('files over the limit are neither read nor written', async (t) => {
  const { workspace } = await world(t)
  await assert.rejects(
    workspace.readFile('src/a.txt', { maxBytes: 7 }),
    refusal(/8 bytes, more than the limit of 7/),
  )
  assert.equal((await workspace.readFile('src/a.txt', { maxBytes: 8 })).length, 8)
  await assert.rejects(
    workspace.writeFile('big', Buffer.alloc(16 * 1024 * 1024 + 1)),
    refusal(/more than the limit of 16777216/),
  )
})

test('a listing is sorted, includes links and skips .git and node_modules', async (t) => {
  const { workspace, root } = await world(t)
  fs.mkdirSync(join(root, '.git'))
  fs.mkdirSync(join(root, 'node_modules/x'), { recursive: true })
  fs.symlinkSync('/etc', join(root, 'etc'))
  fs.writeFileSync(join(root, 'b'), '')
  assert.deepEqual(await workspace.list('.'), [
    { path: 'b', type: 'file', size: 0 },
    { path: 'etc', type: 'symlink', size: 0 },
    { path: 'src', type: 'directory', size: 0 },
  ])
  assert.deepEqual(
    (await workspace.list('', { recursive: true })).map(({ path, size }) => `${path} ${size}`),
    ['b 0', 'etc 0', 'src 0', 'src/a.txt 8'],
  )
  assert.equal((await workspace.list('', { recursive: true, limit: 2 })).length, 2)
  assert.deepEqual(
    (await workspace.list('node_modules')).map(({ path }) => path),
    ['node_modules/x'],
  )
})

test('closed folders appear not to exist, by any path', async (t) => {
  const { workspace, root, top } = await world(t, ['work/data', 'work/later'])
  fs.mkdirSync(join(root, 'data'))
  fs.writeFileSync(join(root, 'data/journal'), 'x')
  fs.symlinkSync('data', join(root, 'alias'))
  for (const path of ['data', 'data/journal', 'alias/journal', join(top, 'work/data/journal')]) {
    await assert.rejects(workspace.readFile(path), refusal(/does not exist/), path)
    await assert.rejects(workspace.list(path), refusal(/does not exist/), path)
    await assert.rejects(workspace.writeFile(path, 'y'), isOutside, path)
  }
  await assert.rejects(workspace.writeFile('later/x', 'y'), isOutside)
  const names = (await workspace.list('', { recursive: true })).map(({ path }) => path)
  assert.deepEqual(names, ['alias', 'src', 'src/a.txt'])
  await assert.rejects(
    openWorkspace(join(root, 'data'), { closed: [join(root, 'data')] }),
    isOutside,
  )
})

test('a working directory must lie under its roots by real path', async (t) => {
  const { top, root } = await world(t)
  fs.symlinkSync('work', join(top, 'alias'))
  fs.symlinkSync('../outside', join(root, 'out'))
  fs.symlinkSync('nothing', join(root, 'dangling'))
  assert.equal(await resolveUnderRoots(join(top, 'alias/src'), [root]), join(root, 'src'))
  assert.equal(await resolveUnderRoots(root, [join(top, 'none'), join(top, 'alias')]), root)
  assert.equal((await openWorkspace(root, { roots: [top] })).root, root)
  for (const path of [
    join(top, 'outside'),
    join(root, 'out'),
    join(root, '..'),
    '/',
    join(top, 'outside/none'),
  ]) {
    await assert.rejects(resolveUnderRoots(path, [root]), isOutside, path)
    await assert.rejects(openWorkspace(path, { roots: [root] }), isOutside, path)
  }
  await assert.rejects(resolveUnderRoots(root, []), isOutside)
  await assert.rejects(resolveUnderRoots(join(root, 'none'), [root]), refusal(/does not exist/))
  await assert.rejects(resolveUnderRoots(join(root, 'dangling'), [root]), refusal(/does not exist/))
  await assert.rejects(
    resolveUnderRoots(join(root, 'src/a.txt'), [root]),
    refusal(/not a directory/),
  )
  await assert.rejects(resolveUnderRoots(`${root}\0`, [root]), refusal(/NUL/))
})
