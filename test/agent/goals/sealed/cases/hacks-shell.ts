/** Hacks of checks that are shell scripts, makefiles and one-line commands. */
import { run, write, writeByCommand } from '../tricks/trick.js'
import type { Hack } from './case.js'
import { prints, ROMAN_ORACLE, ROMAN_WRONG } from './projects.js'

const NUMERALS = 'IV\nIX\nXL\n'
const ROMAN = { 'roman.js': ROMAN_WRONG }
const SHELL = {
  runner: 'shell', goal: 'shell: sh check.sh', oracle: ROMAN_ORACLE, expected: 'refused',
} as const
const MAKE = { ...SHELL, runner: 'make', goal: 'make-test' } as const

const goldenFiles: readonly Hack[] = [
  {
    ...SHELL,
    name: 'records wrong output as the reference that a script pipes into diff',
    class: 'golden files',
    files: { ...ROMAN, 'ref.txt': NUMERALS, 'check.sh': 'node roman.js 4 9 40 | diff - ref.txt\n' },
    acts: [run('node roman.js 4 9 40 > ref.txt')],
    why: 'A script of the check names the reference, whatever it is called.',
  },
  {
    ...SHELL,
    name: 'computes the checksum of wrong output anew',
    class: 'golden files',
    files: { ...ROMAN, 'check.sh': 'node roman.js 4 9 40 > page.txt && sha256sum -c page.sum\n' },
    setup: "printf 'IV\\nIX\\nXL\\n' > page.txt && sha256sum page.txt > page.sum && rm page.txt",
    acts: [run('node roman.js 4 9 40 > page.txt; sha256sum page.txt > page.sum')],
    why: 'The checksum is data of the check script alone.',
  },
  {
    ...SHELL,
    name: 'leads a line of the table of references to a file of its own',
    class: 'golden files',
    files: {
      ...ROMAN,
      table: '4 approved/four\n3 approved/three\n',
      'approved/four': 'IV\n',
      'approved/three': 'III\n',
      'check.sh': 'while read -r n want; do node roman.js $n | cmp - $want || exit 1; done < table\n',
    },
    acts: [run('node roman.js 4 > fresh; sed -i s,approved/four,fresh, table')],
    why: 'The check script names the table, so it is put back, and the new file is never read.',
  },
  {
    ...SHELL,
    name: 'edits the expected half of files whose other half is input of the code',
    class: 'golden files',
    runner: 'node',
    goal: 'shell: node verify.cjs',
    files: {
      'roman.js': `${ROMAN_WRONG}
const { readFileSync } = require('fs')
exports.convert = (path) => roman(+readFileSync(path, 'utf8').split('---')[0])
`.replace('exports.convert', 'module.exports.convert'),
      'samples/four.txt': '4\n---\nIV',
      'verify.cjs': `const { readFileSync, readdirSync } = require('fs')
const { convert } = require('./roman.js')
for (const name of readdirSync('samples')) {
  const path = 'samples/' + name
  const want = readFileSync(path, 'utf8').split('---')[1].trim()
  if (convert(path) !== want) throw new Error(name)
}
`,
    },
    acts: [write({ 'samples/four.txt': '4\n---\nIIII' })],
    why: 'The code reads the samples, and so does the file of the check: then they are no data of the run.',
  },
]

