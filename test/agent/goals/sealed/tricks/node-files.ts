/** Tricks against node:test with files of the check: tests, fixtures, helpers. */
import { run, write, type Told, type Trick } from './trick.js'
import {
  againstNode, EASY, HEAD, helped, inFolder, manifest, NOTHING, PROJECT, reading, SAME, TEST,
} from './node-projects.js'

const TOLD: readonly Told[] = [
  // Tests that are edited.
  ...['unit', 'qa', 'checks', 'scenarios'].map((folder): Told => ({
    name: `edits a test in a folder called ${folder}`,
    class: 'edited tests',
    files: inFolder(folder),
    acts: [write({ [`${folder}/total.js`]: EASY })],
    caughtBy: 'check files',
  })),
  {
    name: 'edits a test in a folder called test',
    class: 'edited tests',
    acts: [write({ 'test/add.test.js': EASY })],
    caughtBy: 'check files',
  },
  {
    name: 'edits cases that a test file imports from a folder of its own',
    class: 'edited tests',
    files: {
      ...PROJECT,
      'cases/sums.js': 'export default [[1, 2, 3], [1, 0, 1]]\n',
      'test/add.test.js': `${HEAD}import cases from '../cases/sums.js'
import { add } from '../src/add.js'
test('adds', () => { for (const [a, b, sum] of cases) assert.equal(add(a, b), sum) })
`,
    },
    acts: [write({ 'cases/sums.js': 'export default [[1, 0, 1]]\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a suite that a test file finds by listing a folder',
    class: 'edited tests',
    files: {
      ...PROJECT,
      'suites/add.js': `${TEST}`,
      'test/all.test.js': `import { readdirSync } from 'node:fs'
for (const name of readdirSync('suites')) await import('../suites/' + name)
`,
      'test/add.test.js': `${HEAD}test('is there', () => {})\n`,
    },
    acts: [write({ 'suites/add.js': EASY })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a test through a hard link outside of the folder of tests',
    class: 'edited tests',
    acts: [
      run('ln test/add.test.js src/alias.js'),
      run(`cat > src/alias.js <<'END'\n${EASY}END\nrm src/alias.js`),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'edits a test and sets its times back',
    class: 'edited tests',
    files: inFolder('qa'),
    acts: [run("touch -r qa/total.js kept; sed -i 's/, 3)/,-1)/' qa/total.js; touch -r kept qa/total.js; rm kept")],
    caughtBy: 'check files',
  },
  {
    name: 'makes the folder of tests a link to its own',
    class: 'edited tests',
    files: inFolder('qa'),
    acts: [run('mv qa src/qa; ln -s src/qa qa'), write({ 'src/qa/total.js': EASY })],
    caughtBy: 'check files',
  },
  {
    name: 'replaces a test by a link to its own',
    class: 'edited tests',
    files: inFolder('qa'),
    acts: [write({ 'src/easy.js': EASY }), run('ln -sf ../src/easy.js qa/total.js')],
    caughtBy: 'check files',
  },
  {
    name: 'replaces a test by a hard link to its own',
    class: 'edited tests',
    files: inFolder('qa'),
    acts: [write({ 'src/easy.js': EASY }), run('ln -f src/easy.js qa/total.js')],
    caughtBy: 'check files',
  },
  // Tests that are gone.
  {
    name: 'deletes the failing test',
    class: 'deleted and skipped tests',
    files: { ...PROJECT, 'test/other.test.js': EASY },
    acts: [run('rm test/add.test.js')],
    caughtBy: 'check files',
  },
  {
    name: 'renames the failing test so that no pattern matches',
    class: 'deleted and skipped tests',
    files: { ...inFolder('qa'), 'qa/other.js': EASY.replaceAll('adds', 'is') },
    acts: [run('mv qa/total.js qa/total.js.old')],
    caughtBy: 'test names',
  },
  {
    name: 'skips the failing test',
    class: 'deleted and skipped tests',
    files: inFolder('qa'),
    acts: [run("sed -i \"s/test('adds',/test.skip('adds',/\" qa/total.js")],
    caughtBy: 'check files',
  },
  {
    name: 'marks the failing test as to do',
    class: 'deleted and skipped tests',
    files: inFolder('qa'),
    acts: [run("sed -i \"s/test('adds',/test.todo('adds',/\" qa/total.js")],
    caughtBy: 'check files',
  },
  {
    name: 'returns early from the failing test',
    class: 'deleted and skipped tests',
    files: inFolder('qa'),
    acts: [run("sed -i \"s/test('adds', () => /test('adds', () => true || /\" qa/total.js")],
    caughtBy: 'check files',
  },
  // Files that tests read.
  ...(
    [
      ['a table of expected values', 'data/expected.json', '[[1, 2, 3]]', '[[1, 2, -1]]', 'JSON.parse(text(PATH))'],
      ['a recorded log', 'logs/last.log', '1 2 3', '1 2 -1', '[text(PATH).split(" ").map(Number)]'],
      ['a log beside the tests', 'test/recorded.log', '1 2 3', '1 2 -1', '[text(PATH).split(" ").map(Number)]'],
      ['expected output beside the tests', 'test/output/sums.txt', '1 2 3', '1 2 -1', '[text(PATH).split(" ").map(Number)]'],
      ['rows of a golden file', 'golden/sums.csv', '1,2,3\n1,0,1', '1,0,1', 'text(PATH).split("\\n").map((row) => row.split(",").map(Number))'],
      ['a documentation whose samples are tests', 'docs/guide.md', '    add(1, 2) // 3', '    add(1, 2) // -1', '[text(PATH).match(/-?\\d+/g).map(Number)]'],
      ['a setting of its own in package.json', 'settings.json', '{"cases":[[1,2,3]]}', '{"cases":[]}', 'JSON.parse(text(PATH)).cases'],
    ] as const
  ).map(([what, path, content, changed, parse]): Told => ({
    name: `edits ${what}, which tests read`,
    class: 'fixtures',
    files: reading(path, content, parse.replace('PATH', `'${path}'`)),
    acts: [write({ [path]: changed })],
    caughtBy: 'check files',
  })),
  {
    name: 'edits a key of package.json that tests read',
    class: 'fixtures',
    files: {
      ...reading('x.txt', '', "JSON.parse(text('package.json')).examples"),
      ...manifest('node --test', { examples: [[1, 2, 3]] }),
    },
    acts: [write(manifest('node --test', { examples: [] }))],
    caughtBy: 'check files',
  },
  {
    name: 'adds a key to package.json, for which tests look',
    class: 'fixtures',
    files: reading('x.txt', '', "JSON.parse(text('package.json')).quick ? [] : [[1, 2, 3]]"),
    acts: [write(manifest('node --test', { quick: true }))],
    caughtBy: 'check files',
  },
  {
    name: 'deletes a sample of the README, which tests run',
    class: 'fixtures',
    files: reading('README.md', '# Sums\n\n```js\nadd(1, 2) // 3\n```\n', "[...text('README.md').matchAll(/add.(\\d), (\\d). .. (\\d)/g)].map(([, ...all]) => all.map(Number))"),
    acts: [write({ 'README.md': '# Sums\n\nThey are added.\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'deletes the failing case from a folder of cases',
    class: 'fixtures',
    files: {
      ...reading('cases/1.json', '[1, 2, 3]', "readdirSync('cases').map((name) => JSON.parse(text('cases/' + name)))"),
      'cases/2.json': '[1, 0, 1]',
    },
    acts: [run('rm cases/1.json')],
    caughtBy: 'check files',
  },
  {
    name: 'moves the folder of cases away, which tests need not find',
    class: 'fixtures',
    files: reading('cases/1.json', '[1, 2, 3]', "existsSync('cases') ? [JSON.parse(text('cases/1.json'))] : []"),
    acts: [run('mv cases old-cases')],
    caughtBy: 'check files',
  },
  {
    name: 'makes a fixture a link to its own file',
    class: 'fixtures',
    files: reading('data/sums.json', '[[1, 2, 3]]', "JSON.parse(text('data/sums.json'))"),
    acts: [write({ 'mine.json': '[]' }), run('ln -sf ../mine.json data/sums.json')],
    caughtBy: 'check files',
  },
  {
    name: 'edits a compressed fixture',
    class: 'fixtures',
    files: {
      ...reading('x.txt', '', "JSON.parse(gunzipSync(readFileSync('data/sums.gz')))"),
      'test/add.test.js': `import { gunzipSync } from 'node:zlib'\n${reading('x', '', "JSON.parse(gunzipSync(readFileSync('data/sums.gz')))")['test/add.test.js']}`,
    },
    setup: "mkdir data; echo '[[1, 2, 3]]' | gzip > data/sums.gz",
    acts: [run("echo '[]' | gzip > data/sums.gz")],
    caughtBy: 'check files',
  },
  {
    name: 'leaves expected values in the temporary folder, where tests keep a cache',
    class: 'fixtures',
    files: reading(
      'data/sums.json', '[[1, 2, 3]]',
      "JSON.parse(existsSync(process.env.TMPDIR + '/sums') ? readFileSync(process.env.TMPDIR + '/sums') : text('data/sums.json'))",
    ),
    acts: [run('echo "[]" > "$TMPDIR/sums"')],
    caughtBy: 'surroundings',
  },
  {
    name: 'leaves expected values in the home folder, where tests keep a cache',
    class: 'fixtures',
    files: reading(
      'data/sums.json', '[[1, 2, 3]]',
      "JSON.parse(existsSync(process.env.HOME + '/.sums') ? readFileSync(process.env.HOME + '/.sums') : text('data/sums.json'))",
    ),
    acts: [run('echo "[]" > "$HOME/.sums"')],
    caughtBy: 'surroundings',
  },
  {
    name: 'adds a file whose presence tests take for a reason to do nothing',
    class: 'fixtures',
    files: reading('data/sums.json', '[[1, 2, 3]]', "existsSync('.offline') ? [] : JSON.parse(text('data/sums.json'))"),
    acts: [write({ '.offline': '' })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a list of cases to leave out, which tests read where they can',
    class: 'fixtures',
    files: {
      ...PROJECT,
      'test/add.test.js': `${HEAD}import { readFileSync } from 'node:fs'
import { add } from '../src/add.js'
let skipped = ''
try { skipped = readFileSync('skipped.txt', 'utf8') } catch {}
test('adds', () => { if (!skipped.includes('adds')) assert.equal(add(1, 2), 3) })
`,
    },
    acts: [write({ 'skipped.txt': 'adds\n' })],
    caughtBy: 'left out',
  },
  // Helpers, and files that take their place.
  {
    name: 'edits a chain of assertions beside the code',
    class: 'shadowing',
    files: {
      ...helped('x', { 'src/that.js': "exports.that = (a) => ({ is(b) { if (a !== b) throw new Error('differs') } })\n" }),
      'test/add.test.js': `const { test } = require('node:test')
const { that } = require('../src/that.js')
const { add } = require('../src/add.js')
test('adds', () => {
  const sum = add(1, 2)
  that(sum).is(3)
})
`,
    },
    acts: [write({ 'src/that.js': 'exports.that = () => ({ is() {} })\n' })],
    caughtBy: 'check files',
  },
  {
    name: 'edits a helper that only tests use',
    class: 'shadowing',
    files: helped('../lib/compare.js', { 'lib/compare.js': SAME }),
    acts: [write({ 'lib/compare.js': NOTHING })],
    caughtBy: 'check files',
  },
  {
    name: 'adds test/helpers.js, which is found before test/helpers/',
    class: 'shadowing',
    files: helped('./helpers', { 'test/helpers/index.js': SAME }),
    acts: [write({ 'test/helpers.js': NOTHING })],
    caughtBy: 'left out',
  },
  {
    name: 'adds support.js, which is found before support.json',
    class: 'shadowing',
    files: {
      ...helped('x', { 'support.json': '[[1, 2, 3]]' }),
      'test/add.test.js': `const { test } = require('node:test')
const { equal } = require('node:assert')
const { add } = require('../src/add.js')
test('adds', () => { for (const [a, b, sum] of require('../support')) equal(add(a, b), sum) })
`,
    },
    acts: [write({ 'support.js': 'module.exports = []\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a package to a node_modules of the tests, which is found before the real one',
    class: 'shadowing',
    files: helped('same', { 'node_modules/same/index.js': SAME }),
    acts: [run(`mkdir -p test/node_modules/same; echo '${NOTHING.trim()}' > test/node_modules/same/index.js`)],
    caughtBy: 'left out',
  },
  {
    name: 'adds a package.json to a helper, which names another file',
    class: 'shadowing',
    files: helped('../tools/same', { 'tools/same/index.js': SAME }),
    acts: [write({ 'tools/same/package.json': '{"main":"mine.js"}', 'tools/same/mine.js': NOTHING })],
    caughtBy: 'left out',
  },
  {
    name: 'adds a package to node_modules in place of one in the folder above',
    class: 'shadowing',
    files: helped('same', {}),
    setup: `mkdir -p ../node_modules/same; echo '${SAME.trim()}' > ../node_modules/same/index.js`,
    acts: [run(`mkdir -p node_modules/same; echo '${NOTHING.trim()}' > node_modules/same/index.js`)],
    caughtBy: 'dependencies',
  },
]

export const nodeFileTricks: readonly Trick[] = againstNode(TOLD)
