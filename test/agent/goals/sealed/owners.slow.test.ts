import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { commandGoal } from 'runwright/agent'
import type { ChangedFile } from '../../../../lib/agent/check-files.js'
import { readCheckScript } from '../../../../lib/agent/goals/check-script.js'
import { captureBaseline } from '../../../../lib/agent/goals/protected-files.js'
import { listFiles } from '../../../../lib/agent/goals/sealed/list-files.js'
import {
  isOfTests, OWNERS, ownersOf, type Rule,
} from '../../../../lib/agent/goals/sealed/owners.js'
import { TextReader } from '../../../../lib/agent/goals/sealed/read-texts.js'
import { clockLooks } from '../../../helpers/clock-looks.js'
import { root } from '../../../helpers/markdown.js'
import { put, workspace, type Files } from '../support.js'
import { withNewFiles } from './new-files.js'
import { contentsOf, projects } from './projects.js'
import { filesOf, rows } from './rules-by-names.js'

interface World {
  readonly root: string
  readonly command: string
  readonly files: Files
  /** Makes the new files. */
  readonly add?: () => Promise<void>
  readonly added?: readonly string[]
  readonly gone?: readonly string[]
  readonly tests?: readonly string[]
  readonly signal?: AbortSignal
}

/** The rules of a folder in which a run has changed every file, and added some. */
async function rulesIn(world: World): Promise<Readonly<Record<string, Rule>>> {
  const { root, command, files, add, added = [], gone = [], tests = [] } = world
  const { signal = new AbortController().signal } = world
  const goal = await commandGoal({ name: 'shell', command }, root)
  const baseline = await captureBaseline(goal, root)
  const script = (await readCheckScript(goal.command, root)).text
  await add?.()
  const texts = new TextReader(root)
  const fileOf = (path: string, isNew: boolean): ChangedFile => ({
    path, isNew, isGone: gone.includes(path),
  })
  const old = Object.keys(files).map((path) => fileOf(path, false))
  const rules = await ownersOf([...old, ...added.map((path) => fileOf(path, true))], {
    goal, baseline, script, root, signal,
    files: await listFiles(root),
    reported: tests.filter((path) => !isOfTests(path)),
    now: (path) => texts.read(path),
    atStart: async (path) => {
      if (added.includes(path)) return null
      return gone.includes(path) ? files[path]! : await texts.read(path)
    },
  })
  return Object.fromEntries(rules)
}

for (const project of projects) {
  test(`who owns the files of ${project.name}`, async (t) => {
    const { command, tests = [] } = project
    const files = contentsOf(project)
    const root = await workspace(t, files)
    const expected = Object.entries(project.files).map(([path, [rule]]) => [path, rule])
    const rules = await rulesIn({ root, command, files, tests })
    assert.deepEqual(rules, Object.fromEntries(expected))
  })
}

test('a package may take the place of a module that is code, and of no other', async (t) => {
  const files = {
    'cart.py': 'def total(): pass\n',
    'checks.py': 'import unittest\n',
    'tests/__init__.py': '',
    'tests/test_cart.py': 'import unittest\nimport cart\nimport checks\n',
  }
  const root = await workspace(t, files)
  const added = ['cart/__init__.py', 'cart/sums.py', 'checks/__init__.py']
  const gone = ['cart.py', 'checks.py']
  const rules = await rulesIn({
    root, command: 'python3 -m unittest', files, added, gone,
    add: async () => {
      for (const path of gone) await rm(join(root, path))
      await put(root, Object.fromEntries(added.map((path) => [path, ''])))
    },
  })
  assert.deepEqual([...gone, ...added].map((path) => rules[path]), [
    'code', 'helper', 'code', 'code', 'shadow',
  ])
})

for (const { name, command, files, tests = [], added } of withNewFiles) {
  test(`who owns what a run adds to ${name}`, async (t) => {
    const root = await workspace(t, files)
    const entries = Object.entries(added).map(([path, row]) =>
      typeof row === 'string' ? ([path, row, ''] as const) : ([path, ...row] as const),
    )
    const contents = Object.fromEntries(entries.map(([path, , content]) => [path, content]))
    const rules = await rulesIn({
      root, command, files, tests, added: Object.keys(added), add: () => put(root, contents),
    })
    const found = Object.keys(added).map((path) => [path, rules[path]])
    assert.deepEqual(
      Object.fromEntries(found), Object.fromEntries(entries.map(([path, rule]) => [path, rule])),
    )
  })
}

