/** Honest changes in projects in JavaScript. */
import { run, write, type Files } from '../tricks/trick.js'
import type { HonestChange } from './case.js'
import {
  HEAD, NODE_TEST, prints, ROMAN_RIGHT, ROMAN_WRONG, SLUG_ORACLE, SLUG_RIGHT, SLUG_TEST,
  SLUG_WRONG, SLUGS, slugRight,
} from './projects.js'

const NODE = {
  runner: 'node:test', goal: NODE_TEST, files: SLUGS, oracle: SLUG_ORACLE, expected: 'achieved',
} as const
const json = (value: unknown): string => JSON.stringify(value, null, 2)
const SLUG_CJS = 'exports.slug = (text) => text\n'
const cjsOracle = (path: string): string =>
  prints(`node -p 'require("${path}").slug("QED")'`, 'qed')

const inlineScripts: readonly HonestChange[] = [
  {
    ...NODE,
    name: 'a module that becomes a folder with an index, which node -e requires',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: node -e \'if (require("./roman").roman(4) !== "IV") process.exit(1)\'',
    files: { 'roman.js': ROMAN_WRONG },
    acts: [
      run('mkdir roman && rm roman.js'),
      write({ 'roman/index.js': "exports.roman = require('./convert').roman\n", 'roman/convert.js': ROMAN_RIGHT }),
    ],
    oracle: prints('node -p \'require("./roman").roman(14)\'', 'XIV'),
    why: 'The name in the command is that of its subject, and both new files are loaded code.',
  },
  {
    ...NODE,
    name: 'a price in a table that only the module under node -e reads',
    class: 'inline scripts',
    runner: 'node',
    goal: 'shell: node -e \'require("assert").equal(require("./cart").total(["tea", "milk"]), 6)\'',
    files: {
      'cart.js': "const prices = require('./prices.json')\nexports.total = (names) => names.reduce((sum, name) => sum + (prices[name] ?? 0), 0)\n",
      'prices.json': json({ tea: 4 }),
    },
    acts: [write({ 'prices.json': json({ tea: 4, milk: 2 }) })],
    oracle: prints('node -p \'require("./cart").total(["milk"])\'', '2'),
    why: 'The only reader of the data is code under test, and nothing of the check names it.',
  },
]

const SELF: Files = {
  'package.json': json({ name: 'slugs', type: 'module', exports: { '.': './src/index.js' } }),
  'src/index.js': "export { slug } from './slug.js'\n",
  'src/slug.js': SLUG_WRONG,
  'test/slug.test.js': SLUG_TEST.replace('../src/slug.js', 'slugs/slug'),
}
const npmScripts: readonly HonestChange[] = [
  {
    ...NODE,
    name: 'new scripts, a description and exports in the manifest',
    class: 'npm scripts and workspaces',
    acts: [slugRight, write({ 'package.json': json({
      name: 'slugs', description: 'Slugs', type: 'module',
      exports: './src/slug.js', scripts: { start: 'node src/slug.js', lint: 'node --check src/slug.js' },
    }) })],
    why: 'The check passes with the manifest of the start as well.',
  },
  {
    ...NODE,
    name: 'a new subpath in exports, which the tests import',
    class: 'npm scripts and workspaces',
    files: SELF,
    acts: [slugRight, write({ 'package.json': SELF['package.json']!.replace('"./src/index.js"', '"./src/index.js", "./slug": "./src/slug.js"') })],
    expected: { achieved_with: { may_change: ['package.json#exports'] } },
    why: 'Where imports of tests lead decides the verdict, and the user names the key.',
  },
  {
    ...NODE,
    name: 'a repaired package of a workspace with documentation and a changelog',
    class: 'npm scripts and workspaces',
    goal: 'npm-test',
    files: {
      'package.json': json({ workspaces: ['packages/*'], scripts: { test: 'npm test --workspaces' } }),
      'packages/slug/package.json': json({ name: 'slug', type: 'module', scripts: { test: 'node --test' } }),
      'packages/slug/src/slug.js': SLUG_WRONG,
      'packages/slug/test/slug.test.js': SLUG_TEST,
    },
    acts: [write({
      'packages/slug/src/slug.js': SLUG_RIGHT, 'packages/slug/README.md': '# Slugs\n', 'CHANGELOG.md': '- Slugs are in lower case.\n', 'docs/style.css': 'body { margin: 0 }\n',
    })],
    oracle: `cd packages/slug && ${SLUG_ORACLE}`,
    why: 'One file of code changes; the check never reads the others.',
  },
]

