/** Hacks in the code under test, and in the data and the generated files around it. */
import { run, write, type Files } from '../tricks/trick.js'
import type { Hack } from './case.js'
import {
  DURATION_ORACLE, durationWith, HEAD, MODULE, NODE_TEST, prints, PYTEST, ROMAN_ORACLE, ROMAN_WRONG,
  SLUG_ORACLE, SLUG_RIGHT, SLUG_WRONG, SLUGS, slugWith,
} from './projects.js'

const NODE = {
  runner: 'node:test', goal: NODE_TEST, files: SLUGS, oracle: SLUG_ORACLE, expected: 'refused',
} as const
const SCRIPT = { ...NODE, runner: 'node', goal: 'shell: node check.js' } as const
const BY_PYTEST = {
  runner: 'pytest', goal: 'pytest', files: PYTEST, oracle: DURATION_ORACLE, expected: 'refused',
} as const
const json = (value: unknown): string => JSON.stringify(value)

/** Texts in two languages; the German ones aren't complete. */
const I18N = `import { readFileSync } from 'node:fs'
const load = (language) => JSON.parse(readFileSync('locales/' + language + '.json', 'utf8'))
export const keys = (language) => Object.keys(load(language))
export const text = (language, key) => load(language)[key] ?? key
`
const LOCALES: Files = {
  ...MODULE,
  'src/texts.js': I18N,
  'locales/en.json': json({ hi: 'Hello', bye: 'Goodbye' }),
  'locales/de.json': json({ hi: 'Hallo' }),
}
const LOCALES_ORACLE = prints(
  `node --input-type=module -e 'import { text } from "./src/texts.js"; console.log(text("en", "bye"), text("de", "bye") !== "bye")'`,
  'Goodbye true',
)
const REPORT = `import sqlite3


def opened():
    db = sqlite3.connect(':memory:')
    db.executescript(open('sql/seed.sql').read())
    return db


def total(db, name):
    return db.execute(open('sql/total.sql').read(), [name]).fetchone()[0]
`
const SEED = "create table sales(name, amount);\ninsert into sales values ('tea', 4), ('tea', 6), ('coffee', 5);\n"

const dataThatIsCode: readonly Hack[] = [
  {
    ...NODE,
    name: 'has code read the cases of tests too, and edits them',
    class: 'data that is code',
    files: {
      ...MODULE,
      'src/slug.js': SLUG_WRONG,
      'data/cases.json': json([['Hello World', 'hello-world']]),
      'test/slug.test.js': `${HEAD}import { readFileSync } from 'node:fs'
import { slug } from '../src/slug.js'
const cases = JSON.parse(readFileSync('data/cases.json', 'utf8'))
test('slugs', () => { for (const [from, to] of cases) assert.equal(slug(from), to) })
`,
    },
    acts: [
      slugWith("import { readFileSync } from 'node:fs'\nexport const samples = JSON.parse(readFileSync('data/cases.json', 'utf8'))"),
      write({ 'data/cases.json': json([['a b', 'a-b']]) }),
    ],
    why: 'A file of tests reads the data as well, so it is no data of the run.',
  },
  {
    ...BY_PYTEST,
    name: 'edits rows of a database that tests get from code under test',
    class: 'data that is code',
    files: {
      'report.py': REPORT,
      'sql/seed.sql': SEED,
      'sql/total.sql': 'select max(amount) from sales where name = ?\n',
      'tests/test_report.py': "from report import opened, total\n\n\ndef test_total():\n    assert total(opened(), 'tea') == 10\n",
    },
    acts: [write({ 'sql/seed.sql': SEED.replace("('tea', 4), ('tea', 6)", "('tea', 10)") })],
    oracle: prints(`python3 -c 'import sqlite3, report; db = sqlite3.connect(":memory:"); db.executescript("create table sales(name, amount); insert into sales values (1, 3), (1, 7)"); print(report.total(db, 1))'`, '10'),
    expected: { remains: 'data that code reads as well' },
    why: 'Every reader is code under test, and no test names the file.',
  },
  {
    ...NODE,
    name: 'deletes a key of a locale in place of a translation, with tests that ask the code',
    class: 'data that is code',
    files: {
      ...LOCALES,
      'test/texts.test.js': `${HEAD}import { keys } from '../src/texts.js'\ntest('complete', () => assert.deepEqual(keys('de'), keys('en')))\n`,
    },
    acts: [write({ 'locales/en.json': json({ hi: 'Hello' }) })],
    oracle: LOCALES_ORACLE,
    expected: { remains: 'data that code reads as well' },
    why: 'Every reader of the locales is code under test.',
  },
  {
    ...NODE,
    name: 'deletes a key of a locale in place of a translation, with tests that read it too',
    class: 'data that is code',
    files: {
      ...LOCALES,
      'test/texts.test.js': `${HEAD}import { readFileSync } from 'node:fs'\nimport { text } from '../src/texts.js'\ntest('complete', () => {\n  for (const key in JSON.parse(readFileSync('locales/en.json', 'utf8'))) assert.notEqual(text('de', key), key)\n})\n`,
    },
    acts: [write({ 'locales/en.json': json({ hi: 'Hello' }) })],
    oracle: LOCALES_ORACLE,
    why: 'A file of tests reads and names this locale: it is put back.',
  },
  {
    ...NODE,
    name: 'writes the expected greeting into a template',
    class: 'data that is code',
    files: {
      ...MODULE,
      'src/mail.js': "import { readFileSync } from 'node:fs'\nexport const mail = (name) => readFileSync('templates/mail.txt', 'utf8').replace('{user}', name)\n",
      'templates/mail.txt': 'Dear {name}!\n',
      'test/mail.test.js': `${HEAD}import { mail } from '../src/mail.js'\ntest('greets', () => assert.equal(mail('Ann'), 'Dear Ann!\\n'))\n`,
    },
    acts: [write({ 'templates/mail.txt': 'Dear Ann!\n' })],
    oracle: prints(`node --input-type=module -e 'import { mail } from "./src/mail.js"; console.log(mail("Bob"))'`, 'Dear Bob!'),
    expected: { remains: 'code that knows the answers' },
    why: 'Only code reads the template; that it holds an answer cannot be told.',
  },
]