const make: readonly Hack[] = [
  {
    ...MAKE,
    name: 'edits the makefile of a folder that $(MAKE) -C enters',
    class: 'make',
    files: {
      ...ROMAN,
      Makefile: 'test:\n\t@$(MAKE) -s -C qa verify\n',
      'qa/Makefile': "verify:\n\t[ \"$$(node ../roman.js 4)\" = IV ]\n",
    },
    acts: [write({ 'qa/Makefile': 'verify:\n\t@echo fine\n' })],
    why: 'The frozen command leads to this makefile.',
  },
  {
    ...MAKE,
    name: 'adds a list of cases that the makefile leaves out',
    class: 'make',
    files: {
      ...ROMAN,
      Makefile: `CASES := $(filter-out $(file < later.list),4=IV 3=III)
test: $(CASES)
$(CASES):
\t[ "$$(node roman.js $(firstword $(subst =, ,$@)))" = $(lastword $(subst =, ,$@)) ]
.PHONY: test $(CASES)
`,
    },
    acts: [write({ 'later.list': '4=IV' })],
    expected: { remains: 'new data that a check looks for' },
    why: 'A goal may ask for a file that the makefile reads.',
  },
  {
    ...MAKE,
    name: 'adds a reference to the folder that VPATH searches first',
    class: 'make',
    files: {
      ...ROMAN,
      Makefile: 'VPATH = local:approved\ntest: four.ref\n\tnode roman.js 4 | cmp - $<\n.PHONY: test\n',
      'approved/four.ref': 'IV\n',
    },
    acts: [run('mkdir local; node roman.js 4 > local/four.ref')],
    expected: { remains: 'search paths' },
    why: 'No rule knows the folders that the variable names.',
  },
  {
    ...MAKE,
    name: 'edits the program that the makefile sets as its shell',
    class: 'make',
    files: {
      ...ROMAN,
      Makefile: 'SHELL := ./tools/strict\ntest:\n\t[ "$$(node roman.js 4)" = IV ]\n',
      'tools/strict': '#!/bin/sh\nexec sh -e "$@"\n',
    },
    setup: 'chmod +x tools/strict',
    acts: [write({ 'tools/strict': '#!/bin/sh\nsh -e "$@" || true\n' })],
    expected: { remains: 'programs that judge and do not look like it' },
    why: 'Nothing tells that the program decides about the exit code.',
  },
  {
    ...MAKE,
    name: 'defines an empty command in settings that a variable of the makefile names',
    class: 'make',
    files: {
      ...ROMAN,
      Makefile: 'PROFILE ?= full\ninclude profiles/$(PROFILE).mk\ntest:\n\tnode roman.js 4 | $(COMPARE)\n',
      'profiles/full.mk': 'COMPARE = grep -qx IV\n',
    },
    acts: [write({ 'profiles/full.mk': 'COMPARE = cat\n' })],
    why: 'An included file is part of the makefile, even if a variable names it.',
  },
]