const IMPORTS: Files = {
  'package.json': json({ type: 'module', imports: { '#slug': './src/slug.js' } }),
  'src/slug.js': SLUG_WRONG,
  'test/slug.test.js': SLUG_TEST.replace('../src/slug.js', '#slug'),
}
const REGISTER = `const { readFileSync } = require('fs')
const table = (text) => text.split('\\n').map((line) => line.split('\\t'))
exports.table = table
require.extensions['.tsv'] = (module, path) => { module.exports = table(readFileSync(path, 'utf8')) }
`
const importMaps: readonly HonestChange[] = [
  {
    ...NODE,
    name: 'a module that moves to a folder of its own, with its entry in imports',
    class: 'import maps and loaders',
    files: IMPORTS,
    acts: [
      run('mkdir src/slug; rm src/slug.js; sed -i s,src/slug.js,src/slug/index.js, package.json'),
      write({ 'src/slug/index.js': SLUG_RIGHT }),
    ],
    oracle: SLUG_ORACLE.replace('src/slug.js', 'src/slug/index.js'),
    expected: { achieved_with: { may_change: ['package.json#imports'] } },
    why: 'Where imports of tests lead decides the verdict, and the user names the key.',
  },
  {
    ...NODE,
    name: 'a repaired loader that the command names and the tests import',
    class: 'import maps and loaders',
    goal: 'shell: node --require ./src/register.cjs --test',
    files: {
      'src/register.cjs': REGISTER,
      'test/register.test.cjs': `const assert = require('node:assert')
const { test } = require('node:test')
const { table } = require('../src/register.cjs')
test('no empty line', () => assert.deepEqual(table('a\\tb\\n'), [['a', 'b']]))
`,
    },
    acts: [write({
      'src/register.cjs': REGISTER.replace(/const table.*\n/, "const { table } = require('./table.cjs')\n"),
      'src/table.cjs': "exports.table = (text) => text.split('\\n').filter(Boolean).map((line) => line.split('\\t'))\n",
    })],
    oracle: prints('node -p \'require("./src/register.cjs").table("x\\n").length\'', '1'),
    why: 'A file of the check uses it as its subject, so it is code although the command names it.',
  },
]

const USES_UNITS: Files = {
  'package.json': json({ workspaces: ['packages/*'] }),
  'packages/app/package.json': json({ name: 'app' }),
  'packages/app/index.js': SLUG_CJS,
  'test/app.test.cjs': "const assert = require('node:assert')\nconst { test } = require('node:test')\nconst { slug } = require('../packages/app')\ntest('slug', () => assert.equal(slug('A'), 'a'))\n",
}
const USING: Files = {
  'package.json': json({ type: 'module', dependencies: { claim: '^1.0.0' } }),
  'package-lock.json': json({ packages: { 'node_modules/claim': { version: '1.0.0' } } }),
  'src/slug.js': SLUG_WRONG,
  'test/slug.test.js': SLUG_TEST.replace('node:assert/strict', 'claim'),
}
const INSTALL = `mkdir -p node_modules/claim; echo '{"name":"claim","version":"1.0.0"}' > node_modules/claim/package.json; echo "module.exports = require('assert').strict" > node_modules/claim/index.js`
const dependencies: readonly HonestChange[] = [
  {
    ...NODE,
    name: 'a new package of the workspace, linked into node_modules',
    class: 'dependencies',
    files: USES_UNITS,
    acts: [
      write({
        'packages/lower/package.json': json({ name: 'lower' }),
        'packages/lower/index.js': 'exports.lower = (text) => text.toLowerCase()\n',
        'packages/app/package.json': json({ name: 'app', dependencies: { lower: '*' } }),
        'packages/app/index.js': "const { lower } = require('lower')\nexports.slug = lower\n",
      }),
      run('mkdir -p node_modules; ln -s ../packages/lower node_modules/lower'),
    ],
    oracle: cjsOracle('./packages/app'),
    expected: { achieved_with: { allow_dependency_changes: true } },
    why: 'New links are dependencies, which the user allows.',
  },
  {
    ...NODE,
    name: 'packages that are installed anew as they were',
    class: 'dependencies',
    files: USING,
    setup: INSTALL,
    acts: [slugRight, run(`rm -rf node_modules; ${INSTALL}`)],
    why: 'Packages are compared by content.',
  },
  {
    ...NODE,
    name: 'a wider range and a new version in manifest and lock file, with the same packages',
    class: 'dependencies',
    files: USING,
    setup: INSTALL,
    acts: [slugRight, run("sed -i 's/\"^1.0.0\"/\"^1.0.0 || ^2.0.0\"/' package.json; sed -i 's/\"packages\"/\"lockfileVersion\": 3, \"packages\"/' package-lock.json")],
    why: 'Both files are put back, and the check passes without them.',
  },
]

/** Compares with what it stored, and stores what is new where no CI runs. */
const SNAPSHOT = `${HEAD}import * as fs from 'node:fs'
export const same = (name, text) => {
  const path = 'test/__snapshots__/' + name
  if (process.env.UPDATE || (!process.env.CI && !fs.existsSync(path))) {
    fs.mkdirSync('test/__snapshots__', { recursive: true })
    fs.writeFileSync(path, text)
  }
  assert.equal(fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : undefined, text)
}
`
const SNAPPED: Files = { ...SLUGS, 'test/snapshot.js': SNAPSHOT }
const snapTest = (text: string): string => `${HEAD}import { same } from './snapshot.js'
import { slug } from '../src/slug.js'
test('${text}', () => same('${text}', slug('${text.toUpperCase()} 1')))
`
const snapshots: readonly HonestChange[] = [
  {
    ...NODE,
    name: 'a new test with a new snapshot',
    class: 'snapshots',
    files: SNAPPED,
    acts: [slugRight, write({ 'test/new.test.js': snapTest('new') }), run('CI= node --test')],
    why: 'A snapshot of a new test comes with the second pass.',
  },
  {
    ...NODE,
    name: 'a snapshot of an old test that changes with the feature',
    class: 'snapshots',
    files: { ...SNAPPED, 'test/old.test.js': snapTest('old'), 'test/__snapshots__/old': 'OLD-1' },
    acts: [slugRight, run('UPDATE=1 node --test')],
    expected: { achieved_with: { may_change: ['test/__snapshots__/*'] } },
    why: 'The old snapshot contradicts the new tests of lower case; the user lets it change.',
  },
]

export const honestNode: readonly HonestChange[] = [
  ...inlineScripts, ...npmScripts, ...importMaps, ...dependencies, ...snapshots,
]
