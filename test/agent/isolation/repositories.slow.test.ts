import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { attempt, Project } from '../../helpers/isolated.js'

const skip = attempt('git --version', '/').status === 0 ? false : 'git is not installed'

/** Whatever may change a repository, its index, its branches or a working tree. */
const EVERYTHING = `
  git status; git add -A; git commit -qm x --allow-empty; git checkout -q -b other
  git branch -D main; git stash -u; git gc -q --prune=now; git worktree prune
  git worktree add -q ./added; git worktree repair; git reset -q --hard; git clean -fdxq
  git config user.name changed; git tag changed; git update-ref refs/heads/main HEAD
  git submodule update; git submodule foreach 'git commit -q --allow-empty -m x'
  for w in $(git worktree list --porcelain | sed -n 's/^worktree //p'); do
    git worktree remove --force --force "$w"; done
  git reflog expire --expire=now --all; git repack -qad; git read-tree --empty; exit 0`

interface Case {
  readonly name: string
  /** Prepares the project; `$TOP` is the folder above it. */
  readonly setup: string
  readonly below?: string
  /** Does git work in the copy? */
  readonly works: boolean
  readonly note?: RegExp
  /** Git renews the times of objects that it finds in a repository outside, as it does in place. */
  readonly renewsTimes?: true
}

const repository = 'git init -q -b main . && echo a > a && git add a && git commit -qm first'

const cases: readonly Case[] = [
  { name: 'a repository', setup: repository, works: true },
  { name: 'no repository', setup: 'echo a > a', works: false },
  {
    name: 'a linked working tree beside it',
    setup: `${repository} && git worktree add -q ../linked`,
    works: true,
    note: /^Linked working trees outside the folder .*: \.git\/worktrees\/linked\.$/,
  },
  {
    name: 'a linked working tree in it',
    setup: `${repository} && git worktree add -q linked && git -C linked commit -q --allow-empty -m x`,
    works: true,
  },
  {
    name: 'a linked working tree of a repository beside it',
    setup: `rmdir $TOP/project; mkdir ../main && cd ../main && ${repository} &&
      git worktree add -q $TOP/project`,
    works: false,
    note: /^Version control does not work in the copy for \.git,/,
  },
  {
    name: 'a submodule',
    setup: `mkdir ../lib && (cd ../lib && ${repository}) && ${repository} &&
      git -c protocol.file.allow=always submodule -q add $TOP/lib sub && git commit -qm sub`,
    works: true,
  },
  {
    name: 'a folder that is a submodule',
    below: 'main/sub',
    setup: `mkdir ../../lib && (cd ../../lib && ${repository}) && cd .. && rmdir sub &&
      ${repository} && git -c protocol.file.allow=always submodule -q add $TOP/lib sub`,
    works: false,
    note: /^Version control does not work in the copy for \.git,/,
  },
  {
    name: 'a working tree that is set by its absolute path',
    setup: `${repository} && git config core.worktree "$PWD"`,
    works: true,
  },
  {
    name: 'a working tree elsewhere',
    setup: `${repository} && mkdir ../tree && cp a ../tree && git config core.worktree ../../tree`,
    works: true,
    note: /^Settings of repositories that lead out .*: \.git\/config\.$/,
  },
  {
    name: 'hooks set by their absolute path',
    setup: `${repository} && mkdir hooks && git config core.hooksPath "$PWD/hooks" &&
      printf '#!/bin/sh\\ntouch "$(dirname "$0")/ran"\\n' > hooks/pre-commit && chmod +x hooks/*`,
    works: true,
  },
  {
    name: 'hooks that write to an absolute path',
    setup: `${repository} &&
      printf "#!/bin/sh\\ntouch $PWD/ran\\n" > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`,
    works: true,
  },
  {
    name: 'a repository that is a link',
    setup: `${repository} && mv .git ../repository && ln -s ../repository .git`,
    works: false,
    note: /^Version control does not work in the copy for \.git,/,
  },
  {
    name: 'references and objects that are links',
    setup: `${repository} && mv .git/refs .git/objects .. && ln -s $PWD/../refs .git/refs &&
      ln -s ../../objects .git/objects`,
    works: false,
    note: /^Links of repositories that lead out .*: \.git\/(objects, \.git\/refs|refs, \.git\/objects)\.$/,
  },
  {
    name: 'objects borrowed from a repository in it',
    setup: `mkdir base && (cd base && ${repository}) && git clone -qs "$PWD/base" shared &&
      cd shared && git commit -q --allow-empty -m x && cd .. && ${repository}`,
    works: true,
  },
  {
    name: 'objects borrowed from a repository beside it',
    setup: `mkdir ../base && (cd ../base && ${repository}) && cd .. && rmdir project &&
      git clone -qs $TOP/base $TOP/project && cd $TOP/project &&
      echo ../../../base/.git/objects > .git/objects/info/alternates && git log -1 --oneline`,
    works: true,
    renewsTimes: true,
  },
  {
    name: 'a commit under way',
    setup: `${repository} && touch .git/index.lock .git/refs/heads/main.lock`,
    works: true,
  },
  {
    name: 'a bare repository with linked working trees',
    setup: `${repository} && git clone -q --bare . bare.git && git -C bare.git worktree add -q $TOP/wt main`,
    works: true,
    note: /^Linked working trees .*: bare\.git\/worktrees\/wt\.$/,
  },
]

