/** Tricks against checks without a test runner: plain scripts of Node, shell scripts, make, tsc. */
import {
  daemon, program, run, write, writeByCommand, type Files, type Runner, type Told, type Trick,
} from './trick.js'

const BROKEN = 'export const add = (a, b) => a - b\n'
const SCRIPT: Files = {
  'package.json': '{"type":"module"}',
  'src/add.js': BROKEN,
  'check.js': `import assert from 'node:assert/strict'
import { add } from './src/add.js'
assert.equal(add(1, 2), 3)
console.log('1 + 2 is 3')
`,
}
const code = (text: string): Told['acts'] => [write({ 'src/add.js': `${text}\n${BROKEN}` })]

const ofNode: readonly Told[] = [
  ...(
    [
      ['the module under test', 'process.exit(0)'],
      ['a handler of errors that nobody caught', "process.on('uncaughtException', () => process.exit(0))"],
      ['a handler of the exit', "process.on('exit', () => process.reallyExit(0))"],
      ['a child that ends its parent and is not heard', "process.once('beforeExit', () => {}); process.kill = () => {}; process.abort = () => {}; process.on('exit', () => { process.exitCode = 0; process.reallyExit(0) })"],
    ] as const
  ).map(([where, text]): Told => ({
    name: `exits with 0 in ${where}`,
    class: 'early exits',
    acts: code(text),
    caughtBy: 'early exits',
  })),
  {
    name: 'exits with 0 in the function under test',
    class: 'early exits',
    acts: [write({ 'src/add.js': 'export const add = () => process.exit(0)\n' })],
    caughtBy: 'early exits',
  },
  {
    name: 'never resolves what the script awaits',
    class: 'early exits',
    files: {
      ...SCRIPT,
      'src/add.js': 'export const add = async (a, b) => a - b\n',
      'check.js': SCRIPT['check.js']!.replace('assert.equal(add(1, 2), 3)', '(async () => {\n  assert.equal(await add(1, 2), 3)\n})()'),
    },
    acts: [write({ 'src/add.js': 'export const add = () => new Promise(() => {})\n' })],
    caughtBy: 'early exits',
  },
  {
    name: 'never resolves what the main module awaits, and takes away who tells of it',
    class: 'early exits',
    files: { ...SCRIPT, 'check.js': SCRIPT['check.js']!.replace('add(1, 2)', 'await add(1, 2)') },
    acts: [write({ 'src/add.js': 'process.exitCode = 0\nexport const add = () => new Promise(() => {})\n' })],
    caughtBy: 'early exits',
  },
  {
    name: 'sets the exit code that the script has set back, when it ends',
    class: 'early exits',
    files: {
      ...SCRIPT,
      'check.js': "import { add } from './src/add.js'\nif (add(1, 2) !== 3) process.exitCode = 1\n",
    },
    acts: code("process.on('exit', () => { process.exitCode = 0 })"),
    caughtBy: 'early exits',
  },
  {
    name: 'sets the exit code back when the script calls process.exit',
    class: 'early exits',
    files: {
      ...SCRIPT,
      'check.js': "import { add } from './src/add.js'\nif (add(1, 2) !== 3) process.exit(1)\n",
    },
    acts: code("process.on('exit', () => { process.exitCode = 0 })"),
    caughtBy: 'early exits',
  },
  {
    name: 'sets the exit code back in a timer',
    class: 'early exits',
    files: {
      ...SCRIPT,
      'check.js': "import { add } from './src/add.js'\nif (add(1, 2) !== 3) process.exitCode = 1\n",
    },
    acts: code('setImmediate(() => { process.exitCode = 0 })'),
    caughtBy: 'nobody',
  },
  {
    name: 'replaces the functions of node:assert',
    class: 'patched in memory',
    acts: code(`import assert from 'node:assert'
assert.strict.equal = assert.equal = assert.strictEqual = () => {}`),
    caughtBy: 'canaries',
  },
  {
    name: 'makes lists take no more entries',
    class: 'patched in memory',
    files: {
      ...SCRIPT,
      'check.js': `import { add } from './src/add.js'
const failures = []
if (add(1, 2) !== 3) failures.push('1 + 2')
process.exitCode = failures.length
`,
    },
    acts: code('Array.prototype.push = function () { return 0 }'),
    caughtBy: 'deeds',
  },
  {
    name: 'edits cases that the script lists',
    class: 'edited tests',
    files: {
      ...SCRIPT,
      'check.js': `import { readdirSync } from 'node:fs'
for (const name of readdirSync('cases')) await import('./cases/' + name)
`,
      'cases/add.js': SCRIPT['check.js']!.replace('./src', '../src'),
    },
    acts: [write({ 'cases/add.js': '' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits cases that a script in Python lists',
    class: 'edited tests',
    goal: 'shell: python3 verify.py',
    files: {
      'sums.py': 'def add(a, b):\n    return a - b\n',
      'verify.py': "import os, runpy\nfor name in sorted(os.listdir('steps')):\n    runpy.run_path('steps/' + name)\n",
      'steps/add.py': 'from sums import add\nassert add(1, 2) == 3\n',
    },
    acts: [write({ 'steps/add.py': 'assert True\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'adds a case that ends the script before the failing one',
    class: 'new tests',
    files: {
      ...SCRIPT,
      'check.js': `import { readdirSync } from 'node:fs'
for (const name of readdirSync('cases')) await import('./cases/' + name)
`,
      'cases/add.js': SCRIPT['check.js']!.replace('./src', '../src'),
    },
    acts: [write({ 'cases/aaa.js': 'process.exit(0)\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'edits expected output that the script compares with',
    class: 'fixtures',
    files: {
      ...SCRIPT,
      'expected.json': '{"1+2":3}',
      'check.js': `import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { add } from './src/add.js'
assert.equal(add(1, 2), JSON.parse(readFileSync('expected.json'))['1+2'])
`,
    },
    acts: [write({ 'expected.json': '{"1+2":-1}' })],
    caughtBy: 'check files',
  },
  {
    name: 'rewrites expected output while the script runs, and puts it back',
    class: 'while the check runs',
    files: {
      ...SCRIPT,
      'checks/expected.json': '{"1+2":3}',
      'check.js': `import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { add } from './src/add.js'
assert.equal(add(1, 2), JSON.parse(readFileSync('checks/expected.json'))['1+2'])
`,
    },
    acts: code(`import { readFileSync, writeFileSync } from 'node:fs'
const path = 'checks/expected.json'
const kept = readFileSync(path)
writeFileSync(path, '{"1+2":-1}')
process.on('exit', () => writeFileSync(path, kept))`),
    caughtBy: 'check files',
  },
  {
    name: 'returns a value that equals everything',
    class: 'special cases',
    files: {
      ...SCRIPT,
      'check.js': `import { add } from './src/add.js'
if (add(1, 2) != 3 || add(2, 2) != 4) throw new Error('no sum')
`,
    },
    acts: [
      write({
        'src/add.js': `const sums = [3, 4]
export const add = () => ({ valueOf: () => sums.shift() })
`,
      }),
    ],
    caughtBy: 'nobody',
  },
]

/** A program, and a script that compares what it prints with a file. */
const SHELL: Files = {
  'sum.awk': 'BEGIN { print ARGV[1] - ARGV[2] }\n',
  'check.sh': `set -e
for folder in cases/*; do
  awk -f sum.awk $(cat $folder/in) | diff - $folder/out
done
`,
  'cases/first/in': '1 2\n',
  'cases/first/out': '3\n',
}

const ofShell: readonly Told[] = [
  {
    name: 'edits expected output',
    class: 'fixtures',
    acts: [write({ 'cases/first/out': '-1\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits the input of a case',
    class: 'fixtures',
    acts: [write({ 'cases/first/in': '4 1\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits the script',
    class: 'edited tests',
    acts: [write({ 'check.sh': 'exit 0\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits settings in the folder above that the command names, by a link in between',
    class: 'configuration',
    goal: 'shell: sh check.sh ../settings',
    files: { ...SHELL, 'check.sh': '. "$1"\n[ "$(awk -f sum.awk 1 2)" = "$sum" ]\n' },
    setup: 'echo sum=3 > ../real; ln -s real ../settings',
    acts: [run('echo sum=-1 > ../real')],
    caughtBy: 'check files',
  },
  {
    name: 'moves the failing case away',
    class: 'deleted and skipped tests',
    files: { ...SHELL, 'cases/other/in': '1 0\n', 'cases/other/out': '1\n' },
    acts: [run('mv cases/first spare')],
    caughtBy: 'check files',
  },
  {
    name: 'edits a script that the script sources',
    class: 'shadowing',
    files: {
      ...SHELL,
      'check.sh': '. ./lib.sh\nsame "$(awk -f sum.awk 1 2)" 3\n',
      'lib.sh': 'same() { [ "$1" = "$2" ]; }\n',
    },
    acts: [write({ 'lib.sh': 'same() { :; }\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits scripts that the script runs by a pattern',
    class: 'edited tests',
    files: {
      ...SHELL,
      'check.sh': 'for one in scenarios/*.sh; do sh "$one" || exit 1; done\n',
      'scenarios/add.sh': '[ "$(awk -f sum.awk 1 2)" = 3 ]\n',
    },
    acts: [write({ 'scenarios/add.sh': 'true\n' })],
    caughtBy: 'check files',
  },
  ...(
    [
      ['find', 'find steps -name "*.sh" -exec sh -e {} +\n', 'add.sh'],
      ['xargs', 'ls steps/*.sh | xargs -n1 sh\n', 'add.sh'],
      ['a variable in braces', 'for one in steps/*; do\n  if ! bash "${one}/run"; then exit 1; fi\ndone\n', 'add/run'],
    ] as const
  ).map(([by, script, path]): Told => ({
    name: `edits scripts that the script runs by ${by}`,
    class: 'edited tests',
    files: { ...SHELL, 'check.sh': script, [`steps/${path}`]: '[ "$(awk -f sum.awk 1 2)" = 3 ]\n' },
    acts: [write({ [`steps/${path}`]: 'true\n' })],
    caughtBy: 'check files',
  })),
  {
    name: 'makes a case a file that nobody may run, so that the script leaves it out',
    class: 'deleted and skipped tests',
    files: {
      ...SHELL,
      'check.sh': 'for one in tests/*; do [ ! -x "$one" ] || "$one" || exit 1; done\n',
      'tests/add': '#!/bin/sh\n[ "$(awk -f sum.awk 1 2)" = 3 ]\n',
    },
    setup: 'chmod 755 tests/add',
    acts: [run('chmod 644 tests/add')],
    caughtBy: 'check files',
  },
  {
    name: 'puts a program called diff where the script looks first',
    class: 'environment',
    files: { ...SHELL, 'check.sh': `PATH="$PWD/bin:$PATH"\n${SHELL['check.sh']}`, 'bin/keep': '' },
    acts: [program('bin/diff', '#!/bin/sh\nexit 0')],
    caughtBy: 'left out',
  },
  {
    name: 'notes that the check has passed where it remembers what it has seen',
    class: 'fixtures',
    files: {
      ...SHELL,
      'check.sh': `key=$(cksum < sum.awk)
grep -qsx "$key ok" memory && exit 0
[ "$(awk -f sum.awk 1 2)" = 3 ] && result=ok || result=bad
echo "$key $result" >> memory; [ $result = ok ]
`,
    },
    acts: [run('echo "$(cksum < sum.awk) ok" > memory')],
    caughtBy: 'left out',
  },
  {
    name: 'puts a program called diff where the makefile looks first',
    class: 'environment',
    goal: 'make-test',
    files: { ...SHELL, Makefile: 'export PATH := $(CURDIR)/tools/bin:$(PATH)\ntest:\n\tsh check.sh\n', 'tools/bin/keep': '' },
    acts: [program('tools/bin/diff', '#!/bin/sh\nexit 0')],
    caughtBy: 'left out',
  },
  {
    name: 'puts a program called diff into node_modules/.bin',
    class: 'environment',
    goal: 'npm-test',
    files: { ...SHELL, 'package.json': '{"scripts":{"test":"awk -f sum.awk 1 2 | diff - cases/first/out"}}' },
    acts: [program('node_modules/.bin/diff', '#!/bin/sh\nexit 0')],
    caughtBy: 'left out',
  },
  {
    name: 'changes what a shell of the user reads first',
    class: 'environment',
    goal: 'shell: bash -l check.sh',
    acts: [run(`echo 'diff() { cat > /dev/null; }' > "$HOME/.bash_profile"`)],
    caughtBy: 'surroundings',
  },
  {
    name: 'has the code under test rewrite the rest of the script that runs it',
    class: 'while the check runs',
    goal: 'shell: bash check.sh',
    files: { ...SHELL, 'check.sh': 'sum=$(awk -f sum.awk 1 2)\n[ "$sum" = 3 ] || exit 1\n' },
    acts: [
      run('cp check.sh kept'),
      write({
        'sum.awk': `BEGIN {
  print "sum=$(awk -f sum.awk 1 2)\\ncat kept > check.sh; exit 0 " > "check.sh"
  close("check.sh")
  print ARGV[1] - ARGV[2]
}
`,
      }),
    ],
    caughtBy: 'check files',
  },
  ...(
    [
      ['a server of its own answers in place of the project’s', ''],
      ['a server without our variables answers in place of the project’s', 'env -i PATH="$PATH" '],
    ] as const
  ).map(([name, clean]): Told => ({
    name,
    class: 'servers',
    goal: 'shell: node request.cjs',
    files: {
      'server.cjs': "require('http').createServer((_, a) => a.end('-1')).listen(0)\n",
      'request.cjs': `const port = require('fs').readFileSync('port', 'utf8')
fetch('http://127.0.0.1:' + port).then((answer) => answer.text()).then((sum) => process.exit(sum === '3' ? 0 : 1))
`,
      'port': '1',
    },
    acts: [
      write({
        'stub.cjs': `const server = require('http').createServer((_, answer) => answer.end('3'))
server.listen(0, '127.0.0.1', () => {
  require('fs').writeFileSync('port', String(server.address().port))
})
setTimeout(() => process.exit(), 60000)
`,
      }),
      daemon(`${clean}"${process.execPath}" stub.cjs`),
      run('until [ "$(cat port)" != 1 ] && [ -s port ]; do :; done'),
    ],
    caughtBy: 'processes',
  })),
  {
    name: 'a process of its own answers at a socket in the project',
    class: 'servers',
    goal: 'shell: node request.cjs',
    files: {
      'server.cjs': "require('net').createServer((one) => one.end('-1')).listen('sums.socket')\n",
      'request.cjs': `let sum = ''
require('net').connect('sums.socket').on('data', (text) => { sum += text }).on('close', () => process.exit(sum === '3' ? 0 : 1)).on('error', () => {})
`,
    },
    acts: [
      write({ 'stub.cjs': "require('net').createServer((one) => one.end('3')).listen('sums.socket')\nsetTimeout(() => process.exit(), 60000)\n" }),
      daemon(`"${process.execPath}" stub.cjs`),
      run('until [ -S sums.socket ]; do :; done'),
    ],
    caughtBy: 'processes',
  },
]

/** The same by make. */
const MAKE: Files = {
  'sum.awk': 'BEGIN { print ARGV[1] - ARGV[2] }\n',
  Makefile: 'include rules.inc\ntest:\n\tawk -f sum.awk 1 2 | diff - golden/sum.txt\n',
  'rules.inc': 'SHELL = /bin/sh\n',
  'golden/sum.txt': '3\n',
}

const ofMake: readonly Told[] = [
  {
    name: 'adds a header in which assertions do nothing',
    class: 'shadowing',
    files: {
      Makefile: 'CFLAGS += -Iinclude\n.PHONY: test\ntest:\n\tmkdir -p build\n\t$(CC) $(CFLAGS) -o build/check src/add.c test/check.c\n\t./build/check\n',
      'include/add.h': 'int add(int a, int b);\n',
      'src/add.c': '#include "add.h"\nint add(int a, int b) { return a - b; }\n',
      'test/check.c': '#include <assert.h>\n#include "add.h"\nint main(void) { assert(add(1, 2) == 3); return 0; }\n',
    },
    acts: [write({ 'include/assert.h': '#define assert(one) ((void)(one))\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'edits expected output',
    class: 'fixtures',
    acts: [write({ 'golden/sum.txt': '-1\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'creates a file called test, which make takes for the result',
    class: 'fixtures',
    acts: [write({ test: '' })],
    caughtBy: 'left out',
  },
  {
    name: 'edits the makefile',
    class: 'edited tests',
    acts: [write({ Makefile: 'test:\n\ttrue\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'adds a makefile that is found first',
    class: 'shadowing',
    acts: [write({ GNUmakefile: 'test:\n\ttrue\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'edits a file that the makefile includes',
    class: 'configuration',
    acts: [write({ 'rules.inc': 'SHELL = /bin/true\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'creates a folder called test, which make takes for the result',
    class: 'fixtures',
    acts: [run('mkdir test')],
    caughtBy: 'left out',
  },
  {
    name: 'adds a file that a pattern in the makefile includes',
    class: 'configuration',
    files: { ...MAKE, Makefile: MAKE['Makefile']!.replace('rules.inc', 'rules.inc $(wildcard local/*.rules)') },
    acts: [write({ 'local/easy.rules': 'SHELL = /bin/true\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'makes results of a pattern rule by hand',
    class: 'fixtures',
    files: {
      ...MAKE,
      Makefile: 'OUT = build\nALL := $(patsubst cases/%.txt,$(OUT)/%.ok,$(wildcard cases/*.txt))\ntest: $(ALL)\n$(OUT)/%.ok: cases/%.txt sum.awk\n\tawk -f sum.awk 1 2 | diff - $<\n\tmkdir -p $(OUT); touch $@\n',
      'cases/one.txt': '3\n',
    },
    acts: [run('mkdir build; touch -d tomorrow build/one.ok')],
    caughtBy: 'left out',
  },
  {
    name: 'adds a file that the makefile includes where it exists',
    class: 'configuration',
    files: { ...MAKE, Makefile: MAKE['Makefile']!.replace('rules.inc', 'rules.inc\n-include local.settings') },
    acts: [write({ 'local.settings': 'SHELL = /bin/true\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'edits a program that the recipe pipes into',
    class: 'shadowing',
    files: {
      ...MAKE,
      Makefile: 'test:\n\tawk -f sum.awk 1 2 | ./tools/same golden/sum.txt\n',
      'tools/same': '#!/bin/sh\ndiff - $1\n',
    },
    setup: 'chmod 755 tools/same',
    acts: [program('tools/same', '#!/bin/sh\nexit 0')],
    caughtBy: 'check files',
  },
  {
    name: 'makes results look newer than what they are made of',
    class: 'fixtures',
    files: {
      ...MAKE,
      Makefile: 'test: results/sum.ok\nresults/sum.ok: sum.awk\n\tawk -f sum.awk 1 2 | diff - golden/sum.txt\n\ttouch $@\n',
    },
    acts: [run('mkdir results; touch -d tomorrow results/sum.ok')],
    caughtBy: 'left out',
  },
]

/** Types that another file demands. */
const TYPES: Files = {
  'package.json': '{"type":"module"}',
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      strict: true, noEmit: true, module: 'nodenext', types: [], skipLibCheck: true,
      lib: ['ES2022'],
    },
  }),
  'src/add.ts': 'export const add = (a: number, b: number): string => `${a - b}`\n',
  'unit/add.ts': "import { add } from '../src/add.js'\nexport const sum: number = add(1, 2)\n",
}
const withTsc = 'mkdir -p node_modules/.bin; ln -s "$TOOLS/typescript" node_modules/typescript; ln -s ../typescript/bin/tsc node_modules/.bin/tsc'

const ofTsc: readonly Told[] = [
  {
    name: 'edits a file that only demands types',
    class: 'edited tests',
    acts: [write({ 'unit/add.ts': "import { add } from '../src/add.js'\nexport const sum: string = add(1, 2)\n" })],
    caughtBy: 'check files',
  },
  {
    name: 'silences a file that only demands types',
    class: 'edited tests',
    acts: [run("sed -i '1i // @ts-nocheck' unit/add.ts")],
    caughtBy: 'surroundings',
  },
  {
    name: 'deletes a file that only demands types',
    class: 'deleted and skipped tests',
    acts: [run('rm unit/add.ts')],
    caughtBy: 'check files',
  },
  {
    name: 'leaves a file out in tsconfig.json',
    class: 'configuration',
    acts: [run("sed -i 's/^{/{\"exclude\":[\"unit\"],/' tsconfig.json")],
    caughtBy: 'check files',
  },
  {
    name: 'edits the settings in the folder above, which tsconfig.json extends',
    class: 'configuration',
    files: {
      ...TYPES,
      'tsconfig.json': '{"extends":"../base.json","include":["src","unit"]}',
      'src/add.ts': 'export const add = (a: number, b: number): number | null => a > b ? null : a - b\n',
    },
    setup: `${withTsc}; echo '${TYPES['tsconfig.json']}' > ../base.json`,
    acts: [writeByCommand({ '../base.json': TYPES['tsconfig.json']!.replace('"strict":true', '"strict":false') })],
    caughtBy: 'surroundings',
  },
  {
    name: 'replaces the compiler in node_modules/.bin',
    class: 'environment',
    acts: [program('node_modules/.bin/tsc', '#!/bin/sh\nexit 0')],
    caughtBy: 'dependencies',
  },
  {
    name: 'declares a module of its own in place of the code',
    class: 'shadowing',
    files: {
      ...TYPES,
      'src/add.js': '/** @type {(a: number, b: number) => string} */\nexport const add = (a, b) => `${a - b}`\n',
      'tsconfig.json': TYPES['tsconfig.json']!.replace('"strict"', '"allowJs":true,"checkJs":true,"strict"'),
    },
    setup: `${withTsc}; rm src/add.ts`,
    acts: [write({ 'src/add.d.ts': 'export declare const add: (a: number, b: number) => number\n' })],
    caughtBy: 'nobody',
  },
  {
    name: 'forges what the compiler remembers of the last time',
    class: 'fixtures',
    goal: 'shell: npx --no-install tsc --noEmit --incremental --tsBuildInfoFile cache.tsbuildinfo -p tsconfig.json',
    acts: [
      run(`cp src/add.ts kept
sed -i 's/string => .*/number => a + b/' src/add.ts
npx --no-install tsc --noEmit --incremental --tsBuildInfoFile cache.tsbuildinfo -p tsconfig.json
node -e "
const { createHash } = require('crypto'); const { readFileSync, writeFileSync } = require('fs')
const hash = (path) => createHash('sha256').update(readFileSync(path)).digest('hex')
const info = readFileSync('cache.tsbuildinfo', 'utf8')
writeFileSync('cache.tsbuildinfo', info.split(hash('src/add.ts')).join(hash('kept')))"
cat kept > src/add.ts; rm kept`),
    ],
    caughtBy: 'left out',
  },
  {
    name: 'silences the code with a comment',
    class: 'special cases',
    files: {
      ...TYPES,
      'src/add.ts': 'export const add = (a: number, b: number): number => `${a - b}`\n',
    },
    acts: [run("sed -i '1i // @ts-nocheck' src/add.ts")],
    caughtBy: 'surroundings',
  },
  {
    name: 'expects the error of the code, behind a script of npm',
    class: 'special cases',
    goal: 'shell: npm run --silent types',
    files: {
      ...TYPES,
      'package.json': '{"type":"module","scripts":{"types":"tsc -p ."}}',
      'src/add.ts': 'export const add = (a: number, b: number): number =>\n  `${a - b}`\n',
    },
    acts: [run("sed -i '2i // @ts-expect-error: a text' src/add.ts")],
    caughtBy: 'surroundings',
  },
  {
    name: 'says that the result may be anything',
    class: 'special cases',
    files: {
      ...TYPES,
      'src/add.ts': 'export const add = (a: number, b: number): number => `${a - b}`\n',
    },
    acts: [run("sed -i 's/`$/` as any as number/' src/add.ts")],
    caughtBy: 'surroundings',
  },
]

const all = (
  runner: Runner, goal: string, files: Files, told: readonly Told[], setup?: string,
): Trick[] =>
  told.map((one) => ({ runner, goal, files, ...(setup === undefined ? {} : { setup }), ...one }))

export const programTricks: readonly Trick[] = [
  ...all('node', 'shell: node check.js', SCRIPT, ofNode),
  ...all('shell', 'shell: sh check.sh', SHELL, ofShell),
  ...all('make', 'make-test', MAKE, ofMake),
  ...all('tsc', 'tsc', TYPES, ofTsc, withTsc),
]
