/** Small projects with a check each, and which of their files belong to it. */
import type { BelongsReason } from '../../../../lib/agent/goals/sealed/belongs.js'
import type { Files } from '../support.js'

/**
 * What becomes of a file that the check read: its reason, `known` for one that the goal's patterns
 * name already, or `code` for one that does not belong.
 */
export type Expected = BelongsReason | 'known' | 'code'

export interface Project {
  readonly name: string
  readonly command: string
  /** Content and what is expected, by path. */
  readonly files: { readonly [path: string]: readonly [expected: Expected, content: string] }
  /** What the runner reported. */
  readonly tests?: readonly string[]
  readonly changed?: readonly string[]
  readonly listed?: readonly string[]
  /** Parts of files that belong. */
  readonly parts?: readonly string[]
  /** Files of which nothing shows whose they are. */
  readonly unclaimed?: readonly string[]
}

const NODE = '{"name": "shop", "main": "index.js", "scripts": {"test": "node --test"}}'
const MOCHA = '{"name": "shop", "main": "lib/index.js", "scripts": {"test": "mocha"}}'
const JEST = '{"name": "shop", "main": "src/index.js", "scripts": {"test": "jest"}}'
const VITEST = '{"name": "shop", "type": "module", "scripts": {"test": "vitest run"}}'
const uses = (...paths: string[]): string => paths.map((path) => `require('${path}')\n`).join('')
const imports = (...paths: string[]): string => paths.map((path) => `import '${path}'\n`).join('')

