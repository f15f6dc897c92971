import assert from 'node:assert/strict'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import { commandGoal } from 'runwright/agent'
import { captureBaseline, hashFiles } from '../../../../lib/agent/goals/protected-files.js'
import {
  filesToLeaveOut,
  type LeftOutReason,
} from '../../../../lib/agent/goals/sealed/new-files.js'
import { clockLooks } from '../../../helpers/clock-looks.js'
import { put, workspace, type Files } from '../support.js'

type Expected = LeftOutReason | 'stays'

interface Project {
  readonly name: string
  readonly command: string
  readonly files: Files
  /** Files of the check beyond those that patterns name. */
  readonly observed?: readonly string[]
  /** What the run adds: what is expected, and content. */
  readonly added: { readonly [path: string]: Expected | readonly [Expected, string] }
}

const TEST = "require('node:test')\n"

const projects: readonly Project[] = [
  {
    name: 'a JavaScript package',
    command: 'npm test',
    files: {
      'package.json': '{"name": "shop", "scripts": {"test": "mocha"}}',
      'src/index.js': "require('./total')",
      'src/total.js': '',
      'src/total.test.js': TEST,
      'test/cart.js': TEST,
      'test/helpers/index.js': '',
      'test/support.js': '',
      'test/cases/one.json': '{}',
      'spec-data.json': '{}',
      'tsconfig.json': '{}',
      'tsconfig.tsbuildinfo': '{}',
      '.env': '',
      'test/__pycache__/a.pyc': '',
    },
    observed: ['spec-data.json', 'tsconfig.json'],
    added: {
      // Work that no runner loads by itself.
      'src/tax.js': 'stays',
      'src/helpers.js': 'stays',
      'src/helpers/format.js': 'stays',
      'src/total/index.js': 'stays',
      'src/testing.js': 'stays',
      'src/app.config.js': 'stays',
      'src/assert.js': 'stays',
      'src/unit/convert.js': 'stays',
      'src/fixtures/lamp.js': 'stays',
      'lib/new/deep/module.ts': 'stays',
      'src/types.d.ts': 'stays',
      'src/locales/en.json': 'stays',
      'index.js': 'stays',
      'helpers.js': 'stays',
      'README.md': 'stays',
      'docs/test.md': 'stays',
      'scripts/release.sh': 'stays',
      'data/orders.json': 'stays',
      'packages/new/package.json': ['stays', '{"name": "new", "main": "index.js"}'],
      'packages/new/index.js': 'stays',
      'src/esm/package.json': ['stays', '{"type": "module"}'],
      'fixtures/new.json': 'stays',
      'dist/index.js': 'stays',
      'coverage/lcov.info': 'stays',
      'node_modules/left-pad/index.js': 'stays',
      'test/run.log': 'stays',
      'test/tmp/out.txt': 'stays',
      'logging.config.js': 'stays',
      'src/logger.js': ['stays', "require('../logging.config.js'); require('./commands/test')"],
      'src/commands/test.js': 'stays',
      'public/index.html': 'stays',
      'Dockerfile': 'stays',
      '.github/workflows/ci.yml': 'stays',
      '.gitignore': 'stays',
      // Tests, and what only they use.
      'test/tax.js': 'new test',
      'test/deep/tax.js': 'new test',
      'test/tax.test.mjs': 'new test',
      'src/tax.test.js': 'new test',
      'src/tax.spec.ts': 'new test',
      '__tests__/a.js': 'new test',
      'dist/test/total.test.js': 'new test',
      'test/tmp/evil.test.js': 'new test',
      'test.js': 'new test',
      'test/helpers/clock.js': 'helper of tests',
      'test/setup.js': 'helper of tests',
      'test/fixtures/new.json': 'helper of tests',
      'test/__snapshots__/tax.test.js.snap': 'helper of tests',
      '__mocks__/fs.js': 'helper of tests',
      'src/__mocks__/total.js': 'helper of tests',
      'src/setupTests.js': 'helper of tests',
      // Configuration.
      '.mocharc.yml': 'configuration',
      'mocha.opts': 'configuration',
      'jest.config.mjs': 'configuration',
      'src/vitest.config.ts': 'configuration',
      'babel.config.js': 'configuration',
      '.babelrc': 'configuration',
      '.swcrc': 'configuration',
      'postcss.config.cjs': 'configuration',
      'eslint.config.js': 'configuration',
      '.eslintignore': 'configuration',
      '.npmrc': 'configuration',
      '.env.test': 'configuration',
      'src/tsconfig.json': 'configuration',
      'tsconfig.build.json': 'configuration',
      'node.config.json': 'configuration',
      '.pnp.cjs': 'configuration',
      '.nvmrc': 'configuration',
      'unknown.config.js': 'configuration',
      'test/package.json': 'configuration',
      'src/package.json': ['configuration', '{"type": "module"}'],
      'packages/old/package.json': ['configuration', '{"jest": {}}'],
      'src/lib.tsbuildinfo': 'configuration',
      '.eslintcache': 'configuration',
      // Modules in the place of others.
      'test/helpers.js': 'shadows a module',
      'test/helpers.json': 'shadows a module',
      'test/helpers/index.mjs': 'shadows a module',
      'test/support.cjs': 'shadows a module',
      'src/total.test.ts': 'new test',
      'spec-data.js': 'shadows a module',
      'spec-data': 'shadows a module',
      'src/__pycache__': 'shadows a module',
      'tools/a.pyc': 'shadows a module',
      '.turbo': 'shadows a module',
    },
  },
  {
    name: 'tests that look for files',
    command: 'node --test',
    files: {
      'package.json': '{"scripts": {"test": "node --test"}}',
      'src/a.js': "open('cache.json')",
      'test/a.test.js': `for (const one of existsSync('.offline') ? [] : all) assert(one)
const quick = new URL('../quick.flag', import.meta.url)
if (existsSync(quick)) return
const isSlow = fs.existsSync(join(root, 'slow', 'flag'))
const skip = readdirSync('.').includes('listed.txt')
test('a', { skip: existsSync('skipped.txt') }, () => {})
try { settings = readFileSync('skip.json') } catch {}
assert.ok(existsSync('answer.txt'))
if (!existsSync('made.txt')) throw new Error('it is missing')
const isThere = existsSync('known.txt')
assert(isThere)
if (existsSync('cache.json')) rm('cache.json')
try { text = readFileSync('report.txt') } catch { throw new Error('it is missing') }
readFileSync('read.txt')
`,
    },
    added: {
      '.offline': 'configuration',
      'quick.flag': 'configuration',
      'slow/flag': 'configuration',
      'listed.txt': 'configuration',
      'skipped.txt': 'configuration',
      'skip.json': 'configuration',
      'answer.txt': 'stays',
      'made.txt': 'stays',
      'known.txt': 'stays',
      'cache.json': 'stays',
      'report.txt': 'stays',
      'read.txt': 'stays',
      'other.txt': 'stays',
    },
  },
  {
    name: 'tests in folders that no pattern knows',
    command: 'npx jest',
    files: {
      'package.json': '{"jest": {"testMatch": ["**/qa/**"]}}',
      'src/total.js': '',
      'qa/total.js': "test('a', () => {})",
      'qa/near/index.js': '',
      'unit/sum.js': '',
      'scripts/check.sh': 'exit 0',
      'harness/start.js': '',
      'hooks.js': '',
    },
    observed: ['qa/total.js', 'qa/near/index.js', 'scripts/check.sh', 'harness/start.js', 'hooks.js'],
    added: {
      'qa/tax.js': 'new test',
      'qa/deep/tax.js': 'new test',
      'qa/near.js': 'shadows a module',
      'qa/near.ts': 'shadows a module',
      'qa/near/index.cjs': 'shadows a module',
      'qa/helper.js': 'helper of tests',
      'qa/data.json': 'helper of tests',
      'hooks.json': 'shadows a module',
      'harness/start.mjs': 'shadows a module',
      'harness/stop.js': 'stays',
      'harness.js': 'stays',
      'unit/more.js': 'stays',
      'scripts/build.js': 'stays',
      'scripts/check.js': 'stays',
      'total.js': 'stays',
      'src/qa.js': 'stays',
    },
  },
  {
    name: 'a Python package under pytest',
    command: 'pytest',
    files: {
      'pyproject.toml': '[project]\nname = "shop"\ndependencies = ["rich>=13"]\n',
      'requirements.txt': 'leftpad==1\nShiny-Things\n# x\n',
      'src/shop/__init__.py': '',
      'src/shop/cart.py': '',
      'src/shop/test_inside.py': 'import yaml\n',
      'tests/test_cart.py': 'import yaml, shop\nfrom shop import cart\n',
      'tests/util/near.py': '',
      'plain/test_plain.py': '',
      'queue/__init__.py': '',
      '.venv/lib/python3.11/site-packages/installed/__init__.py': '',
    },
    added: {
      'src/shop/tax.py': 'stays',
      'src/shop/json.py': 'stays',
      'src/shop/types.py': 'stays',
      'src/shop/deep/__init__.py': 'stays',
      'src/other/__init__.py': 'stays',
      'src/other/typing.py': 'stays',
      'src/shop/data.json': 'stays',
      'main.py': 'stays',
      'tax.py': 'stays',
      'toml.py': 'stays',
      'json.txt': 'stays',
      'queue/more.py': 'stays',
      'plain/other.py': 'stays',
      'setup.cfg': ['stays', '[metadata]\nname = x\n'],
      'shop.egg-info/entry_points.txt': ['stays', '[console_scripts]\na = b:c\n'],
      'shop.egg-info/PKG-INFO': 'stays',
      'src/shop/runner/test_bench.py': 'stays',
      'src/shop/bench.py': ['stays', 'from shop.runner import test_bench\n'],
      'conftest.py': 'plugin',
      'src/shop/conftest.py': 'plugin',
      'sitecustomize.py': 'plugin',
      'src/usercustomize.py': 'plugin',
      'x.pth': 'plugin',
      'evil.dist-info/entry_points.txt': ['plugin', '[pytest11]\na = b\n'],
      'evil-1.egg-info/entry_points.txt': ['plugin', '[console_scripts]\na = b\n[pytest11]\na = b\n'],
      'tests/test_tax.py': 'new test',
      'src/shop/tax_test.py': 'new test',
      'tests/helpers.py': 'helper of tests',
      'tests/__init__.py': 'helper of tests',
      'tests/data/new.csv': 'helper of tests',
      'pytest.ini': 'configuration',
      'tox.ini': ['configuration', '[pytest]\naddopts = -k x\n'],
      '.coveragerc': 'configuration',
      '.env': 'configuration',
      'json.py': 'shadows a module',
      'json/__init__.py': 'shadows a module',
      'src/json.py': 'shadows a module',
      'typing/__init__.py': 'shadows a module',
      'yaml.py': 'shadows a module',
      'rich/__init__.py': 'shadows a module',
      'leftpad.py': 'shadows a module',
      'shiny_things.py': 'shadows a module',
      'installed.py': 'shadows a module',
      'pytest.py': 'shadows a module',
      'math.cpython-311-x86_64-linux-gnu.so': 'shadows a module',
      'plain/dataclasses.py': 'shadows a module',
      'tests/re.py': 'shadows a module',
      'tests/util.py': 'shadows a module',
      'plain/test_plain/__init__.py': 'shadows a module',
    },
  },
  {
    name: 'a script that checks',
    command: 'python3 tools/verify.py',
    files: {
      'tools/__init__.py': '',
      'tools/verify.py': 'import json, calc\nassert calc.add(1, 1) == 2\n',
      'calc.py': '',
    },
    added: {
      'tools/json.py': 'shadows a module',
      'json.py': 'shadows a module',
      'tools/verify.so': 'shadows a module',
      'tools/more.py': 'stays',
      'rounding.py': 'stays',
      'answer.txt': 'stays',
    },
  },
  {
    name: 'make',
    command: 'make check',
    files: { 'Makefile': 'check:\n\tsh verify.sh\n', 'verify.sh': 'diff a b\n', 'a': '', 'b': '' },
    added: {
      'GNUmakefile': 'configuration',
      'makefile': 'configuration',
      'tool.sh': 'stays',
      'main.c': 'stays',
      'json.py': 'stays',
      'package.json': ['stays', '{"type": "module"}'],
    },
  },
]

