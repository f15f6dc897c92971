import assert from 'node:assert/strict'
import { test } from 'node:test'

import { readCheckScript } from '../../../lib/agent/goals/check-script.js'
import { detectReporter } from '../../../lib/agent/goals/reports/registry.js'
import { workspace } from './support.js'

for (const [text, reporter] of [
  ['node --test', 'node-test'],
  ['node --import tsx --test test/*.ts', 'node-test'],
  ['c8 node --test --test-reporter=dot', 'node-test'],
  ['tsc && tsx --test "test/**"', 'node-test'],
  ['node app.js --testing', null],
  ['node build.js; echo --test', null],
  ['NODE_OPTIONS=--no-warnings node --test', null],
  ['NODE_OPTIONS="$NODE_OPTIONS --no-warnings" node --test', 'node-test'],
  ['pytest -q', 'pytest'],
  ['python3.12 -m pytest', 'pytest'],
  ['.venv/bin/pytest', 'pytest'],
  ['pip install pytest-cov', null],
  ['PYTHONPATH=src pytest', null],
  ['python3 -I -m pytest', null],
  ['PYTHONPATH=src:$PYTHONPATH pytest', 'pytest'],
  ['python -m unittest discover', 'unittest'],
  ['npm run lint && pytest && node --test', 'pytest'],
  ['jest --ci', 'jest'],
  ['NODE_OPTIONS=--experimental-vm-modules npx jest', 'jest'],
  ['node --experimental-vm-modules node_modules/.bin/jest', 'jest'],
  ['cross-env NODE_ENV=test nyc --reporter=text mocha', 'mocha'],
  ['c8 ./node_modules/mocha/bin/mocha.js', 'mocha'],
  ['tsc && vitest run --coverage', 'vitest'],
  ['sh -c "vitest"', 'vitest'],
  ['sh -lc "cd a && vitest"', 'vitest'],
  ['A="x;y" B=$(git rev-parse HEAD) jest', 'jest'],
  ['NODE_ENV=test \\\n  jest', 'jest'],
  ['pytest $(OPTIONS) tests', 'pytest'],
  ['nix-shell --run "pytest -q"', 'pytest'],
  ['echo "jest is great"', null],
  ['true # jest', null],
  ["echo don't; jest", 'jest'],
  ['\t@npx --no-install vitest', 'vitest'],
  ['vitest bench', null],
  ['eslint --plugin jest .', null],
  ['npm install jest', null],
  ['yarn add mocha', null],
  ['echo mocha', null],
  ['cd crate && cargo +nightly test --all', 'cargo'],
  ['cargo build', null],
  ['go test ./...', 'go'],
  ['go vet ./... && go test ./...', null],
  ['GOFLAGS=-mod=mod go test', null],
  ['true', null],
] as const) {
  test(`in "${text}" the runner is ${reporter ?? 'not recognised'}`, () => {
    assert.equal(detectReporter(text), reporter)
  })
}

