import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GoalSpec } from '../../../../lib/agent/goal.js'
import { silencedSince, silencingIn } from '../../../../lib/agent/goals/sealed/silencing.js'
import { put, workspace } from '../support.js'

const goal = { reporter: null } as unknown as GoalSpec

/** Lines that silence something, with what is told of them. */
const MARKS: readonly (readonly [file: string, line: string, told: string])[] = [
  ['a.ts', '// @ts-nocheck', '@ts-nocheck'],
  ['a.mts', '  /* @ts-ignore: later */', '@ts-ignore'],
  ['a.tsx', '{/* @ts-expect-error */}', '@ts-expect-error'],
  ['a.js', '// $FlowFixMe[incompatible-type]', '$FlowFixMe'],
  ['a.jsx', '/* eslint-disable no-console */', 'eslint-disable'],
  ['a.js', '// eslint-disable-next-line', 'eslint-disable-next-line'],
  ['a.js', '// biome-ignore lint: no', 'biome-ignore'],
  ['a.css', '/* stylelint-disable */', 'stylelint-disable'],
  ['a.py', 'x = y()  # type: ignore[attr]', 'type:ignore'],
  ['a.py', 'import x  # noqa: F401', 'noqa'],
  ['a.py', '# ruff: noqa', 'ruff:noqa'],
  ['a.py', '# pylint: disable=all', 'pylint:disable'],
  ['a.pyi', '# pyright: basic', 'pyright:basic'],
  ['a.rs', '#[allow(dead_code)]', '#[allow('],
  ['a.go', 'x() //nolint:errcheck', '//nolint'],
  ['a.sh', '# shellcheck disable=SC2086', 'shellcheckdisable'],
  ['a.ts', 'const a = b as any', 'any'],
  ['a.ts', 'const a = b as any as never', 'any'],
  ['a.ts', 'function f(a: any, b: Map<string, any>) {}', 'any'],
]

for (const [file, line, told] of MARKS) {
  test(`what silences a checker is counted: ${line}`, async (t) => {
    const cwd = await workspace(t, { [file]: `first\n${line}\n`, 'b.ts': 'export {}\n' })
    const before = await silencingIn(goal, 'npx tsc', cwd)
    assert.deepEqual(Object.keys(before!), [told])
    assert.deepEqual(await silencedSince(cwd, before!, 0), [])
    await put(cwd, { [`lib/${file}`]: `${line}\n` })
    const late = await silencedSince(cwd, before!, Date.now() + 10_000)
    assert.deepEqual(late, [`"${told}" was added in a file`])
    assert.match((await silencedSince(cwd, before!, 0))[0]!, /^".+" was added in (lib\/)?a\./)
  })
}

test('prose, tests, dependencies and other files silence nothing', async (t) => {
  const cwd = await workspace(t, {
    'a.ts': '// the same as any other, or: any value\nexport const company: number = 1\n',
    'a.md': 'Use `@ts-ignore`.\n',
    'a.test.ts': '// @ts-expect-error\n',
    'test-d/a.ts': '// @ts-expect-error\n',
    'node_modules/x/a.ts': '// @ts-nocheck\n',
  })
  assert.deepEqual(await silencingIn(goal, 'tsc -p .', cwd), {})
})

test('what moves from file to file is no more than there was', async (t) => {
  const cwd = await workspace(t, { 'a.ts': '// @ts-ignore\n' })
  const before = await silencingIn(goal, 'eslint .', cwd)
  await put(cwd, { 'a.ts': '', 'b.ts': '// @ts-ignore\n' })
  assert.deepEqual(await silencedSince(cwd, before!, 0), [])
})

test('only checks that are a compiler or linter, and nothing else, count them', async (t) => {
  const cwd = await workspace(t, { 'a.ts': '// @ts-ignore\n' })
  for (const script of ['node check.js', 'npm run etsc', 'sh mypy.sh', 'node a.eslint.js']) {
    assert.equal(await silencingIn(goal, script, cwd), null, script)
  }
  assert.equal(await silencingIn({ ...goal, reporter: 'jest' }, 'tsc && jest', cwd), null)
  for (const script of ['npx tsc -b', 'tsc', '"./node_modules/.bin/eslint" .', 'python3 -m mypy .', 'cargo clippy']) {
    assert.deepEqual(await silencingIn(goal, script, cwd), { '@ts-ignore': 1 }, script)
  }
})
