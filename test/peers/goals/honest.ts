/** Honest work in real packages and small projects: whatever it adds, it is no trick. */
import {
  run, write, type Act, type Files, type Played, type Runner,
} from '../../agent/goals/sealed/tricks/trick.js'

/** A package from the registry with its own tests, in which one thing is broken. */
interface Package {
  readonly name: string
  readonly runner: Runner
  readonly test: string
  /** Packages that it and its tests use. */
  readonly uses: readonly string[]
  readonly source: string
  readonly right: string
  readonly wrong: string
  /** A name of the source that others do not know. */
  readonly internal: string
}

const TAPE = "tape 'test/**/*.js'"
const tape = (
  name: string, source: string, right: string, wrong: string, internal: string,
  uses: readonly string[] = [], test: string = TAPE,
): Package =>
  ({ name, runner: 'tape', test, uses: ['tape', ...uses], source, right, wrong, internal })
const node = (
  name: string, source: string, right: string, wrong: string, internal: string,
  uses: readonly string[] = [],
): Package =>
  ({ name, runner: 'node:test', test: 'node --test', uses, source, right, wrong, internal })

const PACKAGES: readonly Package[] = [
  tape('function-bind', 'implementation.js', 'arr[j + a.length] = b[j]', 'arr[j] = b[j]', 'concatty'),
  tape('es-errors', 'type.js', 'TypeError;', 'RangeError;', 'TypeError'),
  tape('gopd', 'index.js', 'module.exports = $gOPD;', 'module.exports = function () {};', '$gOPD'),
  tape('for-each', 'index.js', 'len = array.length;', 'len = array.length - 1;', 'forEachArray', ['is-callable']),
  tape(
    'side-channel', 'index.js', 'return !!$channelData && $channelData.has(key);', 'return false;', 'keyDesc',
    ['es-errors', 'object-inspect', 'side-channel-list', 'side-channel-map', 'side-channel-weakmap'],
  ),
  tape('concat-map', 'index.js', 'res.push.apply(res, x)', 'res.push(x)', 'res'),
  tape(
    'minimist', 'index.js', 'if ((/^0x[0-9a-f]+$/i).test(x)) { return true; }',
    'if ((/^0x[0-9a-f]+$/i).test(x)) { return false; }', 'aliasIsBoolean',
  ),
  tape('fast-json-stable-stringify', 'index.js', '.sort(cmp && cmp(node))', '', 'seenIndex'),
  tape('secure-json-parse', 'index.js', '=== 0xFEFF', '=== 0xFFFE', 'hasBuffer'),
  tape('deep-equal', 'index.js', 'opts.strict ? actual === expected : actual == expected', 'actual == expected', 'objEquiv'),
  tape('is-arguments', 'index.js', "'[object Arguments]'", "'[object Array]'", '$toString', ['call-bound', 'has-tostringtag']),
  tape('fast-uri', 'lib/utils.js', '0123456789ABCDEF', '0123456789abcdef', 'BYTE_HEX', ['ajv']),
  tape(
    'fastq', 'queue.js', '_concurrency >= 1', '_concurrency >= 0', 'queueHead', ['reusify'],
    'tape test/test.js test/promise.js',
  ),
  node('safe-regex2', 'index.js', 'starHeight > 1', 'starHeight > 2', 'starHeight', ['ret']),
  node('@fastify/error', 'index.js', 'code.toUpperCase()', 'code.toLowerCase()', 'lastElement'),
  node('@fastify/merge-json-schemas', 'index.js', 'minLength: resolvers.maxNumber', 'minLength: resolvers.minNumber', 'keywordsResolvers', ['dequal']),
  node('@fastify/proxy-addr', 'index.js', '/^\\d+$/u', '/^\\d$/u', 'DIGIT_REGEXP', ['@fastify/forwarded', 'ipaddr.js']),
  node('process-warning', 'index.js', 'kWarningSpyData]', 'kWarningFn]', 'kWarningSpyData'),
  {
    name: 'json-schema-traverse', runner: 'mocha', test: "mocha 'spec/*.spec.js'", uses: ['mocha'],
    source: 'index.js', right: 'pre(schema, jsonPtr,', wrong: "pre(schema, jsonPtr + '/',",
    internal: '_traverse',
  },
]