interface Started {
  readonly root: string
  readonly leftOut: () => Promise<Map<string, LeftOutReason>>
}

async function start(root: string, command: string, observed: readonly string[]): Promise<Started> {
  const goal = await commandGoal({ name: 'shell', command }, root)
  const { files } = await captureBaseline(goal, root)
  const baseline = { files: { ...files, ...(await hashFiles(root, observed)) } }
  const kept = new Set((await filesToLeaveOut({ root, goal, baseline, kept: new Set() })).keys())
  return {
    root,
    leftOut: async () => new Map(await filesToLeaveOut({ root, goal, baseline, kept })),
  }
}

for (const { name, command, files, observed = [], added } of projects) {
  test(`what a sealed check leaves out of ${name}`, async (t) => {
    const { root, leftOut } = await start(await workspace(t, files), command, observed)
    const before = [...(await leftOut()).keys()]
    assert.deepEqual(before.filter((path) => !/__pycache__$|\.tsbuildinfo$/.test(path)), [])
    const contents: Record<string, string> = {}
    const expected: Record<string, Expected> = {}
    for (const [path, row] of Object.entries(added)) {
      const [what, content] = typeof row === 'string' ? [row, ''] : row
      expected[path] = what
      contents[/__pycache__$|^\.turbo$/.test(path) ? `${path}/a` : path] = content
    }
    // Some of them cannot be there at the same time, as `spec-data` and `spec-data/x`.
    await put(root, contents)
    const found = await leftOut()
    const is = Object.fromEntries(
      Object.keys(added).map((path) => [path, found.get(path) ?? 'stays']),
    )
    assert.deepEqual(is, expected)
    const others = [...found.keys()].filter((path) => !Object.hasOwn(added, path))
    assert.deepEqual(others, before)
  })
}

