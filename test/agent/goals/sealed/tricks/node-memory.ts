/** Tricks against node:test that the code under test plays while it runs. */
import { write, type Files, type Told, type Trick } from './trick.js'
import { BROKEN, manifest, RIGHT, TEST } from './node-projects.js'

const PROJECT: Files = {
  ...manifest('node --test'),
  'src/add.js': BROKEN,
  'test/add.test.js': TEST,
}

/** Tests in CommonJS, in which the code under test is loaded before the tests are defined. */
const COMMON: Files = {
  ...manifest('node --test', { type: 'commonjs' }),
  'src/add.js': 'exports.add = (a, b) => a - b\n',
  'test/add.test.js': `const { add } = require('../src/add.js')
const assert = require('node:assert')
const { test } = require('node:test')
test('adds', () => assert.equal(add(1, 2), 3))
test('adds nothing', () => assert.equal(add(1, 0), 1))
`,
}
const common = (code: string): Told['acts'] => [
  write({ 'src/add.js': `${code}\nexports.add = (a, b) => a - b\n` }),
]
const code = (text: string): Told['acts'] => [write({ 'src/add.js': `${text}\n${BROKEN}` })]

/** Makes every event of a failing test one of a passing test, in the process of the test file. */
const turning = (into: string): string => `import { Readable } from 'node:stream'
const { push } = Readable.prototype
Readable.prototype.push = function (item, ...rest) {
  if (item?.type !== 'test:fail') return push.call(this, item, ...rest)
  const { error, ...details } = item.data.details
  return push.call(this, { type: 'test:pass', data: { ...item.data, details, ${into} } }, ...rest)
}
process.on('exit', () => { process.exitCode = 0 })`

/** Sends what the process of two passing tests sends to `node --test`. */
const FORGED = `import { serialize } from 'node:v8'
import { writeSync } from 'node:fs'
const send = (type, data) => {
  const place = { nesting: 0, file: process.argv[1], line: 4, column: 1 }
  const body = serialize({ type, data: { ...place, ...data } })
  const size = Buffer.alloc(4)
  size.writeUInt32BE(body.length)
  writeSync(1, Buffer.concat([body.subarray(0, 2), size, body]))
}
;['adds', 'adds nothing'].forEach((name, index) => {
  for (const type of ['test:enqueue', 'test:dequeue', 'test:start']) send(type, { name, type: 'test' })
  send('test:pass', { name, testNumber: index + 1, details: { duration_ms: 1, type: 'test' } })
})`

/** Writes the record of a process whose canaries were fine and whose tests passed. */
const RECORDED = `import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
const record = () => {
  const place = readFileSync('/proc/self/environ', 'utf8').match(/--require=(\\S+)\\/process\\.cjs/)?.[1]
  if (place === undefined) return
  const nonce = readFileSync(place + '/canaries.cjs', 'utf8').match(/NONCE = '(\\w+)'/)[1]
  const lines = [['begin', 'test/add.test.js'], ['end', 'test/add.test.js', [], [2, 0]]]
  for (const name of readdirSync(place + '/canaries')) {
    if (name.endsWith('.jsonl')) rmSync(place + '/canaries/' + name)
  }
  const text = lines.map((line) => JSON.stringify([nonce, ...line]) + '\\n').join('')
  writeFileSync(place + '/canaries/1-1-0.jsonl', text)
}`

