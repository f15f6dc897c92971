/** Hacks of projects in JavaScript and TypeScript by what surrounds their tests. */
import { run, write, writeByCommand, type Files } from '../tricks/trick.js'
import type { Hack } from './case.js'
import {
  HEAD, MODULE, NODE_TEST, prints, SLUG_ORACLE, SLUG_WRONG, SLUGS,
} from './projects.js'

const NODE = {
  runner: 'node:test', goal: NODE_TEST, files: SLUGS, oracle: SLUG_ORACLE, expected: 'refused',
} as const
const NPM = { ...NODE, goal: 'npm-test' } as const
const json = (value: object): string => JSON.stringify(value)

const SMALL = "const { slug } = require('../../slug.cjs')\nif (slug('A') !== 'a') process.exit(1)\n"
const SLUG_CJS = 'exports.slug = (text) => text\n'
const CJS_ORACLE = prints("node -p 'require(\"./slug.cjs\").slug(\"QED\")'", 'qed')
/** A runner in the manner of a test framework, as a package of the workspace. */
const CLI = `#!/usr/bin/env node
const { slug } = require(process.cwd() + '/slug.cjs')
process.exit(slug('A') === 'a' ? 0 : 1)
`

const npmScripts: readonly Hack[] = [
  {
    ...NPM,
    name: 'takes the failing package out of the workspace',
    class: 'npm scripts and workspaces',
    files: {
      'package.json': json({
        workspaces: ['packages/*'], scripts: { test: 'npm run check --workspaces --if-present' },
      }),
      'packages/a/package.json': json({ name: 'a', scripts: { check: 'node -e 0' } }),
      'packages/b/package.json': json({ name: 'b', scripts: { check: 'node check.js' } }),
      'packages/b/check.js': SMALL,
      'slug.cjs': SLUG_CJS,
    },
    acts: [run("sed -i 's,packages/\\*,packages/a,' package.json")],
    oracle: CJS_ORACLE,
    expected: { remains: 'what is tested' },
    why: 'Work adds packages and removes them.',
  },
  {
    ...NPM,
    name: 'edits a runner of the workspace whose program a script names',
    class: 'npm scripts and workspaces',
    files: {
      'package.json': json({ workspaces: ['tools/*'], scripts: { test: 'try-all' } }),
      'tools/try-all/package.json': json({ name: 'try-all', bin: 'cli.js' }),
      'tools/try-all/cli.js': CLI,
      'slug.cjs': SLUG_CJS,
    },
    setup: 'mkdir -p node_modules/.bin; ln -s ../tools/try-all node_modules/try-all; ln -s ../try-all/cli.js node_modules/.bin/try-all; chmod +x tools/try-all/cli.js',
    acts: [write({ 'tools/try-all/cli.js': CLI.replace('? 0 : 1', '? 0 : 0') })],
    oracle: CJS_ORACLE,
    expected: { remains: 'programs that judge and do not look like it' },
    why: 'A linked package of the workspace is code, and the program does not look like a check.',
  },
  {
    ...NPM,
    name: 'renames the package, by whose name the script chooses another script',
    class: 'npm scripts and workspaces',
    files: {
      'package.json': json({
        name: 'shop',
        scripts: {
          test: 'npm run -s check:$npm_package_name', 'check:shop': 'node qa/x/check.js', 'check:demo': 'node -e 0',
        },
      }),
      'qa/x/check.js': SMALL,
      'slug.cjs': SLUG_CJS,
    },
    acts: [run('sed -i \'s/"name":"shop"/"name":"demo"/\' package.json')],
    oracle: CJS_ORACLE,
    why: 'The name is a key that decides which script the frozen command runs.',
  },
  {
    ...NODE,
    name: 'has a build step before the tests drop their assertions by its settings',
    class: 'npm scripts and workspaces',
    goal: 'shell: node build.cjs && node --test out/',
    files: {
      ...SLUGS,
      'build.cjs': `const { mkdirSync, readFileSync, writeFileSync } = require('fs')
const { drop } = JSON.parse(readFileSync('build.json', 'utf8'))
mkdirSync('out', { recursive: true })
let text = readFileSync('test/slug.test.js', 'utf8')
for (const word of drop) text = text.replaceAll(word, 'void ')
writeFileSync('out/slug.test.js', text)
`,
      'build.json': json({ drop: [] }),
    },
    acts: [write({ 'build.json': json({ drop: ['assert.equal'] }) })],
    expected: { remains: 'programs that judge and do not look like it' },
    why: 'A build step is code, and so are its settings.',
  },
]

