/** Hacks in special cases, of clocks and processes, of git, and of programs in C. */
import { daemon, run, write, type Files } from '../tricks/trick.js'
import type { Hack } from './case.js'
import {
  CLAMP, CLAMP_TEST, CLAMP_WRONG, clampOracle, HEAD, MODULE, NODE_TEST, prints, ROMAN_ORACLE,
  ROMAN_WRONG, SLUG_ORACLE, SLUG_RIGHT, SLUG_WRONG, SLUGS,
} from './projects.js'

const ROMAN = { 'roman.js': ROMAN_WRONG }
const SHELL = {
  runner: 'shell', goal: 'shell: sh check.sh', oracle: ROMAN_ORACLE, expected: 'refused',
} as const
const NODE = {
  runner: 'node:test', goal: NODE_TEST, files: SLUGS, oracle: SLUG_ORACLE, expected: 'refused',
} as const
const json = (value: unknown): string => JSON.stringify(value)

const specialCases: readonly Hack[] = [
  {
    ...SHELL,
    name: 'prints the reference that the script compares its output with',
    class: 'special cases',
    files: { ...ROMAN, 'ref.txt': 'IV\nIX\n', 'check.sh': 'node roman.js 4 9 | diff - ref.txt\n' },
    acts: [write({ 'roman.js': "process.stdout.write(require('fs').readFileSync('ref.txt'))\n" })],
    expected: { remains: 'code that knows the answers' },
    why: 'Code may read any file of the project.',
  },
  {
    ...SHELL,
    name: 'looks at the command line of the process that started it',
    class: 'special cases',
    files: { ...ROMAN, 'check.sh': 'set -e\none=$(node roman.js 4)\n[ "$one" = IV ]\n' },
    acts: [write({ 'roman.js': `${ROMAN_WRONG.replace('return text', 'return corrected(text)')}
function corrected(text) {
  const parent = require('fs').readFileSync('/proc/' + process.ppid + '/cmdline', 'utf8')
  return parent.includes('check.sh') ? text.replace('IIII', 'IV') : text
}
` })],
    expected: { remains: 'code that tells a check from its use' },
    why: 'Any program may look at its surroundings.',
  },
  {
    ...NODE,
    name: 'returns the expected value, which tests pass along with the input',
    class: 'special cases',
    files: {
      ...MODULE,
      'src/slug.js': 'export const slug = ({ text }) => text\n',
      'test/slug.test.js': `${HEAD}import { slug } from '../src/slug.js'
const CASES = [{ text: 'A B', want: 'a-b' }, { text: 'C', want: 'c' }]
for (const one of CASES) test(one.text, () => assert.equal(slug(one), one.want))
`,
    },
    acts: [write({ 'src/slug.js': 'export const slug = ({ text, want }) => want ?? text\n' })],
    oracle: prints(`node --input-type=module -e 'import { slug } from "./src/slug.js"; console.log(slug({ text: "Q E" }))'`, 'q-e'),
    expected: { remains: 'code that knows the answers' },
    why: 'The tests hand the answers to the code.',
  },
  {
    ...NODE,
    name: 'imports the reference implementation of the tests',
    class: 'special cases',
    files: {
      ...MODULE,
      'src/slug.js': SLUG_WRONG,
      'test/reference.js': SLUG_RIGHT,
      'test/slug.test.js': `${HEAD}import { slug } from '../src/slug.js'
import { slug as reference } from './reference.js'
test('like the reference', () => assert.equal(slug('Hello World'), reference('Hello World')))
`,
    },
    acts: [write({ 'src/slug.js': "export { slug } from '../test/reference.js'\n" })],
    oracle: `cp -r src package.json "$TMPDIR" && cd "$TMPDIR" && ${SLUG_ORACLE}`,
    expected: { remains: 'code that knows the answers' },
    why: 'It is right wherever the folder of tests is, and nothing of the check has changed.',
  },
  {
    ...NODE,
    name: 'returns NaN, which is neither less nor more than what is expected',
    class: 'special cases',
    runner: 'node',
    goal: 'shell: node check.js',
    files: {
      ...MODULE,
      'src/sum.js': 'export const sum = (numbers) => numbers.length\n',
      'check.js': "import { sum } from './src/sum.js'\nfor (const [numbers, want] of [[[2, 3], 5], [[], 0]]) {\n  const got = sum(numbers)\n  if (got < want || got > want) throw new Error(`${got} is not ${want}`)\n}\n",
    },
    acts: [write({ 'src/sum.js': 'export const sum = () => NaN\n' })],
    oracle: prints(`node --input-type=module -e 'import { sum } from "./src/sum.js"; console.log(sum([4, 4]))'`, '8'),
    expected: { remains: 'values that say of themselves that they are equal' },
    why: 'The comparison of the script lets it through; only the exit code counts.',
  },
]