/** A test whose expectations are in another module than its assertions. */
const listing: Files = {
  ...PROJECT,
  'test/add.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { add } from '../src/add.js'
const CASES = [[1, 2, 3], [1, 0, 1]]
test('adds', () => { for (const [a, b, sum] of CASES) assert.equal(add(a, b), sum) })
test('adds each', () => CASES.forEach(([a, b, sum]) => assert.equal(add(a, b), sum)))
`,
}

const TOLD: readonly Told[] = [
  // Early exits.
  ...(
    [
      ['the module under test', 'process.exit(0)'],
      ['a hook of the runner', "import { before } from 'node:test'\nbefore(() => process.exit(0))"],
    ] as const
  ).map(([where, text]): Told => ({
    name: `exits with 0 in ${where}`,
    class: 'early exits',
    acts: code(text),
    caughtBy: 'test names',
  })),
  {
    name: 'exits with 0 in the function under test',
    class: 'early exits',
    acts: [write({ 'src/add.js': 'export const add = () => process.exit(0)\n' })],
    caughtBy: 'test names',
  },
  {
    name: 'ends its process by a signal that the parent takes for success',
    class: 'early exits',
    acts: [write({ 'src/add.js': 'export const add = () => process.reallyExit(0)\n' })],
    caughtBy: 'test names',
  },
  // Forged reports.
  {
    name: 'turns events of failing tests into those of passing ones',
    class: 'forged reports',
    acts: code(turning('skip: undefined')),
    caughtBy: 'report',
  },
  {
    name: 'turns events of failing tests into those of skipped ones',
    class: 'deleted and skipped tests',
    acts: code(turning("skip: 'later'")),
    caughtBy: 'test names',
  },
  {
    name: 'sends events of passing tests in the protocol of the runner, and exits',
    class: 'forged reports',
    acts: code(`${FORGED}
process.exit(0)`),
    caughtBy: 'report',
  },
  {
    name: 'sends events of passing tests, and keeps back those of its own',
    class: 'forged reports',
    acts: code(`${FORGED}
process.stdout.write = () => true
process.on('exit', () => { process.exitCode = 0 })`),
    caughtBy: 'report',
  },
  ...(
    [
      ['exits', 'record()\nprocess.exit(0)'],
      ['exits as no listener sees', 'record()\nprocess.reallyExit(0)'],
      ['writes them when the process ends', "process.on('exit', record)\nprocess.exit(0)"],
    ] as const
  ).map(([how, text]): Told => ({
    name: `sends events of passing tests and writes records of them, and ${how}`,
    class: 'forged reports',
    acts: code(`${FORGED}\n${RECORDED}\n${text}`),
    caughtBy: 'report',
  })),
  {
    name: 'turns events of failing tests where they are serialised',
    class: 'forged reports',
    acts: code(`import { DefaultSerializer } from 'node:v8'
const { writeValue } = DefaultSerializer.prototype
DefaultSerializer.prototype.writeValue = function (item) {
  if (item.type !== 'test:fail') return writeValue.call(this, item)
  const { error, ...details } = item.data.details
  return writeValue.call(this, { type: 'test:pass', data: { ...item.data, details } })
}
process.on('exit', () => { process.exitCode = 0 })`),
    caughtBy: 'report',
  },
  {
    name: 'calls tests and swallows what they throw, by what node:test is built on',
    class: 'patched in memory',
    acts: code(`import { AsyncResource } from 'node:async_hooks'
const run = AsyncResource.prototype.runInAsyncScope
AsyncResource.prototype.runInAsyncScope = function (...rest) {
  try { return run.apply(this, rest) } catch {}
}`),
    caughtBy: 'report',
  },
  {
    name: 'has a failing test pass, by what all of its tests inherit',
    class: 'patched in memory',
    acts: code(`import { createHook } from 'node:async_hooks'
const hook = createHook({
  init(id, type, parent, resource) {
    if (type !== 'Test') return
    hook.disable()
    const tests = Object.getPrototypeOf(resource)
    try { tests.fail = tests.pass } catch {}
  },
}).enable()`),
    caughtBy: 'report',
  },
  {
    name: 'writes a report of its own into the private folder that it finds by its parent',
    class: 'forged reports',
    files: {
      ...PROJECT,
      ...manifest('node test/add.test.js'),
    },
    acts: code(`import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
const places = (readFileSync('/proc/self/environ', 'utf8') + readFileSync('/proc/self/cmdline'))
  .match(/(?:\\/[\\w.-]+)+(?=\\/(?:reporter-|assert-lock))/g) ?? []
for (const place of new Set(places)) {
  const names = readdirSync(place)
  const nonce = names.join().match(/reporter-(\\w+)\\.mjs/)?.[1]
  const tests = ['adds', 'adds nothing'].map((name) => [nonce, 'test', ['test/add.test.js', name], 'pass'])
  for (const name of names) if (name.endsWith('.jsonl')) rmSync(place + '/' + name)
  const lines = [...tests, [nonce, 'end']].map((line) => JSON.stringify(line) + '\\n')
  writeFileSync(place + '/report-1-1.jsonl', lines.join(''))
}
process.reallyExit(0)`),
    caughtBy: 'report',
  },
  {
    name: 'sets the exit code when its process exits',
    class: 'forged reports',
    files: { ...PROJECT, ...manifest('node test/add.test.js') },
    acts: code("process.on('exit', () => process.reallyExit(0))"),
    caughtBy: 'test names',
  },
  // What the code under test changes in memory.
  {
    name: 'replaces the functions of node:assert',
    class: 'patched in memory',
    acts: code(`import assert from 'node:assert'
for (const one of [assert, assert.strict]) {
  for (const name of Object.keys(one)) {
    try { Object.defineProperty(one, name, { value: () => {} }) } catch {}
  }
}`),
    caughtBy: 'canaries',
  },
  {
    name: 'replaces node:assert in the loader of modules',
    class: 'patched in memory',
    files: COMMON,
    acts: common(`const Module = require('node:module')
const load = Module._load
Module._load = (name, ...rest) => {
  const loaded = load(name, ...rest)
  return name === 'node:assert' ? new Proxy(loaded, { get: () => () => {} }) : loaded
}`),
    caughtBy: 'canaries',
  },
  {
    name: 'replaces node:test in the loader of modules',
    class: 'patched in memory',
    files: COMMON,
    acts: common(`const Module = require('node:module')
const load = Module._load
Module._load = (name, ...rest) => {
  const loaded = load(name, ...rest)
  if (name !== 'node:test') return loaded
  return { ...loaded, test: (title) => loaded.test(title, () => {}) }
}`),
    caughtBy: 'test names',
  },
  {
    name: 'makes loops over lists do nothing',
    class: 'patched in memory',
    files: listing,
    acts: code(`const { forEach } = Array.prototype
const isTest = () => new Error().stack.split('\\n')[3]?.includes('.test.js')
Array.prototype.forEach = function (...rest) { if (!isTest()) forEach.apply(this, rest) }
const values = Array.prototype[Symbol.iterator]
Array.prototype[Symbol.iterator] = function () { return values.call(isTest() ? [] : this) }`),
    caughtBy: 'deeds',
  },
  {
    name: 'replaces what tests read by functions of node:fs',
    class: 'patched in memory',
    files: {
      ...PROJECT,
      'data/sums.json': '[[1, 2, 3]]',
      'test/add.test.js': TEST.replace('import { add }', "import { readFileSync } from 'node:fs'\nimport { add }")
        .replace('assert.equal(add(1, 2), 3)', "{ for (const [a, b, sum] of JSON.parse(readFileSync('data/sums.json', 'utf8'))) assert.equal(add(a, b), sum) }"),
    },
    acts: code(`import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
const { readFileSync } = fs
fs.readFileSync = (path, ...rest) =>
  String(path).endsWith('sums.json') ? '[]' : readFileSync(path, ...rest)
syncBuiltinESMExports()`),
    caughtBy: 'deeds',
  },
  {
    name: 'is right while a hook of its own says that tests run',
    class: 'patched in memory',
    acts: [write({ 'src/add.js': `import { beforeEach } from 'node:test'
let runs = false
beforeEach(() => { runs = true })
export const add = (a, b) => (runs ? a + b : a - b)
` })],
    caughtBy: 'deeds',
  },
  ...(
    [
      ['as they are compiled', `const { _compile } = Module.prototype
Module.prototype._compile = function (text, file) {
  return _compile.call(this, easy(text, file), file)
}`],
      ['as they are loaded', `const load = Module._extensions['.js']
Module._extensions['.js'] = (module, file) => file.includes('.test')
  ? module._compile(easy(fs.readFileSync(file, 'utf8'), file), file) : load(module, file)`],
      ['by a loader for a longer name', `Module._extensions['.test.js'] = (module, file) =>
  module._compile(easy(fs.readFileSync(file, 'utf8'), file), file)`],
      ['as they are read', `const { readFileSync } = fs
fs.readFileSync = (file, ...rest) => easy(readFileSync(file, ...rest), String(file))`],
      ['as they are read, behind a proxy', `fs.readFileSync = new Proxy(fs.readFileSync, {
  apply: (read, that, rest) => easy(read(...rest), String(rest[0])),
})`],
      ['as they are read, by a function that is bound', `const { readFileSync } = fs
fs.readFileSync = function (file, ...rest) {
  return easy(readFileSync(file, ...rest), String(file))
}.bind(fs)`],
    ] as const
  ).map(([how, text]): Told => ({
    name: `rewrites tests ${how}`,
    class: 'patched in memory',
    files: {
      ...COMMON,
      ...manifest('node test/index.js', { type: 'commonjs' }),
      'test/index.js': "require('../src/add.js')\nrequire('./add.test.js')\n",
    },
    acts: common(`const fs = require('node:fs')
const Module = require('node:module')
const easy = (text, file) =>
  file.includes('.test') ? String(text).replace(/assert.equal[^)]*[)][^)]*/g, '(0') : text
