import assert from 'node:assert/strict'
import { test } from 'node:test'

import { commandGoal, type GoalDefinition } from 'runwright/agent'
import { goalRegistry } from '../../../lib/agent/goals/registry.js'
import { workspace } from './support.js'
import type { Files } from './support.js'

test('the shipped goals are listed with a description and an example', () => {
  const goals = goalRegistry().list()
  assert.deepEqual(
    goals.map((goal) => goal.name),
    [
      'auto',
      'npm-test',
      'node-test',
      'pytest',
      'unittest',
      'make-test',
      'cargo-test',
      'go-test',
      'bun-test',
      'tsc',
      'lint',
      'shell',
      'perf',
      'result',
    ],
  )
  for (const goal of goals)
    assert.ok(goal.description !== '' && goal.usage.startsWith(goal.name), goal.name)
})

const NPM = { 'package.json': '{"scripts":{"test":"node --test","lint":"eslint ."}}' }
for (const { goal, files, command, shown = command, reporter = null } of [
  { goal: 'npm-test', files: NPM, command: 'npm test', reporter: 'node-test' },
  {
    goal: 'npm-test: --grep x',
    files: NPM,
    command: 'npm test -- --grep x',
    reporter: 'node-test',
  },
  {
    goal: ' node-test ',
    files: { 'test/a.js': '' },
    command: 'node --test',
    reporter: 'node-test',
  },
  { goal: 'node-test: a.js', files: {}, command: 'node --test a.js', reporter: 'node-test' },
  { goal: 'pytest', files: { 'test_a.py': '' }, command: 'python3 -m pytest', reporter: 'pytest' },
  { goal: 'pytest: -k fast', files: {}, command: 'python3 -m pytest -k fast', reporter: 'pytest' },
  {
    goal: 'unittest',
    files: { 'tests/test_a.py': '' },
    command: 'python3 -m unittest',
    reporter: 'unittest',
  },
  {
    goal: 'make-test',
    files: { Makefile: 'all: x\ntest: all\n\tnode --test\n' },
    command: 'make test',
    reporter: 'node-test',
  },
  { goal: 'make-test: check', files: { Makefile: 'check:\n' }, command: 'make check' },
  {
    goal: 'cargo-test',
    files: { 'Cargo.toml': '' },
    command: 'cargo test --no-fail-fast',
    reporter: 'cargo',
  },
  { goal: 'go-test', files: { 'go.mod': '' }, command: 'go test -count=1 ./...', reporter: 'go' },
  {
    goal: 'go-test: ./x',
    files: { 'go.mod': '' },
    command: 'go test -count=1 ./x',
    reporter: 'go',
  },
  {
    goal: 'bun-test: ./a',
    files: {},
    command: 'bun test ./a --reporter=junit --reporter-outfile="$RUNWRIGHT_BUN_REPORT"',
    shown: 'bun test ./a\n',
    reporter: 'bun',
  },
  {
    goal: 'tsc',
    files: { 'tsconfig.json': '{}' },
    command: 'npx --no-install tsc --noEmit -p tsconfig.json',
  },
  { goal: 'lint', files: NPM, command: 'npm run lint' },
  { goal: 'lint', files: { 'eslint.config.mjs': '' }, command: 'npx --no-install eslint .' },
  { goal: 'lint', files: { 'pyproject.toml': '[tool.ruff]\n' }, command: 'ruff check .' },
  {
    goal: 'lint',
    files: { 'Cargo.toml': '' },
    command: 'cargo clippy --all-targets -- -D warnings',
  },
  { goal: 'lint', files: { '.golangci.yml': '' }, command: 'golangci-lint run' },
  { goal: 'shell: npm run check && true', files: {}, command: 'npm run check && true' },
  {
    goal: 'shell: PYTHONPATH=src python3 -m pytest',
    files: {},
    command: 'python3 -m pytest',
    reporter: 'pytest',
  },
  { goal: 'perf: node bench.js < 1.5 s', files: {}, command: 'node bench.js' },
] as readonly {
  goal: string
  files: Files
  command: string
  shown?: string
  reporter?: string
}[]) {
  test(`"${goal}" is checked by ${command}`, async (t) => {
    const spec = await goalRegistry().resolve(goal, await workspace(t, files))
    assert.deepEqual([spec.command, spec.reporter, spec.goal], [command, reporter, goal])
    assert.ok(spec.instructions.includes(shown), spec.instructions)
    assert.deepEqual(JSON.parse(JSON.stringify(spec)), spec, 'the record survives the log')
  })
}