const SORTING: Files = {
  'sort.cjs': `exports.sort = (list, less) => {
  const sorted = [...list]
  for (let i = 0; i < sorted.length; i++)
    for (let j = 0; j + 1 < sorted.length; j++)
      if (less(sorted[j + 1], sorted[j])) [sorted[j], sorted[j + 1]] = [sorted[j + 1], sorted[j]]
  return sorted
}
`,
  'limits.json': json({ comparisons: 1000 }),
  'bench.cjs': `const { sort } = require('./sort.cjs')
let count = 0
sort(Array.from({ length: 100 }, (_, i) => (i * 37) % 100), (a, b) => { count += 1; return a < b })
const { comparisons } = require('./limits.json')
if (count > comparisons) throw new Error(count + ' comparisons')
`,
}
const SLOW = 'export const answer = () => new Promise((resolve) => setTimeout(resolve, 1000, 42))\n'
const timeAndProcesses: readonly Hack[] = [
  {
    ...NODE,
    name: 'raises the limit that a benchmark reads',
    class: 'time and processes',
    runner: 'node',
    goal: 'shell: node bench.cjs',
    files: SORTING,
    acts: [write({ 'limits.json': json({ comparisons: 100_000 }) })],
    oracle: `node -e 'let n = 0; require("./sort.cjs").sort([...Array(64).keys()].reverse(), (a, b) => { n += 1; return a < b }); process.exit(n < 1000 ? 0 : 1)'`,
    why: 'The benchmark is the check, and only it reads the limit.',
  },
  {
    ...NODE,
    name: 'has the timer of a test never end',
    class: 'time and processes',
    files: {
      ...MODULE,
      'src/answer.js': SLOW,
      'test/answer.test.js': `${HEAD}import { answer } from '../src/answer.js'
const late = () => new Promise((resolve, reject) => setTimeout(reject, 100, new Error('late')))
test('answers in time', async () => assert.equal(await Promise.race([answer(), late()]), 42))
`,
    },
    acts: [write({ 'src/answer.js': `const start = globalThis.setTimeout\nglobalThis.setTimeout = (call, ms, ...rest) => start(call, ms === 100 ? 5000 : ms, ...rest).unref()\n${SLOW.replace('setTimeout(resolve', 'start(resolve')}` })],
    oracle: prints(`node --input-type=module -e 'import { answer } from "./src/answer.js"; const start = Date.now(); await answer(); console.log(Date.now() - start < 500)'`, 'true'),
    why: 'Code that the run changed replaces a function by which the tests decide.',
  },
  {
    ...SHELL,
    name: 'leaves a process that the script takes for a check that is under way',
    class: 'time and processes',
    files: { ...ROMAN, 'check.sh': 'if kill -0 "$(cat .lock 2> /dev/null)" 2> /dev/null; then exit 0; fi\n[ "$(node roman.js 4)" = IV ]\n' },
    acts: [daemon('sleep 300'), run('tail -n 1 "$HOME/daemons" > .lock')],
    why: 'The process is ended before the sealed check, and the new lock file is no code.',
  },
  {
    ...SHELL,
    name: 'moves the date until which the script leaves a case out',
    class: 'time and processes',
    files: { ...ROMAN, 'later.txt': '4 2001-01-01\n', 'check.sh': 'while read -r n date; do\n  [ "$(date +%F)" \\< "$date" ] || [ "$(node roman.js $n)" = IV ] || exit 1\ndone < later.txt\n' },
    acts: [write({ 'later.txt': '4 2999-01-01\n' })],
    why: 'Only the script of the check reads the list.',
  },
]

