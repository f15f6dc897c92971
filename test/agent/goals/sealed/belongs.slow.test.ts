import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import { commandGoal } from 'runwright/agent'
import { captureBaseline } from '../../../../lib/agent/goals/protected-files.js'
import { whatBelongs, type BelongsReason } from '../../../../lib/agent/goals/sealed/belongs.js'
import { readCheckScript } from '../../../../lib/agent/goals/check-script.js'
import { clockLooks } from '../../../helpers/clock-looks.js'
import { workspace } from '../support.js'
import { contentsOf, projects, type Expected } from './projects.js'

for (const project of projects) {
  test(`what belongs to the check of ${project.name}`, async (t) => {
    const root = await workspace(t, contentsOf(project))
    const goal = await commandGoal({ name: 'shell', command: project.command }, root)
    const known = new Set(Object.keys((await captureBaseline(goal, root)).files))
    const read = Object.keys(project.files)
    const { belongs: found, unclaimed } = await whatBelongs({
      root,
      goal,
      script: (await readCheckScript(goal.command, root)).text,
      known,
      read,
      changed: project.changed ?? [],
      listed: project.listed ?? [],
      testFiles: project.tests ?? [],
    })
    const is = (path: string): Expected =>
      known.has(path) ? 'known' : (found.get(path) ?? 'code')
    const expected = Object.entries(project.files).map(([path, [what]]) => [path, what])
    assert.deepEqual(
      Object.fromEntries(read.map((path) => [path, is(path)])),
      Object.fromEntries(expected),
    )
    assert.deepEqual([...found.keys()].filter((path) => !read.includes(path)), project.parts ?? [])
    assert.deepEqual(unclaimed, project.unclaimed ?? [])
  })
}

test('the table has at least sixty files that belong, and as many that are code', () => {
  const all = projects.flatMap(({ files }) => Object.values(files).map(([expected]) => expected))
  assert.ok(all.filter((expected) => expected === 'code').length >= 60)
  assert.ok(all.filter((expected) => expected !== 'code' && expected !== 'known').length >= 60)
})

async function lookAt(
  root: string,
  read: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, BelongsReason>> {
  const goal = await commandGoal({ name: 'shell', command: 'node --test' }, root)
  const known = new Set(Object.keys((await captureBaseline(goal, root)).files))
  const testFiles = ['test/a.test.js']
  const script = goal.command
  const observed = { root, goal, script, known, read, changed: [], listed: [], testFiles }
  return (await whatBelongs(observed, signal)).belongs
}

test('links, pipes, huge and binary files are never read as programs', async (t) => {
  const outside = await workspace(t, { 'secret.js': "require('./fixtures/a.json')" })
  const root = await workspace(t, {
    'index.js': '',
    'fixtures/a.json': '',
    'huge.js': `${' '.repeat(300_000)}require('./fixtures/a.json')`,
    'binary.js': "\0require('./fixtures/a.json')",
    'test/a.test.js': "require('../index.js')\nopen('fixtures/a.json')",
  })
  await symlink(join(outside, 'secret.js'), join(root, 'linked.js'))
  await symlink(outside, join(root, 'folder'))
  execFileSync('mkfifo', [join(root, 'pipe.js')])
  const odd = ['linked.js', 'folder/secret.js', 'pipe.js', 'huge.js', 'binary.js', 'gone.js']
  const read = ['index.js', 'fixtures/a.json', 'test/a.test.js', ...odd]
  assert.deepEqual([...(await lookAt(root, read))], [['fixtures/a.json', 'read by tests only']])
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
})) {
  test(`a text full of ${what} is read in linear time`, async (t) => {
    const text = part.repeat(Math.ceil(250_000 / part.length)).slice(0, 250_000)
    const root = await workspace(t, {
      'index.js': text,
      'a.py': text,
      'jest.config.js': text.slice(0, 100_000),
      'package.json': '{"name": "a"}',
      'data/a.json': '',
      'test/a.test.js': `require('..')\n${text}`,
    })
    const before = process.cpuUsage().user
    await lookAt(root, ['index.js', 'a.py', 'package.json', 'data/a.json', 'test/a.test.js'])
    assert.ok(process.cpuUsage().user - before < 3_000_000)
  })
}

test('an aborted decision ends with the reason of its signal', async (t) => {
  const root = await workspace(t, { 'index.js': '' })
  const signal = AbortSignal.abort(new Error('enough'))
  await assert.rejects(lookAt(root, ['index.js'], signal), /enough/)
})

test('a decision about many files leaves room for other work after each of them', async (t) => {
  const names = Array.from({ length: 200 }, (_, i) => `data/${i}.json`)
  const root = await workspace(t, Object.fromEntries(names.map((name) => [name, ''])))
  const looks = await clockLooks(t, () => lookAt(root, names))
  assert.ok(looks >= 600, `${looks} looks at the clock`)
})
