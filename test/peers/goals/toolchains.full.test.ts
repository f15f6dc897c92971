/**
 * Real toolchains in sealed checks, where their packages are mounted read-only: programs write
 * caches into `node_modules`, and what others have left there is not seen.
 */
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { bubblewrapExecutor, bubblewrapProblem } from 'runwright/agent'
import {
  openEngine, payloads, runToEnd, scratch, testProvider, write,
} from '../../helpers/engine.js'
import { writeFiles, type Files } from '../../helpers/files.js'
import { missing } from '../programs.js'

const PEERS = join(process.cwd(), 'test/peers/node_modules')
const skip = (await bubblewrapProblem()) ?? missing('python3')

interface Toolchain {
  readonly goal: string
  /** Packages of test/peers that are installed with all that they need. */
  readonly packages: readonly string[]
  readonly files: Files
}

/** Lines for a test: nothing that lies in caches of the original is in a copy. */
const unpoisoned = (original: string): string => `
const { existsSync } = require('node:fs')
const names = ['.cache', '.vite', '.vite-temp']
const found = names.filter((name) => existsSync('node_modules/' + name + '/poison.js'))
const expected = process.cwd() === ${JSON.stringify(original)} ? names.length : 0
if (found.length !== expected) throw new Error('poison: ' + found)
`

const MODULE = 'export const add = (a, b) => a - b\n'
const manifest = (script: string, more: object = {}): Files => ({
  'package.json': JSON.stringify({ type: 'module', scripts: { test: script }, ...more }),
})

const VITEST: Files = {
  ...manifest('vitest run'),
  'src/add.js': MODULE,
  'test/add.test.js': `import '../unpoisoned.cjs'
import { expect, it } from 'vitest'
import { add } from '../src/add.js'
it('adds', () => expect(add(1, 2)).toBe(3))
`,
}
const NODE_TEST = `import './unpoisoned.cjs'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { add } from './build/add.js'
test('adds', () => assert.equal(add(1, 2), 3))
`

const TOOLCHAINS: Readonly<Record<string, Toolchain>> = {
  'vitest without config': { goal: 'npm-test', packages: ['vitest'], files: VITEST },
  'vitest with config': {
    goal: 'npm-test',
    packages: ['vitest'],
    files: {
      ...VITEST,
      'vitest.config.ts': `import { defineConfig } from 'vitest/config'
const include: string[] = ['test/**/*.test.js']
export default defineConfig({ test: { include } })
`,
    },
  },
  'jest': {
    goal: 'npm-test',
    packages: ['jest', '@babel/core', '@babel/plugin-transform-modules-commonjs'],
    files: {
      'package.json': '{"scripts":{"test":"jest"}}',
          'src/add.js': MODULE,
      'babel.config.js': `module.exports = {
  plugins: ['@babel/plugin-transform-modules-commonjs'],
}
`,
      'test/add.test.js': `require('../unpoisoned.cjs')
const { add } = require('../src/add.js')
it('adds', () => expect(add(1, 2)).toBe(3))
`,
    },
  },
  'babel': {
    goal: 'npm-test',
    packages: ['@babel/cli', '@babel/core', '@babel/plugin-transform-typescript'],
    files: {
      ...manifest('babel src --out-dir build && node --test add.test.js'),
      'babel.config.json': '{"plugins":["@babel/plugin-transform-typescript"]}',
      'src/add.js': MODULE,
      'add.test.js': NODE_TEST,
    },
  },
  'eslint': {
    goal: 'npm-test',
    packages: ['eslint'],
    files: {
      ...manifest(`node unpoisoned.cjs || exit
        eslint --cache --cache-location node_modules/.cache/eslint/ src || exit
        test -e node_modules/.cache/eslint`),
      'eslint.config.js': `const rule = 'BinaryExpression[operator="-"]'
export default [{ rules: { 'no-restricted-syntax': ['error', rule] } }]
`,
      'src/add.js': MODULE,
    },
  },
  'nyc': {
    goal: 'npm-test',
    packages: ['nyc', 'mocha'],
    files: {
      ...manifest('nyc --check-coverage mocha test', { type: 'commonjs' }),
      'src/add.js': 'exports.add = (a, b) => a - b\n',
      'test/add.test.js': `require('../unpoisoned.cjs')
const assert = require('node:assert')
it('adds', () => assert.equal(require('../src/add.js').add(1, 2), 3))
`,
    },
  },
  'pytest': {
    goal: 'pytest',
    packages: [],
    files: {
      'sums.py': 'def add(a, b):\n    return a - b\n',
      'test_add.py': 'from sums import add\n\ndef test_adds():\n    assert add(1, 2) == 3\n',
    },
  },
}