for (const { name, setup, below, works, note, renewsTimes } of cases) {
  test(`git in a copy of a folder with ${name} leaves everything else as it was`, { skip }, async (t) => {
    const project = new Project(t, below)
    project.run(`TOP=${project.top}\nset -e\n${setup}`)
    // Copies lie below a repository: git must not use that one.
    project.run('git init -q . && git commit -q --allow-empty -m top', project.top)
    const options = { times: renewsTimes !== true }
    const before = project.outside(options)
    const { root, notes } = await project.isolate()
    project.assertUntouched(before, options)
    assert.deepEqual(notes.filter((text) => !note?.test(text)), [])
    if (note !== undefined) assert.equal(notes.length, 1)
    const status = attempt('git status --porcelain && git log -1 --oneline', root)
    assert.equal(status.status === 0, works, status.output)
    if (!works) assert.match(status.output, /not a git repository/)
    for (const folder of ['.', ...foldersWithGit(root)]) attempt(EVERYTHING, join(root, folder))
    project.assertUntouched(before, options)
  })
}

/** Folders below the top that have a repository of their own. */
function foldersWithGit(root: string): readonly string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
}

test('a copied repository has history, index, branches, stash, settings', { skip }, async (t) => {
  const project = new Project(t)
  project.run(`${repository}; echo b > b; git add b; git stash -q; git branch side
    echo c > c; git add c; echo d > d; git config user.name someone; git pack-refs --all
    git gc -q`)
  const ask = `git log --all --format=%H; git status --porcelain; git branch --list; git stash list
    git config user.name; git fsck --full; git diff --cached`
  const { root } = await project.isolate()
  assert.equal(attempt(ask, root).output, attempt(ask, project.cwd).output)
})

test('a repository is copied so that what refers to objects comes before them', { skip }, async (t) => {
  const project = new Project(t)
  project.run(repository)
  const { spawn } = await import('node:child_process')
  const loop = 'while :; do date +%N > t; git add t; git -c user.name=a -c user.email=a commit -qm t; done'
  const child = spawn('sh', ['-c', loop], { cwd: project.cwd, stdio: 'ignore', detached: true })
  t.after(() => process.kill(-child.pid!, 'SIGKILL'))
  for (let i = 0; i < 5; i++) {
    const { root } = await project.isolate(`run${i}`)
    const { output } = attempt('git fsck --connectivity-only 2>&1', root)
    assert.doesNotMatch(output, /missing|broken|invalid|error/, output)
    assert.equal(existsSync(join(root, '.git/index.lock')), false)
  }
})

test('Mercurial and Jujutsu do not follow their pointers to a repository outside', async (t) => {
  const project = new Project(t)
  project.write({
    '.hg/sharedpath': `${project.top}/main/.hg`,
    '.jj/repo': `${project.top}/main/.jj/repo`,
    'in/.hg/sharedpath': '@/.hg',
  })
  const { root, notes } = await project.isolate()
  for (const file of ['.hg/sharedpath', '.jj/repo']) {
    assert.ok(!readFileSync(join(root, file), 'utf8').includes(project.top), file)
  }
  assert.equal(readFileSync(join(root, 'in/.hg/sharedpath'), 'utf8'), join(root, '.hg'))
  assert.match(notes.join(), /^Version control does not work in the copy for/)
})