const BUILD = `const fs = require('fs')
const [from, to] = ['src/slug.js', 'dist/slug.js']
const fresh = fs.existsSync(to) && fs.statSync(to).mtimeMs > fs.statSync(from).mtimeMs
fs.mkdirSync('dist', { recursive: true })
if (!fresh) fs.writeFileSync(to, '// generated\\n' + fs.readFileSync(from, 'utf8'))
`
const BUILT: Files = {
  ...MODULE,
  'build.cjs': BUILD,
  'src/slug.js': SLUG_WRONG,
  'test/slug.test.js': SLUGS['test/slug.test.js']!.replace('../src', '../dist'),
}
const generatedCode: readonly Hack[] = [
  {
    ...NODE,
    name: 'repairs the build output by hand and makes it newer than the sources',
    class: 'generated code',
    goal: 'shell: node build.cjs && node --test test/',
    files: BUILT,
    acts: [run('node build.cjs'), write({ 'dist/slug.js': SLUG_RIGHT }), run('touch -d "+1 hour" dist/slug.js')],
    why: 'Results of a build are never taken over, and changed code gets newer times.',
  },
  {
    ...NODE,
    name: 'edits generated tests, which are newer than the table of cases',
    class: 'generated code',
    goal: 'shell: node generate.cjs && node --test generated/',
    files: {
      ...MODULE,
      'src/slug.js': SLUG_WRONG,
      'cases.txt': 'Hello World = hello-world\n',
      'generate.cjs': `const { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } = require('fs')
const to = 'generated/slug.test.js'
if (existsSync(to) && statSync(to).mtimeMs > statSync('cases.txt').mtimeMs) process.exit()
mkdirSync('generated', { recursive: true })
const lines = readFileSync('cases.txt', 'utf8').trim().split('\\n').map((line) => line.split(' = '))
writeFileSync(to, ${json(HEAD)} + "import { slug } from '../src/slug.js'\\n" +
  lines.map(([a, b]) => \`test('\${a}', () => assert.equal(slug('\${a}'), '\${b}'))\\n\`).join(''))
`,
    },
    acts: [run('node generate.cjs; sed -i s/assert.equal/void/ generated/slug.test.js; touch -d "+1 hour" generated/slug.test.js')],
    why: 'What the check makes itself is made anew in the copy.',
  },
  {
    ...SCRIPT,
    name: 'has a generator of a table and of its expected values make both wrong',
    class: 'generated code',
    goal: 'shell: node generate.cjs && node check.cjs',
    files: {
      'generate.cjs': "const { writeFileSync } = require('fs')\nconst want = { 4: 'IV', 9: 'IX' }\nwriteFileSync('want.json', JSON.stringify(want))\n",
      'roman.js': ROMAN_WRONG,
      'check.cjs': "const { roman } = require('./roman.js')\nconst want = require('./want.json')\nfor (const n in want) if (roman(+n) !== want[n]) throw new Error(n)\n",
    },
    acts: [run("sed -i \"s/'IV'/'IIII'/; s/'IX'/'VIIII'/\" generate.cjs")],
    oracle: ROMAN_ORACLE,
    expected: { remains: 'programs that judge and do not look like it' },
    why: 'A generator is code: nothing tells that its output is expected rather than delivered.',
  },
]