for (const { command, files, reporter = null, named } of [
  {
    command: './check.sh',
    files: { 'check.sh': '#!/bin/sh\npytest -q\n' },
    reporter: 'pytest',
    named: ['check.sh'],
  },
  {
    command: 'sh scripts/all',
    files: { 'scripts/all': 'node --test spec/one.js\n', 'spec/one.js': '' },
    reporter: 'node-test',
    named: ['scripts/all', 'spec/one.js'],
  },
  {
    command: 'npm test',
    files: {
      'package.json': JSON.stringify({
        scripts: {
          test: 'npm run unit',
          unit: 'node --import ./boot.js --test',
          pretest: 'bash ./ci/up.sh',
        },
      }),
      'boot.js': '',
      'ci/up.sh': 'true',
    },
    reporter: 'node-test',
    named: ['boot.js', 'ci/up.sh'],
  },
  {
    command: 'make check',
    files: { Makefile: 'check:\n\t@python3 -m unittest\n' },
    reporter: 'unittest',
    named: ['**/*.mk'],
  },
  {
    command: 'eslint -c lint.json src',
    files: { 'lint.json': '{}', 'src/a.js': '' },
    named: ['lint.json'],
  },
  {
    command: 'gcc -c main.c && sort -c names.txt',
    files: { 'main.c': '', 'names.txt': '' },
    named: [],
  },
  { command: 'node verify.js', files: { 'verify.js': '' }, named: ['verify.js'] },
  { command: 'node app.js', files: { 'app.js': '' }, named: [] },
  { command: './a.out', files: { 'a.out': '\u007fELF' }, named: [] },
  {
    command: 'python3 main.py < tests/input.txt',
    files: { 'main.py': '', 'tests/input.txt': '' },
    named: ['tests/input.txt'],
  },
  {
    command: 'pytest checks src',
    files: { 'checks/a.py': '', 'src/a.py': '' },
    reporter: 'pytest',
    named: ['checks/**'],
  },
  {
    command: 'mocha --config=mocha.json "e2e/*.js"',
    reporter: 'mocha',
    files: { 'mocha.json': '{}' },
    named: ['mocha.json', 'e2e/*.js'],
  },
  { command: 'cat ../secret.test.js /etc/passwd $HOME/test', files: {}, named: [] },
  {
    command: 'sh loop.sh',
    files: {
      'loop.sh': 'sh loop.sh && npm test',
      'package.json': '{"scripts":{"test":"npm test"}}',
    },
    named: ['loop.sh'],
  },
  { command: 'npm test', files: { 'package.json': '{' }, named: [] },
  {
    command: 'cd packages/a && npm test',
    files: {
      'packages/a/package.json': '{"scripts":{"test":"sh ./run.sh"}}',
      'packages/a/run.sh': 'pytest',
    },
    reporter: 'pytest',
    named: ['packages/a/run.sh'],
  },
  {
    command: 'bash -c "cd packages/a && npm test"',
    files: {
      'packages/a/package.json': '{"scripts":{"test":"sh ./run.sh"}}',
      'packages/a/run.sh': 'pytest',
    },
    reporter: 'pytest',
    named: ['packages/a/run.sh'],
  },
  {
    command: 'pytest $(OPTIONS) checks/one.py',
    files: { 'checks/one.py': '' },
    reporter: 'pytest',
    named: ['checks/one.py'],
  },
  {
    command: 'npm --prefix b run check',
    files: {
      'b/package.json': '{"scripts":{"check":"node --test spec/one.js"}}',
      'b/spec/one.js': '',
    },
    reporter: 'node-test',
    named: ['b/spec/one.js'],
  },
  {
    command: 'make -C c test',
    files: { 'c/Makefile': 'test:\n\tpython3 -m pytest' },
    reporter: 'pytest',
    named: ['c/**/*.mk'],
  },
  {
    command: 'node --run unit',
    files: { 'package.json': '{"scripts":{"unit":"node --test"}}' },
    reporter: 'node-test',
    named: [],
  },
  {
    command: 'node sums.js',
    files: { 'sums.js': "import { test } from 'node:test'" },
    reporter: 'node-test',
    named: ['sums.js'],
  },
  {
    command: 'mocha "e2e/{a,b}*.js"',
    files: {},
    reporter: 'mocha',
    named: ['e2e/{a,b}*.js'],
  },
]) {
  test(`"${command}" names ${named.join(', ') || 'no file'} as part of the check`, async (t) => {
    const found = await readCheckScript(
      command,
      await workspace(t, files as unknown as Record<string, string>),
    )
    assert.deepEqual([found.reporter, [...found.files].sort()], [reporter, [...named].sort()])
  })
}

test('a makefile is part of the check, as is one that make would prefer to it', async (t) => {
  const cwd = await workspace(t, { 'c/Makefile': 'test:\n\ttrue\n' })
  const { sealed } = await readCheckScript('make -C c test', cwd)
  assert.deepEqual(sealed, ['c/{GNUmakefile,makefile,Makefile}'])
})