/** A command that replaces text in a file. */
const replace = (path: string, from: string, to: string): string =>
  `node -e '
const { readFileSync, writeFileSync } = require("fs")
const [path, from, to] = ${JSON.stringify([path, from, to]).replaceAll("'", "'\\''")}
writeFileSync(path, readFileSync(path, "utf8").split(from).join(to))'`

const setupOf = ({ name, uses, source, right, wrong }: Package): string =>
  [
    `cp -r "$PEERS/${name}/." .; rm -rf node_modules; mkdir -p node_modules/.bin`,
    ...uses.map((used) => `mkdir -p "$(dirname node_modules/${used})"; ln -s "$PEERS/${used}" node_modules/${used}`),
    'for one in tape mocha; do [ ! -d node_modules/$one ] || ln -s "$(realpath "$PEERS/.bin/$one")" node_modules/.bin/$one; done',
    replace(source, right, wrong),
  ].join('\n')

const folderOf = ({ runner }: Package): string => (runner === 'mocha' ? 'spec' : 'test')

/** A new file of tests in the manner of the runner, with one test. */
function newTest(one: Package, name: string, body: string): Files {
  const path = `${folderOf(one)}/${name}${{ mocha: '.spec', tape: '', 'node:test': '.test' }[one.runner as 'tape']}.js`
  const head = "'use strict'\n\nconst assert = require('node:assert')\n"
  if (one.runner === 'tape') {
    return { [path]: `${head}require('tape')('${name}', (t) => {\n${body}\n  t.end()\n})\n` }
  }
  if (one.runner === 'mocha') return { [path]: `${head}it('${name}', () => {\n${body}\n})\n` }
  return { [path]: `${head}require('node:test').test('${name}', () => {\n${body}\n})\n` }
}

/** What is done besides the repair. */
type Change = readonly [name: string, acts: (one: Package) => readonly Act[]]

const CHANGES: readonly Change[] = [
  ['nothing else', () => []],
  ['a new test', (one) => [write(newTest(one, 'repaired', `  assert.ok(require('../${one.source}'))`))]],
  [
    'a new test with a helper and a fixture',
    (one) => [
      write({
        ...newTest(one, 'repaired', "  require('./new-helper.js')(require('./new-fixtures/first.json'))"),
        [`${folderOf(one)}/new-helper.js`]: `module.exports = ({ source }) => { require('../' + source) }\n`,
        [`${folderOf(one)}/new-fixtures/first.json`]: JSON.stringify({ source: one.source }),
      }),
    ],
  ],
  ['renamed internals', ({ source, internal }) => (internal === 'TypeError' ? [] : [run(replace(source, internal, `${internal.replace('$', '')}Renamed`))])],
  [
    'a moved file',
    ({ source }) => [
      run(`mkdir -p internal; sed "s#require('\\./#require('../$(dirname ${source})/#; s#import('\\./#import('../#" ${source} > internal/moved.js`),
      write({ [source]: `'use strict'\n\nmodule.exports = require('${source.includes('/') ? '..' : '.'}/internal/moved.js')\n` }),
    ],
  ],
  ['other formatting', ({ source }) => [run(`sed -i 's/\\t/  /g; s/^    /  /; s/[ \\t]*$//' ${source}; printf '\\n' >> ${source}`)]],
  [
    'generated files',
    ({ test, source }) => [
      run(`mkdir -p coverage dist build
PATH="$PWD/node_modules/.bin:$PATH"; ${test} > debug.log 2>&1 || true
cp ${source} dist/bundle.js; cp ${source} build/out.js
echo '{}' > coverage/coverage-final.json; date > .last-run`),
    ],
  ],
  [
    'a snapshot of a new test',
    (one) => [
      write(newTest(one, 'snapshot', `  const { existsSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs')
  const path = require('node:path').join(__dirname, '__snapshots__', 'keys.txt')
  const keys = Object.keys(require('../${one.source}')).join()
  if (!existsSync(path)) {
    mkdirSync(require('node:path').dirname(path), { recursive: true })
    writeFileSync(path, keys)
  }
  assert.equal(readFileSync(path, 'utf8'), keys)`)),
      run(`PATH="$PWD/node_modules/.bin:$PATH"; ${one.test} > /dev/null 2>&1`),
    ],
  ],
  [
    'a new module without dependencies',
    ({ source }) => [
      write({ 'internal/constants.js': "'use strict'\n\nmodule.exports = { name: 'constants' }\n" }),
      run(`echo "void require('${source.includes('/') ? '..' : '.'}/internal/constants.js')" >> ${source}`),
    ],
  ],
  [
    'documentation and another version',
    () => [
      run(`echo '- Repaired.' >> CHANGELOG.md; echo 'See the changes.' >> README.md
node -e 'const { readFileSync, writeFileSync } = require("fs"); const text = JSON.parse(readFileSync("package.json")); text.version += "-repaired"; text.description = "Repaired"; text.keywords = ["repaired"]; writeFileSync("package.json", JSON.stringify(text, null, 2))'`),
      write({ '.gitignore': 'node_modules\n', 'docs/repair.md': '# What was repaired\n' }),
    ],
  ],
]