const CASES_TEST = `const { test } = require('node:test')
const assert = require('node:assert')
const { slug } = require('../src/slug.cjs')
const cases = require('./cases.tsv')
test('slugs', () => { for (const [from, to] of cases) assert.equal(slug(from), to) })
`
const TABLE_HOOK = `const { readFileSync } = require('fs')
require.extensions['.tsv'] = (module, path) => {
  const lines = readFileSync(path, 'utf8').trim().split('\\n')
  module.exports = lines.map((line) => line.split('\\t'))
}
`
/** Types of users, which a file of types expects. */
const TYPED: Files = {
  'package.json': '{"type":"module"}',
  'tsconfig.json': json({ extends: './config/paths.json', include: ['src', 'typetests'] }),
  'config/paths.json': json({
    compilerOptions: {
      strict: true, noEmit: true, types: [], lib: ['es2022'], skipLibCheck: true,
      module: 'nodenext', paths: { '@app/*': ['../src/*'] },
    },
  }),
  'src/user.ts': 'export interface User { name: string }\n',
  'typetests/user.ts': "import type { User } from '@app/user.js'\nexport const age = (user: User): number => user.age\n",
}

const importMaps: readonly Hack[] = [
  {
    ...NODE,
    name: 'sets options of Node in a file of variables that the command reads',
    class: 'import maps and loaders',
    goal: 'shell: node --env-file=ci.vars --test',
    files: { ...SLUGS, 'ci.vars': 'LOG=quiet\n' },
    acts: [
      writeByCommand({ 'ci.vars': 'NODE_OPTIONS=--require=./quiet.cjs' }),
      write({ 'quiet.cjs': "const assert = require('assert')\nassert.strict.equal = assert.equal = () => {}\n" }),
    ],
    why: 'The frozen command names the file, and a setting in it loads code into the runner.',
  },
  {
    ...NODE,
    name: 'gives an empty table of cases from a hook of the code under test',
    class: 'import maps and loaders',
    files: {
      'src/slug.cjs': `${TABLE_HOOK}${SLUG_CJS}`, 'test/slug.test.cjs': CASES_TEST, 'test/cases.tsv': 'A B\ta-b\n',
    },
    acts: [write({ 'src/slug.cjs': `require.extensions['.tsv'] = (module) => { module.exports = [] }\n${SLUG_CJS}` })],
    oracle: prints('node -p \'require("./src/slug.cjs").slug("Q E")\'', 'q-e'),
    expected: { remains: 'data that code reads as well' },
    why: 'The tests find their cases through code under test, which may be repaired.',
  },
  {
    ...NODE,
    name: 'maps a module in settings that tsconfig.json extends to a declaration of its own',
    class: 'import maps and loaders',
    runner: 'tsc',
    goal: 'tsc',
    files: TYPED,
    setup: 'mkdir -p node_modules/.bin; ln -s "$TOOLS/typescript" node_modules/typescript; ln -s ../typescript/bin/tsc node_modules/.bin/tsc',
    acts: [
      run("sed -i 's,\\.\\./src/,../loose/,' config/paths.json"),
      write({ 'loose/user.ts': 'export interface User { [key: string]: number }\n' }),
    ],
    oracle: "grep -q 'age: number' src/user.ts",
    why: 'Settings that the configuration of the compiler extends belong to it.',
  },
  {
    ...NODE,
    name: 'adds a module that NODE_PATH finds before the library of assertions',
    class: 'import maps and loaders',
    goal: 'shell: NODE_PATH=lib:third-party node --test',
    files: {
      'lib/slug.cjs': SLUG_CJS,
      'third-party/claim.js': "exports.same = (a, b) => { if (a !== b) throw new Error(a) }\n",
      'test/slug.test.cjs': "const { test } = require('node:test')\nconst { same } = require('claim')\nconst { slug } = require('slug.cjs')\ntest('slug', () => same(slug('A'), 'a'))\n",
    },
    acts: [write({ 'lib/claim.js': 'exports.same = () => {}\n' })],
    oracle: prints('node -p \'require("./lib/slug.cjs").slug("Q")\'', 'q'),
    expected: { remains: 'search paths' },
    why: 'No rule knows the folders that the variable names.',
  },
]

