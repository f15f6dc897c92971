/** Traces of Node's own test runner, of scripts and of what they start. */
import assert from 'node:assert/strict'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { readTrace, watch } from '../../lib/repair/trace/trace.js'
import { put, workspace, type Files } from '../agent/goals/support.js'
import {
  lines,
  outcomes,
  privateFolder,
  run,
  SUMS,
  SUMS_LINES,
  SUMS_MODULE,
  traced,
} from './trace-support.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const CALLS = `
test('adds', () => assert.equal(add(1, 2), 3))
test('adds zero', () => assert.equal(add(0, 2), 2))
describe('many', () => {
  it('subs', async () => {
    await null
    assert.equal(sub(2, 1), 2)
  })
})
`
const COMMON = `const { test, describe, it } = require('node:test')
const assert = require('node:assert')
const { add, sub } = require('../src/sums.js')
${CALLS}`
const MODULE = `import { test, describe, it } from 'node:test'
import assert from 'node:assert'
import { add, sub } from '../src/sums.js'
${CALLS}`
const TYPED_SUMS = `export interface Pair {
  readonly a: number
  readonly b: number
}

export const add = (a: number, b: Pair['b']): number => {
  if (a === 0) {
    return b
  }
  return a + b
}
export function sub(a: number, b: number): number {
  const result = a - b
  return result
}
`

/** A project for node:test: its files, how it runs, and which lines of its source ran in what. */
interface Project {
  readonly name: string
  readonly files: Files
  readonly source: string
  readonly command: string
  readonly lines: Readonly<Record<number, string>>
}

const test_ = 'test/sums.test.js'
const PROJECTS: readonly Project[] = [
  {
    name: 'CommonJS',
    files: { 'src/sums.js': SUMS, [test_]: COMMON },
    source: 'src/sums.js',
    command: 'node --test test/sums.test.js',
    lines: SUMS_LINES,
  },
  {
    name: 'ES modules',
    files: { 'package.json': '{"type":"module"}', 'src/sums.js': SUMS_MODULE, [test_]: MODULE },
    source: 'src/sums.js',
    command: 'node --test test/sums.test.js',
    lines: SUMS_LINES,
  },
  {
    name: 'a test file as a script',
    files: { 'src/sums.js': SUMS, [test_]: COMMON },
    source: 'src/sums.js',
    command: 'node test/sums.test.js',
    lines: SUMS_LINES,
  },
  ...['module', 'commonjs'].map((type) => ({
    name: `TypeScript by tsx, "type": "${type}"`,
    files: {
      'package.json': JSON.stringify({ type }),
      'src/sums.ts': TYPED_SUMS,
      'test/sums.test.ts': MODULE.replace('sums.js', 'sums.ts'),
    },
    source: 'src/sums.ts',
    command: 'node --import tsx --test test/sums.test.ts',
    lines: {
      ...(type === 'commonjs' ? { 1: '' } : {}),
      ...{ 6: 'adds, adds zero', 7: 'adds, adds zero', 8: 'adds zero', 9: 'adds zero' },
      ...{ 10: 'adds', 11: 'adds, adds zero' },
      ...{ 12: 'many > subs', 13: 'many > subs', 14: 'many > subs', 15: 'many > subs' },
    },
  })),
]

for (const project of PROJECTS) {
  test(`node:test, ${project.name}: the lines that each test ran`, async (t) => {
    const cwd = await workspace(t, project.files)
    await symlink(join(root, 'node_modules'), join(cwd, 'node_modules'))
    const trace = await traced(t, cwd, project.command)
    const file = Object.keys(project.files).find((path) => path.startsWith('test/'))!
    assert.deepEqual(outcomes(trace), {
      [`${file} > adds`]: false,
      [`${file} > adds zero`]: false,
      [`${file} > many > subs`]: true,
    })
    assert.deepEqual(lines(trace, project.source), project.lines)
    assert.deepEqual([...trace.files.keys()].sort(), [project.source, file])
  })
}

test('node:test: hooks of a test belong to it, code of a test with subtests to both', async (t) => {
  const cwd = await workspace(t, {
    'src/steps.js': `exports.load = () => 1
exports.hook = () =>
  1
exports.outer = () =>
  1
exports.inner = () =>
  1
exports.load()
`,
    'test/steps.test.js': `const { beforeEach, test } = require('node:test')