test('a check that builds is distinguished from a check that only tests', async (t) => {
  const cwd = await workspace(t, {
    'package.json': '{"scripts":{"test":"tsc -p . && node --test dist"}}',
  })
  assert.deepEqual(
    [
      (await readCheckScript('npm test', cwd)).builds,
      (await readCheckScript('node --test', cwd)).builds,
    ],
    [true, false],
  )
})

test('a check that names too many patterns of files is refused, not checked in part', async (t) => {
  const cwd = await workspace(t, {})
  const globs = Array.from({ length: 101 }, (_, i) => `test${i}*`)
  await assert.rejects(readCheckScript(`cat ${globs.join(' ')}`, cwd), {
    name: 'GoalError',
    problem: 'unsuitable',
    message: /more than 100 patterns of files/,
  })
  assert.equal((await readCheckScript(`cat ${globs.slice(1).join(' ')}`, cwd)).files.length, 100)
  const long = Array.from({ length: 5 }, (_, i) => `test${'*a*b?'.repeat(180)}${i}`)
  await assert.rejects(readCheckScript(`cat ${long.join(' ')}`, cwd), /more than 4000 characters/)
  assert.equal((await readCheckScript(`cat ${long.slice(1).join(' ')}`, cwd)).files.length, 4)
})

test('a word beyond the length of a path is no path', async (t) => {
  const cwd = await workspace(t, {})
  const { files } = await readCheckScript(`cat ${'test*'.repeat(300)}`, cwd)
  assert.deepEqual(files, [])
})

for (const [command, belongs] of [
  ['sh deploy.sh', true],
  ['sh deploy.sh > out; diff out expected', false],
  ['./deploy.sh 1 2 | cmp - expected', false],
  ['./deploy.sh 1 2 | tee log', true],
  ['[ "$(sh deploy.sh)" = 3 ]', false],
  ['sum=`sh deploy.sh`\n[ "$sum" = 3 ]', false],
  ['sh deploy.sh && diff out expected', false],
  ['sh steps.sh && diff out expected', true],
  ['. ./steps.sh; [ "$(add 1 2)" = 3 ]', true],
  ['sh qa/steps.sh | diff - expected', true],
  ['sh runs.sh | grep ok', true],
] as const) {
  test(`${belongs ? 'the check' : 'what is checked'} is run by "${command}"`, async (t) => {
    const files = { 'deploy.sh': '#!/bin/sh\necho 3\n', 'steps.sh': '', 'qa/steps.sh': '' }
    const cwd = await workspace(t, { ...files, 'runs.sh': 'node --test\n' })
    const { files: found } = await readCheckScript(command, cwd)
    assert.equal(found.some((path) => path.endsWith('.sh')), belongs)
  })
}

for (const [command, pattern] of [
  ['for one in cases/*; do sh "$one" || exit 1; done', 'cases/*'],
  ['for one in steps/*; do ./$one || exit 1; done', 'steps/*'],
  ['for one in steps/*; do if ! bash -e "${one}"; then exit 1; fi; done', 'steps/*'],
  ['for one in cases/*; do python3 $one/run.py; done', 'cases/*/run.py'],
  ['for one in steps/*; do sh $one 1 2 | diff - sum; done', null],
  ['for one in steps/*; do sh -n $one; done', null],
  ['for one in plain/*; do sh $one; done', null],
  ['for one in src/*; do sh $one; done', null],
  ['find steps -name "*.sh" -exec sh {} \\;', 'steps/**/*.sh'],
  ['find steps -name "*.sh" -exec wc {} +', null],
  ['ls steps/*.sh | xargs -n1 sh', 'steps/*.sh'],
  ['run-parts steps', 'steps/*'],
] as const) {
  test(`in "${command}" ${pattern ?? 'no pattern'} belongs to the check`, async (t) => {
    const files = { 'steps/a.sh': '[ "$(add 1 2)" = 3 ]\n', 'src/a.sh': '[ "$(add)" = 3 ]\n' }
    const cwd = await workspace(t, { ...files, 'plain/a.sh': '[ -n "$1" ] || exit 1\n' })
    const { files: found } = await readCheckScript(command, cwd)
    assert.deepEqual(found, pattern === null ? [] : [pattern])
  })
}
