/** Repairs of several bugs that one test file shows. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { repairFiles } from './driver.js'

/** Repairs a sum of these numbers and another one; returns what was called between both repairs. */
async function repairSums(t: TestContext, names: string): Promise<readonly string[]> {
  const last = names.at(-1)!
  const sum = [...names].join(' + ')
  const broken = [
    `export function total(${[...names].join(', ')}) {`,
    `  return ${sum.replace(`+ ${last}`, `- ${last}`)}`, '}', '',
    'export function ends(a, b, c) {', '  return a + b', '}', '',
  ].join('\n')
  const rest = ', 0'.repeat(names.length - 4)
  const { cwd, result, calls } = await repairFiles(t, {
    'package.json': '{ "type": "module" }\n',
    'src/sums.js': broken,
    'test/sums.test.js': [
      "import assert from 'node:assert'", "import { test } from 'node:test'",
      "import { ends, total } from '../src/sums.js'",
      `test('a total', () => assert.equal(total(1, 2, 3${rest}, 4), 10))`,
      `test('another total', () => assert.equal(total(1, 1, 1${rest}, 2), 5))`,
      `test('a third total', () => assert.equal(total(0, 1, 0${rest}, 2), 3))`,
      // With `a - b` as well as with `a + c`.
      "test('ends of which one is negative', () => assert.equal(ends(5, 2, -2), 3))",
      "test('ends', () => assert.equal(ends(1, 2, 4), 5))",
    ].join('\n'),
  })
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(
    readFileSync(join(cwd, 'src/sums.js'), 'utf8'),
    broken.replace(`- ${last}`, `+ ${last}`).replace('return a + b\n', 'return a + c\n'),
  )
  const edits = calls.flatMap(({ tool }, at) => (tool === 'edit_file' ? [at] : []))
  assert.equal(edits.length, 2)
  return calls.slice(edits[0]! + 1, edits[1]).map(({ tool, args }) => {
    const tests = / --test /.test(String(args['command'])) ? 'all' : 'some'
    return `${tool}: ${(args['patches'] as unknown[]).length} by ${tests} tests`
  })
}

test('a patch that helped before another one was made is made by the whole check', async (t) => {
  // Two had helped: `a - b`, which repairs one test, and `a + c`, which repairs both.
  assert.deepEqual(await repairSums(t, 'abcd'), ['try_patches: 2 by all tests'])
})

test('a patch that helped before, by coincidence, gives way to a better one', async (t) => {
  // Only `a - b` was among the patches that were tried first.
  const [first, second] = await repairSums(t, 'abcdef')
  assert.equal(first, 'try_patches: 1 by all tests')
  assert.equal(second, 'try_patches: 6 by some tests')
})

/** Two files with a bug each, and tests of both. */
const TWO_FILES = {
  'package.json': '{ "type": "module" }\n',
  'src/add.js': 'export const add = (a, b) => a - b\n',
  'src/isLarge.js': 'export const isLarge = (n) => n > 10\n',
  'test/both.test.js': [
    "import assert from 'node:assert'", "import { test } from 'node:test'",
    "import { add } from '../src/add.js'", "import { isLarge } from '../src/isLarge.js'",
    "test('a sum', () => assert.equal(add(2, 3), 5))",
    "test('a bound', () => assert.equal(isLarge(10), true))", '',
  ].join('\n'),
}

test('patches in different files that repair different tests are made together', async (t) => {
  const { cwd, result, calls } = await repairFiles(t, TWO_FILES)
  assert.equal(result.achieved, true, result.lastText)
  assert.match(readFileSync(join(cwd, 'src/add.js'), 'utf8'), /a \+ b/)
  assert.match(readFileSync(join(cwd, 'src/isLarge.js'), 'utf8'), />= 10/)
  const tried = calls.filter(({ tool }) => tool === 'try_patches').slice(2)
  const edits = tried.flatMap(({ args }) => args['patches'] as { readonly edits: unknown[] }[])
  assert.deepEqual(edits.map(({ edits }) => edits.length), [2])
  assert.deepEqual(calls.slice(-2).map(({ tool }) => tool), ['edit_file', 'edit_file'])
})

for (const [what, test1, more] of [
  ['not together', 'add(2, 3) === 5', 'add(2, 3) !== 5 || !isLarge(10)'],
  ['less together', 'add(2, 3) === 5 && !isLarge(10)', 'true'],
] as const) test(`patches that help alone and ${what} are told apart`, async (t) => {
  const { result, calls } = await repairFiles(t, {
    ...TWO_FILES,
    'test/both.test.js': TWO_FILES['test/both.test.js']
      .replace('assert.equal(add(2, 3), 5)', `assert.ok(${test1})`)
      .concat(`test('one more', () => assert.ok(${more}))\n`),
  }, 'node --test', 1)
  assert.equal(result.achieved, false)
  const patches = calls.map(({ tool, args }) => tool === 'try_patches'
    ? (args['patches'] as { readonly edits: unknown[] }[]).map(({ edits }) => edits.length).join()
    : tool)
  const together = patches.indexOf('2')
  assert.ok(together > 0, patches.join('; '))
  assert.deepEqual(patches.slice(together + 1, together + 3), ['1', 'edit_file'])
})

test('a patch that the whole check accepts gives way to one that helps more tests', async (t) => {
  const heads = [
    "import assert from 'node:assert'", "import { test } from 'node:test'",
    "import { ends } from '../src/ends.js'",
  ]
  const { calls } = await repairFiles(t, {
    'package.json': '{ "type": "module" }\n',
    'src/ends.js': 'export function ends(a, b, c) {\n  return a + b\n}\n',
    // Each passes with another patch: none is right, so that all are compared.
    'test/first.test.js': [
      ...heads, "test('a difference', () => assert.equal(ends(5, 2, 9), 3))",
      "test('ends', () => assert.equal(ends(1, 2, 4), 5))",
    ].join('\n'),
    'test/second.test.js': [
      ...heads, "test('more ends', () => assert.equal(ends(1, 3, 5), 6))",
      "test('ends again', () => assert.equal(ends(0, 3, 5), 5))",
    ].join('\n'),
  }, 'node --test', 2)
  const edit = calls.findIndex(({ tool }) => tool === 'edit_file')
  const patches = calls.slice(edit - 2, edit + 1).map(({ args }) =>
    JSON.stringify(args['patches'] ?? args).match(/"new_text":"[^"]+/g)?.join())
  const wanted = ['"new_text":"  return a - b', '"new_text":"  return a + c']
  assert.deepEqual(patches, [...wanted, wanted[1]])
})

test('patches of what only other failing tests import come last', async (t) => {
  const heads = ["import assert from 'node:assert'", "import { test } from 'node:test'", ''].join('\n')
  const { calls } = await repairFiles(t, {
    ...TWO_FILES,
    'test/both.test.js': `${heads}import { add } from '../src/add.js'
test('a sum', () => assert.equal(add(2, 3), 'no patch gives this'))
`,
    'test/isLarge.test.js': `${heads}import { isLarge } from '../src/isLarge.js'
test('a bound', () => assert.equal(isLarge(10), 'nor this'))
`,
  }, 'node --test', 1)
  const [first, second] = calls.flatMap(({ args }) => {
    const patches = args['patches'] as { readonly edits: { readonly path: string }[] }[] | undefined
    const paths = (patches ?? []).flatMap(({ edits }) => edits.map(({ path }) => path))
    return paths.length === 0 ? [] : [paths]
  })
  assert.deepEqual(new Set([...first!, ...second!]), new Set(['src/add.js']))
})
