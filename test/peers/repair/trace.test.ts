/** Traces of real test runners: the lines that each test ran. */
import assert from 'node:assert/strict'
import { symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'

import { readTrace, watch } from '../../../lib/repair/trace/trace.js'
import {
  lines,
  outcomes,
  privateFolder,
  run,
  SUMS,
  SUMS_LINES,
  SUMS_MODULE,
} from '../../repair/trace-support.js'
import { workspace } from '../../agent/goals/support.js'

const PEERS = resolve(dirname(new URL(import.meta.url).pathname), '../node_modules')
const CALLS = `
it('adds', () => assert.equal(add(1, 2), 3))
it('adds zero', () => assert.equal(add(0, 2), 2))
describe('many', () => {
  it('subs', async () => {
    await null
    assert.equal(sub(2, 1), 2)
  })
})
`
const COMMON = "const { add, sub } = require('../src/sums.js')\n"
const TAPE = `const test = require('tape')
${COMMON}
test('adds', (t) => { t.equal(add(1, 2), 3); t.end() })
test('adds zero', (t) => { t.equal(add(0, 2), 2); t.end() })
test('many', (t) => {
  t.test('subs', (u) => { u.equal(sub(2, 1), 2); u.end() })
  t.end()
})
`
const AVA = `const test = require('ava')
${COMMON}
test('adds', (t) => t.is(add(1, 2), 3))
test('adds zero', (t) => t.is(add(0, 2), 2))
test('many > subs', async (t) => {
  await null
  t.is(sub(2, 1), 2)
})
`
const RUNNERS = [
  { command: 'mocha', tests: `const assert = require('node:assert')\n${COMMON}${CALLS}` },
  { command: 'jest', tests: `const assert = require('node:assert')\n${COMMON}${CALLS}` },
  {
    command: 'vitest run',
    tests: `import { assert, describe, it } from 'vitest'
import { add, sub } from '../src/sums.js'
${CALLS}`,
  },
  { command: 'tape test/*.js', tests: TAPE },
  { command: 'ava', tests: AVA },
  { command: 'ava --no-worker-threads', tests: AVA },
]

for (const { command, tests } of RUNNERS) {
  test(`${command}: the lines that each test ran`, async (t) => {
    const isModule = command.startsWith('vitest')
    const cwd = await workspace(t, {
      'package.json': JSON.stringify({ name: 'sums', type: isModule ? 'module' : 'commonjs' }),
      'src/sums.js': isModule ? SUMS_MODULE : SUMS,
      'test/sums.test.js': tests,
    })
    await symlink(PEERS, join(cwd, 'node_modules'))
    const folder = await privateFolder(t)
    const program = `node_modules/.bin/${command}`
    const plain = run(cwd, program)
    const watched = run(cwd, program, await watch(folder, cwd))
    assert.deepEqual([watched.status, plain.status], [1, 1], watched.output)
    assert.ok(!watched.output.includes(folder), watched.output)
    const trace = await readTrace(folder)
    const suite = command.startsWith('tape') ? { 'test/sums.test.js > many': false } : {}
    assert.deepEqual(outcomes(trace), {
      'test/sums.test.js > adds': false,
      'test/sums.test.js > adds zero': false,
      'test/sums.test.js > many > subs': true,
      ...suite,
    })
    assert.deepEqual(lines(trace, 'src/sums.js'), SUMS_LINES)
  })
}