/** The folders of a package and of all that it needs, below `node_modules` of test/peers. */
function closureOf(packages: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (name: string, from: string): void => {
    const place = [from, ...above(from)].map((path) => join(path, 'node_modules', name))
      .concat(name).find((path) => existsSync(join(PEERS, path, 'package.json')))
    if (place === undefined || found.has(place)) return
    found.add(place)
    const text = readFileSync(join(PEERS, place, 'package.json'), 'utf8')
    const { dependencies, optionalDependencies, peerDependencies } =
      JSON.parse(text) as Record<string, Record<string, string> | undefined>
    const needed = { ...dependencies, ...optionalDependencies, ...peerDependencies }
    for (const one of Object.keys(needed)) visit(one, place)
  }
  for (const name of packages) visit(name, name)
  return found
}

function above(path: string): readonly string[] {
  const parent = dirname(path)
  return parent === '.' ? [] : [parent, ...above(parent)]
}

/** Installs packages, with links to programs as npm makes them, and poisons the caches. */
function install(cwd: string, packages: readonly string[]): void {
  const folder = join(cwd, 'node_modules')
  mkdirSync(join(folder, '.bin'), { recursive: true })
  for (const place of closureOf(packages)) {
    const isNested = place.slice(1).includes('/node_modules/')
    const options = { recursive: true, verbatimSymlinks: true }
    if (!isNested) cpSync(join(PEERS, place), join(folder, place), options)
    const { name, bin } = JSON.parse(readFileSync(join(PEERS, place, 'package.json'), 'utf8')) as
      { name: string; bin?: string | Record<string, string> }
    const programs = typeof bin === 'string' ? { [name.replace(/.*\//, '')]: bin } : { ...bin }
    for (const [program, path] of isNested ? [] : Object.entries(programs)) {
      const link = join(folder, '.bin', program)
      if (!existsSync(link)) symlinkSync(join('..', place, path), link)
    }
  }
  writeFiles(folder, {
    '.package-lock.json': '{}',
    '.cache/poison.js': 'x',
    '.vite/poison.js': 'x',
    '.vite-temp/poison.js': 'x',
  })
}

for (const [name, { goal, packages, files }] of Object.entries(TOOLCHAINS)) {
  const workspaces = name === 'vitest with config' ? ['in_place', 'isolated'] : ['in_place']
  for (const workspace of workspaces) {
    test(`${name}: a run (${workspace}) is achieved in a sealed copy`, { skip }, async (t) => {
      const top = scratch(t)
      const cwd = join(top, 'project')
      writeFiles(cwd, { ...files, 'unpoisoned.cjs': unpoisoned(cwd) })
      if (packages.length > 0) install(cwd, packages)
      const wrong = Object.entries(files).find(([path]) => /(^src\/add\.js|^sums\.py)$/.test(path))!
      const fix = { [wrong[0]]: wrong[1].replace('a - b', 'a + b') }
      const { engine } = await openEngine(t, {
        cwd,
        executor: bubblewrapExecutor(),
        sealedChecks: 'require',
        checkpoints: 'auto',
        workspaceFolder: join(top, 'data/copies'),
        providers: [testProvider((_, call) => (call === 0 ? write(fix) : {}))],
      })
      const request = { goal, cwd, workspace, max_iterations: 2, hitl_enabled: false }
      const { events, details } = await runToEnd(engine, request)
      const checks = payloads(events, 'goal_check')
      const told = JSON.stringify([checks, details.error])
      assert.equal(details.status, 'achieved', told)
      assert.equal(details.assurance?.sealed, true, told)
      assert.equal(checks[0]?.achieved, false)
      if (packages.length > 0) assert.ok(readdirSync(join(cwd, 'node_modules')).length > 20)
    })
  }
}