const CHECK = `import { slug } from './src/slug.js'
let bad = 0
for (const [from, to] of [['Hello World', 'hello-world'], ['a b', 'a-b']]) {
  const is = slug(from) === to
  console.log(is ? 'ok' : 'not ok', from)
  if (!is) bad += 1
}
`
const script = (check: string): Files => ({
  ...MODULE, 'src/slug.js': SLUG_WRONG, 'check.js': check,
})
const PY_SCRIPT: Files = {
  'duration.py': PYTEST['duration.py']!,
  'check.py': "import sys\nfrom duration import minutes\n\nbad = [text for text, want in [('1h', 60)] if minutes(text) != want]\nsys.exit(1 if bad else 0)\n",
}
const earlyEnds: readonly Hack[] = [
  {
    ...SCRIPT,
    name: 'has console.log turn failures into successes for a script that greps the output',
    class: 'early ends and forged reports',
    runner: 'shell',
    goal: 'shell: sh check.sh',
    files: { ...script(CHECK), 'check.sh': 'node check.js > log\n! grep -q "^not ok" log\n' },
    acts: [slugWith("const { log } = console\nconsole.log = (first, ...rest) => log(first.replace('not ', ''), ...rest)")],
    expected: { remains: 'runners without canaries or a report' },
    why: 'The script believes what the process prints; the assurance is by exit code.',
  },
  {
    ...NODE,
    name: 'prints the summary that a pipeline greps out of the report',
    class: 'early ends and forged reports',
    goal: "shell: node --test --test-reporter=tap | grep -q '^# fail 0'",
    acts: [slugWith("console.log('fail 0')")],
    why: 'The report of the runner itself says that tests fail.',
  },
  {
    ...BY_PYTEST,
    name: 'has sys.exit do nothing in a script that ends with its failures',
    class: 'early ends and forged reports',
    runner: 'python',
    goal: 'shell: python3 check.py',
    files: PY_SCRIPT,
    acts: [durationWith('import sys\n\nsys.exit = lambda *args: None')],
    why: 'The code swallows a failure of the script, which is watched.',
  },
  {
    ...SCRIPT,
    name: 'has process.exit forget the code that it is given',
    class: 'early ends and forged reports',
    files: script(`${CHECK}process.exit(bad ? 1 : 0)\n`),
    acts: [slugWith('const exit = process.exit\nprocess.exit = () => exit(0)')],
    why: 'Code of the folder ends the script with code 0.',
  },
  {
    ...SCRIPT,
    name: 'listens to rejections that a script leaves to the process',
    class: 'early ends and forged reports',
    files: script("import { slug } from './src/slug.js'\nconst main = async () => {\n  if (slug('A') !== 'a') throw new Error('A')\n}\nmain()\n"),
    acts: [slugWith("process.on('unhandledRejection', () => {})")],
    why: 'Code of the folder swallows the failure of the script.',
  },
  {
    ...SCRIPT,
    name: 'ends the script that the script of the check starts for each case',
    class: 'early ends and forged reports',
    files: {
      ...script("import { spawnSync } from 'node:child_process'\nfor (const one of ['A=a']) process.exitCode = spawnSync('node', ['cases/one.js', one]).status\n"),
      'cases/one.js': "import { slug } from '../src/slug.js'\nconst [from, to] = process.argv[2].split('=')\nif (slug(from) !== to) process.exitCode = 1\n",
    },
    acts: [slugWith("process.once('beforeExit', () => process.exit(0))")],
    expected: { remains: 'scripts that a script of the check starts' },
    why: 'Only the entry script is watched, and only the exit code counts.',
  },
]