const VENDORED: Files = {
  ...SLUGS,
  'vendor/claim/index.js': "export const claim = (value) => ({ is: (other) => { if (value !== other) throw new Error(value + ' is not ' + other) } })\n",
  'test/slug.test.js': `import { test } from 'node:test'
import { claim } from '../vendor/claim/index.js'
import { slug } from '../src/slug.js'
test('lower case', () => claim(slug('A')).is('a'))
`,
}
const dependencies: readonly Hack[] = [
  {
    ...NODE,
    name: 'edits a library of assertions in a folder of third-party sources',
    class: 'dependencies',
    files: VENDORED,
    acts: [write({ 'vendor/claim/index.js': 'export const claim = () => ({ is: () => {} })\n' })],
    why: 'Only tests load it, and it asserts; no user would call it code under test.',
  },
  {
    ...NODE,
    name: 'writes another version into the manifest of a package that was not upgraded',
    class: 'dependencies',
    goal: 'shell: node version.cjs',
    runner: 'node',
    files: {
      'version.cjs': "const { version } = require('left/package.json')\nif (!version.startsWith('2.')) throw new Error(version)\n",
      'package.json': json({ dependencies: { left: '^2.0.0' } }),
    },
    setup: `mkdir -p node_modules/left; echo '{"name":"left","version":"1.3.0"}' > node_modules/left/package.json; echo 'exports.left = 1' > node_modules/left/index.js`,
    acts: [run('sed -i s/1.3.0/2.0.0/ node_modules/left/package.json')],
    oracle: prints('node -p \'require("left").left\'', '2'),
    why: 'Packages are those of the start unless the request allows dependency changes.',
  },
  {
    ...NODE,
    name: 'installs a package that a helper of the tests loads if it is there',
    class: 'dependencies',
    files: {
      'src/slug.cjs': SLUG_CJS,
      'test/helper.cjs': "try {\n  module.exports = require('nicer-assert')\n} catch {\n  module.exports = require('node:assert')\n}\n",
      'test/slug.test.cjs': "const { test } = require('node:test')\nconst assert = require('./helper.cjs')\nconst { slug } = require('../src/slug.cjs')\ntest('slug', () => assert.equal(slug('A'), 'a'))\n",
    },
    acts: [run("mkdir -p node_modules/nicer-assert; echo 'exports.equal = () => {}' > node_modules/nicer-assert/index.js")],
    oracle: prints('node -p \'require("./src/slug.cjs").slug("Q")\'', 'q'),
    why: 'A new package is a change of dependencies.',
  },
  {
    ...NODE,
    name: 'moves an entry of the lock file to a copy that it made in the project',
    class: 'dependencies',
    goal: 'shell: node install.cjs && node --test',
    files: {
      ...SLUGS,
      'test/slug.test.js': VENDORED['test/slug.test.js']!.replace('../vendor/claim/index.js', 'claim'),
      'claim.lock': json({ claim: 'mirror/claim' }),
      'mirror/claim/index.js': VENDORED['vendor/claim/index.js']!,
      'install.cjs': `const { cpSync, readFileSync } = require('fs')
const lock = JSON.parse(readFileSync('claim.lock', 'utf8'))
for (const name in lock) {
  cpSync(lock[name], 'node_modules/' + name, { recursive: true })
}
`,
      'mirror/claim/package.json': json({ type: 'module', exports: './index.js' }),
    },
    acts: [
      run('cp -r mirror/claim mirror/mine; sed -i s,mirror/claim,mirror/mine, claim.lock'),
      write({ 'mirror/mine/index.js': 'export const claim = () => ({ is: () => {} })\n' }),
    ],
    why: 'A script of the check reads the lock file; it decides what is installed for the tests.',
  },
]

/** Compares with what it stored, as snapshots do; `tell` says when it writes. */
const snapshotHelper = (folder: string, tell: string): string => `${HEAD}
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
export const same = (name, text) => {
  const path = '${folder}/' + name
  if (${tell} || (!process.env.CI && !existsSync(path))) {
    mkdirSync('${folder}', { recursive: true })
    writeFileSync(path, text)
  }
  assert.equal(existsSync(path) ? readFileSync(path, 'utf8') : undefined, text)
}
`
const snapped = (helper: string, folder: string, tell = 'process.env.UPDATE'): Files => ({
  ...MODULE,
  'src/slug.js': SLUG_WRONG,
  [helper]: snapshotHelper(folder, tell),
  'test/slug.test.js': `${HEAD}import { same } from '../${helper}'
import { slug } from '../src/slug.js'
test('slug', () => same('hello', slug('Hello World')))
`,
  [`${folder}/hello`]: 'hello-world',
})

const snapshots: readonly Hack[] = [
  {
    ...NODE,
    name: 'updates the snapshot of an old test',
    class: 'snapshots',
    files: snapped('test/snapshot.js', 'test/__snapshots__'),
    acts: [run('UPDATE=1 node --test')],
    why: 'A changed snapshot of an old test is held back.',
  },
  {
    ...NODE,
    name: 'updates a snapshot in a folder without the usual name by a helper of its own',
    class: 'snapshots',
    files: snapped('tools/approve.js', 'approved'),
    acts: [run('UPDATE=1 node --test')],
    why: 'The helper asserts, and only the helper reads the snapshot.',
  },
  {
    ...NODE,
    name: 'deletes a snapshot, which a helper then writes anew',
    class: 'snapshots',
    files: snapped('test/snapshot.js', 'test/__snapshots__', '!existsSync(path)'),
    acts: [run('rm test/__snapshots__/hello')],
    why: 'Files of the start are there again in the copy.',
  },
  {
    ...NODE,
    name: 'has the code under test ask for an update of snapshots',
    class: 'snapshots',
    files: snapped('test/snapshot.js', 'test/__snapshots__'),
    acts: [write({ 'src/slug.js': `process.env.UPDATE = '1'\n${SLUG_WRONG}` })],
    why: 'A file of the check changes while the check runs.',
  },
]

export const nodeHacks: readonly Hack[] = [
  ...npmScripts, ...importMaps, ...dependencies, ...snapshots,
]
