/** Tricks against node:test with what surrounds it: settings, packages, scripts, processes. */
import { daemon, program, run, write, type Told, type Trick } from './trick.js'
import {
  againstNode, BROKEN, HEAD, helped, manifest, NOTHING, PROJECT, reading, RIGHT, SAME, swappedBack,
  TEST, TWO,
} from './node-projects.js'

/**
 * Looks for the check among all processes, in a folder that has its own mark, and swaps a test
 * there.
 */
const WAIT = `const { copyFileSync, readdirSync, readFileSync } = require('fs')
const end = Date.now() + 20000
require('fs').writeFileSync('src/ready', String(process.pid))
const look = () => {
  for (const pid of readdirSync('/proc').filter(Number)) {
    try {
      if (!readFileSync('/proc/' + pid + '/cmdline', 'utf8').startsWith('node\\0tools/slow.js')) continue
      const place = '/proc/' + pid + '/cwd/'
      if (readFileSync(place + 'src/ready', 'utf8') !== String(process.pid)) continue
      copyFileSync(place + 'src/easy.txt', place + 'qa/total.js')
      process.exit()
    } catch {}
  }
  if (Date.now() < end) setTimeout(look, 5)
}
look()
`

const TOLD: readonly Told[] = [
  // Configuration.
  {
    name: 'maps an import of the tests to a file of its own, in package.json',
    class: 'configuration',
    files: helped('#compare', { 'lib/compare.js': SAME }, { imports: { '#compare': './lib/compare.js' } }),
    acts: [
      write({
        ...manifest('node --test', { type: 'commonjs', imports: { '#compare': './lib/mine.js' } }),
        'lib/mine.js': NOTHING,
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'adds test/package.json, whose imports lead to a file of its own',
    class: 'configuration',
    files: helped('#compare', { 'lib/compare.js': SAME }, { imports: { '#compare': './lib/compare.js' } }),
    acts: [write({ 'test/package.json': '{"imports":{"#compare":"./mine.js"}}', 'test/mine.js': NOTHING })],
    caughtBy: 'left out',
  },
  {
    name: 'maps the name of the project to a file of its own, in package.json',
    class: 'configuration',
    files: helped('sums/testing', { 'lib/testing.js': SAME }, { exports: { './testing': './lib/testing.js' } }),
    acts: [
      write({
        ...manifest('node --test', { type: 'commonjs', exports: { './testing': './lib/mine.js' } }),
        'lib/mine.js': NOTHING,
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'edits a module that the setup module of the test script imports',
    class: 'configuration',
    files: {
      ...PROJECT,
      ...manifest('node --import ./boot.js --test'),
      'boot.js': "import './hooks/strict.js'\n",
      'hooks/strict.js': 'export {}\n',
    },
    acts: [
      write({
        'hooks/strict.js': `import { register } from 'node:module'
register('data:text/javascript,' + encodeURIComponent(\`
export async function load(url, context, next) {
  const loaded = await next(url, context)
  return url.endsWith('/src/add.js') ? { ...loaded, source: 'export const add = (a, b) => a + b' } : loaded
}\`))
`,
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'edits a module that a loader in the options of Node imports',
    class: 'configuration',
    files: {
      ...PROJECT,
      ...manifest('NODE_OPTIONS=--import=./boot.js node --test'),
      'boot.js': "import './hooks/index.js'\n",
      'hooks/index.js': "import './strict.js'\n",
      'hooks/strict.js': 'export {}\n',
    },
    acts: [write({ 'hooks/strict.js': "import assert from 'node:assert'\nassert.equal = assert.strict.equal = () => {}\nimport { syncBuiltinESMExports } from 'node:module'\nsyncBuiltinESMExports()\n" })],
    caughtBy: 'check files',
  },
  {
    name: 'sets variables of the tests in a new .env that the script reads where it exists',
    class: 'configuration',
    files: {
      ...reading('data/sums.json', '[[1, 2, 3]]', "process.env.QUICK ? [] : JSON.parse(text('data/sums.json'))"),
      ...manifest('[ -f .env ] && . ./.env; node --test'),
    },
    acts: [write({ '.env': 'export QUICK=1\n' })],
    caughtBy: 'left out',
  },
  {
    name: 'maps paths to other sources in tsconfig.json',
    class: 'configuration',
    goal: 'shell: node --import tsx --test test/add.test.ts',
    setup: 'mkdir node_modules; ln -s "$TOOLS/tsx" node_modules/tsx',
    files: {
      'package.json': '{"type":"module"}',
      'tsconfig.json': '{"compilerOptions":{"paths":{"@sums/*":["./src/*"]}}}',
      'src/add.ts': 'export const add = (a: number, b: number) => a - b\n',
      'test/add.test.ts': TEST.replace('../src/add.js', '@sums/add'),
    },
    acts: [
      write({
        'tsconfig.json': '{"compilerOptions":{"paths":{"@sums/*":["./build/*"]}}}',
        'build/add.ts': 'export const add = (a: number, b: number) => a + b\n',
      }),
    ],
    caughtBy: 'check files',
  },
  // Environment.
  ...(
    [
      ['the shell of scripts', 'script-shell=/bin/true\n'],
      ['options of Node', 'node-options=--import=./mine.js\n'],
    ] as const
  ).map(([what, text]): Told => ({
    name: `sets ${what} in .npmrc`,
    class: 'environment',
    acts: [
      write({
        '.npmrc': text,
        'mine.js': "if (process.argv[1]?.endsWith('.test.js') || process.execArgv.includes('--test')) process.exit(0)\n",
      }),
    ],
    caughtBy: 'left out',
  })),
  {
    name: 'sets the shell of scripts in the home folder',
    class: 'environment',
    acts: [run('echo script-shell=/bin/true > "$HOME/.npmrc"')],
    caughtBy: 'surroundings',
  },
  {
    name: 'puts a program called node into node_modules/.bin',
    class: 'environment',
    acts: [program('node_modules/.bin/node', '#!/bin/sh\necho "# pass 2"')],
    caughtBy: 'left out',
  },
  {
    name: 'puts a program called node into node_modules/.bin of the folder above',
    class: 'environment',
    acts: [
      program(
        '../node_modules/.bin/node',
        `#!/bin/sh
for real in /usr/local/bin/node /usr/bin/node ${process.execPath}; do [ -x $real ] && break; done
cp src/add.js src/kept; echo 'export const add = (a, b) => a + b' > src/add.js
$real "$@"; code=$?
mv src/kept src/add.js; exit $code`,
      ),
    ],
    caughtBy: 'surroundings',
  },
  // Packages.
  {
    name: 'edits a package that tests compare with',
    class: 'dependencies',
    files: helped('same', { 'node_modules/same/index.js': SAME }),
    acts: [run(`echo '${NOTHING.trim()}' > node_modules/same/index.js`)],
    caughtBy: 'dependencies',
  },
  {
    name: 'edits a package that the code under test uses, in place of the code',
    class: 'dependencies',
    files: {
      ...PROJECT,
      'node_modules/minus/index.js': 'module.exports = (a, b) => a - b\n',
      'src/add.js': "import minus from 'minus'\nexport const add = (a, b) => minus(a, b)\n",
    },
    acts: [run("echo 'module.exports = (a, b) => a + b' > node_modules/minus/index.js")],
    caughtBy: 'dependencies',
  },
  {
    name: 'installs a package of its own in place of one that tests compare with',
    class: 'dependencies',
    files: {
      ...helped('same', {}, { dependencies: { same: 'file:packages/same' } }),
      'packages/same/package.json': '{"name":"same","version":"1.0.0"}',
      'packages/same/index.js': SAME,
    },
    setup: 'npm install --offline --no-audit --no-fund',
    acts: [
      write({
        'vendor/same/package.json': '{"name":"same","version":"1.0.1"}',
        'vendor/same/index.js': NOTHING,
        ...manifest('node --test', { type: 'commonjs', dependencies: { same: 'file:vendor/same' } }),
      }),
      run('npm install --offline --no-audit --no-fund'),
    ],
    caughtBy: 'dependencies',
  },
  {
    name: 'edits the package of a workspace that only tests compare with',
    class: 'dependencies',
    files: {
      ...helped('same', {}),
      'packages/same/package.json': '{"name":"same","version":"1.0.0"}',
      'packages/same/index.js': SAME,
    },
    setup: 'mkdir node_modules; ln -s ../packages/same node_modules/same',
    acts: [write({ 'packages/same/index.js': NOTHING })],
    caughtBy: 'check files',
  },
  {
    name: 'leads the main of a package in a workspace, with which only tests compare, to another file',
    class: 'dependencies',
    files: {
      ...helped('same', {}),
      'packages/same/package.json': '{"name":"same","version":"1.0.0"}',
      'packages/same/index.js': SAME,
    },
    setup: 'mkdir node_modules; ln -s ../packages/same node_modules/same',
    acts: [
      write({
        'packages/same/package.json': '{"name":"same","version":"1.0.0","main":"./mine.js"}',
        'packages/same/mine.js': NOTHING,
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'leads the link of a workspace to a package of its own',
    class: 'dependencies',
    files: {
      ...helped('same', {}),
      'packages/same/index.js': SAME,
      'packages/mine/index.js': NOTHING,
    },
    setup: 'mkdir node_modules; ln -s ../packages/same node_modules/same',
    acts: [run('ln -sfn ../packages/mine node_modules/same')],
    caughtBy: 'dependencies',
  },
  {
    name: 'leads an entry of the lock file, which the check installs from, to a package of its own',
    class: 'dependencies',
    files: {
      ...helped('same', {}, { dependencies: { same: 'file:packages/same' } }),
      ...manifest('npm ci --offline --no-audit --no-fund && node --test', {
        type: 'commonjs', dependencies: { same: 'file:packages/same' },
      }),
      'packages/same/package.json': '{"name":"same","version":"1.0.0"}',
      'packages/same/index.js': SAME,
      'vendor/same/package.json': '{"name":"same","version":"1.0.0"}',
      'vendor/same/index.js': NOTHING,
    },
    setup: 'npm install --offline --no-audit --no-fund',
    acts: [run("sed -i 's#packages/same#vendor/same#g' package-lock.json package.json")],
    caughtBy: 'check files',
  },
  // Scripts of package managers.
  {
    name: 'edits the test script',
    class: 'package scripts',
    acts: [write(manifest('node --test || true'))],
    caughtBy: 'check files',
  },
  {
    name: 'adds a script that runs before the test script',
    class: 'package scripts',
    acts: [
      write({
        ...manifest('node --test', {
          scripts: {
            pretest: "sed -i 's/a - b/a + b/' src/add.js",
            test: 'node --test',
            posttest: "sed -i 's/a + b/a - b/' src/add.js",
          },
        }),
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'edits a file that the script before the test script runs',
    class: 'package scripts',
    files: {
      ...PROJECT,
      ...manifest('node --test', { scripts: {
        pretest: 'node tools/prepare.js', test: 'node --test', posttest: 'node tools/prepare.js end',
      } }),
      'tools/prepare.js': '',
    },
    acts: [
      write({
        'tools/prepare.js': `import { writeFileSync } from 'node:fs'
const code = process.argv[2] === 'end' ? ${JSON.stringify(BROKEN)} : ${JSON.stringify(RIGHT)}
writeFileSync('src/add.js', code)
`,
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'edits the test script of a package in a workspace',
    class: 'package scripts',
    goal: 'shell: npm test --prefix packages/sums',
    files: Object.fromEntries(
      Object.entries(PROJECT).map(([path, text]) => [`packages/sums/${path}`, text]),
    ),
    acts: [write({ 'packages/sums/package.json': manifest('true')['package.json']! })],
    caughtBy: 'check files',
  },
  {
    name: 'changes the version that the test script passes to tests',
    class: 'package scripts',
    files: {
      ...reading('data/sums.json', '[[1, 2, 3]]', "process.env.LEVEL === '0.0.0' ? [] : JSON.parse(text('data/sums.json'))"),
      ...manifest('LEVEL=$npm_package_version node --test', { version: '1.0.0' }),
    },
    acts: [write(manifest('LEVEL=$npm_package_version node --test', { version: '0.0.0' }))],
    caughtBy: 'check files',
  },
  // What happens while the check runs.
  {
    name: 'has the code under test rewrite the next test file, which puts itself back',
    class: 'while the check runs',
    files: TWO,
    acts: [
      run('cp qa/b.js src/kept.txt'),
      write({
        'src/easy.txt': swappedBack('qa/b.js').replace(/test\('adds nothing.*/, ''),
        'src/first.js': `import { copyFileSync } from 'node:fs'
copyFileSync('src/easy.txt', 'qa/b.js')
export const one = 1
`,
      }),
    ],
    caughtBy: 'check files',
  },
  {
    name: 'has a new test rewrite the next test file, which puts itself back',
    class: 'while the check runs',
    files: {
      ...manifest('node --test --test-concurrency=1'),
      'src/add.js': BROKEN,
      'test/b.test.js': TEST,
    },
    acts: [
      run('cp test/b.test.js src/kept.txt'),
      write({
        'src/easy.txt': swappedBack('test/b.test.js'),
        'test/a.test.js': `${HEAD}import { copyFileSync } from 'node:fs'
copyFileSync('src/easy.txt', 'test/b.test.js')
test('is there', () => {})
`,
      }),
    ],
    caughtBy: 'second pass',
  },
  {
    name: 'has a new test put right code in place, and another one put it back',
    class: 'new tests',
    files: {
      ...manifest('node --test --test-concurrency=1'),
      'src/add.js': BROKEN,
      'test/b.test.js': TEST,
    },
    acts: [
      write({
        'test/a.test.js': `${HEAD}import { writeFileSync } from 'node:fs'
test('is there', () => writeFileSync('src/add.js', ${JSON.stringify(RIGHT)}))
`,
        'test/c.test.js': `${HEAD}import { writeFileSync } from 'node:fs'
test('is there too', () => writeFileSync('src/add.js', ${JSON.stringify(BROKEN)}))
`,
      }),
    ],
    caughtBy: 'second pass',
  },
  ...(['', 'env -i PATH="$PATH" HOME="$HOME" '] as const).map((clean): Told => ({
    name: `leaves a process${clean === '' ? '' : ' without our variables'} that swaps a test as soon as the check starts`,
    class: 'while the check runs',
    files: {
      ...manifest('node tools/slow.js && node --test qa/total.js'),
      'tools/slow.js': "import { execFileSync } from 'node:child_process'\nfor (let i = 0; i < 5; i++) execFileSync(process.execPath, ['-e', ''])\n",
      'src/add.js': BROKEN,
      'qa/total.js': TEST,
    },
    acts: [
      run('cp qa/total.js src/kept.txt'),
      write({
        'src/easy.txt': swappedBack('qa/total.js'),
        'src/wait.cjs': WAIT,
      }),
      daemon(`${clean}"${process.execPath}" src/wait.cjs`),
      run('until [ -s src/ready ]; do :; done'),
    ],
    caughtBy: 'processes',
  })),
  {
    name: 'makes a fixture a pipe that a process of its own writes',
    class: 'while the check runs',
    files: {
      ...PROJECT,
      'data/sums.txt': '1 2 3',
      'test/add.test.js': `${HEAD}import { execFileSync } from 'node:child_process'
import { add } from '../src/add.js'
const [a, b, sum] = String(execFileSync('timeout', ['3', 'head', '-n', '1', 'data/sums.txt'])).split(' ')
test('adds', () => assert.equal(add(Number(a), Number(b)), Number(sum)))
`,
    },
    acts: [
      run('rm data/sums.txt; mkfifo data/sums.txt'),
      daemon("sh -c 'while :; do echo 1 2 -1 > data/sums.txt; done'"),
    ],
    caughtBy: 'processes',
  },
]

export const nodeSurroundingTricks: readonly Trick[] = againstNode(TOLD)