const SAMPLE = 'import unittest\nclass T(unittest.TestCase): pass\n'
for (const { files, chosen, command } of [
  { files: { ...NPM, Makefile: 'test:\n' }, chosen: 'npm-test' },
  {
    files: {
      'package.json': '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}',
      'test/a.js': '',
    },
    chosen: 'node-test',
  },
  { files: { 'bun.lock': '', 'a.test.ts': '' }, chosen: 'bun-test' },
  {
    files: { 'package.json': '{"devDependencies":{"vitest":"^3"}}', 'a.test.ts': '' },
    chosen: 'shell',
    command: 'npx --no-install vitest run',
  },
  {
    files: { 'package.json': '{"dependencies":{"mocha":"*"}}', 'test/a.js': '' },
    chosen: 'shell',
    command: 'npx --no-install mocha',
  },
  { files: { 'Cargo.toml': '', Makefile: 'test:\n' }, chosen: 'cargo-test' },
  { files: { 'go.mod': '' }, chosen: 'go-test' },
  { files: { Makefile: 'test:\n', 'test_a.py': '' }, chosen: 'make-test' },
  { files: { 'tests/test_a.py': 'def test(): pass\n', 'a.test.js': '' }, chosen: 'pytest' },
  { files: { 'tests/test_a.py': SAMPLE }, chosen: 'unittest' },
  {
    files: { 'tests/test_a.py': SAMPLE, 'pyproject.toml': '[tool.pytest.ini_options]\n' },
    chosen: 'pytest',
  },
  {
    files: { Makefile: 'all:\n', 'src/a.test.mjs': '', 'tsconfig.json': '{}' },
    chosen: 'node-test',
  },
  { files: { 'tsconfig.json': '{}' }, chosen: 'tsc' },
  { files: { 'ruff.toml': '' }, chosen: 'lint' },
] as readonly { files: Files; chosen: string; command?: string }[]) {
  test(`auto chooses ${command ?? chosen} for ${Object.keys(files).join(' and ')}`, async (t) => {
    const spec = await goalRegistry().resolve('auto', await workspace(t, files))
    assert.deepEqual([spec.name, spec.goal], [chosen, 'auto'])
    if (command !== undefined) assert.equal(spec.command, command)
    if (command !== undefined) assert.ok(spec.reporter !== null && command.includes(spec.reporter))
  })
}

for (const { goal, files = {}, problem = 'unsuitable', message } of [
  {
    goal: 'npm-test',
    message: /^npm-test: there is no package.json here; start the run in the package's folder/,
  },
  { goal: 'npm-test', files: { 'package.json': '{}' }, message: /has no "test" script; add one/ },
  { goal: 'npm-test', files: { 'package.json': '{' }, message: /not valid JSON/ },
  { goal: 'node-test', message: /no test file was found/ },
  { goal: 'pytest', message: /no test file was found/ },
  { goal: 'make-test', message: /no Makefile/ },
  { goal: 'make-test', files: { Makefile: 'all:\n' }, message: /no target "test"/ },
  { goal: 'cargo-test', message: /no Cargo.toml/ },
  { goal: 'go-test', message: /no go.mod/ },
  { goal: 'bun-test', message: /no test file was found/ },
  { goal: 'tsc', message: /no tsconfig.json/ },
  { goal: 'lint', message: /no linter/ },
  { goal: 'auto', message: /no file here shows how the work is checked; name a goal/ },
  { goal: 'shell:', message: /write `shell: <command>`/ },
  { goal: 'perf: sleep 1', message: /perf: node bench.js < 500ms/ },
  { goal: 'perf: sleep 1 < 0s', message: /perf: node bench.js < 500ms/ },
  {
    goal: 'everything-works',
    problem: 'unknown',
    message: /^unknown goal everything-works; known goals are auto, npm-test/,
  },
  { goal: 'nodetest', problem: 'unknown', message: /goal nodetest; did you mean node-test\?/ },
  { goal: 'Node_Test', problem: 'unknown', message: /did you mean node-test\?/ },
  { goal: 'node-tests', problem: 'unknown', message: /did you mean node-test\?/ },
  { goal: 'pytset', problem: 'unknown', message: /did you mean pytest\?/ },
  { goal: 'Refactor', problem: 'not_verifiable', message: /give `check`/ },
  { goal: 'Make the tests pass.', problem: 'not_verifiable', message: /give `check`/ },
  { goal: 'fix: the parser', problem: 'not_verifiable', message: /give `check`/ },
] as readonly { goal: string; files?: Files; problem?: string; message: RegExp }[]) {
  const where = Object.keys(files).join(', ') || 'an empty folder'
  test(`"${goal}" with ${where} is refused: ${message.source}`, async (t) => {
    const resolved = goalRegistry().resolve(goal, await workspace(t, files))
    await assert.rejects(resolved, { name: 'GoalError', code: 'ERR_AGENT_GOAL', problem, message })
  })
}

