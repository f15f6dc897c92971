/** Repairs of large sources, and of suites whose reports are hard to read. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { repairFiles as repair } from './driver.js'

const MODULE = '{ "type": "module" }\n'

test('a file that is read in parts is repaired, and nothing else in it changes', async (t) => {
  const functions = Array.from({ length: 1_300 }, (_, at) => [
    `/** Weighs the first number by ${at}, é. */`,
    `export function weigh${at}(a, b) {`, `  return a * ${at} + b`, '}', '',
  ].join('\n'))
  const sound = functions.join('\n')
  assert.ok(sound.length > 100_000)
  // Beyond the first part.
  const broken = sound.replace('return a * 1250 + b', 'return a * 1250 - b')
  const { cwd, result, calls } = await repair(t, {
    'package.json': MODULE,
    'src/weights.js': broken,
    'test/weights.test.js': [
      "import assert from 'node:assert'", "import { test } from 'node:test'",
      "import { weigh7, weigh1250 } from '../src/weights.js'",
      "test('a small weight', () => assert.equal(weigh7(2, 3), 17))",
      "test('a large weight', () => assert.equal(weigh1250(2, 3), 2503))",
    ].join('\n'),
  })
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(readFileSync(join(cwd, 'src/weights.js'), 'utf8'), sound)
  const offsets = calls.filter(({ tool, args }) =>
    tool === 'read_file' && args['path'] === 'src/weights.js').map(({ args }) => args['offset'])
  assert.ok(offsets.length > 1 && offsets.some((offset) => Number(offset) > 1), offsets.join())
})

test('a patch that lets more tests pass than an answer has room for is made', async (t) => {
  const sound = [
    'export const scale = (n) => n * 2 + 1', 'export const other = (n) => n - 1', '',
  ].join('\n')
  const { cwd, result } = await repair(t, {
    'package.json': MODULE,
    'src/scale.js': sound.replace('* 2 + 1', '* 2 - 1'),
    'test/scale.test.js': [
      "import assert from 'node:assert'", "import { test } from 'node:test'",
      "import { other, scale } from '../src/scale.js'",
      'for (let at = 0; at < 60; at++) {',
      "  const name = `the number ${at} is scaled, which is told of at some length: ${'-'.repeat(80)}`",
      '  test(name, () => assert.equal(scale(at), 2 * at + 1))', '}',
      "test('another', () => assert.equal(other(1), 0))",
    ].join('\n'),
  })
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(readFileSync(join(cwd, 'src/scale.js'), 'utf8'), sound)
})

test('a suite that is only told in brief is repaired', async (t) => {
  const sound = [
    'export const scale = (n) => n * 2 + 1', 'export const other = (n) => n - 1', '',
  ].join('\n')
  const { cwd, result, calls } = await repair(t, {
    'package.json': MODULE,
    'src/scale.js': sound.replace('n - 1', 'n + 1'),
    'test/scale.test.js': [
      "import assert from 'node:assert'", "import { test } from 'node:test'",
      "import { other, scale } from '../src/scale.js'",
      'for (let at = 0; at < 240; at++) {',
      "  const name = `the number ${at} is scaled, which is told of at some length: ${'-'.repeat(300)}`",
      '  test(name, () => assert.equal(scale(at), 2 * at + 1))', '}',
      "test('another', () => assert.equal(other(1), 0))",
      "test('a third', () => assert.equal(other(5), 4))",
    ].join('\n'),
  })
  assert.ok(calls.some(({ args }) => String(args['command']).includes('tests that passed')))
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(readFileSync(join(cwd, 'src/scale.js'), 'utf8'), sound)
})

for (const [what, count, length] of [
  ['a repair of a few tests', 6, 10],
  ['a repair of more tests than an answer has room for', 100, 400],
] as const) test(`${what} whose names change each time`, async (t) => {
  const sound = 'export const scale = (n) => n * 2 + 1\n'
  const { cwd, result, calls } = await repair(t, {
    'package.json': MODULE,
    'src/scale.js': sound.replace('+ 1', '- 1'),
    'test/scale.test.js': [
      "import { scale } from '../src/scale.js'", `const count = ${count}`,
      "console.log(`TAP version 13\\n1..${count}`)",
      'for (let at = 1; at <= count; at++) {',
      '  const good = scale(at) === 2 * at + 1',
      "  console.log(`${good ? 'ok' : 'not ok'} ${at} - the number ${Math.random()} is scaled`)",
      `  if (!good) console.log('  ---\\n  why: ${'-'.repeat(length)}\\n  ...')`,
      '  if (!good) process.exitCode = 1', '}',
    ].join('\n'),
  }, 'node test/scale.test.js')
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(readFileSync(join(cwd, 'src/scale.js'), 'utf8'), sound)
  assert.ok(calls.some(({ args }) => String(args['command']).includes('passed')))
})

test('a patch that only its own tests like is passed over, however many come first', async (t) => {
  const broken = 'export const weigh = (a, b) => a * b - 1\n'
  const sound = broken.replace('a * b', 'a * a')
  const { cwd, result } = await repair(t, {
    'package.json': MODULE,
    'src/weigh.js': broken,
    'test/weigh.test.js': [
      "import assert from 'node:assert'", "import { test } from 'node:test'",
      "import { readFileSync } from 'node:fs'", "import { weigh } from '../src/weigh.js'",
      "const text = readFileSync('src/weigh.js', 'utf8')",
      `test('changes', () => assert.ok(weigh(1, 2) !== 1 || text !== ${JSON.stringify(broken)}))`,
      ...['one', 'two', 'three'].map((name) =>
        `test('${name}', () => assert.ok(${JSON.stringify([broken, sound])}.includes(text)))`),
    ].join('\n'),
  })
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(readFileSync(join(cwd, 'src/weigh.js'), 'utf8'), sound)
})
