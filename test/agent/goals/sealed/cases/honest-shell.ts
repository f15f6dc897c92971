/** Honest changes in projects checked by shell scripts and makefiles, and of git and C. */
import { run, write, type Files } from '../tricks/trick.js'
import type { HonestChange } from './case.js'
import {
  CLAMP, CLAMP_RIGHT, CLAMP_TEST, clampOracle, prints, ROMAN_ORACLE, ROMAN_RIGHT, ROMAN_WRONG,
  romanRight,
} from './projects.js'

const ROMAN = { 'roman.js': ROMAN_WRONG }
const SHELL = {
  runner: 'shell', goal: 'shell: sh check.sh', oracle: ROMAN_ORACLE, expected: 'achieved',
} as const
const MAKE = { ...SHELL, runner: 'make', goal: 'make-test' } as const
const REFERENCE = 'node roman.js 4 9 | diff - ref.txt\n'
const GOLDEN: Files = { ...ROMAN, 'ref.txt': 'IV\nIX\n', 'check.sh': REFERENCE }

const PRICE = `const unit = (price) => price + ' USD'
const [command, ...prices] = process.argv.slice(2)
if (command === 'list') for (const price of prices) console.log(unit(price))
else console.log(unit(prices.reduce((sum, price) => sum + +price, 0)))
`
const goldenFiles: readonly HonestChange[] = [
  {
    ...SHELL,
    name: 'a program that becomes two modules, with its references as they were',
    class: 'golden files',
    files: GOLDEN,
    acts: [write({
      'table.js': "module.exports = [[40, 'XL'], [10, 'X'], [9, 'IX'], [5, 'V'], [4, 'IV'], [1, 'I']]\n",
      'roman.js': ROMAN_RIGHT.replace(/const TABLE = .*/, "const TABLE = require('./table.js')"),
    })],
    why: 'Both files are code that the check runs.',
  },
  {
    ...SHELL,
    name: 'a reference that changes with the format of the output',
    class: 'golden files',
    files: {
      'price.js': PRICE,
      'approved/list.txt': '1 USD\n2 USD\n',
      'approved/total.txt': '3 EUR\n',
      'check.sh': 'set -e\nnode price.js list 1 2 > list.txt\nnode price.js total 1 2 > total.txt\ndiff list.txt approved/list.txt\ndiff total.txt approved/total.txt\n',
    },
    acts: [run("sed -i s/USD/EUR/ price.js approved/list.txt")],
    oracle: prints('node price.js total 3 4', '7 EUR'),
    expected: { achieved_with: { may_change: ['approved/list.txt'] } },
    why: 'The reference decides the verdict, and the user says that it may change.',
  },
  {
    ...SHELL,
    name: 'a configuration of the program that the script passes to it',
    class: 'golden files',
    files: {
      'report.js': "const { unit } = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'))\nconsole.log('5 ' + unit)\n",
      'report.conf': '{ "unit": "kg" }\n',
      'ref.txt': '5 g\n',
      'check.sh': 'node report.js report.conf | diff - ref.txt\n',
    },
    acts: [write({ 'report.conf': '{ "unit": "g" }\n' })],
    oracle: prints('node report.js report.conf', '5 g'),
    expected: { achieved_with: { may_change: ['report.conf'] } },
    why: 'A script of the check names it, so without permission it is put back.',
  },
  {
    ...SHELL,
    name: 'a new reference, in a folder that the script goes through',
    class: 'golden files',
    files: {
      ...ROMAN,
      'approved/9': 'IX\n',
      'check.sh': 'for one in approved/*; do node roman.js ${one#approved/} | diff - $one || exit 1; done\n',
    },
    acts: [romanRight, write({ 'approved/14': 'XIV\n', 'README.md': '# Numerals\n' })],
    why: 'The new reference belongs to the second pass, and the first one passes without it.',
  },
]

const SOURCES: Files = {
  ...CLAMP,
  'sources.mk': 'SOURCES = clamp.c\n',
  Makefile: 'include sources.mk\ntest:\n\tcc -I. -o test_clamp test_clamp.c $(SOURCES)\n\t./test_clamp\n',
}
const SPLIT: Files = {
  'clamp.c': '#include "clamp.h"\nint clamp(int value, int low, int high) { return least(most(value, low), high); }\n',
  'limits.c': 'int least(int a, int b) { return a < b ? a : b; }\nint most(int a, int b) { return a > b ? a : b; }\n',
  'clamp.h': 'int clamp(int value, int low, int high);\nint least(int a, int b);\nint most(int a, int b);\n',
}
const make: readonly HonestChange[] = [
  {
    ...MAKE,
    name: 'new targets in the makefile that the check does not need',
    class: 'make',
    files: { ...ROMAN, Makefile: 'test:\n\t[ "$$(node roman.js 4)" = IV ]\n' },
    acts: [romanRight, run("printf '\\nclean:\\n\\trm -rf out\\n\\n.PHONY: test clean\\n' >> Makefile")],
    why: 'The makefile is held back, and the check passes with that of the start.',
  },
  {
    ...MAKE,
    name: 'a new source file in a list that the makefile includes',
    class: 'make',
    files: SOURCES,
    acts: [write({ ...SPLIT, 'sources.mk': 'SOURCES = clamp.c limits.c\n' })],
    oracle: clampOracle('clamp.c limits.c'),
    expected: { achieved_with: { may_change: ['sources.mk'] } },
    why: 'The list is part of the makefile, and the user says that it may change.',
  },
  {
    ...MAKE,
    name: 'a new source file that the makefile itself names',
    class: 'make',
    files: CLAMP,
    acts: [write(SPLIT), run("sed -i 's/ clamp.c/ clamp.c limits.c/' Makefile")],
    oracle: clampOracle('clamp.c limits.c'),
    expected: { achieved_with: { may_change: ['Makefile'] } },
    why: 'One human action has to suffice; is a makefile a script of the frozen command?',
  },
]