export const projects: readonly Project[] = [
  {
    name: 'tests in a folder qa found by testMatch',
    command: 'npx jest',
    tests: ['qa/total.js', 'qa/deep/tax.js'],
    files: {
      'package.json': ['known', JEST],
      'src/index.js': ['code', uses('./total')],
      'src/total.js': ['code', 'module.exports = 1'],
      'qa/total.js': ['test', `${uses('../src/total', './close')}test('a', () => {})`],
      'qa/deep/tax.js': ['test', uses('../../src/index.js')],
      'qa/close.js': ['in a folder of tests', 'module.exports = 1'],
      'qa/orders.json': ['in a folder of tests', '[]'],
      'qa/README.md': ['code', '# qa'],
      'qa/tmp.log': ['in a folder of tests', 'x'],
    },
  },
  {
    name: 'tests in a folder unit whose names no pattern knows',
    command: 'npx mocha unit',
    tests: ['unit/total.js'],
    files: {
      'package.json': ['known', MOCHA],
      'lib/index.js': ['code', uses('./total')],
      'lib/total.js': ['code', ''],
      'unit/total.js': ['test', uses('../lib/total', './money')],
      'unit/money.js': ['in a folder of tests', ''],
    },
  },
  {
    name: 'a library of units, in a folder unit',
    command: 'node --test',
    tests: ['test/convert.test.js', 'unit/length.test.js'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', uses('./unit/convert.js', './fixtures/lamp.js')],
      'unit/convert.js': ['code', uses('./table.json')],
      'unit/table.json': ['code', '{}'],
      'unit/length.js': ['code', ''],
      'unit/helpers.js': ['code', ''],
      'unit/length.test.js': ['known', uses('./length.js', '../index.js', 'node:test')],
      'test/convert.test.js': ['known', uses('../unit/convert.js', '../unit/helpers.js')],
      'test/helpers.test.js': ['known', uses('../unit/helpers.js')],
      'fixtures/lamp.js': ['code', ''],
    },
  },
  {
    name: 'a folder unit whose tests lie beside what they test',
    command: 'node --test',
    tests: ['unit/mass.test.js'],
    files: {
      'package.json': ['known', NODE],
      'lib/base.js': ['code', ''],
      'unit/mass.js': ['code', uses('./scale')],
      'unit/scale.js': ['code', ''],
      'unit/mass.test.js': ['known', uses('node:test', './mass', './scale', '../lib/base')],
    },
  },
  {
    name: 'a shop of light fixtures that only tests load',
    command: 'node --test',
    tests: ['test/lamp.test.js'],
    files: {
      'package.json': ['known', '{"name": "lights", "scripts": {"test": "node --test"}}'],
      'fixtures/lamp.js': ['code', ''],
      'test/lamp.test.js': ['known', `${uses('node:test', '../fixtures/lamp.js')}`],
      'expect/parse.js': ['code', ''],
      'test/parse.test.js': ['known', uses('../expect/parse.js')],
    },
  },
  {
    name: 'data that tests read',
    command: 'node --test',
    tests: ['test/parse.test.js'],
    unclaimed: ['other/unread-by-name.json'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', `${uses('./parse.js', './rates.json')}stream.on('data', () => {})`],
      'parse.js': ['code', "fs.readFileSync(path.join(__dirname, 'templates', name + '.txt'))"],
      'rates.json': ['code', '{}'],
      'countries.json': ['code', '[]'],
      'shared.json': ['code', '[]'],
      'templates/mail.txt': ['code', ''],
      'data/orders.csv': ['read by tests only', ''],
      'logs/server.log': ['read by tests only', ''],
      'cases/one.json': ['read by tests only', '{}'],
      'cases/deep/page.html': ['read by tests only', '<p>'],
      'vectors.json': ['read by tests only', '[]'],
      'other/unread-by-name.json': ['code', '[]'],
      'README.md': ['code', '# shop'],
      'LICENSE': ['code', 'MIT'],
      'docs/api.md': ['code', ''],
      'package-lock.json': ['code', '{}'],
      'index.html': ['code', '<p>'],
      'openapi.yaml': ['code', ''],
      'test/parse.test.js': [
        'known',
        `${uses('node:test', '..', '../countries')}
         const orders = readFileSync('data/orders.csv'), log = join(root, 'logs', 'server.log')
         const cases = readdirSync(new URL('../cases', import.meta.url))
         const vectors = require('../vectors.json'), shared = open('shared.json')
         readFileSync('README.md'); readFileSync('docs/api.md'); readFileSync('index.html')
         readFileSync('openapi.yaml'); readFileSync('package-lock.json'); readFileSync('LICENSE')`,
      ],
      'loader.js': ['code', "load('shared.json'); import('./countries')"],
    },
  },
  {
    name: 'a test of what has no code at all',
    command: 'node --test',
    tests: ['test/config.test.js'],
    files: {
      'package.json': ['known', '{"name": "pages", "scripts": {"test": "node --test"}}'],
      'config.json': ['code', '{"timeout": 5}'],
      'data/users.json': ['code', '[]'],
      'answer.txt': ['code', ''],
      'fixtures/users.expected.json': ['read by tests only', '[]'],
      'test/config.test.js': [
        'known',
        `${uses('node:test')} readFileSync('config.json'); readFileSync('data/users.json')
         readFileSync('answer.txt'); readFileSync('fixtures/users.expected.json')`,
      ],
    },
  },
  {
    name: 'helpers beside the code',
    command: 'npx vitest run',
    tests: ['src/cart.test.ts', 'src/tax/tax.test.ts'],
    files: {
      'package.json': ['known', VITEST],
      'vitest.config.ts': ['known', "export default { test: { setupFiles: ['./support/dom.ts'] } }"],
      'tsconfig.json': ['configuration', '{"extends": "./tsconfig.base.json"}'],
      'tsconfig.base.json': ['configuration', '{}'],
      '.env.test': ['configuration', 'A=1'],
      'support/dom.ts': ['known', imports('vitest')],
      'src/cart.ts': ['code', imports('./tax/tax.js', './helpers/format.js', './app.config.js')],
      'src/app.config.ts': ['code', 'export const a = 1'],
      'src/helpers/format.ts': ['code', ''],
      'src/helpers/parse.ts': ['code', ''],
      'src/tax/tax.ts': ['code', ''],
      'src/tax/rates.json': ['code', '{}'],
      'src/setupTests.ts': ['helper of tests', imports('vitest')],
      'src/test-utils.ts': ['known', imports('./cart.js')],
      'src/testUtils.ts': ['helper of tests', imports('./cart.js')],
      'src/__mocks__/clock.ts': ['helper of tests', 'export const now = 0'],
      'src/__fixtures__/cart.json': ['read by tests only', '{}'],
      'src/cart.test.ts': [
        'known',
        imports('./cart.js', './testUtils', './setupTests', './helpers/parse', 'vitest') +
          imports('./__fixtures__/cart.json'),
      ],
      'src/tax/tax.test.ts': ['known', `${imports('./tax', 'vitest')} open('src/tax/rates.json')`],
    },
  },
  {
    name: 'helpers in the root',
    command: 'npx mocha',
    tests: ['test/cart.js'],
    files: {
      'package.json': ['known', '{"scripts": {"test": "mocha"}, "mocha": {"require": "./hooks.js"}}'],
      'cart.js': ['code', uses('./price', './validators/check')],
      'price.js': ['code', ''],
      'validators/check.js': ['code', ''],
      'hooks.js': ['known', 'exports.mochaHooks = {}'],
      'harness/start.js': ['helper of tests', uses('../cart')],
      'harness/ports.js': ['helper of tests', ''],
      'test-helper.js': ['known', ''],
      'assert-money.js': ['helper of tests', "const assert = require('assert')"],
      'closeTo.js': ['read by tests only', "const { expect } = require('chai')"],
      'spies.js': ['code', ''],
      'mocks/db.js': ['helper of tests', ''],
      'test/cart.js': [
        'known',
        uses('../cart', '../harness/start', '../test-helper', '../assert-money', '../closeTo') +
          uses('../mocks/db', '../spies', '../harness/ports'),
      ],
    },
  },
  {
    name: 'a helper that code uses too',
    command: 'npx mocha',
    tests: ['test/a.js'],
    files: {
      'package.json': ['known', MOCHA],
      'lib/index.js': ['code', uses('../helpers/clock', '../testing', '../support')],
      'helpers/clock.js': ['code', uses('./zones')],
      'helpers/zones.js': ['code', ''],
      'testing/index.js': ['code', uses('./fakes')],
      'testing/fakes.js': ['code', ''],
      'support.js': ['code', ''],
      'test/a.js': ['known', uses('../lib', '../helpers/clock', '../helpers/zones', '../testing/fakes')],
    },
  },
  {
    name: 'a package for tests',
    command: 'npx mocha',
    tests: ['test/close.js'],
    files: {
      'package.json': [
        'known',
        '{"name": "chai-close", "main": "./close.js", "exports": {".": "./close.js", "./testing": "./testing.js"}, "scripts": {"test": "mocha"}}',
      ],
      'close.js': ['code', uses('chai')],
      'testing.js': ['code', uses('chai', './assertions')],
      'assertions.js': ['code', uses('chai')],
      'test/close.js': ['known', uses('chai', '../close', '../testing', '../assertions', '..')],
    },
  },
  {
    name: 'configuration that keys of package.json name',
    command: 'npx jest',
    tests: ['test/a.test.js'],
    files: {
      'package.json': [
        'known',
        JSON.stringify({
          scripts: { test: 'jest' },
          jest: { preset: './jest/preset.js', moduleNameMapper: { '^@/(.*)$': './src/$1' } },
          babel: { presets: ['./jest/babel.js'], extends: './babel/base.js' },
          prettier: './format.json',
        }),
      ],
      'jest/preset.js': ['known', ''],
      'babel/base.js': ['configuration', ''],
      'format.json': ['configuration', '{}'],
      '.swcrc': ['known', '{}'],
      '.eslintrc.json': ['configuration', '{}'],
      'webpack.config.js': ['configuration', uses('./src/a')],
      'src/a.js': ['code', ''],
      'test/a.test.js': ['known', uses('@/a')],
    },
  },
  {
    name: 'a build before the tests',
    command: 'npm test',
    tests: ['test/a.test.ts'],
    changed: ['dist/index.js', 'generated/parser.js', 'fixtures/out.json'],
    files: {
      'package.json': ['known', '{"main": "dist/index.js", "scripts": {"test": "tsc && node --test"}}'],
      'src/index.ts': ['code', imports('./helper.js')],
      'src/helper.ts': ['code', ''],
      'dist/index.js': ['code', ''],
      'generated/parser.js': ['code', ''],
      'fixtures/out.json': ['code', '{}'],
      'fixtures/in.json': ['read by tests only', '{}'],
      'tsconfig.tsbuildinfo': ['code', '{}'],
      'grammar.peg': ['code', ''],
      'gen.js': ['code', "readFileSync('grammar.peg')"],
      'test/a.test.ts': ['known', `${imports('../dist/index.js', '../generated/parser.js')} open('fixtures/in.json', 'fixtures/out.json', 'grammar.peg')`],
    },
  },
  {
    name: 'tests inside of the code',
    command: 'npx vitest run',
    tests: ['src/sum.ts', 'src/uses.ts'],
    files: {
      'package.json': ['known', VITEST],
      'src/sum.ts': ['code', 'export const a = 1\nif (import.meta.vitest) { }'],
      'src/uses.ts': ['code', `${imports('./sum')} if (import.meta.vitest) {}`],
    },
  },
  {
    name: 'a tool that reads every file',
    command: 'npx eslint .',
    files: {
      'package.json': ['known', '{"devDependencies": {"eslint": "9"}, "scripts": {"lint": "eslint ."}}'],
      'eslint.config.js': ['configuration', imports('./rules/no-var.js')],
      'rules/no-var.js': ['configuration', ''],
      '.eslintignore': ['configuration', ''],
      'helper.js': ['code', ''],
      'src/mocks.js': ['code', ''],
      'data.json': ['code', '{}'],
    },
  },
  {
    name: 'pytest with tests in checks',
    command: 'pytest -q',
    tests: ['checks/total.py', 'tests/test_tax.py'],
    files: {
      'pyproject.toml': ['known', '[tool.pytest.ini_options]\npython_files = "*.py"\n[project]\nname = "shop"\n'],
      'shop/__init__.py': ['code', 'from .cart import total\n'],
      'shop/cart.py': ['code', 'import json\nfrom shop import rates, helpers\n'],
      'shop/rates.py': ['code', ''],
      'shop/helpers.py': ['code', ''],
      'shop/testing.py': ['helper of tests', 'import pytest\n'],
      'checks/__init__.py': ['in a folder of tests', ''],
      'checks/total.py': ['test', 'from shop.cart import total\nfrom .near import near\n'],
      'checks/near.py': ['in a folder of tests', ''],
      'helpers.py': ['helper of tests', ''],
      'oracle.py': ['read by tests only', 'import pytest\n'],
      'plain.py': ['code', ''],
      'conftest.py': ['known', 'import pytest\n'],
      'tests/test_tax.py': [
        'known',
        'from shop.cart import (\n  total,\n)\nimport helpers, plain\nimport oracle\nfrom shop.testing import x\n' +
          "Path(__file__).parent / 'data' / 'tax.csv'\nopen('samples/a.txt')\nopen('data/world.json')\n",
      ],
      'data/tax.csv': ['read by tests only', ''],
      'data/world.json': ['read by tests only', ''],
      'samples/a.txt': ['read by tests only', ''],
      'shop/schema.json': ['code', '{}'],
      'setup.cfg': ['code', '[metadata]\n'],
      'requirements.txt': ['code', ''],
      '.coveragerc': ['configuration', ''],
    },
  },
  {
    name: 'plugins of pytest, and what only compares',
    command: 'pytest -p first',
    tests: ['tests/test_tax.py', 'tests/test_rules.py'],
    unclaimed: ['tools/table.py', 'tools/other.py'],
    files: {
      'pytest.ini': ['known', '[pytest]\naddopts = -q -p tools.strict\n'],
      'conftest.py': ['known', "pytest_plugins = (\n  'tools.fixtures',\n  'shop.fixtures', 'used',\n)\n"],
      'first.py': ['configuration', ''],
      'used.py': ['code', ''],
      'tools/strict.py': ['configuration', 'from tools import rules\n'],
      'tools/rules.py': ['configuration', ''],
      'tools/fixtures.py': ['configuration', 'from shop.app import run\nfrom . import table\n'],
      'tools/table.py': ['code', ''],
      'tools/other.py': ['code', ''],
      'shop/app.py': ['code', 'from shop import fixtures\n'],
      'shop/fixtures.py': ['code', ''],
      'same.py': ['helper of tests', 'def same(a, b):\n    assert a == b\n'],
      'limits.py': ['code', 'def check(a):\n    assert a >= 0\n'],
      'convert.py': ['code', 'def convert(a):\n    assert a >= 0\n    return a * 2\n'],
      'tests/test_tax.py': ['known', 'import shop.app, tools.other, used, convert, limits\nfrom tools.table import a\nfrom same import same\n'],
      'tests/test_rules.py': ['known', 'import limits\nfrom shop.app import run\n\ndef test_a():\n    with pytest.raises(AssertionError):\n        limits.check(-1)\n'],
    },
  },
  {
    name: 'a plugin of pytest',
    command: 'pytest',
    tests: ['tests/test_strict.py'],
    files: {
      'pyproject.toml': ['known', '[project.entry-points.pytest11]\nstrict = "strict.plugin"\n[tool.pytest.ini_options]\naddopts = "-p strict.plugin"\n'],
      'strict/plugin.py': ['code', 'from strict import rules\n'],
      'strict/rules.py': ['code', ''],
      'tests/test_strict.py': ['known', 'def test_a(pytester):\n    pass\n'],
    },
  },
  {
    name: 'cases that a script lists, and code that it lists',
    command: 'node check.js',
    listed: ['steps', 'handlers'],
    files: {
      'check.js': ['known', "for (const one of readdirSync('steps')) require('./steps/' + one)\nfor (const one of readdirSync('handlers')) require('./handlers/' + one)"],
      'steps/add.js': ['in a folder of tests', `${uses('../add.js', 'assert')} assert(add(1, 2) === 3)`],
      'handlers/sum.js': ['code', `${uses('../add.js', 'assert')} module.exports = (a) => assert(a)`],
      'add.js': ['code', ''],
    },
  },
  {
    name: 'documentation that is tested',
    command: 'pytest --doctest-modules --doctest-glob=*.md',
    tests: ['shop/cart.py', 'README.md', 'test_cart.py'],
    files: {
      'shop/__init__.py': ['code', ''],
      'shop/cart.py': ['code', '"""\n>>> total()\n0\n"""\n'],
      'README.md': ['test', '>>> 1\n1\n'],
      'test_cart.py': ['known', 'import shop.cart\n'],
      'shop/fixtures.py': ['code', ''],
    },
  },
  {
    name: 'unittest without a package',
    command: 'python3 -m unittest',
    tests: ['test_calc.py'],
    files: {
      'calc.py': ['code', 'import rounding\nDATA = open("table.csv")\n'],
      'rounding.py': ['code', ''],
      'table.csv': ['code', ''],
      'fake_clock.py': ['helper of tests', ''],
      'spec_data.json': ['read by tests only', ''],
      'test_calc.py': ['known', 'import calc, fake_clock\nopen("table.csv"); open("spec_data.json")\n'],
    },
  },
  {
    name: 'a plain script that checks',
    command: 'node qa.js',
    files: {
      'qa.js': ['named by the command', `${uses('./total.js', './orders.json')} require('assert')`],
      'total.js': ['code', ''],
      'orders.json': ['read by tests only', '[]'],
    },
  },
  {
    name: 'a plain script without a telling name',
    command: 'python3 run.py',
    files: {
      'run.py': ['named by the command', 'import total\nassert total.of([1]) == 1\nopen("orders.json")\n'],
      'total.py': ['code', ''],
      'orders.json': ['read by tests only', '[]'],
    },
  },
  {
    name: 'a program whose output is compared',
    command: 'python3 run.py < input.txt | diff - expected.txt',
    files: {
      'run.py': ['code', 'import sys\nsys.exit(1)\n'],
      'total.py': ['code', ''],
      'input.txt': ['code', ''],
      'expected.txt': ['read by tests only', ''],
    },
    unclaimed: ['input.txt'],
  },
  {
    name: 'the program itself',
    command: 'node main.js',
    files: {
      'main.js': ['code', `${uses('./lib/a')} assert(true); process.exit(1)`],
      'lib/a.js': ['code', ''],
    },
  },
  {
    name: 'a shell script that compares',
    command: 'sh verify.sh',
    files: {
      'verify.sh': [
        'known',
        '. ./assert.sh\n./tool.sh > out.txt\ndiff out.txt golden/one.txt\ngrep x answer.txt found.txt\npython3 scripts/compare.py out.txt\ncat notes.txt rules.awk\n',
      ],
      'assert.sh': ['known', 'fail() { exit 1; }\n'],
      'tool.sh': ['code', 'echo 1\n'],
      'golden/one.txt': ['read by tests only', '1\n'],
      'answer.txt': ['code', ''],
      'notes.txt': ['code', ''],
      'found.txt': ['code', ''],
      'scripts/compare.py': ['named by the command', 'import sys\nsys.exit(1)\n'],
      'rules.awk': ['code', ''],
    },
    unclaimed: ['notes.txt'],
  },
  {
    name: 'make with included rules',
    command: 'make test',
    files: {
      'Makefile': ['known', 'include build/rules.mk\ninclude vars.inc\ntest: app\n\t./app < cases/1.in | cmp - cases/1.expected\n'],
      'build/rules.mk': ['configuration', 'app: main.c\n\tcc -o app main.c\n'],
      'vars.inc': ['configuration', 'CC = cc\n'],
      'main.c': ['code', '#include "helper.h"\n'],
      'helper.h': ['code', ''],
      'cases/1.in': ['read by tests only', '1'],
      'cases/1.expected': ['read by tests only', '1'],
    },
  },
  {
    name: 'tests in a folder t that node runs by name',
    command: 'node --test t/*.js',
    tests: ['t/parse.js', 't/write.js'],
    listed: ['corpus', 't'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', uses('./parse')],
      'parse.js': ['code', "reader.on('corpus', () => {})"],
      't/parse.js': ['test', `${uses('node:test', '../index.js', './near')} list('corpus')`],
      't/write.js': ['test', uses('node:test', '../parse', './near', './near/deep')],
      't/near/index.js': ['in a folder of tests', ''],
      't/near/deep.js': ['in a folder of tests', ''],
      't/words.txt': ['in a folder of tests', ''],
      't/page.html': ['in a folder of tests', ''],
      'corpus/a.txt': ['read by tests only', ''],
      'corpus/b/c.xml': ['read by tests only', ''],
    },
  },
  {
    name: 'a package with golden files beside its code',
    command: 'go test ./...',
    tests: ['shop/cart'],
    files: {
      'go.mod': ['code', 'module shop'],
      'cart/cart.go': ['code', 'template.ParseFiles("mail.tmpl")'],
      'cart/cart_test.go': ['code', 'os.ReadFile("cart.golden")'],
      'cart/mail.tmpl': ['code', ''],
      'cart/cart.golden': ['code', ''],
    },
  },
  {
    name: 'tests of a program that is started',
    command: 'npx vitest run',
    tests: ['e2e/cli.test.ts'],
    files: {
      'package.json': ['known', '{"name": "tool", "bin": {"tool": "./bin/tool"}, "scripts": {}}'],
      'bin/tool': ['code', '#!/usr/bin/env node\nrequire("../dist/cli.js")'],
      'dist/cli.js': ['code', ''],
      'e2e/cli.test.ts': ['known', `${imports('./run', 'vitest', './golden/help.txt')}`],
      'e2e/run.ts': ['in a folder of tests', "spawn('node', ['bin/tool'])"],
      'e2e/golden/help.txt': ['in a folder of tests', ''],
      'vite.config.ts': ['known', ''],
      'cypress.config.js': ['known', ''],
      '.nycrc': ['known', '{}'],
      'docs/usage.md': ['code', ''],
    },
  },
  {
    name: 'settings and setup modules in several files',
    command: 'npx mocha --reporter ./report/list.js',
    tests: ['test/a.js'],
    files: {
      'package.json': ['known', '{"name": "shop", "scripts": {"test": "mocha", "start": "node site.js"}}'],
      '.mocharc.cjs': ['known', "module.exports = { ...require('./config/base'), require: ['./boot.js', './loud.js'] }"],
      'config/base.js': ['configuration', uses('./more.json', '../src/paths')],
      'config/more.json': ['configuration', '{}'],
      'src/paths.js': ['configuration', ''],
      'boot.js': ['known', uses('./hooks', './site', './src/side', './store', './shared')],
      'loud.js': ['known', "global.thing = require('./thing')"],
      'hooks/index.js': ['configuration', uses('./deep')],
      'hooks/deep.js': ['configuration', ''],
      'report/list.js': ['known', uses('./words')],
      'report/words.js': ['configuration', ''],
      'site.js': ['code', ''],
      'thing.js': ['code', ''],
      'store.js': ['code', uses('./price')],
      'shared.js': ['code', ''],
      'price.js': ['code', ''],
      'src/side.js': ['code', ''],
      'test/a.js': ['known', uses('../price', '../shared')],
    },
  },
  {
    name: 'a plugin in a folder of code that pages know by an alias',
    command: 'npx vitest run',
    tests: ['test/a.test.ts'],
    unclaimed: ['plugins/other.ts'],
    files: {
      'package.json': ['known', VITEST],
      'vite.config.ts': ['known', imports('./src/env', './src/plugins/same', './plugins/other')],
      'src/env.ts': ['code', ''],
      'src/plugins/same.ts': ['configuration', ''],
      'plugins/other.ts': ['code', ''],
      'src/page.ts': ['code', imports('~/env')],
      'test/a.test.ts': ['known', imports('vitest', '../src/page', '../plugins/other')],
    },
  },
  {
    name: 'assertions of its own',
    command: 'node --test',
    parts: ['package.json#exports', 'packages/near/package.json#entry'],
    tests: ['test/a.test.js', 'test/b.test.js', 'test/c.test.js'],
    files: {
      'package.json': ['known', '{"name": "shop", "scripts": {}, "exports": {"./testing": "./lib/testing.js", "./price": "./lib/price.js"}}'],
      'lib/compare.js': ['helper of tests', 'exports.same = (a, b) => { if (a !== b) throw 1 }'],
      'lib/testing.js': ['helper of tests', 'exports.holds = (a) => { if (!a) throw 1 }'],
      'lib/price.js': ['code', 'exports.price = () => { throw 1 }'],
      'lib/add.js': ['code', 'exports.add = () => { throw 1 }'],
      'lib/plugin.js': ['code', 'exports.plugin = 1'],
      'lib/install.js': ['code', 'exports.install = () => { throw 1 }'],
      'lib/connect.js': ['code', 'exports.connect = () => { throw 1 }'],
      'packages/near/package.json': ['known', '{"name": "near", "scripts": {}}'],
      'packages/near/index.js': ['helper of tests', uses('assert')],
      'test/a.test.js': [
        'known',
        `const { test, before } = require('node:test')
const { same } = require('../lib/compare')
const { holds } = require('shop/testing')
const { price } = require('shop/price')
const { add } = require('../lib/add')
const { connect } = require('../lib/connect')
const near = require('near')
before(() => connect(add))
test('adds', () => same(add(1, 2), 3))
test('adds more', async () => {
  const sum = add(2, 2)
  await same(sum, 4)
  near(sum, price())
})
test('holds', () => { holds(add(1) > 0) })
`,
      ],
      'test/b.test.js': [
        'known',
        `import assert from 'node:assert'
import { install } from '../lib/install.js'
import { plugin } from '../lib/plugin.js'
test('installs', () => { install(plugin) })
test('refuses', () => { assert.throws(() => install(1)) })
`,
      ],
      'test/c.test.js': ['known', `${uses('../lib/plugin', '../lib/add')}`],
    },
  },
  {
    name: 'a plain script of code that throws',
    command: 'node check.js',
    files: {
      'check.js': ['known', "import { run } from './run.js'\nimport { settings } from './settings.js'\nrun(settings)\n"],
      'run.js': ['code', 'export const run = () => { throw 1 }'],
      'settings.js': ['code', 'export const settings = 1'],
    },
  },
  {
    name: 'a runner that does not report',
    command: 'npx ava',
    files: {
      'package.json': ['known', '{"name": "shop", "main": "tap.js", "scripts": {"test": "ava"}}'],
      'unit/add.js': ['test', `${uses('../add', './near')} const t = require('ava')\nt('adds', () => {})`],
      'unit/near.js': ['in a folder of tests', ''],
      'golden/add.js.snap': ['read by tests only', ''],
      'qa/sum.js': ['test', `${uses('../add')}require('tape')('adds', () => {})`],
      'src/sum.js': ['test', "import t from 'tap'\nt.test('adds', () => {})"],
      'src/runs.js': ['code', "import t from 'tap'\nt.test('adds', () => {})"],
      'tap.js': ['code', "import t from 'tap'\nt.test('adds', () => {})"],
      'add.js': ['code', uses('./src/runs')],
    },
  },
  {
    name: 'samples in prose',
    command: 'node --test',
    tests: ['test/a.test.js', 'test/b.test.js'],
    parts: ['README.md#sample:b30c879e6fe0868e', 'docs/guide.md#sample:b30c879e6fe0868e'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', ''],
      'README.md': ['code', '# shop\n```js\nadd(1, 2) // 3\n```\nMore\n'],
      'docs/guide.md': ['code', '# Guide\n\n    add(1, 2) // 3\n'],
      'manual/other.md': ['code', '    add(1, 2) // 3\n'],
      'docs/empty.md': ['code', '# Guide\n'],
      'test/a.test.js': ['known', `${uses('..')} open('README.md').match(/x/); open('docs/guide.md'); open('docs/empty.md')`],
      'test/b.test.js': ['known', `${uses('..')} assert.match(open('manual/other.md'), /options/)`],
    },
  },
  {
    name: 'programs that run beside the tests',
    command: 'node tools/prepare.js && node tools/build.js && node server.js & node tools/used.js; node --test',
    tests: ['test/a.test.js'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', ''],
      'tools/prepare.js': ['named by the command', ''],
      'tools/build.js': ['code', ''],
      'tools/used.js': ['code', ''],
      'server.js': ['code', ''],
      'test/a.test.js': ['known', uses('..', '../tools/used')],
    },
  },
  {
    name: 'a program before the tests that makes code',
    command: 'node tools/prepare.js && node --test',
    tests: ['test/a.test.js'],
    changed: ['made/a.js'],
    files: {
      'package.json': ['known', NODE],
      'tools/prepare.js': ['code', ''],
      'made/a.js': ['code', ''],
      'test/a.test.js': ['known', uses('../made/a.js')],
    },
  },
  {
    name: 'options in variables',
    command: 'NODE_OPTIONS="--import ./boot.js" node --test',
    tests: ['test/a.test.js'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', ''],
      'boot.js': ['configuration', imports('./hooks/index.js')],
      'hooks/index.js': ['configuration', ''],
      'test/a.test.js': ['known', uses('..')],
    },
  },
  {
    name: 'hostile names',
    command: 'node --test',
    tests: ['test/a.test.js', '../outside.js', '/etc/passwd', 'qa/[x]*{a,b}.js', '__proto__'],
    files: {
      'package.json': ['known', NODE],
      'index.js': ['code', ''],
      'qa/[x]*{a,b}.js': ['test', uses('../index.js')],
      'qa/!constructor': ['in a folder of tests', ''],
      'fixtures/a b\n.txt': ['read by tests only', ''],
      '__proto__': ['code', '#!/bin/sh\n'],
      'test/a.test.js': ['known', `${uses('..')} open('fixtures/a b\\n.txt')`],
    },
  },
]

/** The files of a project by content. */
export function contentsOf({ files }: Project): Files {
  return Object.fromEntries(Object.entries(files).map(([path, [, content]]) => [path, content]))
}