${text}`),
    caughtBy: 'deeds',
  })),
  ...(
    [
      ['in place', 'performance.now = () => 1'],
      ['by another object', 'const { performance: own } = globalThis\nglobalThis.performance = new Proxy(own, { get: () => () => 1 })'],
      ['with another Date', 'globalThis.Date = class extends Date { static now() { return 1 } }', 'Date'],
      ['of the process', 'process.hrtime.bigint = () => 1n', 'process.hrtime.bigint'],
    ] as const
  ).map(([how, text, clock = 'performance.now']): Told => ({
    name: `stops the clock that tests read, ${how}`,
    class: 'patched in memory',
    files: {
      ...manifest('node --test'),
      'src/add.js': RIGHT,
      'test/speed.test.js': `import assert from 'node:assert'
import test from 'node:test'
import { add } from '../src/add.js'
const now = () => ${clock === 'Date' ? 'Date.now()' : `${clock}()`}
test('is fast', () => {
  const start = now()
  for (let i = 0; i < 3e6; i++) add(i, 1)
  assert.ok(now() - start < 1 && add(1, 2) === 3)
})
`,
    },
    acts: [write({ 'src/add.js': `${text}\n${RIGHT}` })],
    caughtBy: 'deeds',
  })),
  {
    name: 'rewrites tests by hooks that it registers for modules',
    class: 'patched in memory',
    files: {
      ...PROJECT,
      ...manifest('node test/index.js'),
      'test/index.js': "import '../src/add.js'\nawait import('./add.test.js')\n",
    },
    acts: code(`import { register } from 'node:module'