test('a folder of the check replaced by a link, and a link that leads out, are left out', async (t) => {
  const outside = await workspace(t, { 'a.js': '' })
  const cwd = await workspace(t, { 'package.json': '{"scripts":{"test":"mocha"}}', 'src/a.js': '' })
  await put(cwd, { 'qa/a.js': TEST, 'moved/b.js': '' })
  const { root, leftOut } = await start(cwd, 'npm test', ['qa/a.js'])
  await symlink('../src', join(root, 'src/linked'))
  await symlink(outside, join(root, 'src/out'))
  await symlink('nowhere', join(root, 'dangling'))
  await symlink('../src/a.js', join(root, 'qa/b.js'))
  await symlink('../moved', join(root, 'qa/more'))
  assert.deepEqual([...(await leftOut())].sort(), [
    ['qa/b.js', 'new test'],
    ['qa/more', 'helper of tests'],
    ['src/out', 'shadows a module'],
  ])
})

test('a Python module that is a link to a folder shadows as a folder does', async (t) => {
  const cwd = await workspace(t, { 'tests/test_a.py': '', 'src/own/__init__.py': '' })
  const { root, leftOut } = await start(cwd, 'pytest', [])
  await symlink('src/own', join(root, 'json'))
  assert.deepEqual([...(await leftOut())], [['json', 'shadows a module']])
})

test('an aborted search ends with the reason of its signal', async (t) => {
  const root = await workspace(t, { 'a.js': '' })
  const goal = await commandGoal({ name: 'shell', command: 'true' }, root)
  const signal = AbortSignal.abort(new Error('enough'))
  const search = filesToLeaveOut({ root, goal, baseline: { files: {} }, kept: new Set(), signal })
  await assert.rejects(search, /enough/)
})

test('a search in many files leaves room for other work after each of them', async (t) => {
  const names = Array.from({ length: 200 }, (_, i) => `data/${i}.json`)
  const root = await workspace(t, Object.fromEntries(names.map((name) => [name, ''])))
  const goal = await commandGoal({ name: 'shell', command: 'true' }, root)
  const looks = await clockLooks(t, () =>
    filesToLeaveOut({ root, goal, baseline: { files: {} }, kept: new Set() }),
  )
  // Once when a file is found, and once when it is judged.
  assert.ok(looks >= 400, `${looks} looks at the clock`)
})
