/** Plans of the repair engine behind the real runners: all ways to run the same tests agree. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { test, type TestContext } from 'node:test'

import { planCheck } from '../../../lib/repair/check.js'
import { failingFiles } from '../../../lib/repair/files.js'
import { parseFailures, parseOutcomes } from '../../../lib/repair/read-report.js'
import type { Outcomes } from '../../../lib/repair/report.js'

const PEERS = resolve(dirname(new URL(import.meta.url).pathname), '../node_modules')
const ODD = "lists: it's $HOME (1+1) [x] `y`"
const CALLS = `
it('adds', () => check(add(1, 2), 3))
it('adds nothing', () => check(add(1, 0), 1))
describe('many', () => {
  it(${JSON.stringify(ODD)}, () => check(add(2, 2), 4))
  it('subtracts', () => check(add(1, 0), 1))
})
`
const ASSERTING = "const check = require('node:assert').equal\n"
const REQUIRING = "const { add } = require('../src/add.js')\n"

const RUNNERS = [
  { check: 'npx mocha', name: 'add.test.js', text: REQUIRING + ASSERTING + CALLS },
  {
    check: 'npx jest',
    name: 'add.test.js',
    text: `${REQUIRING}const check = (a, b) => expect(a).toBe(b)\n${CALLS}`,
  },
  {
    check: 'npx vitest',
    name: 'add.test.mjs',
    text:
      "import { describe, expect, it } from 'vitest'\nimport { add } from '../src/add.js'\n" +
      `const check = (a, b) => expect(a).toBe(b)\n${CALLS}`,
  },
  {
    check: 'node --test',
    name: 'add.test.js',
    text: `const { describe, it } = require('node:test')\n${REQUIRING}${ASSERTING}${CALLS}`,
  },
  {
    check: 'npx ava',
    name: 'add.test.js',
    text: `const it = require('ava')\n${REQUIRING}
it('adds', (t) => t.is(add(1, 2), 3))
it('adds nothing', (t) => t.is(add(1, 0), 1))
it(${JSON.stringify(ODD)}, (t) => t.is(add(2, 2), 4))
`,
  },
  {
    check: 'npx tape test/*.js',
    name: 'add.test.js',
    text: `const it = require('tape')\n${REQUIRING}
it('adds', (t) => { t.equal(add(1, 2), 3); t.end() })
it('adds nothing', (t) => { t.equal(add(1, 0), 1); t.end() })
it(${JSON.stringify(ODD)}, (t) => { t.equal(add(2, 2), 4); t.end() })
`,
  },
] as const

async function project(t: TestContext, name: string, text: string): Promise<string> {
  const cwd = await mkdtemp(join(tmpdir(), 'repair-plans-'))
  t.after(() => rm(cwd, { recursive: true, force: true }))
  await mkdir(join(cwd, 'src'))
  await mkdir(join(cwd, 'test'))
  await symlink(PEERS, join(cwd, 'node_modules'))
  await writeFile(join(cwd, 'package.json'), '{ "name": "sums", "version": "1.0.0" }')
  await writeFile(join(cwd, 'src/add.js'), 'exports.add = (a, b) => a - b\n')
  await writeFile(join(cwd, 'test', name), text)
  return cwd
}

function failingIn(outcomes: Outcomes): string[] {
  return [...outcomes].flatMap(([name, outcome]) => (outcome === 'fail' ? [name] : [])).sort()
}

for (const { check, name, text } of RUNNERS) {
  test(`${check}: outcomes, details, one file and single tests agree`, async (t) => {
    const cwd = await project(t, name, text)
    const plan = planCheck(check, {})
    const env: NodeJS.ProcessEnv = { ...process.env }
    for (const key of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'FORCE_COLOR', 'NODE_V8_COVERAGE'])
      delete env[key]
    const run = (command: string): { output: string; outcomes: Outcomes } => {
      const { stdout, status } = spawnSync('/bin/sh', ['-c', command], {
        cwd,
        env,
        encoding: 'utf8',
      })
      return { output: stdout, outcomes: parseOutcomes(plan.kind, stdout, status ?? -1) }
    }
    const details = run(plan.whole.details)
    const whole = run(plan.whole.outcomes)
    assert.deepEqual([...whole.outcomes], [...details.outcomes], details.output)
    const passing = [...whole.outcomes.values()].filter((outcome) => outcome === 'pass').length
    assert.ok(passing >= 1, details.output)
    const failing = failingIn(whole.outcomes)
    assert.ok(failing.some((title) => title.endsWith(ODD)), details.output)
    const path = `test/${name}`
    assert.deepEqual(failingFiles(plan.kind, whole.output, failing, ['src/add.js', path]), [
      // AVA names files only when there are several.
      ...(check === 'npx ava' ? [] : [path]),
    ])
    const failure = parseFailures(plan.kind, details.output).find(({ name: title }) =>
      title.endsWith('adds'),
    )
    assert.equal(failure?.expected, '3')
    assert.equal(failure.actual, '-1')
    for (const command of plan.file(path)) {
      const one = run(command.outcomes)
      assert.deepEqual([...one.outcomes], [...whole.outcomes], one.output)
      if (command.only === undefined) continue
      const some = run(command.only(failing))
      assert.deepEqual(failingIn(some.outcomes), failing, some.output)
      assert.equal(some.outcomes.size, failing.length, some.output)
    }
  })
}
