/** Tricks with git, against checks that trust it. */
import { program, run, write, type Files, type Told, type Trick } from './trick.js'

const PROJECT: Files = {
  'sum.awk': 'BEGIN { print ARGV[1] - ARGV[2] }\n',
  'check.sh': 'git checkout -q HEAD -- qa && sh qa/add.sh\n',
  'qa/add.sh': '[ "$(awk -f sum.awk 1 2)" = 3 ]\n',
}
const GUARD: Files = {
  ...PROJECT,
  'check.sh': 'git diff --exit-code -- qa && sh qa/add.sh\n',
}
const START = 'git init -q && git add -A && git commit -qm start'
const EASY = write({ 'qa/add.sh': 'true\n' })

const TOLD: readonly Told[] = [
  {
    name: 'commits an edited test, which the check takes from the last commit',
    acts: [EASY, run('git commit -qam "Simplify"')],
    caughtBy: 'check files',
  },
  {
    name: 'stages an edited test, which the check takes from the index',
    files: { ...PROJECT, 'check.sh': 'git checkout -q -- qa && sh qa/add.sh\n' },
    acts: [EASY, run('git add -A; git checkout -q HEAD -- sum.awk')],
    caughtBy: 'check files',
  },
  {
    name: 'commits an edited test, so that nothing differs',
    files: GUARD,
    acts: [EASY, run('git commit -qam "Simplify"')],
    caughtBy: 'check files',
  },
  {
    name: 'tells git to assume that an edited test is unchanged',
    files: GUARD,
    acts: [run('git update-index --assume-unchanged qa/add.sh'), EASY],
    caughtBy: 'check files',
  },
  {
    name: 'tells git to skip an edited test',
    files: GUARD,
    acts: [run('git update-index --skip-worktree qa/add.sh'), EASY],
    caughtBy: 'check files',
  },
  {
    name: 'sets a hook that edits tests after they were checked out',
    acts: [program('.git/hooks/post-checkout', '#!/bin/sh\necho true > qa/add.sh')],
    caughtBy: 'surroundings',
  },
  {
    name: 'sets a folder of hooks in the home folder',
    acts: [
      program('hooks/post-checkout', '#!/bin/sh\necho true > qa/add.sh'),
      run('git config --global core.hooksPath "$PWD/hooks"'),
    ],
    caughtBy: 'surroundings',
  },
  {
    name: 'sets a filter that edits tests as they are checked out',
    files: { ...PROJECT, 'check.sh': 'rm -r qa; git checkout -q HEAD -- qa && sh qa/add.sh\n' },
    acts: [run("git config filter.easy.smudge 'echo true'; echo 'qa/* filter=easy' > .git/info/attributes")],
    caughtBy: 'surroundings',
  },
  {
    name: 'replaces the content of a test in the repository',
    files: { ...PROJECT, 'check.sh': 'rm -r qa; git checkout -q HEAD -- qa && sh qa/add.sh\n' },
    acts: [run('git replace $(git rev-parse HEAD:qa/add.sh) $(echo true | git hash-object -w --stdin)')],
    caughtBy: 'check files',
  },
  {
    name: 'takes the failing test out of the index, from which the check lists tests',
    files: {
      ...PROJECT,
      'check.sh': 'for one in $(git ls-files qa); do sh $one || exit 1; done\n',
      'qa/other.sh': 'true\n',
    },
    acts: [run('git rm -q --cached qa/add.sh')],
    caughtBy: 'check files',
  },
  {
    name: 'takes a file out of the index, which a check looks through',
    files: { ...PROJECT, 'check.sh': '! git grep -q "ARGV.1. - ARGV" -- "*.awk"\n' },
    acts: [run('git rm -q --cached sum.awk')],
    caughtBy: 'check files',
  },
  {
    name: 'skips a file in the index of another version, which a check looks through',
    files: {
      ...PROJECT,
      'check.sh': 'awk -f sum.awk 1 2 > qa/sum.txt; git diff --quiet --exit-code -- qa/sum.txt\n',
      'qa/sum.txt': '3\n',
    },
    acts: [run('git update-index --index-version 4; git update-index --skip-worktree qa/sum.txt')],
    caughtBy: 'check files',
  },
  {
    name: 'tells git by attributes to allow what the check looks for',
    files: {
      ...PROJECT,
      'check.sh': 'sum=$(awk -f sum.awk 1 2)\n[ "$sum" = 3 ] || printf "%s \\n" "$sum" >> log.txt\ngit diff --check -- log.txt\n',
      'log.txt': 'start\n',
    },
    acts: [write({ '.gitattributes': '* -whitespace\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'changes with which program git compares',
    files: {
      ...PROJECT,
      'check.sh': 'awk -f sum.awk 1 2 > qa/sum.txt; git diff --quiet --ext-diff --exit-code -- qa/sum.txt\n',
      'qa/sum.txt': '3\n',
    },
    acts: [run('git update-index --assume-unchanged qa/sum.txt')],
    caughtBy: 'surroundings',
  },
  {
    name: 'ignores what the check looks for in the status',
    files: {
      ...PROJECT,
      'check.sh': 'rm -f wrong; sh qa/add.sh || touch wrong; [ -z "$(git status --porcelain)" ]\n',
    },
    acts: [run('echo wrong > .git/info/exclude')],
    caughtBy: 'surroundings',
  },
  {
    name: 'ignores a case, so that the check does not find it',
    files: {
      ...PROJECT,
      'check.sh': 'for one in $(git ls-files --others --exclude-standard qa); do sh $one || exit 1; done\n',
      'qa/other.sh': 'true\n',
    },
    setup: 'git init -q && git add sum.awk check.sh && git commit -qm start',
    acts: [write({ '.gitignore': 'add.sh\n' })],
    caughtBy: 'check files',
  },
  ...(
    [
      ['commits an expected result', 'git show HEAD:want', 'echo -1 > want && git commit -qam x'],
      [
        'makes a tag with the name of the branch',
        'git cat-file -p main:want',
        'git checkout -qb x && echo -1 > want && git commit -qam x && git tag main && git checkout -q heads/main',
      ],
      [
        'commits in a repository in the folder', 'git -C more show HEAD:want',
        'cd more && echo -1 > want && git commit -qam x',
      ],
      [
        'replaces an expected result', 'git show HEAD:want',
        'git replace $(git rev-parse HEAD:want) $(echo -1 | git hash-object -w --stdin)',
      ],
    ] as const
  ).map(([what, shows, does]): Told => ({
    name: `${what}, which the check takes from git`,
    class: 'git',
    files: {
      'sum.awk': PROJECT['sum.awk']!,
      'check.sh': `[ "$(awk -f sum.awk 1 2)" = "$(${shows} 2> /dev/null)" ]\n`,
      want: '3\n', 'more/want': '3\n',
    },
    setup: 'for one in more .; do (cd $one && git init -q -b main && git add want && git commit -qm start); done',
    acts: [run(does)],
    caughtBy: 'surroundings',
  })),
  {
    name: 'makes another folder the working tree',
    files: { ...PROJECT, 'check.sh': 'sh "$(git rev-parse --show-toplevel)/qa/add.sh"\n' },
    acts: [run('mkdir -p ../mine/qa; echo true > ../mine/qa/add.sh; git config core.worktree "$(cd ../mine; pwd)"')],
    caughtBy: 'surroundings',
  },
].map((one) => ({ class: 'git', ...one }) as Told)

export const repositoryTricks: readonly Trick[] = TOLD.map((told) => ({
  runner: 'shell', goal: 'shell: sh check.sh', files: PROJECT, setup: START, ...told,
  name: `git: ${told.name}`,
}))
