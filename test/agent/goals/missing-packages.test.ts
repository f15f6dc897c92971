import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { GoalError } from 'runwright/agent'
import { assertInstalled } from '../../../lib/agent/goals/missing-packages.js'
import { scratch } from '../../helpers/engine.js'
import { writeFiles, type Files } from '../../helpers/files.js'
import { CLONE } from '../run/setup-support.js'

const PACKAGE = {
  scripts: { test: 'jest', check: 'jest --ci', own: 'npm ci && jest' },
  devDependencies: { jest: '30.0.0' },
}
const PROJECT: Files = { ...CLONE, 'package.json': JSON.stringify(PACKAGE) }
const MISSING = /package-lock\.json names are not installed: install them, or give `setup: "npm ci"`/

const refused = [
  'npm test', 'npm t -- --ci', 'npm run check', 'npm run --silent test', 'CI=1 npm test',
  'pnpm test', 'yarn check', 'yarn run test', 'npx jest', 'npx --no-install tsc --noEmit',
  'node_modules/.bin/jest', './node_modules/.bin/jest', 'node node_modules/jest/bin/jest.js',
  'npm test && echo done',
]
const accepted = [
  'node --test', 'jest', 'make test', 'npm ci && npm test', 'npm run own', 'npm run missing',
  'npx --yes jest', 'npx cowsay', 'npm --prefix web test', 'npm test -w web', 'yarn', 'bun test',
  'cd web && npm test', '/opt/node_modules/.bin/jest', 'npm install', 'go test ./...',
]

test('scripts and programs of packages need them, as far as that is certain', async (t) => {
  const cwd = scratch(t)
  writeFiles(cwd, PROJECT)
  for (const command of refused) {
    await assert.rejects(assertInstalled(command, cwd), (error: unknown) => {
      assert.ok(error instanceof GoalError && error.problem === 'dependencies_missing', command)
      assert.match(error.message, MISSING)
      return true
    })
  }
  for (const command of accepted) await assertInstalled(command, cwd)
})

for (const [name, change] of [
  ['packages in the folder', (cwd) => mkdirSync(join(cwd, 'node_modules/jest'), { recursive: true })],
  ['packages of pnpm', (cwd) => mkdirSync(join(cwd, 'node_modules/.pnpm'), { recursive: true })],
  ['packages above', (cwd) => mkdirSync(join(cwd, '../node_modules/jest'), { recursive: true })],
  ["Yarn's own file", (cwd) => writeFiles(cwd, { '.pnp.cjs': '' })],
  ['a lock file that names none', (cwd) => writeFiles(cwd, {
    'package-lock.json': '{ "lockfileVersion": 3, "packages": { "": {} } }',
  })],
  ['a lock file that cannot be read', (cwd) =>
    writeFiles(cwd, { 'package-lock.json': '{' })],
] as readonly (readonly [string, (cwd: string) => void])[]) {
  test(`with ${name}, no packages are missing`, async (t) => {
    const cwd = join(scratch(t), 'work')
    writeFiles(cwd, PROJECT)
    await assert.rejects(assertInstalled('npm test', cwd), MISSING)
    change(cwd)
    await assertInstalled('npm test', cwd)
  })
}

test('a folder of packages with only a cache has none', async (t) => {
  const cwd = scratch(t)
  writeFiles(cwd, { ...PROJECT, 'node_modules/.cache/a': '', 'node_modules/.package-lock.json': '' })
  await assert.rejects(assertInstalled('npm test', cwd), MISSING)
})