test('free text with a check is verified by that command', async (t) => {
  const spec = await goalRegistry().resolve('Fix: the parser', await workspace(t, {}), {
    check: 'node --test',
  })
  assert.deepEqual(
    [spec.name, spec.goal, spec.command, spec.reporter],
    ['text', 'Fix: the parser', 'node --test', 'node-test'],
  )
  assert.match(spec.instructions, /^Fix: the parser\n/)
  const hyphened = await goalRegistry().resolve('tidy-up', await workspace(t, {}), {
    check: 'true',
  })
  assert.equal(hyphened.name, 'text')
})

test('`check` is refused for a goal that has its own check', async (t) => {
  const cwd = await workspace(t, { 'test/a.js': '' })
  await assert.rejects(goalRegistry().resolve('node-test', cwd, { check: 'true' }), {
    problem: 'unsuitable',
    message: /leave `check` out/,
  })
})

test('a goal of the host is resolved like a shipped one, with its argument', async (t) => {
  const smoke: GoalDefinition = {
    name: 'smoke',
    description: 'The service answers.',
    usage: 'smoke: 8080',
    resolve: (cwd, argument) =>
      commandGoal({ name: 'smoke', command: `curl -f localhost:${argument}` }, cwd),
  }
  const registry = goalRegistry([smoke])
  const spec = await registry.resolve('smoke: 8080', await workspace(t, {}), {
    allowTestChanges: true,
  })
  assert.deepEqual(
    [spec.command, spec.goal, spec.allow_test_changes],
    ['curl -f localhost:8080', 'smoke: 8080', true],
  )
  assert.equal(registry.list().at(-1)?.name, 'smoke')
  assert.throws(() => goalRegistry([{ ...smoke, name: 'tsc' }]), {
    name: 'TypeError',
    message: /the goal name "tsc" is taken/,
  })
  assert.throws(() => goalRegistry([{ ...smoke, name: 'Smoke test' }]), {
    name: 'TypeError',
    message: /lower-case/,
  })
})

test('the output of a build is not protected', async (t) => {
  const cwd = await workspace(t, {
    'package.json': '{"scripts":{"test":"tsc && node --test dist"}}',
  })
  const spec = await goalRegistry().resolve('npm-test', cwd)
  assert.ok(spec.protected.includes('!**/{dist,build,out,lib-cov,target}/**'))
})

test('a word that a model can judge is a name only if it is one in other letters', async (t) => {
  const cwd = await workspace(t, {})
  const judge = { model: 'test:judge', prices: null }
  for (const goal of ['NodeTest', 'py_test']) {
    await assert.rejects(goalRegistry().resolve(goal, cwd, { judge }), { problem: 'unknown' })
  }
  for (const goal of ['Pytset', 'hint', 'Refactor']) {
    assert.equal((await goalRegistry().resolve(goal, cwd, { judge })).goal, goal)
  }
  // With a check of its own, it is text for the model.
  assert.equal((await goalRegistry().resolve('nodetest', cwd, { check: 'true' })).goal, 'nodetest')
})