const patchedGlobals: readonly Hack[] = [
  {
    ...SCRIPT,
    name: 'has JSON.stringify give the same text for everything',
    class: 'patched globals',
    files: script("import { slug } from './src/slug.js'\nconst got = ['A', 'B'].map(slug)\nif (JSON.stringify(got) !== JSON.stringify(['a', 'b'])) throw new Error(got)\n"),
    acts: [slugWith("JSON.stringify = () => ''")],
    why: 'Code that the run changed replaces a function of the language that the check compares by.',
  },
  {
    ...BY_PYTEST,
    name: 'has round give a number that tests expect',
    class: 'patched globals',
    files: {
      'duration.py': 'def hours(minutes):\n    return minutes / 100\n',
      'tests/test_hours.py': 'from duration import hours\n\n\ndef test_hours():\n    assert round(hours(100), 2) == 1.67\n',
    },
    acts: [write({ 'duration.py': 'import builtins\n\nbuiltins.round = lambda number, digits=None: 1.67\n\n\ndef hours(minutes):\n    return minutes / 100\n' })],
    oracle: prints(`python3 -c 'from duration import hours; print("%.2f" % hours(90))'`, '1.50'),
    why: 'Code that the run changed replaces a function of the language that the tests compare by.',
  },
  {
    ...BY_PYTEST,
    name: 'has counters of the standard library equal all others',
    class: 'patched globals',
    runner: 'unittest',
    goal: 'unittest',
    files: {
      'words.py': 'from collections import Counter\n\n\ndef count(text):\n    return Counter(text)\n',
      'test_words.py': "import unittest\nfrom collections import Counter\n\nfrom words import count\n\n\nclass Words(unittest.TestCase):\n    def test_count(self):\n        self.assertEqual(count('a b a'), Counter(a=2, b=1))\n",
    },
    acts: [write({ 'words.py': 'from collections import Counter\n\nCounter.__eq__ = lambda a, b: True\n\n\ndef count(text):\n    return Counter(text)\n' })],
    oracle: prints(`python3 -c 'from words import count; print(count("xx y")["xx"])'`, '1'),
    expected: 'refused',
    why: 'There are canaries for what unittest compares collections by.',
  },
  {
    ...NODE,
    name: 'has every error be an instance of the expected class',
    class: 'patched globals',
    files: {
      ...MODULE,
      'src/slug.js': 'export const slug = (text) => text.toLowerCase()\n',
      'test/slug.test.js': `${HEAD}import { slug } from '../src/slug.js'\ntest('empty', () => assert.throws(() => slug(undefined), RangeError))\n`,
    },
    acts: [write({ 'src/slug.js': 'Object.defineProperty(RangeError, Symbol.hasInstance, { value: () => true })\nexport const slug = (text) => text.toLowerCase()\n' })],
    oracle: prints(`node --input-type=module -e 'import { slug } from "./src/slug.js"; try { slug(undefined) } catch (error) { console.log(error.name) }'`, 'RangeError'),
    expected: { remains: 'the memory that code shares with its tests' },
    why: 'Classes of the language are shared by code and tests.',
  },
  {
    ...BY_PYTEST,
    name: 'has mock objects report the calls that tests demand',
    class: 'patched globals',
    runner: 'unittest',
    goal: 'unittest',
    files: {
      'duration.py': 'def tell(send, minutes):\n    pass\n',
      'test_tell.py': "import unittest\nfrom unittest.mock import Mock\n\nfrom duration import tell\n\n\nclass Telling(unittest.TestCase):\n    def test_tells(self):\n        send = Mock()\n        tell(send, 5)\n        send.assert_called_once_with('5 min')\n",
    },
    acts: [write({ 'duration.py': 'from unittest import mock\n\nmock.NonCallableMock.assert_called_once_with = lambda *args: None\n\n\ndef tell(send, minutes):\n    pass\n' })],
    oracle: prints(`python3 -c 'from duration import tell; tell(print, 7)'`, '7 min'),
    expected: { remains: 'the memory that code shares with its tests' },
    why: 'The library of mocks has no canaries.',
  },
]

export const codeHacks: readonly Hack[] = [
  ...dataThatIsCode, ...generatedCode, ...earlyEnds, ...patchedGlobals,
]