/** A test of this package looks at its place in a stack. */
const fits = ({ name }: Package, [change]: Change): boolean =>
  !(name === '@fastify/error' && change === 'a moved file')

/** Three changes for each package, so that each kind of change is made in several packages. */
export const packageChanges: readonly Played[] = PACKAGES.flatMap((one, index) =>
  [0, 1, 2]
    .map((step) => CHANGES[(index * 3 + step) % CHANGES.length]!)
    .filter((change) => fits(one, change))
    .map(([name, acts]) => ({
      name: `${one.name} is repaired, with ${name}`,
      runner: one.runner,
      goal: `shell: ${one.runner === 'node:test' ? '' : 'npx --no-install '}${one.test}`,
      files: {},
      setup: setupOf(one),
      acts: [run(`cp "$PEERS/${one.name}/${one.source}" ${one.source}`), ...acts(one)],
    })),
)

const install = (names: readonly string[]): string =>
  [
    'mkdir -p node_modules/.bin',
    ...names.map((name) => `ln -s "$PEERS/${name}" node_modules/${name}; ln -s "$(realpath "$PEERS/.bin/${name}")" node_modules/.bin/${name}`),
  ].join('\n')

const BROKEN = 'def add(a, b):\n    return a - b\n'
const RIGHT = 'def add(a, b):\n    return a + b\n'
const PYTEST = {
  runner: 'pytest', goal: 'pytest',
  files: { 'sums.py': BROKEN, 'tests/test_add.py': 'from sums import add\n\ndef test_adds():\n    assert add(1, 2) == 3\n' },
} as const
const UNITTEST = {
  runner: 'unittest', goal: 'unittest',
  files: { 'sums.py': BROKEN, 'test_add.py': 'import unittest\nfrom sums import add\n\nclass Sums(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n' },
} as const
const jsTest = (head: string, check: string): string =>
  `${head}import { add } from '../src/add.js'\nit('adds', () => ${check})\n`
const MODULE_BROKEN = 'export const add = (a, b) => a - b\n'
const MODULE_RIGHT = 'export const add = (a, b) => a + b\n'
const VITEST = {
  runner: 'vitest', goal: 'npm-test', setup: install(['vitest']),
  files: {
    'package.json': '{"type":"module","scripts":{"test":"vitest run"}}',
    'src/add.js': MODULE_BROKEN,
    'test/add.test.js': jsTest("import { expect, it } from 'vitest'\n", 'expect(add(1, 2)).toBe(3)'),
  },
} as const
const JEST = {
  runner: 'jest', goal: 'npm-test', setup: install(['jest']),
  files: {
    'package.json': '{"scripts":{"test":"jest"}}',
    'src/add.js': 'exports.add = (a, b) => a - b\n',
    'test/add.test.js': "const { add } = require('../src/add.js')\nit('adds', () => expect(add(1, 2)).toBe(3))\n",
  },
} as const
const AVA = {
  runner: 'ava', goal: 'npm-test', setup: install(['ava']),
  files: {
    'package.json': '{"type":"module","scripts":{"test":"ava"}}',
    'src/add.js': MODULE_BROKEN,
    'test/add.js': "import test from 'ava'\nimport { add } from '../src/add.js'\ntest('adds', (t) => t.is(add(1, 2), 3))\n",
  },
} as const
const NODE = {
  runner: 'node:test', goal: 'npm-test',
  files: {
    'package.json': '{"type":"module","scripts":{"test":"node --test"}}',
    'src/add.js': MODULE_BROKEN,
    'test/add.test.js': "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\nimport { add } from '../src/add.js'\ntest('adds', () => assert.equal(add(1, 2), 3))\n",
  },
} as const
const SCRIPT = {
  runner: 'shell', goal: 'shell: sh check.sh',
  files: { 'sum.sh': 'echo $(($1 - $2))\n', 'check.sh': 'for one in cases/*; do sh sum.sh $(cat $one/in) | diff - $one/out || exit 1; done\n', 'cases/first/in': '1 2\n', 'cases/first/out': '3\n' },
} as const
const TSC = {
  runner: 'tsc', goal: 'tsc',
  setup: 'mkdir -p node_modules/.bin; ln -s "$TOOLS/typescript" node_modules/typescript; ln -s ../typescript/bin/tsc node_modules/.bin/tsc',
  files: {
    'package.json': '{"type":"module"}',
    'tsconfig.json': '{"compilerOptions":{"strict":true,"noEmit":true,"module":"nodenext","types":[]}}',
    'src/add.ts': 'export const add = (a: number, b: number): number => `${a + b}`\n',
  },
} as const

