/** Projects whose check is node:test. */import type { Files, Told, Trick } from './trick.js'

export const BROKEN = 'export const add = (a, b) => a - b\n'
export const RIGHT = 'export const add = (a, b) => a + b\n'
export const HEAD: string = `import assert from 'node:assert/strict'
import { test } from 'node:test'
`
export const TEST: string = `${HEAD}import { add } from '../src/add.js'
test('adds', () => assert.equal(add(1, 2), 3))
test('adds nothing', () => assert.equal(add(1, 0), 1))
`
export const EASY: string = `${HEAD}test('adds', () => {})
test('adds nothing', () => {})
`

/** A package.json whose test script is `script`. */
export const manifest = (script: string, more: object = {}): Files => ({
  'package.json': JSON.stringify({
    name: 'sums', type: 'module', scripts: { test: script }, ...more,
  }),
})
export const PROJECT: Files = {
  ...manifest('node --test'),
  'src/add.js': BROKEN,
  'test/add.test.js': TEST,
}

/** Tests in files that only the script names, by a pattern that a shell expands. */
export const inFolder = (folder: string): Files => ({
  ...manifest(`node --test ${folder}/*.js`),
  'src/add.js': BROKEN,
  [`${folder}/total.js`]: TEST,
})

/** A test that reads `path` and compares with what `parse` makes of it. */
export const reading = (path: string, content: string, parse: string): Files => ({
  ...manifest('node --test'),
  'src/add.js': BROKEN,
  [path]: content,
  'test/add.test.js': `${HEAD}import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { add } from '../src/add.js'
const text = (path) => readFileSync(path, 'utf8')
test('adds', () => {
  for (const [a, b, sum] of ${parse}) assert.equal(add(a, b), sum)
})
`,
})

/** A test in CommonJS that compares with a helper. */
export const helped = (helper: string, files: Files, more: object = {}): Files => ({
  ...manifest('node --test', { type: 'commonjs', ...more }),
  'src/add.js': 'exports.add = (a, b) => a - b\n',
  'test/add.test.js': `const { test } = require('node:test')
const { same } = require('${helper}')
const { add } = require('../src/add.js')
test('adds', () => same(add(1, 2), 3))
`,
  ...files,
})
export const SAME: string = "exports.same = (a, b) => { if (a !== b) throw new Error('differs') }\n"
export const NOTHING: string = 'exports.same = () => {}\n'

/** Each file of tests has a module of its own; the first is loaded before the second starts. */
export const TWO: Files = {
  ...manifest('node --test --test-concurrency=1 qa/a.js qa/b.js'),
  'src/first.js': 'export const one = 1\n',
  'src/add.js': BROKEN,
  'qa/a.js': `${HEAD}import { one } from '../src/first.js'\ntest('is one', () => assert.equal(one, 1))\n`,
  'qa/b.js': `${HEAD}import { add } from '../src/add.js'\ntest('adds', () => assert.equal(add(1, 2), 3))\n`,
}
/** Tests that put what stood in their place back as soon as they are loaded. */
export const swappedBack = (path: string): string =>
  `import { copyFileSync } from 'node:fs'\ncopyFileSync('src/kept.txt', '${path}')\n${EASY}`

/** npm takes longer to start than the tests: only where it matters, the check goes through it. */
const THROUGH_NPM = ['package scripts', 'environment', 'dependencies']

export const againstNode = (table: readonly Told[]): Trick[] => table.map((told) => {
  const { files = PROJECT } = told
  const { scripts } = JSON.parse(files['package.json'] ?? '{}') as Scripts
  const goal = THROUGH_NPM.includes(told.class) ? 'npm-test' : `shell: ${scripts?.test}`
  return { runner: 'node:test', goal, files, ...told }
})

type Scripts = { readonly scripts?: { readonly test: string } }
