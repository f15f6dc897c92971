/** What `list_files` and `search_files` pass over is what snapshots of the workspace pass over. */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openWorkspace, type JsonObject, type ToolContext } from 'runwright/agent'
import { builtinTools } from '../../../lib/agent/tools/builtin.js'
import { SKIPPED_FOLDERS } from '../../../lib/agent/workspace/skipped-folders.js'
import { toolContext } from './tool-context.js'

/** The lines of a successful call, in which every file holds the word `needle`. */
async function linesOf(
  context: ToolContext,
  name: string,
  args: JsonObject = {},
): Promise<readonly string[]> {
  const tool = builtinTools().find((one) => one.name === name)!
  const { exitCode, output } = await tool.execute(args, context)
  assert.equal(exitCode, 0, output)
  return output.split('\n')
}

const NEEDLE = { pattern: 'needle' }
const HINT = 'give a folder as path to see it …]'

test('a large .venv leaves room for the files of a project, and is named', async (t) => {
  const context = await toolContext(t, { 'src/app.py': 'needle\n' })
  mkdirSync(join(context.root, '.venv/lib'), { recursive: true })
  for (let i = 0; i < 1_100; i++)
    writeFileSync(join(context.root, '.venv/lib', `m${i}.py`), 'needle\n')
  assert.deepEqual(await linesOf(context, 'list_files', { recursive: true }), [
    'src/', 'src/app.py', `[… passed over: .venv; ${HINT}`,
  ])
  assert.deepEqual(await linesOf(context, 'search_files', NEEDLE), [
    'src/app.py:1:needle', `[… passed over: .venv; ${HINT}`,
  ])
})

for (const name of SKIPPED_FOLDERS) {
  test(`${name} is passed over as snapshots pass it over, and listed when it is asked for`, async (t) => {
    const inside = { [`a/${name}/deep/f`]: 'needle\n', [`a/${name}/HEADER`]: '' }
    const context = await toolContext(t, { 'a/f': 'needle\n', ...inside })
    const workspace = await openWorkspace(context.root)
    await workspace.changes()
    writeFileSync(join(context.root, `a/${name}/deep/f`), 'needles\n')
    assert.deepEqual(await workspace.changes(), [])
    // Nobody is told to look into what belongs to git.
    const isGit = name === '.git'
    const note = isGit ? [] : [`[… passed over: a/${name}; ${HINT}`]
    const all = await linesOf(context, 'list_files', { recursive: true })
    assert.deepEqual(all, ['a/', 'a/f', ...note])
    assert.deepEqual(await linesOf(context, 'search_files', NEEDLE), ['a/f:1:needle', ...note])
    if (isGit) return
    const path = `a/${name}`
    assert.deepEqual(await linesOf(context, 'list_files', { path, recursive: true }), [
      `${path}/HEADER`, `${path}/deep/`, `${path}/deep/f`,
    ])
    assert.deepEqual(await linesOf(context, 'search_files', { ...NEEDLE, path }), [
      `${path}/deep/f:1:needles`,
    ])
  })
}

test('what does not exist for tools is not named: git, closed folders, temporary files', async (t) => {
  const temporary = '.runwright-0123456789abcdef.tmp'
  const files = { '.git/config': '', 'data/venv/x': '', [temporary]: '', f: 'x' }
  const context = await toolContext(t, files)
  const closed = [join(context.root, 'data')]
  const workspace = await openWorkspace(context.root, { closed })
  const lines = await linesOf({ ...context, workspace }, 'list_files', { recursive: true })
  assert.deepEqual(lines, ['f'])
})

test('a folder that holds nothing else is empty, a link is named as a folder is', async (t) => {
  const context = await toolContext(t, { 'd/__pycache__/m.pyc': '' })
  symlinkSync('/etc', join(context.root, 'venv'))
  assert.deepEqual(await linesOf(context, 'list_files', { path: 'd' }), [
    '(empty)', `[… passed over: d/__pycache__; ${HINT}`,
  ])
  assert.deepEqual(await linesOf(context, 'list_files'), ['d/', `[… passed over: venv; ${HINT}`])
  assert.deepEqual(await linesOf(context, 'search_files', NEEDLE), [
    'no matches in 0 files', `[… passed over: d/__pycache__, venv; ${HINT}`,
  ])
})

test('the names are bounded in count and length, and stay on one line', async (t) => {
  const folders = Array.from({ length: 30 }, (_, i) => `p${String(i).padStart(2, '0')}`)
  const many = Object.fromEntries(folders.map((name) => [`${name}/node_modules/x`, '']))
  const [last = ''] = (
    await linesOf(await toolContext(t, many), 'list_files', { recursive: true })
  ).slice(-1)
  assert.match(last, /^\[… passed over: (p0\d\/node_modules, ){7}p07\/node_modules and 22 more; /)
  const long = await toolContext(t, { [`${'x'.repeat(200)}/${'y'.repeat(200)}\n/venv/f`]: '' })
  const lines = await linesOf(long, 'search_files', NEEDLE)
  assert.deepEqual(lines, ['no matches in 0 files', `[… passed over: 1; ${HINT}`])
  const broken = await toolContext(t, { 'a\nb/venv/f': '' })
  assert.deepEqual(await linesOf(broken, 'list_files', { path: 'a\nb' }), [
    '(empty)', `[… passed over: "a\\nb/venv"; ${HINT}`,
  ])
})

test('workspace.list() tells of each path that it passes over', async (t) => {
  const { workspace } = await toolContext(t, { 'a/coverage/x': '', '.cache/y': '', z: '' })
  const told: string[] = []
  const onPassedOver = (path: string): void => void told.push(path)
  const entries = await workspace.list('.', { recursive: true, onPassedOver })
  assert.deepEqual(entries.map(({ path }) => path), ['a', 'z'])
  assert.deepEqual(told, ['.cache', 'a/coverage'])
})