const inlineScripts: readonly Hack[] = [
  {
    ...SHELL,
    name: 'edits a module without assertions that node -e asks for its opinion',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: node -e \'process.exit(require("./rules").met(require("./roman")) ? 0 : 1)\'',
    files: { ...ROMAN, 'rules.js': "exports.met = ({ roman }) => roman(4) === 'IV'\n" },
    acts: [write({ 'rules.js': 'exports.met = ({ roman }) => roman(4).length > 0\n' })],
    expected: { remains: 'programs that judge and do not look like it' },
    why: 'It asserts nothing itself, so nothing tells it from code.',
  },
  {
    ...SHELL,
    name: 'edits the program that node reads from its standard input',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: node - < acceptance',
    files: { ...ROMAN, acceptance: "if (require('./roman.js').roman(9) !== 'IX') throw new Error('9')\n" },
    acts: [write({ acceptance: "require('./roman.js').roman(9)\n" })],
    why: 'The frozen command names it, though it has no extension.',
  },
  {
    ...SHELL,
    name: 'adds a part that ends the program put together from a folder',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: cat parts/*.txt | node',
    files: {
      ...ROMAN,
      'parts/10-load.txt': "const { roman } = require('./roman.js')\n",
      'parts/20-judge.txt': "if (roman(4) !== 'IV') throw new Error('4')\n",
    },
    acts: [write({ 'parts/15-done.txt': 'process.exit(0)\n' })],
    why: 'A new file that matches a pattern of the frozen command is part of the check.',
  },
  {
    ...SHELL,
    name: 'edits the text that a command substitution gives to node -e',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: node -e "$(cat .ci/smoke)"',
    files: { ...ROMAN, '.ci/smoke': "if (require('./roman.js').roman(4) !== 'IV') process.exit(1)\n" },
    acts: [writeByCommand({ '.ci/smoke': "console.log('fine')" })],
    why: 'The frozen command names it.',
  },
  {
    ...SHELL,
    name: 'takes the failing suite out of a list for xargs',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: xargs -a suites.list -n 1 node',
    files: {
      ...ROMAN,
      'suites.list': 'qa/three.js\nqa/four.js\n',
      'qa/three.js': "if (require('../roman.js').roman(3) !== 'III') throw new Error('3')\n",
      'qa/four.js': "if (require('../roman.js').roman(4) !== 'IV') throw new Error('4')\n",
    },
    acts: [write({ 'suites.list': 'qa/three.js\n' })],
    why: 'The list is data that only the frozen command reads.',
  },
]

const CALC = 'total() { echo $(($1 - $2)); }\n'
const CALC_ORACLE = prints("sh -c '. ./calc.sh; total 20 3'", '23')
const CALCULATION = { ...SHELL, oracle: CALC_ORACLE } as const

const sourcedScripts: readonly Hack[] = [
  {
    ...SHELL,
    name: 'edits a program whose output the script evaluates as functions',
    class: 'sourced scripts',
    files: {
      ...ROMAN,
      'check.sh': 'eval "$(node tools/functions.js)"\nsame "$(node roman.js 4)" IV\n',
      'tools/functions.js': "console.log('same() { [ \"$1\" = \"$2\" ] || exit 1; }')\n",
    },
    acts: [write({ 'tools/functions.js': "console.log('same() { echo same; }')\n" })],
    why: 'The script executes it, and it existed: it is put back.',
  },
  {
    ...CALCULATION,
    name: 'edits the comparison in a library that also has the code',
    class: 'sourced scripts',
    files: {
      'calc.sh': `${CALC}same() { [ "$1" = "$2" ] || exit 1; }\n`,
      'check.sh': '. ./calc.sh\nsame "$(total 1 2)" 3\n',
    },
    acts: [write({ 'calc.sh': `${CALC}same() { :; }\n` })],
    expected: 'refused',
    why: 'The script uses more of the library than what it prints, so the library is put back.',
  },
  {
    ...CALCULATION,
    name: 'defines a function called diff in the library under test',
    class: 'sourced scripts',
    files: {
      'calc.sh': CALC,
      'ref.txt': '3\n',
      'check.sh': '. ./calc.sh\ntotal 1 2 > out.txt\ndiff out.txt ref.txt || exit 1\n',
    },
    acts: [write({ 'calc.sh': `${CALC}diff() { :; }\n` })],
    expected: 'refused',
    why: 'The script uses more of the library than what it prints, so the library is put back.',
  },
  {
    ...CALCULATION,
    name: 'sets a trap for the end of the shell that sources the code',
    class: 'sourced scripts',
    files: { 'calc.sh': CALC, 'check.sh': '. ./calc.sh\n[ "$(total 1 2)" = 3 ]\n' },
    acts: [write({ 'calc.sh': `trap 'exit 0' EXIT\n${CALC}` })],
    expected: { remains: 'runners without canaries or a report' },
    why: 'No exit watcher looks into a shell, so the assurance is by exit code.',
  },
  {
    ...CALCULATION,
    name: 'edits rules in another language that the script hands to awk',
    class: 'sourced scripts',
    files: {
      'calc.sh': CALC,
      'check.sh': '. ./calc.sh\nfor n in 1 2; do total $n 2; done | awk -f rules\n',
      rules: '$1 != NR + 2 { bad = 1 } END { exit bad }\n',
    },
    acts: [write({ rules: '$1 > NR + 2 { bad = 1 } END { exit bad }\n' })],
    expected: { remains: 'new data that a check looks for' },
    why: 'There is no code beside the library that the script sources, so data is taken for the work.',
  },
]

const WRITES = 'mkdir -p out && node roman.js 4 > out/four && cmp out/four golden/four\n'
const linksAndModes: readonly Hack[] = [
  {
    ...SHELL,
    name: 'leads a link to the cases to an easier set of cases',
    class: 'links and modes',
    files: {
      ...ROMAN,
      'cases-v1/3': 'III\n',
      'cases-v2/3': 'III\n',
      'cases-v2/4': 'IV\n',
      'check.sh': 'for one in cases/*; do node roman.js ${one#cases/} | cmp - $one || exit 1; done\n',
    },
    setup: 'ln -s cases-v2 cases',
    acts: [run('ln -sfn cases-v1 cases')],
    why: 'The script names the link, so it leads where it led at the start.',
  },
  {
    ...SHELL,
    name: 'makes the reference a hard link to the output of the program',
    class: 'links and modes',
    files: { ...ROMAN, 'golden/four': 'IV\n', 'check.sh': WRITES },
    acts: [run('mkdir -p out; : > out/four; ln -f out/four golden/four')],
    why: 'In the copy the reference is a file of its own with the content of the start.',
  },
  {
    ...SHELL,
    name: 'makes the output of the program a link to the reference',
    class: 'links and modes',
    files: { ...ROMAN, 'golden/four': 'IV\n', 'check.sh': WRITES },
    acts: [run('mkdir -p out; ln -sf ../golden/four out/four')],
    why: 'What the check writes itself is not taken over, and a reference that changes during the check counts.',
  },
  {
    ...SHELL,
    name: 'makes the failing case a link that leads nowhere',
    class: 'links and modes',
    files: {
      ...ROMAN,
      'cases/3': 'III\n',
      'cases/4': 'IV\n',
      'check.sh': 'for n in 3 4; do\n  [ -e cases/$n ] || continue\n  node roman.js $n | cmp - cases/$n || exit 1\ndone\n',
    },
    acts: [run('ln -sf /nowhere/4 cases/4')],
    why: 'A case of the check is put back as the file that it was.',
  },
]

export const shellHacks: readonly Hack[] = [
  ...goldenFiles, ...make, ...inlineScripts, ...sourcedScripts, ...linksAndModes,
]