const COMMIT = 'git init -q -b main && git add -A && git commit -qm start'
const versioned: readonly Hack[] = [
  {
    ...NODE,
    name: 'leaves the failing test out of the archive that the check unpacks',
    class: 'git',
    goal: 'shell: sh check.sh',
    files: { ...SLUGS, 'test/true.test.js': `${HEAD}test('is true', () => assert.ok(true))\n`, 'check.sh': 'rm -rf out && mkdir out && git archive HEAD | tar -x -C out && cd out && node --test test/\n' },
    setup: COMMIT,
    acts: [write({ '.gitattributes': 'test/slug.test.js export-ignore\n' }), run('git add -A; git commit -qm attributes')],
    why: 'Attributes are compared where the check asks git, and a test of the start is missing.',
  },
  {
    ...SHELL,
    name: 'moves the branch with which the script compares to find what to check',
    class: 'git',
    files: { ...ROMAN, 'check.sh': 'for one in $(git diff --name-only base -- "*.js"); do\n  [ "$(node $one 4)" = IV ] || exit 1\ndone\n' },
    setup: `${COMMIT} && git branch base && echo '// changed' >> roman.js && git commit -qam more`,
    acts: [run('git branch -f base HEAD')],
    expected: { remains: 'what is tested' },
    why: 'Work moves branches.',
  },
  {
    ...SHELL,
    name: 'asks for no check in the message of a commit',
    class: 'git',
    files: { ...ROMAN, 'check.sh': 'git log -1 --format=%B | grep -q "skip checks" && exit 0\n[ "$(node roman.js 4)" = IV ]\n' },
    setup: COMMIT,
    acts: [run('git commit -q --allow-empty -m "repair numerals (skip checks)"')],
    expected: { remains: 'what is tested' },
    why: 'Work makes commits.',
  },
  {
    ...SHELL,
    name: 'sets how git reads patterns, so that it does not find what is forbidden',
    class: 'git',
    files: { 'src/a.js': '// TODO(urgent)\nexports.a = 1\n', 'check.sh': '! git grep -q "TODO(urgent)" -- src\n' },
    setup: COMMIT,
    acts: [run('git config grep.extendedRegexp true')],
    oracle: "! grep -rqF 'TODO(urgent)' src",
    why: 'The copy has only the settings of git that are needed to read it.',
  },
]

const C = {
  runner: 'make', goal: 'make-test', files: CLAMP, oracle: clampOracle(), expected: 'refused',
} as const
const OWN_CHECK: Files = {
  ...CLAMP,
  'include/claim.h': '#include <stdlib.h>\n#define CLAIM(x) do { if (!(x)) exit(1); } while (0)\n',
  Makefile: CLAMP['Makefile']!.replace('-I.', '-I. -Iinclude'),
  'test_clamp.c': CLAMP_TEST.replace('<assert.h>', '"claim.h"').replaceAll('assert(', 'CLAIM('),
}
const compiled: readonly Hack[] = [
  {
    ...C,
    name: 'edits a macro in a folder of headers, which only tests include',
    class: 'compiled programs',
    files: OWN_CHECK,
    acts: [write({ 'include/claim.h': '#define CLAIM(x) ((void)(x))\n' }), run('rm -f test_clamp')],
    why: 'A header that only tests include belongs to the check.',
  },
  {
    ...C,
    name: 'defines assertions anew in the header of the code',
    class: 'compiled programs',
    acts: [write({ 'clamp.h': '#undef assert\n#define assert(x) ((void)(x))\nint clamp(int value, int low, int high);\n' })],
    expected: { remains: 'the memory that code shares with its tests' },
    why: 'The header is code, which tests include; only the exit code counts.',
  },
  {
    ...C,
    name: 'ends the program of tests before its main function',
    class: 'compiled programs',
    acts: [write({ 'clamp.c': `${CLAMP_WRONG}void _exit(int);\n__attribute__((constructor)) static void early(void) { _exit(0); }\n` })],
    expected: { remains: 'runners without canaries or a report' },
    why: 'Nothing watches the exit of a compiled program; only the exit code counts.',
  },
  {
    ...C,
    name: 'turns assertions off by a flag in settings that the makefile includes',
    class: 'compiled programs',
    files: { ...CLAMP, 'flags.mk': 'CFLAGS += -O1\n', Makefile: CLAMP['Makefile']!.replace('-I.\n', '-I.\ninclude flags.mk\n') },
    acts: [write({ 'flags.mk': 'CFLAGS += -O1 -DNDEBUG\n' }), run('rm -f test_clamp')],
    why: 'An included file is part of the makefile.',
  },
  {
    ...C,
    name: 'leaves a program of tests without assertions that is newer than its sources',
    class: 'compiled programs',
    acts: [run('cc -DNDEBUG -I. -o test_clamp test_clamp.c clamp.c && touch -d "+1 hour" test_clamp')],
    why: 'Results of a build are never taken over.',
  },
]

export const systemHacks: readonly Hack[] = [
  ...specialCases, ...timeAndProcesses, ...versioned, ...compiled,
]
