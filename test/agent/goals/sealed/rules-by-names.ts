/** Who names a file decides about it: each row is a rule or two in a small package. */
import type { Rule } from '../../../../lib/agent/goals/sealed/owners.js'

export interface Row {
  readonly what: string
  /** @defaultValue `node --test` */
  readonly command?: string
  /** Beside `package.json` and `src/cart.js`, which null takes away. */
  readonly files: { readonly [path: string]: string | null }
  readonly rules: { readonly [R in Rule]?: readonly string[] }
}

/** What every row has. */
const PACKAGE = '{"name": "shop", "main": "src/cart.js"}'
const requires = (...paths: string[]): string =>
  paths.map((path) => `require('${path}')\n`).join('')
/** A test about the code of the package, that uses something else as well. */
const beside = (...paths: string[]): string => requires('node:test', '../src/cart', ...paths)

/** All files of a row. */
export function filesOf({ files }: Row): Readonly<Record<string, string>> {
  const all = { 'package.json': PACKAGE, 'src/cart.js': 'exports.total = 1\n', ...files }
  const there = Object.entries(all).flatMap(([path, text]) => (text === null ? [] : [[path, text]]))
  return Object.fromEntries(there)
}

export const rows: readonly Row[] = [
  {
    what: 'a program that tests use beside the code',
    files: { 'test/a.test.js': beside('../tools/table'), 'tools/table.js': '' },
    rules: {
      code: ['tools/table.js'],
    },
  },
  {
    what: 'a program that a test is about, alone or by its name',
    files: {
      'test/a.test.js': requires('node:test', '../tools/table'),
      'test/b.test.js': beside('../tools/table'),
      'test/sync.test.js': beside('../scripts/sync'),
      'tools/table.js': '', 'scripts/sync.js': '',
    },
    rules: {
      code: ['tools/table.js', 'scripts/sync.js'],
    },
  },
  {
    what: 'a program that no test names',
    files: { 'test/a.test.js': beside(), 'tools/table.js': '' },
    rules: {
      code: ['tools/table.js'],
    },
  },
  {
    what: 'a program that code uses, by its path, an alias or its folder',
    files: {
      'test/a.test.js': beside('../tools/table', '../parts/one', '../plugins/two'),
      'src/cart.js': `${requires('../tools/table', '~/one')}readdirSync('plugins')\n`,
      'tools/table.js': '', 'parts/one.js': '', 'plugins/two.js': '',
    },
    rules: {
      code: ['tools/table.js', 'parts/one.js', 'plugins/two.js'],
    },
  },
  {
    what: 'programs beside code, at the top, and in packages',
    files: {
      'test/a.test.js':
        beside('../src/other', '../top', '../packages/near', '../more/index', '../parts/lib/one'),
      'src/other.js': '', 'top.js': '', 'more/index.js': '', 'parts/lib/one.js': '',
      'packages/near/package.json': '{"name": "near"}', 'packages/near/index.js': '',
    },
    rules: {
      code: ['src/other.js', 'top.js', 'more/index.js', 'parts/lib/one.js', 'packages/near/index.js'],
      prose: ['packages/near/package.json'],
    },
  },
  {
    what: 'what a module that is loaded before the tests registers',
    command: 'node --import ./tools/register.js --test',
    files: {
      'test/a.test.js': beside(),
      'tools/register.js': "register('./hooks.js')\n", 'tools/hooks.js': '',
    },
    rules: {
      named: ['tools/register.js'],
      code: ['tools/hooks.js'],
    },
  },
  {
    what: 'data that no code names',
    files: { 'test/a.test.js': beside(), 'lists/cases.json': '[]', 'skipped.txt': '' },
    rules: {
      rest: ['lists/cases.json', 'skipped.txt'],
    },
  },
  {
    what: 'data that code names, by its path, its folder or its ending',
    files: {
      'test/a.test.js': beside(),
      'src/cart.js': "open('lists/cases.json')\nreaddirSync('data')\njoin('names', lang + '.csv')\n",
      'lists/cases.json': '[]', 'data/a.json': '[]', 'names/de.csv': '',
    },
    rules: {
      data: ['lists/cases.json', 'data/a.json', 'names/de.csv'],
    },
  },
  {
    what: 'data among the code, if tests name it',
    files: {
      'test/a.test.js': beside('../src/rates.json'),
      'src/rates.json': '[]', 'src/other.json': '[]',
    },
    rules: {
      fixture: ['src/rates.json'],
      rest: ['src/other.json'],
    },
  },
  {
    what: 'data among the code that tests find by its ending, unless code does so too',
    files: {
      'test/a.test.js': `${beside()}readdirSync('src').filter((one) => one.endsWith('.cases.json'))\nends('.more.json')\n`,
      'src/other.js': "ends('.more.json')\n",
      'src/cart.cases.json': '[]', 'src/cart.more.json': '[]',
    },
    rules: {
      code: ['src/other.js'],
      fixture: ['src/cart.cases.json', 'src/cart.more.json'],
    },
  },
  {
    what: 'data for tests by its name, which only tests tell the code',
    files: {
      'test/a.test.js': `${beside()}rows('expected'); rows('rates'); rows('golden')\n`,
      'src/rows.js': "join('src/data', name + '.csv'); all('golden')\n",
      'src/data/expected.csv': '', 'src/data/rates.csv': '', 'src/data/golden.csv': '',
    },
    rules: {
      code: ['src/rows.js'],
      data: ['src/data/expected.csv', 'src/data/rates.csv', 'src/data/golden.csv'],
    },
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
    rules: {
      helper: ['src/same.js', 'src/near.js'],
      code: ['src/used.js', 'src/match.js', 'src/more.js'],
    },
  },
  {
    what: 'code that only compares, unless tests expect it to throw',
    command: 'python3 -m pytest',
    files: {
      'package.json': null, 'src/cart.js': null,
      'src/shop/__init__.py': '', 'src/shop/cart.py': '',
      'src/shop/terms.py': 'def holds(a):\n    if a:\n        raise AssertionError()\n',
      'src/shop/rules.py': 'def obeys(a):\n    assert a == 1\n',
      'tests/test_cart.py': 'from shop.cart import total\nfrom shop.terms import holds\n',
      'tests/test_all.py': 'from shop.cart import total\nfrom shop.rules import obeys\nraises(obeys)\n',
    },
    rules: {
      code: ['src/shop/__init__.py', 'src/shop/cart.py', 'src/shop/terms.py', 'src/shop/rules.py'],
    },
  },
  {
    what: 'programs that others read as data',
    files: { 'test/a.test.js': beside('../db/seeds.sql'), 'db/seeds.sql': '' },
    rules: {
      code: ['db/seeds.sql'],
    },
  },
  {
    what: 'prose, unless tests name a document, manifests, locks and results',
    files: {
      'test/a.test.js': beside('../README.md', '../docs/a.html', '../out.txt', '../go.sum'),
      'README.md': '', 'docs/a.html': '', 'out.txt': '', 'go.sum': '', 'pages/a.html': '',
      'docs/other.md': '',
    },
    rules: {
      fixture: ['README.md'],
      prose: ['docs/other.md', 'docs/a.html', 'out.txt', 'go.sum', 'pages/a.html'],
    },
  },
  {
    what: 'data that a script names, unless it is searched, or there is no code',
    command: 'sh check.sh',
    files: {
      'check.sh': 'node src/cart.js < cases.txt | diff - totals.txt\ngrep -q x found.txt\ncat .ok\n',
      'cases.txt': '', 'totals.txt': '', 'found.txt': '', 'answer.json': '{}', '.ok': '',
    },
    rules: {
      named: ['check.sh'],
      fixture: ['cases.txt', 'totals.txt'],
      asked: ['found.txt', '.ok'],
      prose: ['answer.json'],
    },
  },
  {
    what: 'data that a script compares where there is no code',
    command: 'sh check.sh',
    files: {
      'src/cart.js': null, 'package.json': null,
      'check.sh': 'cmp cases.txt totals.txt\n', 'cases.txt': '', 'totals.txt': '',
    },
    rules: {
      named: ['check.sh'],
      asked: ['cases.txt', 'totals.txt'],
    },
  },
  {
    what: 'data that a program of the check names, also in a hidden folder',
    command: 'node ci-local.js',
    files: {
      'ci-local.js': "run(open('.github/ci.yml'), open('steps.txt'))\n",
      '.github/ci.yml': '', '.github/other.yml': '', 'steps.txt': '', 'other.txt': '',
    },
    rules: {
      named: ['ci-local.js'],
      prose: ['.github/ci.yml', '.github/other.yml'],
      fixture: ['steps.txt'],
      rest: ['other.txt'],
    },
  },
  {
    what: 'a program that a script starts beside the code',
    command: 'sh check.sh',
    files: {
      'check.sh': 'node src/cart.js && node tools/sums.js\n', 'tools/sums.js': '',
    },
    rules: {
      named: ['check.sh'],
      code: ['tools/sums.js'],
    },
  },
  {
    what: 'what a linter reads',
    command: 'npx eslint .',
    files: { 'helper.js': '', 'data.json': '{}', 'tools/a.js': '' },
    rules: {
      code: ['helper.js', 'tools/a.js'],
      rest: ['data.json'],
    },
  },
  {
    what: 'a project without code of its own',
    files: {
      'package.json': '{}', 'src/cart.js': null,
      'test/a.test.js': requires('node:test', '../config/shop.json'), 'config/shop.json': '{}',
      'lists/all.json': '[]',
    },
    rules: {
      asked: ['config/shop.json', 'lists/all.json'],
    },
  },
  {
    what: 'modules of Python, in packages and beside them',
    command: 'PYTHONPATH=gen python3 -m pytest',
    files: {
      'package.json': null, 'src/cart.js': null,
      'shop/__init__.py': '', 'shop/cart.py': '', 'store/__init__.py': '', 'store/all.py': '',
      'gen/table.py': '',
      'tests/test_cart.py': 'import table\nfrom shop import cart\nfrom store import all\n',
    },
    rules: {
      code: ['shop/__init__.py', 'shop/cart.py', 'store/__init__.py', 'store/all.py', 'gen/table.py'],
    },
  },
  {
    what: 'pages that a script compares, or gives to a program',
    command: 'sh check.sh',
    files: {
      'check.sh': `node src/cart.js | diff - page.html
test "$(node src/cart.js)" = "$(cat mail.html)"
tidy index.html
`,
      'page.html': '', 'mail.html': '', 'index.html': '',
    },
    rules: { fixture: ['page.html', 'mail.html'], prose: ['index.html'] },
  },
  {
    what: 'pages in a folder for what is expected',
    files: {
      'test/a.test.js': `${beside()}open('expected/page.html'); open('index.html')\n`,
      'expected/page.html': '', 'index.html': '',
    },
    rules: { fixture: ['expected/page.html'], prose: ['index.html'] },
  },
  {
    what: 'data that a script looks into, alone or beside other programs',
    command: 'sh check.sh',
    files: {
      'check.sh': `if ! grep -q x one.yaml; then exit 1; fi
node src/cart.js && test -s two.yaml
node src/cart.js | grep -f three.yaml
[ "$(node src/cart.js)" = "$(cat four.yaml)" ]
while read line; do node src/cart.js $line; done < five.yaml
`,
      'one.yaml': '', 'two.yaml': '', 'three.yaml': '', 'four.yaml': '', 'five.yaml': '',
    },
    rules: {
      asked: ['one.yaml', 'two.yaml'], fixture: ['three.yaml', 'four.yaml', 'five.yaml'],
    },
  },
  {
    what: 'data beside a program that tests import',
    files: {
      'test/a.test.js': beside('../rates/load'),
      'rates/load.js': "open('./table.json')\n", 'rates/table.json': '', 'rates/other.json': '',
    },
    rules: { code: ['rates/load.js'], data: ['rates/table.json'], rest: ['rates/other.json'] },
  },
  {
    what: 'data in variables of the command',
    command: 'WANT=ref.yaml sh check.sh',
    files: { 'check.sh': 'node src/cart.js | diff - "$WANT"\n', 'ref.yaml': '' },
    rules: { fixture: ['ref.yaml'] },
  },
  {
    what: 'tests in other languages',
    command: 'make check',
    files: {
      'Makefile': 'check:\n\tgo test ./...\n', 'cart_test.go': '', 'cart.go': '',
      'src/CartTest.java': '', 'src/Cart.java': '', 'cart_spec.rb': '', 'test_cart.c': '',
      'cart.c': '', 'all.bats': '',
    },
    rules: {
      test: ['cart_test.go', 'src/CartTest.java', 'cart_spec.rb', 'test_cart.c', 'all.bats'],
      code: ['cart.go', 'src/Cart.java', 'cart.c'],
    },
  },
]
