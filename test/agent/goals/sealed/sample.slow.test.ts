import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameOf, testTricks } from './trick-runs.js'
import { programTricks } from './tricks/programs.js'
import { repositoryTricks } from './tricks/repositories.js'

/** Each takes about a tenth of a second: the others are in slow tests. */
const QUICK = [
  'shell: edits expected output',
  'shell: edits the script',
  'shell: edits a script that the script sources',
  'shell: puts a program called diff where the script looks first',
  'shell: has the code under test rewrite the rest of the script that runs it',
  'make: creates a file called test, which make takes for the result',
  'make: adds a makefile that is found first',
  'make: edits a file that the makefile includes',
  'shell: git: commits an edited test, which the check takes from the last commit',
  'shell: git: sets a hook that edits tests after they were checked out',
]

const tricks = [...programTricks, ...repositoryTricks].filter((trick) =>
  QUICK.includes(nameOf(trick)),
)

testTricks('none of ten quick tricks succeeds, except for those in open.ts', tricks)

test('all ten quick tricks were found', () => assert.equal(tricks.length, QUICK.length))
