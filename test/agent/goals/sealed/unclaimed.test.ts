/** Of which files nothing shows whose they are: each row is one rule, with what is code by it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandGoal } from 'runwright/agent'
import { readCheckScript } from '../../../../lib/agent/goals/check-script.js'
import { captureBaseline } from '../../../../lib/agent/goals/protected-files.js'
import { whatBelongs } from '../../../../lib/agent/goals/sealed/belongs.js'
import { workspace, type Files } from '../support.js'

interface Row {
  readonly what: string
  readonly command?: string
  readonly files: Files
  readonly unclaimed: readonly string[]
}

const PACKAGE = '{"name": "shop", "main": "src/cart.js"}'
const requires = (...paths: string[]): string =>
  paths.map((path) => `require('${path}')\n`).join('')
/** A test about the code of the package, that uses something else as well. */
const beside = (...paths: string[]): string => requires('node:test', '../src/cart', ...paths)

const rows: readonly Row[] = [
  {
    what: 'a program that tests use beside the code',
    files: { 'test/a.test.js': beside('../tools/table'), 'tools/table.js': '' },
    unclaimed: ['tools/table.js'],
  },
  {
    what: 'a program that a test is about, alone or by its name',
    files: {
      'test/a.test.js': requires('node:test', '../tools/table'),
      'test/b.test.js': beside('../tools/table'),
      'test/sync.test.js': beside('../scripts/sync'),
      'tools/table.js': '', 'scripts/sync.js': '',
    },
    unclaimed: [],
  },
  {
    what: 'a program that no test names',
    files: { 'test/a.test.js': beside(), 'tools/table.js': '' },
    unclaimed: [],
  },
  {
    what: 'a program that code uses, by its path, an alias or its folder',
    files: {
      'test/a.test.js': beside('../tools/table', '../parts/one', '../plugins/two'),
      'src/cart.js': `${requires('../tools/table', '~/one')}readdirSync('plugins')\n`,
      'tools/table.js': '', 'parts/one.js': '', 'plugins/two.js': '',
    },
    unclaimed: [],
  },
  {
    what: 'programs beside code, at the top, and in packages',
    files: {
      'test/a.test.js':
        beside('../src/other', '../top', '../packages/near', '../more/index', '../parts/lib/one'),
      'src/other.js': '', 'top.js': '', 'more/index.js': '', 'parts/lib/one.js': '',
      'packages/near/package.json': '{"name": "near"}', 'packages/near/index.js': '',
    },
    unclaimed: ['more/index.js'],
  },
  {
    what: 'what a module that is loaded before the tests registers',
    command: 'node --import ./tools/register.js --test',
    files: {
      'test/a.test.js': beside(),
      'tools/register.js': "register('./hooks.js')\n", 'tools/hooks.js': '',
    },
    unclaimed: ['tools/hooks.js'],
  },
  {
    what: 'data that no code names',
    files: { 'test/a.test.js': beside(), 'lists/cases.json': '[]', 'skipped.txt': '' },
    unclaimed: ['lists/cases.json', 'skipped.txt'],
  },
  {
    what: 'data that code names, by its path, its folder or its ending',
    files: {
      'test/a.test.js': beside(),
      'src/cart.js': "open('lists/cases.json')\nreaddirSync('data')\njoin('names', lang + '.csv')\n",
      'lists/cases.json': '[]', 'data/a.json': '[]', 'names/de.csv': '',
    },
    unclaimed: [],
  },
  {
    what: 'data among the code, if tests name it',
    files: {
      'test/a.test.js': beside('../src/rates.json'),
      'src/rates.json': '[]', 'src/other.json': '[]',
    },
    unclaimed: ['src/rates.json'],
  },
  {
    what: 'data among the code that tests find by its ending, unless code does so too',
    files: {
      'test/a.test.js': `${beside()}readdirSync('src').filter((one) => one.endsWith('.cases.json'))\nends('.more.json')\n`,
      'src/other.js': "ends('.more.json')\n",
      'src/cart.cases.json': '[]', 'src/cart.more.json': '[]',
    },
    unclaimed: ['src/cart.cases.json'],
  },
  {
    what: 'data for tests by its name, which only tests tell the code',
    files: {
      'test/a.test.js': `${beside()}rows('expected'); rows('rates'); rows('golden')\n`,
      'src/rows.js': "join('src/data', name + '.csv'); all('golden')\n",
      'src/data/expected.csv': '', 'src/data/rates.csv': '', 'src/data/golden.csv': '',
    },
    unclaimed: ['src/data/expected.csv'],
  },
  {
    what: 'code that asserts, if tests use it beside other code and code does not',
    files: {
      'test/a.test.js': beside('../src/same', '../src/used', '../src/near'),
      'test/b.test.js': requires('node:test', '../src/near'),
      'test/match.test.js': beside('../src/match'),
      'src/same.js': requires('chai'), 'src/used.js': requires('chai'),
      'src/near.js': requires('chai'), 'src/match.js': requires('chai'),
      'src/more.js': requires('./used'),
    },
    unclaimed: ['src/same.js'],
  },
  {
    what: 'code that only compares, unless tests expect it to throw',
    command: 'python3 -m pytest',
    files: {
      'package.json': null!, 'src/cart.js': null!,
      'src/shop/__init__.py': '', 'src/shop/cart.py': '',
      'src/shop/terms.py': 'def holds(a):\n    if a:\n        raise AssertionError()\n',
      'src/shop/rules.py': 'def obeys(a):\n    assert a == 1\n',
      'tests/test_cart.py': 'from shop.cart import total\nfrom shop.terms import holds\n',
      'tests/test_all.py': 'from shop.cart import total\nfrom shop.rules import obeys\nraises(obeys)\n',
    },
    unclaimed: ['src/shop/terms.py'],
  },
  {
    what: 'programs that others read as data',
    files: { 'test/a.test.js': beside('../db/seeds.sql'), 'db/seeds.sql': '' },
    unclaimed: ['db/seeds.sql'],
  },
  {
    what: 'prose, manifests, locks and results',
    files: {
      'test/a.test.js': beside('../README.md', '../docs/a.html', '../out.txt', '../go.sum'),
      'README.md': '', 'docs/a.html': '', 'out.txt': '', 'go.sum': '', 'pages/a.html': '',
    },
    unclaimed: [],
  },
  {
    what: 'data that a script names, unless it is searched, or there is no code',
    command: 'sh check.sh',
    files: {
      'check.sh': 'node src/cart.js < cases.txt | diff - totals.txt\ngrep -q x found.txt\ncat .ok\n',
      'cases.txt': '', 'totals.txt': '', 'found.txt': '', 'answer.json': '{}', '.ok': '',
    },
    unclaimed: ['.ok', 'cases.txt', 'totals.txt'],
  },
  {
    what: 'data that a script compares where there is no code',
    command: 'sh check.sh',
    files: {
      'src/cart.js': null!, 'package.json': null!,
      'check.sh': 'cmp cases.txt totals.txt\n', 'cases.txt': '', 'totals.txt': '',
    },
    unclaimed: [],
  },
  {
    what: 'data that a program of the check names, also in a hidden folder',
    command: 'node ci-local.js',
    files: {
      'ci-local.js': "run(open('.github/ci.yml'), open('steps.txt'))\n",
      '.github/ci.yml': '', '.github/other.yml': '', 'steps.txt': '', 'other.txt': '',
    },
    unclaimed: ['.github/ci.yml', 'steps.txt'],
  },
  {
    what: 'a program that a script starts beside the code',
    command: 'sh check.sh',
    files: {
      'check.sh': 'node src/cart.js && node tools/sums.js\n', 'tools/sums.js': '',
    },
    unclaimed: [],
  },
  {
    what: 'what a linter reads',
    command: 'npx eslint .',
    files: { 'helper.js': '', 'data.json': '{}', 'tools/a.js': '' },
    unclaimed: [],
  },
  {
    what: 'a project without code of its own',
    files: {
      'package.json': '{}', 'src/cart.js': null!,
      'test/a.test.js': requires('node:test', '../config/shop.json'), 'config/shop.json': '{}',
      'lists/all.json': '[]',
    },
    unclaimed: [],
  },
  {
    what: 'modules of Python, in packages and beside them',
    command: 'PYTHONPATH=gen python3 -m pytest',
    files: {
      'package.json': null!, 'src/cart.js': null!,
      'shop/__init__.py': '', 'shop/cart.py': '', 'store/__init__.py': '', 'store/all.py': '',
      'gen/table.py': '',
      'tests/test_cart.py': 'import table\nfrom shop import cart\nfrom store import all\n',
    },
    unclaimed: ['gen/table.py'],
  },
]

for (const { what, command = 'node --test', files, unclaimed } of rows) {
  test(`nobody claims: ${what}`, async (t) => {
    const all = { 'package.json': PACKAGE, 'src/cart.js': 'exports.total = 1\n', ...files }
    const there = Object.entries(all).filter(([, text]) => text !== null)
    const root = await workspace(t, Object.fromEntries(there))
    const goal = await commandGoal({ name: 'shell', command }, root)
    const found = await whatBelongs({
      root, goal,
      script: (await readCheckScript(goal.command, root)).text,
      known: new Set(Object.keys((await captureBaseline(goal, root)).files)),
      read: there.map(([path]) => path),
      changed: [], listed: [],
      testFiles: there.map(([path]) => path).filter((path) => /\.test\.js$|test_/.test(path)),
    })
    assert.deepEqual([...found.unclaimed].sort(), unclaimed)
  })
}
