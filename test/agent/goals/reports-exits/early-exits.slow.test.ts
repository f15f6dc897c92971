/** Scripts of Node and Python as checks: who may end them, and who is caught. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Pursuit, workspace, type Files } from '../support.js'

interface Case {
  readonly what: string
  readonly command?: string
  readonly files: Files
}

const NODE_CHECK = `const assert = require('node:assert')
const { add } = require('./src/add.js')
assert.equal(add(1, 2), 3)
console.log('checked')
`
const MODULE_CHECK = `import assert from 'node:assert'
import { add } from './src/add.mjs'
assert.equal(await add(1, 2), 3)
`
const ASYNC_CHECK = `const assert = require('node:assert')
const { add } = require('./src/add.js')
async function main() {
  assert.equal(await add(1, 2), 3)
}
main()
`
const PYTHON_CHECK = 'from src.add import add\nassert add(1, 2) == 3\n'
const node = (code: string, check = NODE_CHECK): Files => ({
  'check.js': check,
  'src/add.js': code,
})
const python = (code: string, check = PYTHON_CHECK): Files => ({
  'check.py': check,
  'src/add.py': code,
  'src/__init__.py': '',
})
const PYTHON = 'python3 check.py'

const ATTACKS: readonly Case[] = [
  { what: 'process.exit(0) when loaded', files: node('process.exit(0)') },
  { what: 'process.exit() in the function', files: node('exports.add = () => process.exit()') },
  { what: 'process.reallyExit(0)', files: node('exports.add = () => process.reallyExit(0)') },
  {
    what: 'process.exit in an exit listener, over another code',
    files: node("process.on('exit', () => process.exit(0)); exports.add = () => 0"),
  },
  {
    what: 'an exit code that a listener sets',
    files: node("process.on('exit', () => { process.exitCode = 0 }); exports.add = () => 0"),
  },
  {
    what: 'a handler that swallows what the check throws',
    files: node("process.on('uncaughtException', () => {}); exports.add = () => 0"),
  },
  {
    what: 'a capture callback that swallows what the check throws',
    files: node('process.setUncaughtExceptionCaptureCallback(() => {}); exports.add = () => 0'),
  },
  {
    what: 'a handler that swallows a rejection',
    files: node("process.on('unhandledRejection', () => {}); exports.add = () => 0", ASYNC_CHECK),
  },
  {
    what: 'an exit code that a listener sets back, where the check has set it',
    files: node(
      "process.on('exit', () => { process.exitCode = 0 }); exports.add = () => 0",
      "if (require('./src/add.js').add(1, 2) !== 3) process.exitCode = 1\n",
    ),
  },
  {
    what: 'an exit code that a listener sets back before the end',
    files: node(
      "process.on('beforeExit', () => { process.exitCode = 0 }); exports.add = () => 0",
      "if (require('./src/add.js').add(1, 2) !== 3) process.exitCode = 1\n",
    ),
  },
  {
    what: 'a process.exit that does nothing',
    files: node(
      'process.exit = () => {}; exports.add = () => 0',
      "if (require('./src/add.js').add(1, 2) !== 3) process.exit(1)\n",
    ),
  },
  {
    what: 'a process.exit of a module that does nothing',
    command: 'node check.mjs',
    files: {
      'check.mjs': "import { add } from './src/add.mjs'\nif (add(1, 2) !== 3) process.exit(1)\n",
      'src/add.mjs': 'process.exit = function () {}\nexport const add = () => 0\n',
    },
  },
  {
    what: 'a sys.exit that does nothing',
    command: PYTHON,
    files: python(
      'import sys\nsys.exit = lambda code=0: None\ndef add(a, b):\n    return 0\n',
      'import sys\nfrom src.add import add\nif add(1, 2) != 3: sys.exit(1)\n',
    ),
  },
  {
    what: 'an exit that does nothing',
    command: PYTHON,
    files: python(
      'import builtins\nbuiltins.exit = lambda code=0: None\ndef add(a, b):\n    return 0\n',
      'from src.add import add\nif add(1, 2) != 3: exit(1)\n',
    ),
  },
  {
    what: 'a promise that is never kept',
    files: node('exports.add = async () => { await new Promise(() => {}) }', ASYNC_CHECK),
  },
  {
    what: 'process.exit(0) while an asynchronous check waits',
    files: node('exports.add = async () => { await null; process.exit(0) }', ASYNC_CHECK),
  },
  {
    what: 'an exit under other traces of stacks',
    files: node('Error.prepareStackTrace = () => []; Error.stackTraceLimit = 0; process.exit(0)'),
  },
  {
    what: 'process.exit(0) in a module, when loaded',
    command: 'node check.mjs',
    files: { 'check.mjs': MODULE_CHECK, 'src/add.mjs': 'process.exit(0)\nexport const add = 0' },
  },
  {
    what: 'process.exit(0) in a function of a module',
    command: 'node check.mjs',
    files: {
      'check.mjs': MODULE_CHECK,
      'src/add.mjs': 'export const add = async () => { await null; process.exit(0) }',
    },
  },
  {
    what: 'process.exit(0) behind npm',
    command: 'npm run verify',
    files: {
      ...node('process.exit(0)'),
      'package.json': JSON.stringify({ scripts: { verify: 'node check.js' } }),
    },
  },
  {
    what: 'process.exit(0) behind make',
    command: 'make check',
    files: { ...node('process.exit(0)'), Makefile: 'check:\n\t@node check.js\n' },
  },
  { what: 'sys.exit(0) when loaded', command: PYTHON, files: python('import sys\nsys.exit(0)\n') },
  {
    what: 'sys.exit() in the function',
    command: PYTHON,
    files: python('import sys\ndef add(a, b):\n    sys.exit()\n'),
  },
  {
    what: 'raise SystemExit',
    command: PYTHON,
    files: python('def add(a, b):\n    raise SystemExit\n'),
  },
  { what: 'os._exit(0)', command: PYTHON, files: python('import os\nos._exit(0)\n') },
  { what: 'posix._exit(0)', command: PYTHON, files: python('import posix\nposix._exit(0)\n') },
  {
    what: 'os._exit(0) from atexit, after a failure',
    command: PYTHON,
    files: python(
      'import atexit, os\natexit.register(lambda: os._exit(0))\ndef add(a, b):\n    return 0\n',
    ),
  },
  {
    what: 'os._exit(0) from sys.excepthook',
    command: PYTHON,
    files: python(
      'import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef add(a, b):\n    return 0\n',
    ),
  },
  {
    what: 'os._exit(0) in a thread',
    command: PYTHON,
    files: python(
      'import os, threading\ndef add(a, b):\n' +
        '    t = threading.Thread(target=lambda: os._exit(0))\n    t.start()\n    t.join()\n',
    ),
  },
  {
    what: 'another program in its place',
    command: PYTHON,
    files: python("import os\ndef add(a, b):\n    os.execv('/bin/true', ['true'])\n"),
  },
  {
    what: 'sys.exit(0) behind a shell script',
    command: 'sh run-tests.sh',
    files: { ...python('import sys\nsys.exit(0)\n'), 'run-tests.sh': 'set -e\npython3 check.py\n' },
  },
]

for (const { what, command = 'node check.js', files } of ATTACKS) {
  test(`a check of ${command} is not met by ${what}`, async (t) => {
    const run = await Pursuit.start(await workspace(t, files), `shell: ${command}`)
    const { achieved, reason, exit_code, output } = await run.check()
    assert.equal(exit_code, 0, output)
    assert.equal(achieved, false, output)
    assert.match(reason, /^src\/add\.\w+ ended check\.\w+ with .* before its end$|^check\.js failed, /)
  })
}

const GOOD = 'exports.add = (a, b) => a + b\n'
const GOOD_PYTHON = 'def add(a, b):\n    return a + b\n'
const HONEST: readonly Case[] = [
  { what: 'comes to its end', files: node(GOOD) },
  { what: 'ends itself', files: node(GOOD, `${NODE_CHECK}process.exit(0)\n`) },
  { what: 'sets an exit code', files: node(GOOD, `${NODE_CHECK}process.exitCode = 0\n`) },
  {
    what: 'ends itself when a promise is kept',
    files: node(GOOD, `${ASYNC_CHECK.replace('main()\n', '')}main().then(() => process.exit(0))`),
  },
  {
    what: 'has process.exit called with a code',
    files: node(GOOD, `${NODE_CHECK}Promise.resolve(0).then(process.exit)\n`),
  },
  {
    what: 'is ended by a helper of the tests',
    files: {
      ...node(GOOD, `${NODE_CHECK}require('./test/done.js')()\n`),
      'test/done.js': 'module.exports = () => process.exit(0)\n',
    },
  },
  {
    what: 'is ended by a package that it calls',
    files: {
      ...node(GOOD, `${NODE_CHECK}require('commander')()\n`),
      'node_modules/commander/index.js': 'module.exports = () => process.exit(0)\n',
    },
  },
  {
    what: 'starts a program that ends itself',
    files: {
      ...node(GOOD, `${NODE_CHECK}require('child_process').execFileSync('node', ['src/cli.js'])`),
      'src/cli.js': "require('./leave.js')\n",
      'src/leave.js': 'process.exit(0)\n',
    },
  },
  {
    what: 'waits for the first of a result and a time limit',
    files: node(
      `exports.add = async (a, b) => a + b
exports.limit = () => new Promise((_, fail) => setTimeout(fail, 60_000).unref())
`,
      `${ASYNC_CHECK}const { limit } = require('./src/add.js')
async function first() { assert.equal(await Promise.race([add(1, 2), limit()]), 3) }
first()
`,
    ),
  },
  {
    what: 'has listeners for its end, and code with others',
    files: node(
      "process.on('exit', () => {}); exports.add = (a, b) => a + b",
      `${NODE_CHECK}process.on('exit', () => { process.exitCode = 0 })\nprocess.exitCode = 1\n`,
    ),
  },
  {
    what: 'expects an uncaught exception',
    files: node(
      GOOD,
      `${NODE_CHECK}process.once('uncaughtException', () => {})\n` +
        "setImmediate(() => { throw new Error('expected') })\n",
    ),
  },
  {
    what: 'mocks process.exit',
    files: node(
      `${GOOD}exports.leave = () => process.exit(0)\n`,
      `${NODE_CHECK}const { exit } = process
let left = 0
process.exit = () => { left++ }
require('./src/add.js').leave()
process.exit = exit
assert.equal(left, 1)
`,
    ),
  },
  {
    what: 'mocks process.exit to its end',
    files: node(`${GOOD}exports.leave = () => process.exit(1)\n`, `${NODE_CHECK}let left = 0
process.exit = () => { left++ }
require('./src/add.js').leave()
assert.equal(left, 1)
`),
  },
  {
    what: 'mocks sys.exit to its end',
    command: PYTHON,
    files: python(
      `import sys\n${GOOD_PYTHON}def leave():\n    sys.exit(1)\n`,
      `${PYTHON_CHECK}import sys\nfrom src.add import leave\nsys.exit = lambda code: None\nleave()\n`,
    ),
  },
  {
    what: 'fails before another command succeeds',
    command: 'node check.js || true',
    files: node('exports.add = () => 0'),
  },
  {
    what: 'is a program, and no check',
    command: 'node app.js',
    files: { 'app.js': "require('./lib/cli.js')\n", 'lib/cli.js': 'process.exit(0)\n' },
  },
  {
    what: 'is a module that ends itself',
    command: 'node check.mjs',
    files: {
      'check.mjs': `${MODULE_CHECK}process.exit(0)\n`,
      'src/add.mjs': 'export const add = (a, b) => a + b',
    },
  },
  { what: 'comes to its end', command: PYTHON, files: python(GOOD_PYTHON) },
  {
    what: 'ends by sys.exit(main())',
    command: PYTHON,
    files: python(GOOD_PYTHON, `${PYTHON_CHECK}import sys\nsys.exit(0)\n`),
  },
  {
    what: 'ends by argparse',
    command: `${PYTHON} --help`,
    files: python(
      GOOD_PYTHON,
      `${PYTHON_CHECK}import argparse\nargparse.ArgumentParser().parse_args()\n`,
    ),
  },
  {
    what: 'catches SystemExit of the code under test',
    command: PYTHON,
    files: python(
      `${GOOD_PYTHON}import sys\ndef leave():\n    sys.exit(0)\n`,
      `${PYTHON_CHECK}from src.add import leave\ntry:\n    leave()\nexcept SystemExit:\n    pass\n`,
    ),
  },
  {
    what: 'is run by unittest.main()',
    command: PYTHON,
    files: python(
      GOOD_PYTHON,
      'import unittest\nfrom src.add import add\nclass T(unittest.TestCase):\n' +
        '    def test_it(self):\n        self.assertEqual(add(1, 2), 3)\n' +
        "if __name__ == '__main__':\n    unittest.main()\n",
    ),
  },
  {
    what: 'forks with multiprocessing',
    command: PYTHON,
    files: python(
      GOOD_PYTHON,
      `import multiprocessing\n${PYTHON_CHECK}
if __name__ == '__main__':
    for method in ('fork', 'spawn'):
        context = multiprocessing.get_context(method)
        process = context.Process(target=add, args=(1, 2))
        process.start()
        process.join()
        assert process.exitcode == 0
`,
    ),
  },
  {
    what: 'looks at its own file, name and frames',
    command: PYTHON,
    files: python(
      GOOD_PYTHON,
      `${PYTHON_CHECK}import os, sys, doctest
assert __name__ == '__main__' and os.path.isabs(__file__), __file__
assert sys.argv == ['check.py'] and sys.modules['__main__'].add is add
assert 'PYTHONPATH' not in os.environ and 'NODE_OPTIONS' not in os.environ
assert not any('runwright' in entry for entry in sys.path)
assert doctest.testmod().failed == 0
`,
    ),
  },
]

for (const { what, command = 'node check.js', files } of HONEST) {
  test(`a check of ${command} that ${what} is met`, async (t) => {
    const run = await Pursuit.start(await workspace(t, files), `shell: ${command}`)
    const { achieved, reason, output } = await run.check()
    assert.deepEqual([achieved, reason], [true, 'exit code 0'], output)
  })
}

test('a failing Python script shows its own traceback and exit code', async (t) => {
  const failing = python('def add(a, b):\n    return 0\n')
  const run = await Pursuit.start(await workspace(t, failing), `shell: ${PYTHON}`)
  const { reason, output } = await run.check()
  assert.equal(reason, 'exit code 1')
  assert.match(output, /^Traceback \(most recent call last\):\n {2}File ".*check.py", line 2, in /)
  assert.ok(!output.includes('sitecustomize'), output)
  const coded = python('import sys\ndef add(a, b):\n    sys.exit(3)\n')
  const other = await Pursuit.start(await workspace(t, coded), `shell: ${PYTHON}`)
  assert.equal((await other.check()).reason, 'exit code 3')
})