const { hook, outer, inner } = require('../src/steps.js')
beforeEach(() => hook())
test('outer', async (t) => {
  outer()
  await t.test('inner', () => inner())
})
`,
  })
  const trace = await traced(t, cwd, 'node --test test/steps.test.js')
  const found = lines(trace, 'src/steps.js')
  assert.equal(found[1], '', 'at load alone')
  assert.equal(found[3], 'outer, outer > inner')
  assert.equal(found[5], 'outer')
  assert.equal(found[7], 'outer > inner')
})

test('what a test starts belongs to it: programs, also by a shell, and threads', async (t) => {
  const cwd = await workspace(t, {
    'src/cli.js': "console.log('started')\n",
    'src/thread.js': 'module.exports = 1\n',
    'test/cli.test.js': `const { test } = require('node:test')
const { execFileSync, execSync } = require('node:child_process')
const { once } = require('node:events')
const { Worker } = require('node:worker_threads')
test('nothing', () => {})
test('program', () => void execFileSync(process.execPath, ['src/cli.js']))
test('shell', () => void execSync('true; node src/cli.js; true'))
test('thread', () => once(new Worker('./src/thread.js'), 'exit'))
test('last', () => {})
`,
  })
  const trace = await traced(t, cwd, 'node --test test/cli.test.js')
  assert.deepEqual(lines(trace, 'src/cli.js'), { 1: 'program, shell' })
  assert.deepEqual(lines(trace, 'src/thread.js'), { 1: 'thread' })
})

test('a test that ends the process keeps its lines, and has no outcome', async (t) => {
  const cwd = await workspace(t, {
    'src/end.js': 'exports.end = () => {\n  process.exit(3)\n}\n',
    'test/end.test.js': `const { test } = require('node:test')
const { end } = require('../src/end.js')
test('first', () => {})
test('ends', () => end())
test('never', () => {})
`,
  })
  const trace = await traced(t, cwd, 'node test/end.test.js')
  assert.deepEqual(outcomes(trace), {
    'test/end.test.js > first': false,
    'test/end.test.js > ends': null,
  })
  assert.equal(lines(trace, 'src/end.js')[2], 'ends')
})

test('a script is one test with its exit code, whatever is thrown', async (t) => {
  const cwd = await workspace(t, {
    'src/sums.js': SUMS,
    'check.js': "require('node:assert').equal(require('./src/sums.js').add(0, 1), 2)\n",
    'fine.js': "require('./src/sums.js').sub(0, 1)\n",
  })
  const folder = await privateFolder(t)
  const env = await watch(folder, cwd)
  assert.deepEqual([run(cwd, 'node check.js', env).status, run(cwd, 'node fine.js', env).status], [
    1, 0,
  ])
  const trace = await readTrace(folder)
  assert.deepEqual(outcomes(trace), { 'check.js': true, 'fine.js': false })
  const found = trace.files.get('src/sums.js')!
  assert.deepEqual([found.get(3), found.get(5), found.get(8)], [[0], undefined, [1]])
})

test('where V8 counts for somebody else, there is no trace, and the counts are right', async (t) => {
  const cwd = await workspace(t, {
    'src/sums.js': SUMS,
    'test/sums.test.js': COMMON,
    'own.js': `const { Session } = require('node:inspector')
const session = new Session()
session.connect()
const post = (method, options) => session.post(method, options, (_, answer) => {
  for (const { url, functions } of answer.result ?? []) {
    if (url.includes('sums.js')) console.log(functions.map((each) => each.ranges[0].count).join())
  }
})
post('Profiler.enable')
post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
const { add } = require('./src/sums.js')
for (let i = 0; i < 7; i++) add(i, i)
post('Profiler.takePreciseCoverage')
`,
  })
  const trace = await traced(t, cwd, 'NODE_V8_COVERAGE=out node --test test/sums.test.js; node own.js')
  assert.deepEqual(trace, { tests: [], files: new Map() })
})

test('an option of the environment stays, and a folder may have any name', async (t) => {
  const cwd = await workspace(t, { 'a.js': 'console.log(process.noDeprecation)\n' })
  const folder = join(await privateFolder(t), `a "b' c`)
  await put(folder, { '.keep': '' })
  const env = await watch(folder, cwd, { NODE_OPTIONS: '--no-deprecation', PYTHONPATH: '/nowhere' })
  assert.equal(env['PYTHONPATH']?.endsWith(':/nowhere'), true)
  assert.deepEqual(run(cwd, 'node a.js', env), { status: 0, output: 'true\n' })
  assert.deepEqual(outcomes(await readTrace(folder)), { 'a.js': false })
})