for (const row of rows) {
  test(`the names that decide: ${row.what}`, async (t) => {
    const { command = 'node --test', rules } = row
    const files = filesOf(row)
    const root = await workspace(t, files)
    const tests = Object.keys(files).filter((path) => /\.test\.js$|test_/.test(path))
    const found = await rulesIn({ root, command, files, tests })
    const expected = Object.entries(rules).flatMap(([rule, paths]) =>
      paths.map((path) => [path, rule]),
    )
    const shown = expected.map(([path]) => [path, found[path!]])
    assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(expected))
  })
}

test('docs/goals.md prints the table of owners word for word', () => {
  const rows = Object.entries(OWNERS).map(([rule, [owner, files]]) =>
    `| \`${rule}\` | ${owner} | ${files} |\n`,
  )
  const table = `\n| rule | owner | files |\n|---|---|---|\n${rows.join('')}\n`
  assert.ok(readFileSync(join(root, 'docs/goals.md'), 'utf8').includes(table), table)
})

async function added(
  t: TestContext,
  files: Files,
  links: { readonly [path: string]: string },
  command = 'npm test',
): Promise<Readonly<Record<string, Rule>>> {
  const root = await workspace(t, files)
  const paths = Object.keys(links)
  const add = async (): Promise<void> => {
    for (const path of paths) await symlink(links[path]!, join(root, path))
  }
  const rules = await rulesIn({ root, command, files, added: paths, add })
  return Object.fromEntries(paths.map((path) => [path, rules[path]!]))
}

test('new links: one into a folder of tests, and one that leads out', async (t) => {
  const outside = await workspace(t, { 'a.js': '' })
  const files = {
    'package.json': '{"scripts":{"test":"mocha"}}', 'src/a.js': '', 'test/a.js': '', 'moved/b.js': '',
  }
  const links = {
    'src/linked': '../src', 'src/out': outside, 'dangling': 'nowhere', 'test/b.js': '../src/a.js',
    'test/more': '../moved',
  }
  assert.deepEqual(await added(t, files, links), {
    'src/linked': 'rest', 'src/out': 'settings', 'dangling': 'rest', 'test/b.js': 'test',
    'test/more': 'test',
  })
})

test('a Python module that is a link to a folder shadows as a folder does', async (t) => {
  const files = { 'tests/test_a.py': '', 'src/own/__init__.py': '' }
  assert.deepEqual(await added(t, files, { json: 'src/own' }, 'pytest'), { json: 'shadow' })
})

for (const [what, part] of Object.entries({
  'imports': "import x from './a/b/c.js'\n",
  'unclosed quotes': "'\\'",
  'slashes': '/',
  'dots': '.',
  'long paths': 'a/',
  'Python imports': 'from a.b import (c, d\n',
  'dotted names': 'import a.b.c.d.e.f.g, ',
  'spaces': ' ',
  'settings': 'setupFiles: [',
  'options': '-p ',
})) {
  test(`a text full of ${what} is read in linear time`, async (t) => {
    const text = part.repeat(Math.ceil(250_000 / part.length)).slice(0, 250_000)
    const files = {
      'index.js': text,
      'a.py': text,
      'jest.config.js': text.slice(0, 100_000),
      'package.json': '{"name": "a"}',
      'data/a.json': '',
      'test/a.test.js': `require('..')\n${text}`,
    }
    const root = await workspace(t, files)
    const before = process.cpuUsage().user
    await rulesIn({ root, command: 'node --test', files })
    assert.ok(process.cpuUsage().user - before < 3_000_000)
  })
}

test('an aborted decision ends with the reason of its signal', async (t) => {
  const files = { 'index.js': '' }
  const root = await workspace(t, files)
  const signal = AbortSignal.abort(new Error('enough'))
  await assert.rejects(rulesIn({ root, command: 'node --test', files, signal }), /enough/)
})

test('a decision about many files leaves room for other work after each of them', async (t) => {
  const names = Array.from({ length: 200 }, (_, i) => `data/${i}.json`)
  const files = Object.fromEntries(names.map((name) => [name, '']))
  const root = await workspace(t, files)
  const looks = await clockLooks(t, () => rulesIn({ root, command: 'node --test', files }))
  assert.ok(looks >= 600, `${looks} looks at the clock`)
})