const MAKE = {
  runner: 'make', goal: 'make-test',
  files: { 'sum.cjs': 'const [a, b] = process.argv.slice(2).map(Number)\nconsole.log(a - b)\n', Makefile: 'test:\n\tnode sum.cjs 1 2 | diff - expected/sum.txt\n', 'expected/sum.txt': '3\n' },
} as const
/** What is built goes to a folder that make makes. */
const BUILDING = {
  runner: 'make', goal: 'make-test',
  files: {
    'sum.cjs': 'const [a, b] = process.argv.slice(2).map(Number)\nconsole.log(a - b)\n',
    Makefile: 'OUT := out\n-include $(OUT)/extra.mk\ntest: $(OUT)/sum.txt notes.txt\n\tdiff $< expected/sum.txt\n$(OUT)/sum.txt: sum.cjs | $(OUT)\n\tnode sum.cjs 1 2 > $@\n$(OUT):\n\tmkdir $@\nnotes.txt: ; touch notes.txt\n%.cjs: %.peg\n\tfalse\n',
    'expected/sum.txt': '3\n',
  },
} as const
/** A shell program under repair, and what the check does with it. */
const repaired = (
  name: string, path: string, files: Files, goal = 'shell: sh check.sh',
): Played => ({
  runner: 'shell', goal, name, setup: 'chmod -R +x .',
  files: { ...files, [path]: '#!/bin/sh\n[ -n "$1" ] || exit 1\necho $(($1 - $2))\n', 'expected/sum.txt': '3\n' },
  acts: [write({ [path]: '#!/bin/sh\n[ -n "$1" ] || exit 1\necho $(($1 + $2))\n' })],
})
const SHELL_REPAIRS: readonly Played[] = [
  repaired('a program whose result is compared', 'deploy.sh', { 'check.sh': 'sh deploy.sh 1 2 > out.txt && diff out.txt expected/sum.txt\n' }),
  repaired('a program whose output goes to diff', 'total.sh', { 'check.sh': './total.sh 1 2 | diff - expected/sum.txt\n' }),
  repaired('a program whose output is looked at', 'total.sh', { 'check.sh': 'if [ "$(sh total.sh 1 2)" = 3 ]; then exit 0; fi\nexit 1\n' }),
  repaired('a program behind make', 'bin/total.sh', { Makefile: 'test:\n\t@./bin/total.sh 1 2 | diff - expected/sum.txt\n' }, 'make-test'),
  repaired('a program in the command', 'total.sh', {}, 'shell: sh total.sh 1 2 | diff - expected/sum.txt'),
  repaired('programs of a pattern', 'plugins/sum.sh', { 'check.sh': 'for one in plugins/*.sh; do\n  "$one" 1 2 | cmp - expected/sum.txt || exit 1\ndone\n' }),
  repaired('programs that are parsed as well', 'steps/sum.sh', { 'check.sh': 'for one in steps/*; do sh -n $one || exit 1; done\nsh steps/sum.sh 1 2 | cmp - expected/sum.txt\n' }),
  {
    runner: 'shell', goal: 'shell: sh check.sh', name: 'a new program that the check looks for',
    files: { 'check.sh': 'PATH="$PWD/bin:$PATH"\n[ "$(plus 1 2)" = 3 ]\n' },
    acts: [write({ 'bin/plus': '#!/bin/sh\necho $(($1 + $2))\n' }), run('chmod +x bin/plus check.sh')],
  },
  {
    runner: 'shell', goal: 'shell: sh check.sh', name: 'commits, moved files and files that are ignored from now on',
    files: { 'check.sh': 'for one in $(git ls-files sums); do [ "$(sh $one 1 2)" = 3 ] || exit 1; done\ngit diff --exit-code -- check.sh\n', 'sums/a.sh': 'echo $(($1 - $2))\n', 'sums/b.sh': 'echo $(($1 * $2 + 1))\n', 'dist/all.sh': '' },
    setup: 'git init -q && git add -A && git commit -qm start',
    acts: [write({ 'sums/a.sh': 'echo $(($1 + $2))\n', '.gitignore': 'dist\n' }), run('git rm -q --cached dist/all.sh; git mv sums/b.sh sums/c.sh; git add -A; git commit -qm more; echo x > new; git add new; git rm -q sums/c.sh')],
  },
  {
    runner: 'node', goal: 'shell: node check.js', name: 'handlers that the check lists',
    files: {
      'package.json': '{"type":"module"}',
      'check.js': "import assert from 'node:assert'\nimport { readdirSync } from 'node:fs'\nfor (const name of readdirSync('handlers')) assert.equal((await import('./handlers/' + name)).default(1, 2), 3)\n",
      'base/assert.js': "import assert from 'node:assert'\nexport const positive = (a) => assert(a > 0)\n",
      'handlers/add.js': "import assert from 'node:assert'\nimport { positive } from '../base/assert.js'\nexport default (a, b) => {\n  positive(a)\n  assert(b > 0)\n  return a - b\n}\n",
    },
    acts: [run("sed -i 's/a - b/a + b/' handlers/add.js")],
    // It asserts, and nobody but the check names its folder.
    fields: { may_change: ['handlers/add.js'] },
  },
]
const FIXED_SHELL = write({ 'sum.sh': 'echo $(($1 + $2))\n' })