const sourcedScripts: readonly HonestChange[] = [
  {
    ...SHELL,
    name: 'a repaired library that the script sources to test its functions',
    class: 'sourced scripts',
    files: { 'calc.sh': 'total() { echo $(($1 - $2)); }\n', 'check.sh': '. ./calc.sh\n[ "$(total 1 2)" = 3 ]\n' },
    acts: [run("sed -i 's/1 - /1 + /' calc.sh")],
    oracle: prints("sh -c '. ./calc.sh; total 20 3'", '23'),
    why: 'A library that is the subject of the script is code.',
  },
  {
    ...SHELL,
    name: 'a library that becomes two files, the first sourced by the script',
    class: 'sourced scripts',
    files: { 'lib/calc.sh': 'total() { echo $(($1 - $2)); }\n', 'check.sh': '. lib/calc.sh\nif [ "$(total 1 2)" != 3 ]; then exit 1; fi\n' },
    acts: [write({ 'lib/calc.sh': '. lib/sums.sh\ntotal() { sum "$@"; }\n', 'lib/sums.sh': 'sum() { echo $(($1 + $2)); }\n' })],
    oracle: prints("sh -c '. lib/calc.sh; total 20 3'", '23'),
    why: 'Code loads the new file.',
  },
]

const linksAndModes: readonly HonestChange[] = [
  {
    ...SHELL,
    name: 'a program that becomes executable',
    class: 'links and modes',
    files: { 'bin/roman': `#!/usr/bin/env node\n${ROMAN_RIGHT}`, 'check.sh': '[ "$(./bin/roman 4)" = IV ]\n' },
    acts: [run('chmod +x bin/roman')],
    oracle: prints('./bin/roman 14', 'XIV'),
    why: 'The mode of code under test is part of the work.',
  },
  {
    ...SHELL,
    name: 'a link in place of a copy of a module',
    class: 'links and modes',
    files: { ...ROMAN, 'old/roman.js': ROMAN_WRONG, 'check.sh': '[ "$(node old/roman.js 4)" = IV ]\n' },
    acts: [romanRight, run('ln -sf ../roman.js old/roman.js')],
    oracle: prints('node old/roman.js 14', 'XIV'),
    why: 'The link leads to code within the folder.',
  },
]

const git: readonly HonestChange[] = [
  {
    ...SHELL,
    name: 'a commit of the work, which the script demands',
    class: 'git',
    files: { ...ROMAN, 'check.sh': 'git diff --quiet HEAD || exit 1\n[ "$(node roman.js 4)" = IV ]\n' },
    setup: 'git init -q -b main && git add -A && git commit -qm start',
    acts: [romanRight, run('git switch -q -c numerals && git commit -qam "repair numerals" && git tag repaired')],
    why: 'Commits, branches and the index are those of the run.',
  },
  {
    ...SHELL,
    name: 'attributes and ignored files in a project whose check does not ask git',
    class: 'git',
    files: GOLDEN,
    setup: 'git init -q -b main && git add -A && git commit -qm start',
    acts: [romanRight, write({ '.gitattributes': '*.png binary\n', '.gitignore': 'out\n*.log\n' }), run('mkdir out; node roman.js 4 > out/a.log; git add -A; git commit -qm repair')],
    why: 'No process of the check reads these files.',
  },
]

const WILDCARD: Files = {
  'src/clamp.h': CLAMP['clamp.h']!,
  'src/clamp.c': CLAMP['clamp.c']!,
  'tests/test_clamp.c': CLAMP_TEST,
  Makefile: 'SOURCES := $(wildcard src/*.c)\ntest:\n\tcc -Isrc -o test_clamp tests/test_clamp.c $(SOURCES)\n\t./test_clamp\n',
}
const inSrc = (files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([path, text]) => [`src/${path}`, text]))
const compiled: readonly HonestChange[] = [
  {
    ...MAKE,
    name: 'functions that move to a new file, which a pattern finds',
    class: 'compiled programs',
    files: WILDCARD,
    acts: [write(inSrc(SPLIT)), run('rm -f test_clamp')],
    oracle: `cd src && ${clampOracle('clamp.c limits.c')}`,
    why: 'In compiled languages new files are code by their extension.',
  },
  {
    ...MAKE,
    name: 'a header with a new function, comments and a guard',
    class: 'compiled programs',
    files: CLAMP,
    acts: [write({
      'clamp.h': '#ifndef CLAMP_H\n#define CLAMP_H\n/* Limits a value. */\nint clamp(int value, int low, int high);\nint limit(int value);\n#endif\n',
      'clamp.c': `${CLAMP_RIGHT}int limit(int value) { return clamp(value, 0, 100); }\n`,
    })],
    oracle: clampOracle(),
    why: 'The code includes the header as well as the tests.',
  },
]

export const honestShell: readonly HonestChange[] = [
  ...goldenFiles, ...make, ...sourcedScripts, ...linksAndModes, ...git, ...compiled,
]