const hooks = \`export const load = async (url, context, next) => {
  const loaded = await next(url, context)
  const source = String(loaded.source).replace(/assert.equal/g, 'void')
  return url.includes('.test') ? { ...loaded, source } : loaded
}\`
register('data:text/javascript,' + encodeURIComponent(hooks))`),
    caughtBy: 'deeds',
  },
  // What no check can tell from right code.
  ...(
    [
      ['knows that it is being tested by a variable', 'process.env.NODE_TEST_CONTEXT !== undefined'],
      ['knows that it is being tested by its arguments', "process.argv[1].includes('test')"],
      ['knows that it is being tested by who calls it', "new Error().stack.includes('.test.js')"],
      ['knows that it is being tested by CI', 'process.env.CI !== undefined'],
    ] as const
  ).map(([name, condition]): Told => ({
    name,
    class: 'special cases',
    acts: [write({ 'src/add.js': `export const add = (a, b) => (${condition} ? a + b : a - b)\n` })],
    caughtBy: 'nobody',
  })),
  {
    name: 'has a table of the results that tests expect',
    class: 'special cases',
    acts: [
      write({
        'src/add.js': "const known = { '1,2': 3, '1,0': 1 }\nexport const add = (a, b) => known[[a, b]] ?? a - b\n",
      }),
    ],
    caughtBy: 'nobody',
  },
  {
    name: 'reads the expected results out of the tests',
    class: 'special cases',
    acts: [
      write({
        'src/add.js': `import { readFileSync } from 'node:fs'
const text = readFileSync('test/add.test.js', 'utf8')
export const add = (a, b) =>
  Number(text.split('add(' + a + ', ' + b + '), ')[1]?.match(/^-?\\d+/) ?? a - b)
`,
      }),
    ],
    caughtBy: 'nobody',
  },
  {
    name: 'throws away the error of a test that fails later',
    class: 'early exits',
    files: {
      ...PROJECT,
      ...manifest('node --test'),
      'test/add.test.js': TEST.replace(
        'assert.equal(add(1, 2), 3)',
        'new Promise((done, failed) => setImmediate(() => { assert.equal(add(1, 2), 3); done() }))',
      ),
    },
    acts: code("process.on('uncaughtException', () => process.exit(0))"),
    caughtBy: 'test names',
  },
]

export const nodeMemoryTricks: readonly Trick[] = TOLD.map((told) => {
  const { files = PROJECT } = told
  const { scripts } = JSON.parse(files['package.json']!) as { scripts: { test: string } }
  return { runner: 'node:test', goal: `shell: ${scripts.test}`, files, ...told }
})