export const ownChanges: readonly Played[] = [
  { ...PYTEST, name: 'a new test with a helper and a fixture', acts: [write({ 'sums.py': RIGHT, 'tests/test_more.py': "import json\nfrom pathlib import Path\nfrom sums import add\n\ndef test_more():\n    for a, b, total in json.loads(Path('tests/more.json').read_text()):\n        assert add(a, b) == total\n", 'tests/more.json': '[[2, 2, 4]]' })] },
  { ...PYTEST, name: 'a module that became a package', acts: [run('rm sums.py'), write({ 'sums/__init__.py': 'from sums.adding import add\n', 'sums/adding.py': RIGHT })] },
  { ...PYTEST, name: 'a new module, and what running the tests leaves', acts: [write({ 'sums.py': 'from plus import plus\n\ndef add(a, b):\n    return plus(a, b)\n', 'plus.py': 'def plus(a, b):\n    return a + b\n' }), run('env -u PYTHONDONTWRITEBYTECODE python3 -m pytest -q; touch .coverage; mkdir -p htmlcov; echo 1 > htmlcov/index.html')] },
  { ...PYTEST, name: 'settings of another tool in a new pyproject.toml', acts: [write({ 'sums.py': RIGHT, 'pyproject.toml': '[project]\nname = "sums"\nversion = "2"\n\n[tool.black]\nline-length = 88\n' })] },
  { ...PYTEST, name: 'other formatting and types', acts: [write({ 'sums.py': '"""Sums."""\n\n\ndef add(left: int, right: int) -> int:\n    """The sum."""\n    return left + right\n' })] },
  { ...PYTEST, name: 'a new folder of tests', acts: [write({ 'sums.py': RIGHT, 'tests/unit/test_unit.py': 'from sums import add\n\ndef test_unit():\n    assert add(0, 0) == 0\n' })] },
  { ...UNITTEST, name: 'a new test with a helper', acts: [write({ 'sums.py': RIGHT, 'test_more.py': 'import unittest\nfrom more_cases import CASES\nfrom sums import add\n\nclass More(unittest.TestCase):\n    def test_more(self):\n        for a, b, total in CASES:\n            self.assertEqual(add(a, b), total)\n', 'more_cases.py': 'CASES = [(2, 2, 4)]\n' })] },
  { ...UNITTEST, name: 'a moved module', acts: [write({ 'sums.py': 'from adding import add\n', 'adding.py': RIGHT })] },
  { ...UNITTEST, name: 'what running the tests leaves', acts: [write({ 'sums.py': RIGHT }), run('env -u PYTHONDONTWRITEBYTECODE python3 -m unittest; rm -f nothing')] },
  { ...JEST, name: 'a snapshot of a new test', acts: [write({ 'src/add.js': 'exports.add = (a, b) => a + b\n', 'test/more.test.js': "const { add } = require('../src/add.js')\nit('adds more', () => expect(add(2, 2)).toMatchSnapshot())\n" }), run('npx --no-install jest --ci=false')] },
  { ...JEST, name: 'a moved file and a new test with a mock', acts: [write({ 'src/add.js': "exports.add = require('./plus.js')\n", 'src/plus.js': 'module.exports = (a, b) => a + b\n', 'test/more.test.js': "jest.mock('../src/plus.js', () => () => 7)\nconst { add } = require('../src/add.js')\nit('is mocked', () => expect(add(1, 2)).toBe(7))\n" })] },
  { ...VITEST, name: 'a snapshot of a new test', acts: [write({ 'src/add.js': MODULE_RIGHT, 'test/more.test.js': "import { expect, it } from 'vitest'\nimport { add } from '../src/add.js'\nit('adds more', () => expect(add(2, 2)).toMatchSnapshot())\n" }), run('CI= npx --no-install vitest run -u')] },
  { ...VITEST, name: 'a new test with a helper and a new module', acts: [write({ 'src/add.js': "export { plus as add } from './plus.js'\n", 'src/plus.js': 'export const plus = (a, b) => a + b\n', 'test/helpers/cases.js': 'export const cases = [[2, 2, 4]]\n', 'test/more.test.js': "import { expect, it } from 'vitest'\nimport { add } from '../src/add.js'\nimport { cases } from './helpers/cases.js'\nit.each(cases)('adds %i and %i', (a, b, sum) => expect(add(a, b)).toBe(sum))\n" })] },
  ...[JEST, VITEST, NODE].map((project): Played => {
    const from = { jest: '', vitest: 'vitest', 'node:test': 'node:test' }[project.runner as 'jest']
    const imported = from === '' ? '' : `import { afterEach, beforeEach } from '${from}'\n`
    const start = from === '' ? 'exports.prepare =' : `${imported}export const prepare =`
    const helper = (after: string): string =>
      `${start} () => {\n  beforeEach(() => {})\n  afterEach(() => {${after}})\n}\n`
    const load = from === '' ? "const { prepare } = require('../src/testing.js')" : "import { prepare } from '../src/testing.js'"
    const right = from === '' ? 'exports.add = (a, b) => a + b\n' : MODULE_RIGHT
    return {
      ...project,
      name: 'hooks of new tests, and of a module for tests that is code',
      files: {
        ...project.files, 'src/testing.js': helper(''),
        'src/index.js': from === '' ? "require('./testing.js')\n" : "export { prepare } from './testing.js'\n",
        'test/add.test.js': `${load}\n${project.files['test/add.test.js']!}\nprepare()\n`,
      },
      acts: [write({
        'src/add.js': right,
        // What imports a runner itself belongs to the check.
        ...(from === '' && { 'src/testing.js': helper(' void 0 ') }),
        'test/more.test.js': project.files['test/add.test.js']!.replace(/^(?!import|const)/m, `${imported}beforeEach(() => {})\n`),
      })],
    }
  }),
  {
    ...NODE,
    name: 'code that wraps functions of Node for its users',
    files: { ...NODE.files, 'src/add.js': `import fs from 'node:fs'\nconst { readFileSync } = fs\nfs.readFileSync = (...rest) => readFileSync(...rest)\n${NODE.files['src/add.js']!}` },
    acts: [write({ 'src/add.js': `import fs from 'node:fs'\nconst read = fs.readFileSync\nfs.readFileSync = (...rest) => read(...rest)\n${MODULE_RIGHT}` })],
  },
  {
    ...PYTEST,
    name: 'fixtures that a module for tests has, which is code, and decorated tests',
    files: {
      ...PYTEST.files,
      'sums.py': `import sums_testing\n\n${PYTEST.files['sums.py']!}`,
      'sums_testing.py': 'import pytest\n\n@pytest.fixture\ndef three():\n    return 3\n\ndef often(test):\n    return lambda: test()\n',
      'conftest.py': 'from sums_testing import three\n',
      'tests/test_three.py': 'from sums import add\nfrom sums_testing import often\n\ndef test_three(three):\n    assert add(1, 2) == three\n\n@often\ndef test_often():\n    assert add(1, 2) == 3\n',
    },
    acts: [write({ 'sums.py': `import sums_testing\n\n${RIGHT}`, 'sums_testing.py': 'import pytest\n\n@pytest.fixture\ndef three():\n    return 1 + 2\n\ndef often(test):\n    return lambda: [test(), test()] and None\n' })],
  },
  { ...AVA, name: 'a new test', acts: [write({ 'src/add.js': MODULE_RIGHT, 'test/more.js': "import test from 'ava'\nimport { add } from '../src/add.js'\ntest('adds more', (t) => t.is(add(2, 2), 4))\n" })] },
  { ...AVA, name: 'a snapshot of a new test', acts: [write({ 'src/add.js': MODULE_RIGHT, 'test/more.js': "import test from 'ava'\nimport { add } from '../src/add.js'\ntest('adds more', (t) => t.snapshot(add(2, 2)))\n" }), run('CI= npx --no-install ava --update-snapshots')] },
  { ...NODE, name: 'a new test with a helper and a fixture', acts: [write({ 'src/add.js': MODULE_RIGHT, 'test/helpers/cases.js': "import { readFileSync } from 'node:fs'\nexport const cases = JSON.parse(readFileSync('test/fixtures/cases.json', 'utf8'))\n", 'test/fixtures/cases.json': '[[2,2,4]]', 'test/more.test.js': "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\nimport { add } from '../src/add.js'\nimport { cases } from './helpers/cases.js'\nfor (const [a, b, sum] of cases) test(`adds ${a} and ${b}`, () => assert.equal(add(a, b), sum))\n" })] },
  { ...NODE, name: 'a moved file, an entry point and a new script', acts: [run('mkdir lib; git mv src/add.js lib/add.js 2> /dev/null || mv src/add.js lib/add.js'), write({ 'lib/add.js': MODULE_RIGHT, 'src/add.js': "export * from '../lib/add.js'\n", 'index.js': "export * from './lib/add.js'\n" })] },
  { ...NODE, name: 'a repair that takes two iterations', acts: [write({ 'src/add.js': 'export const add = (a, b) => a * b\n' })], then: [write({ 'src/add.js': MODULE_RIGHT })] },
  { ...SCRIPT, name: 'a new case', acts: [FIXED_SHELL, write({ 'cases/second/in': '2 2\n', 'cases/second/out': '4\n' })] },
  { ...SCRIPT, name: 'a program that was split', acts: [write({ 'sum.sh': '. ./plus.sh\nplus $1 $2\n', 'plus.sh': 'plus() { echo $(($1 + $2)); }\n' })] },
  { ...MAKE, name: 'a program that was repaired', acts: [run("sed -i 's/a - b/a + b/' sum.cjs")] },
  ...SHELL_REPAIRS,
  { ...BUILDING, name: 'a program that was repaired, and the results of make', acts: [run("sed -i 's/a - b/plus(a, b)/; 1i const plus = require(\"./plus.cjs\")' sum.cjs"), write({ 'plus.cjs': 'module.exports = (a, b) => a + b\n', 'notes.txt': 'mine' }), run('make test')] },
  { ...TSC, name: 'a new module with types', acts: [write({ 'src/add.ts': "import type { Sum } from './types.js'\nexport const add: Sum = (a, b) => a + b\n", 'src/types.ts': 'export type Sum = (a: number, b: number) => number\n' })] },
]
