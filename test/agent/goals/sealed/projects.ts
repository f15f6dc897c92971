/** Small projects with a check each, and the rule by which each of their files has its owner. */
import type { Rule } from '../../../../lib/agent/goals/sealed/owners.js'
import type { Files } from '../support.js'

export interface Project {
  readonly name: string
  readonly command: string
  /** The rule and the content of what is there at the start, by path. */
  readonly files: { readonly [path: string]: readonly [rule: Rule, content: string] }
  /** The same of files that a run adds. */
  readonly added?: { readonly [path: string]: readonly [rule: Rule, content: string] }
  /** What the runner reported. */
  readonly tests?: readonly string[]
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
      'package.json': ['prose', JEST],
      'src/index.js': ['code', uses('./total')],
      'src/total.js': ['code', 'module.exports = 1'],
      'qa/total.js': ['test', `${uses('../src/total', './close')}test('a', () => {})`],
      'qa/deep/tax.js': ['test', uses('../../src/index.js')],
      'qa/close.js': ['test', 'module.exports = 1'],
      'qa/orders.json': ['test', '[]'],
      'qa/README.md': ['prose', '# qa'],
      'qa/tmp.log': ['test', 'x'],
    },
  },
  {
    name: 'tests in a folder unit whose names no pattern knows',
    command: 'npx mocha unit',
    tests: ['unit/total.js'],
    files: {
      'package.json': ['prose', MOCHA],
      'lib/index.js': ['code', uses('./total')],
      'lib/total.js': ['code', ''],
      'unit/total.js': ['test', uses('../lib/total', './money')],
      'unit/money.js': ['test', ''],
    },
  },
  {
    name: 'a library of units, in a folder unit',
    command: 'node --test',
    tests: ['test/convert.test.js', 'unit/length.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', uses('./unit/convert.js', './fixtures/lamp.js')],
      'unit/convert.js': ['code', uses('./table.json')],
      'unit/table.json': ['data', '{}'],
      'unit/length.js': ['code', ''],
      'unit/helpers.js': ['code', ''],
      'unit/length.test.js': ['test', uses('./length.js', '../index.js', 'node:test')],
      'test/convert.test.js': ['test', uses('../unit/convert.js', '../unit/helpers.js')],
      'test/helpers.test.js': ['test', uses('../unit/helpers.js')],
      'fixtures/lamp.js': ['code', ''],
    },
  },
  {
    name: 'a folder unit whose tests lie beside what they test',
    command: 'node --test',
    tests: ['unit/mass.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'lib/base.js': ['code', ''],
      'unit/mass.js': ['code', uses('./scale')],
      'unit/scale.js': ['code', ''],
      'unit/mass.test.js': ['test', uses('node:test', './mass', './scale', '../lib/base')],
    },
  },
  {
    name: 'a shop of light fixtures that only tests load',
    command: 'node --test',
    tests: ['test/lamp.test.js'],
    files: {
      'package.json': ['prose', '{"name": "lights", "scripts": {"test": "node --test"}}'],
      'fixtures/lamp.js': ['code', ''],
      'test/lamp.test.js': ['test', `${uses('node:test', '../fixtures/lamp.js')}`],
      'expect/parse.js': ['code', ''],
      'test/parse.test.js': ['test', uses('../expect/parse.js')],
    },
  },
  {
    name: 'data that tests read',
    command: 'node --test',
    tests: ['test/parse.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', `${uses('./parse.js', './rates.json')}stream.on('data', () => {})`],
      'parse.js': ['code', "fs.readFileSync(path.join(__dirname, 'templates', name + '.txt'))"],
      'rates.json': ['data', '{}'],
      'countries.json': ['fixture', '[]'],
      'shared.json': ['fixture', '[]'],
      'templates/mail.txt': ['data', ''],
      'data/orders.csv': ['fixture', ''],
      'logs/server.log': ['fixture', ''],
      'cases/one.json': ['fixture', '{}'],
      'cases/deep/page.html': ['fixture', '<p>'],
      'vectors.json': ['fixture', '[]'],
      'other/unread-by-name.json': ['rest', '[]'],
      'README.md': ['fixture', '# shop'],
      'LICENSE': ['prose', 'MIT'],
      'docs/api.md': ['fixture', ''],
      'package-lock.json': ['prose', '{}'],
      'index.html': ['prose', '<p>'],
      'openapi.yaml': ['prose', ''],
      'test/parse.test.js': [
        'test',
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
      'package.json': ['prose', '{"name": "pages", "scripts": {"test": "node --test"}}'],
      'config.json': ['asked', '{"timeout": 5}'],
      'data/users.json': ['asked', '[]'],
      'answer.txt': ['asked', ''],
      'fixtures/users.expected.json': ['fixture', '[]'],
      'test/config.test.js': [
        'test',
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
      'package.json': ['prose', VITEST],
      'vitest.config.ts': ['settings', "export default { test: { setupFiles: ['./support/dom.ts'] } }"],
      'tsconfig.json': ['settings', '{"extends": "./tsconfig.base.json"}'],
      'tsconfig.base.json': ['settings', '{}'],
      '.env.test': ['settings', 'A=1'],
      'support/dom.ts': ['named', imports('vitest')],
      'src/cart.ts': ['code', imports('./tax/tax.js', './helpers/format.js', './app.config.js')],
      'src/app.config.ts': ['code', 'export const a = 1'],
      'src/helpers/format.ts': ['code', ''],
      'src/helpers/parse.ts': ['helper', ''],
      'src/tax/tax.ts': ['code', ''],
      'src/tax/rates.json': ['fixture', '{}'],
      'src/setupTests.ts': ['helper', imports('vitest')],
      'src/test-utils.ts': ['test', imports('./cart.js')],
      'src/testUtils.ts': ['helper', imports('./cart.js')],
      'src/__mocks__/clock.ts': ['settings', 'export const now = 0'],
      'src/__fixtures__/cart.json': ['fixture', '{}'],
      'src/cart.test.ts': [
        'test',
        imports('./cart.js', './testUtils', './setupTests', './helpers/parse', 'vitest') +
          imports('./__fixtures__/cart.json'),
      ],
      'src/tax/tax.test.ts': ['test', `${imports('./tax', 'vitest')} open('src/tax/rates.json')`],
    },
  },
  {
    name: 'helpers in the root',
    command: 'npx mocha',
    tests: ['test/cart.js'],
    files: {
      'package.json': ['prose', '{"scripts": {"test": "mocha"}, "mocha": {"require": "./hooks.js"}}'],
      'cart.js': ['code', uses('./price', './validators/check')],
      'price.js': ['code', ''],
      'validators/check.js': ['code', ''],
      'hooks.js': ['named', 'exports.mochaHooks = {}'],
      'harness/start.js': ['helper', uses('../cart')],
      'harness/ports.js': ['helper', ''],
      'test-helper.js': ['test', ''],
      'assert-money.js': ['helper', "const assert = require('assert')"],
      'closeTo.js': ['helper', "const { expect } = require('chai')"],
      'spies.js': ['code', ''],
      'mocks/db.js': ['helper', ''],
      'test/cart.js': [
        'test',
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
      'package.json': ['prose', MOCHA],
      'lib/index.js': ['code', uses('../helpers/clock', '../testing', '../support')],
      'helpers/clock.js': ['code', uses('./zones')],
      'helpers/zones.js': ['code', ''],
      'testing/index.js': ['code', uses('./fakes')],
      'testing/fakes.js': ['code', ''],
      'support.js': ['code', ''],
      'test/a.js': ['test', uses('../lib', '../helpers/clock', '../helpers/zones', '../testing/fakes')],
    },
  },
  {
    name: 'a package for tests',
    command: 'npx mocha',
    tests: ['test/close.js'],
    files: {
      'package.json': [
        'prose',
        '{"name": "chai-close", "main": "./close.js", "exports": {".": "./close.js", "./testing": "./testing.js"}, "scripts": {"test": "mocha"}}',
      ],
      'close.js': ['code', uses('chai')],
      'testing.js': ['code', uses('chai', './assertions')],
      'assertions.js': ['helper', uses('chai')],
      'test/close.js': ['test', uses('chai', '../close', '../testing', '../assertions', '..')],
    },
  },
  {
    name: 'configuration that keys of package.json name',
    command: 'npx jest',
    tests: ['test/a.test.js'],
    files: {
      'package.json': [
        'prose',
        JSON.stringify({
          scripts: { test: 'jest' },
          jest: { preset: './jest/preset.js', moduleNameMapper: { '^@/(.*)$': './src/$1' } },
          babel: { presets: ['./jest/babel.js'], extends: './babel/base.js' },
          prettier: './format.json',
        }),
      ],
      'jest/preset.js': ['named', ''],
      'babel/base.js': ['settings', ''],
      'format.json': ['rest', '{}'],
      '.swcrc': ['settings', '{}'],
      '.eslintrc.json': ['settings', '{}'],
      'webpack.config.js': ['settings', uses('./src/a')],
      'src/a.js': ['code', ''],
      'test/a.test.js': ['test', uses('@/a')],
    },
  },
  {
    name: 'a build before the tests',
    command: 'npm test',
    tests: ['test/a.test.ts'],
    files: {
      'package.json': ['prose', '{"main": "dist/index.js", "scripts": {"test": "tsc && node --test"}}'],
      'src/index.ts': ['code', imports('./helper.js')],
      'src/helper.ts': ['code', ''],
      'dist/index.js': ['result', ''],
      'generated/parser.js': ['code', ''],
      'fixtures/out.json': ['fixture', '{}'],
      'fixtures/in.json': ['fixture', '{}'],
      'tsconfig.tsbuildinfo': ['settings', '{}'],
      'grammar.peg': ['fixture', ''],
      'gen.js': ['code', "readFileSync('grammar.peg')"],
      'test/a.test.ts': ['test', `${imports('../dist/index.js', '../generated/parser.js')} open('fixtures/in.json', 'fixtures/out.json', 'grammar.peg')`],
    },
  },
  {
    name: 'tests inside of the code',
    command: 'npx vitest run',
    tests: ['src/sum.ts', 'src/uses.ts'],
    files: {
      'package.json': ['prose', VITEST],
      'src/sum.ts': ['code', 'export const a = 1\nif (import.meta.vitest) { }'],
      'src/uses.ts': ['code', `${imports('./sum')} if (import.meta.vitest) {}`],
    },
  },
  {
    name: 'a tool that reads every file',
    command: 'npx eslint .',
    files: {
      'package.json': ['prose', '{"devDependencies": {"eslint": "9"}, "scripts": {"lint": "eslint ."}}'],
      'eslint.config.js': ['settings', imports('./rules/no-var.js')],
      'rules/no-var.js': ['settings', ''],
      '.eslintignore': ['settings', ''],
      'helper.js': ['code', ''],
      'src/mocks.js': ['code', ''],
      'data.json': ['rest', '{}'],
    },
  },
  {
    name: 'pytest with tests in checks',
    command: 'pytest -q',
    tests: ['checks/total.py', 'tests/test_tax.py'],
    files: {
      'pyproject.toml': ['prose', '[tool.pytest.ini_options]\npython_files = "*.py"\n[project]\nname = "shop"\n'],
      'shop/__init__.py': ['code', 'from .cart import total\n'],
      'shop/cart.py': ['code', 'import json\nfrom shop import rates, helpers\n'],
      'shop/rates.py': ['code', ''],
      'shop/helpers.py': ['code', ''],
      'shop/testing.py': ['helper', 'import pytest\n'],
      'checks/__init__.py': ['test', ''],
      'checks/total.py': ['test', 'from shop.cart import total\nfrom .near import near\ndef test_total():\n    near(total(), 1)\n'],
      'checks/near.py': ['test', ''],
      'helpers.py': ['code', ''],
      'oracle.py': ['helper', 'import pytest\n'],
      'plain.py': ['code', ''],
      'conftest.py': ['settings', 'import pytest\n'],
      'tests/test_tax.py': [
        'test',
        'from shop.cart import (\n  total,\n)\nimport helpers, plain\nimport oracle\nfrom shop.testing import x\n' +
          "Path(__file__).parent / 'data' / 'tax.csv'\nopen('samples/a.txt')\nopen('data/world.json')\n",
      ],
      'data/tax.csv': ['fixture', ''],
      'data/world.json': ['fixture', ''],
      'samples/a.txt': ['fixture', ''],
      'shop/schema.json': ['prose', '{}'],
      'setup.cfg': ['prose', '[metadata]\n'],
      'requirements.txt': ['prose', ''],
      '.coveragerc': ['settings', ''],
    },
  },
  {
    name: 'plugins of pytest, and what only compares',
    command: 'pytest -p first',
    tests: ['tests/test_tax.py', 'tests/test_rules.py'],
    files: {
      'pytest.ini': ['settings', '[pytest]\naddopts = -q -p tools.strict\n'],
      'conftest.py': ['settings', "pytest_plugins = (\n  'tools.fixtures',\n  'shop.fixtures', 'used',\n)\n"],
      'first.py': ['settings', ''],
      'used.py': ['code', ''],
      'tools/strict.py': ['settings', 'from tools import rules\n'],
      'tools/rules.py': ['code', ''],
      'tools/fixtures.py': ['settings', 'from shop.app import run\nfrom . import table\n'],
      'tools/table.py': ['code', ''],
      'tools/other.py': ['code', ''],
      'shop/app.py': ['code', 'from shop import fixtures\n'],
      'shop/fixtures.py': ['code', ''],
      'same.py': ['code', 'def same(a, b):\n    assert a == b\n'],
      'limits.py': ['code', 'def check(a):\n    assert a >= 0\n'],
      'convert.py': ['code', 'def convert(a):\n    assert a >= 0\n    return a * 2\n'],
      'tests/test_tax.py': ['test', 'import shop.app, tools.other, used, convert, limits\nfrom tools.table import a\nfrom same import same\n'],
      'tests/test_rules.py': ['test', 'import limits\nfrom shop.app import run\n\ndef test_a():\n    with pytest.raises(AssertionError):\n        limits.check(-1)\n'],
    },
  },
  {
    name: 'a plugin of pytest',
    command: 'pytest',
    tests: ['tests/test_strict.py'],
    files: {
      'pyproject.toml': ['prose', '[project.entry-points.pytest11]\nstrict = "strict.plugin"\n[tool.pytest.ini_options]\naddopts = "-p strict.plugin"\n'],
      'strict/plugin.py': ['code', 'from strict import rules\n'],
      'strict/rules.py': ['code', ''],
      'tests/test_strict.py': ['test', 'def test_a(pytester):\n    pass\n'],
    },
  },
  {
    name: 'cases that a script lists, and code that it lists',
    command: 'node check.js',
    files: {
      'check.js': ['named', "for (const one of readdirSync('steps')) require('./steps/' + one)\nfor (const one of readdirSync('handlers')) require('./handlers/' + one)"],
      'steps/add.js': ['helper', `${uses('../add.js', 'assert')} assert(add(1, 2) === 3)`],
      'handlers/sum.js': ['helper', `${uses('../add.js', 'assert')} module.exports = (a) => assert(a)`],
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
      'test_cart.py': ['test', 'import shop.cart\n'],
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
      'table.csv': ['fixture', ''],
      'fake_clock.py': ['code', ''],
      'spec_data.json': ['fixture', ''],
      'test_calc.py': ['test', 'import calc, fake_clock\nopen("table.csv"); open("spec_data.json")\n'],
    },
  },
  {
    name: 'a plain script that checks',
    command: 'node qa.js',
    files: {
      'qa.js': ['named', `${uses('./total.js', './orders.json')} require('assert')`],
      'total.js': ['code', ''],
      'orders.json': ['fixture', '[]'],
    },
  },
  {
    name: 'a plain script without a telling name',
    command: 'python3 run.py',
    files: {
      'run.py': ['named', 'import total\nassert total.of([1]) == 1\nopen("orders.json")\n'],
      'total.py': ['code', ''],
      'orders.json': ['fixture', '[]'],
    },
  },
  {
    name: 'a program whose output is compared',
    command: 'python3 run.py < input.txt | diff - expected.txt',
    files: {
      'run.py': ['code', 'import sys\nsys.exit(1)\n'],
      'total.py': ['code', ''],
      'input.txt': ['fixture', ''],
      'expected.txt': ['fixture', ''],
    },
  },
  {
    name: 'the program itself',
    command: 'node main.js',
    files: {
      'main.js': ['named', `${uses('./lib/a')} assert(true); process.exit(1)`],
      'lib/a.js': ['code', ''],
    },
  },
  {
    name: 'a shell script that compares',
    command: 'sh verify.sh',
    files: {
      'verify.sh': [
        'named',
        '. ./assert.sh\n./tool.sh > out.txt\ndiff out.txt golden/one.txt\ngrep x answer.txt found.txt\npython3 scripts/compare.py out.txt\ncat notes.txt rules.awk\n',
      ],
      'assert.sh': ['named', 'fail() { exit 1; }\n'],
      'tool.sh': ['code', 'echo 1\n'],
      'golden/one.txt': ['fixture', '1\n'],
      'answer.txt': ['asked', ''],
      'notes.txt': ['asked', ''],
      'found.txt': ['asked', ''],
      'scripts/compare.py': ['named', 'import sys\nsys.exit(1)\n'],
      'rules.awk': ['code', ''],
    },
  },
  {
    name: 'a program in C with a header for its tests',
    command: 'make test',
    files: {
      'Makefile': ['settings', 'test: test_sum\n\t./test_sum\n'],
      'test_sum.c': ['test', '#include "claim.h"\n#include "sum.h"\n#include "twice.h"\n'],
      'sum.c': ['code', '#include "sum.h"\n#include "round.h"\n'],
      'sum.h': ['code', ''],
      'round.h': ['code', ''],
      'include/claim.h': ['helper', ''],
      'test_twice.c': ['test', '#include "claim.h"\n#include "twice.h"\n'],
      // A test is named after it.
      'twice.h': ['code', ''],
    },
  },
  {
    name: 'make with included rules',
    command: 'make test',
    files: {
      'Makefile': ['settings', 'include build/rules.mk\ninclude vars.inc\ntest: app\n\t./app < cases/1.in | cmp - cases/1.expected\n'],
      'build/rules.mk': ['settings', 'app: main.c\n\tcc -o app main.c\n'],
      'vars.inc': ['fixture', 'CC = cc\n'],
      'main.c': ['code', '#include "helper.h"\n'],
      'helper.h': ['code', ''],
      'cases/1.in': ['fixture', '1'],
      'cases/1.expected': ['fixture', '1'],
    },
  },
  {
    name: 'tests in a folder t that node runs by name',
    command: 'node --test t/*.js',
    tests: ['t/parse.js', 't/write.js'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', uses('./parse')],
      'parse.js': ['code', "reader.on('corpus', () => {})"],
      't/parse.js': ['test', `${uses('node:test', '../index.js', './near')} list('corpus')`],
      't/write.js': ['test', uses('node:test', '../parse', './near', './near/deep')],
      't/near/index.js': ['test', ''],
      't/near/deep.js': ['test', ''],
      't/words.txt': ['fixture', ''],
      't/page.html': ['test', ''],
      'corpus/a.txt': ['rest', ''],
      'corpus/b/c.xml': ['rest', ''],
    },
  },
  {
    name: 'a package with golden files beside its code',
    command: 'go test ./...',
    tests: ['shop/cart'],
    files: {
      'go.mod': ['rest', 'module shop'],
      'cart/cart.go': ['code', 'template.ParseFiles("mail.tmpl")'],
      'cart/cart_test.go': ['test', 'os.ReadFile("cart.golden")'],
      'cart/mail.tmpl': ['data', ''],
      'cart/cart.golden': ['fixture', ''],
    },
  },
  {
    name: 'tests of a program that is started',
    command: 'npx vitest run',
    tests: ['e2e/cli.test.ts'],
    files: {
      'package.json': ['prose', '{"name": "tool", "bin": {"tool": "./bin/tool"}, "scripts": {}}'],
      'bin/tool': ['code', '#!/usr/bin/env node\nrequire("../dist/cli.js")'],
      'dist/cli.js': ['code', ''],
      'e2e/cli.test.ts': ['test', `${imports('./run', 'vitest', './golden/help.txt')}`],
      'e2e/run.ts': ['helper', "spawn('node', ['bin/tool'])"],
      'e2e/golden/help.txt': ['fixture', ''],
      'vite.config.ts': ['settings', ''],
      'cypress.config.js': ['settings', ''],
      '.nycrc': ['settings', '{}'],
      'docs/usage.md': ['prose', ''],
    },
  },
  {
    name: 'settings and setup modules in several files',
    command: 'npx mocha --reporter ./report/list.js',
    tests: ['test/a.js'],
    files: {
      'package.json': ['prose', '{"name": "shop", "scripts": {"test": "mocha", "start": "node site.js"}}'],
      '.mocharc.cjs': ['settings', "module.exports = { ...require('./config/base'), require: ['./boot.js', './loud.js'] }"],
      'config/base.js': ['settings', uses('./more.json', '../src/paths')],
      'config/more.json': ['data', '{}'],
      'src/paths.js': ['code', ''],
      'boot.js': ['named', uses('./hooks', './site', './src/side', './store', './shared')],
      'loud.js': ['named', "global.thing = require('./thing')"],
      'hooks/index.js': ['code', uses('./deep')],
      'hooks/deep.js': ['code', ''],
      'report/list.js': ['named', uses('./words')],
      'report/words.js': ['code', ''],
      'site.js': ['code', ''],
      'thing.js': ['code', ''],
      'store.js': ['code', uses('./price')],
      'shared.js': ['code', ''],
      'price.js': ['code', ''],
      'src/side.js': ['code', ''],
      'test/a.js': ['test', uses('../price', '../shared')],
    },
  },
  {
    name: 'a plugin in a folder of code that pages know by an alias',
    command: 'npx vitest run',
    tests: ['test/a.test.ts'],
    files: {
      'package.json': ['prose', VITEST],
      'vite.config.ts': ['settings', imports('./src/env', './src/plugins/same', './plugins/other')],
      'src/env.ts': ['code', ''],
      'src/plugins/same.ts': ['code', ''],
      'plugins/other.ts': ['code', ''],
      'src/page.ts': ['code', imports('~/env')],
      'test/a.test.ts': ['test', imports('vitest', '../src/page', '../plugins/other')],
    },
  },
  {
    name: 'assertions of its own',
    command: 'node --test',
    tests: ['test/a.test.js', 'test/b.test.js', 'test/c.test.js'],
    files: {
      'package.json': ['prose', '{"name": "shop", "scripts": {}, "exports": {"./testing": "./lib/testing.js", "./price": "./lib/price.js"}}'],
      'lib/compare.js': ['code', 'exports.same = (a, b) => { if (a !== b) throw 1 }'],
      'lib/testing.js': ['code', 'exports.holds = (a) => { if (!a) throw 1 }'],
      'lib/price.js': ['code', 'exports.price = () => { throw 1 }'],
      'lib/add.js': ['code', 'exports.add = () => { throw 1 }'],
      'lib/plugin.js': ['code', 'exports.plugin = 1'],
      'lib/install.js': ['code', 'exports.install = () => { throw 1 }'],
      'lib/connect.js': ['code', 'exports.connect = () => { throw 1 }'],
      'packages/near/package.json': ['prose', '{"name": "near", "scripts": {}}'],
      'packages/near/index.js': ['helper', uses('assert')],
      'test/a.test.js': [
        'test',
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
        'test',
        `import assert from 'node:assert'
import { install } from '../lib/install.js'
import { plugin } from '../lib/plugin.js'
test('installs', () => { install(plugin) })
test('refuses', () => { assert.throws(() => install(1)) })
`,
      ],
      'test/c.test.js': ['test', `${uses('../lib/plugin', '../lib/add')}`],
    },
  },
  {
    name: 'a plain script of code that throws',
    command: 'node check.js',
    files: {
      'check.js': ['named', "import { run } from './run.js'\nimport { settings } from './settings.js'\nrun(settings)\n"],
      'run.js': ['code', 'export const run = () => { throw 1 }'],
      'settings.js': ['code', 'export const settings = 1'],
    },
  },
  {
    name: 'a runner that does not report',
    command: 'npx ava',
    files: {
      'package.json': ['prose', '{"name": "shop", "main": "tap.js", "scripts": {"test": "ava"}}'],
      'unit/add.js': ['helper', `${uses('../add', './near')} const t = require('ava')\nt('adds', () => {})`],
      'unit/near.js': ['helper', ''],
      'golden/add.js.snap': ['test', ''],
      'qa/sum.js': ['helper', `${uses('../add')}require('tape')('adds', () => {})`],
      'src/sum.js': ['helper', "import t from 'tap'\nt.test('adds', () => {})"],
      'src/runs.js': ['code', "import t from 'tap'\nt.test('adds', () => {})"],
      'tap.js': ['code', "import t from 'tap'\nt.test('adds', () => {})"],
      'add.js': ['code', uses('./src/runs')],
    },
  },
  {
    name: 'samples in prose',
    command: 'node --test',
    tests: ['test/a.test.js', 'test/b.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', ''],
      'README.md': ['fixture', '# shop\n```js\nadd(1, 2) // 3\n```\nMore\n'],
      'docs/guide.md': ['fixture', '# Guide\n\n    add(1, 2) // 3\n'],
      'manual/other.md': ['fixture', '    add(1, 2) // 3\n'],
      'docs/empty.md': ['fixture', '# Guide\n'],
      'test/a.test.js': ['test', `${uses('..')} open('README.md').match(/x/); open('docs/guide.md'); open('docs/empty.md')`],
      'test/b.test.js': ['test', `${uses('..')} assert.match(open('manual/other.md'), /options/)`],
    },
  },
  {
    name: 'programs that run beside the tests',
    command: 'node tools/prepare.js && node tools/build.js && node server.js & node tools/used.js; node --test',
    tests: ['test/a.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', ''],
      'tools/prepare.js': ['code', ''],
      'tools/build.js': ['code', ''],
      'tools/used.js': ['code', ''],
      'server.js': ['code', ''],
      'test/a.test.js': ['test', uses('..', '../tools/used')],
    },
  },
  {
    name: 'a program before the tests that makes code',
    command: 'node tools/prepare.js && node --test',
    tests: ['test/a.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'tools/prepare.js': ['code', ''],
      'made/a.js': ['code', ''],
      'test/a.test.js': ['test', uses('../made/a.js')],
    },
  },
  {
    name: 'options in variables',
    command: 'NODE_OPTIONS="--import ./boot.js" node --test',
    tests: ['test/a.test.js'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', ''],
      'boot.js': ['settings', imports('./hooks/index.js')],
      'hooks/index.js': ['code', ''],
      'test/a.test.js': ['test', uses('..')],
    },
  },
  {
    name: 'hostile names',
    command: 'node --test',
    tests: ['test/a.test.js', '../outside.js', '/etc/passwd', 'qa/[x]*{a,b}.js', '__proto__'],
    files: {
      'package.json': ['prose', NODE],
      'index.js': ['code', ''],
      'qa/[x]*{a,b}.js': ['test', uses('../index.js')],
      'qa/!constructor': ['test', ''],
      'fixtures/a b\n.txt': ['rest', ''],
      '__proto__': ['code', '#!/bin/sh\n'],
      'test/a.test.js': ['test', `${uses('..')} open('fixtures/a b\\n.txt')`],
    },
  },
]

/** The files of a project by content. */
export function contentsOf({ files }: Project): Files {
  return Object.fromEntries(Object.entries(files).map(([path, [, content]]) => [path, content]))
}
