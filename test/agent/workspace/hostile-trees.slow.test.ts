import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { GoalError, type JsonObject, type ToolContext } from 'runwright/agent'
import { captureBaseline, compareFiles } from '../../../lib/agent/goals/protected-files.js'
import { checkGoal } from '../../../lib/agent/goals/check.js'
import { goalRegistry } from '../../../lib/agent/goals/registry.js'
import { builtinTools } from '../../../lib/agent/tools/builtin.js'
import { openPinned } from '../../../lib/agent/workspace/open.js'
import { scratch } from '../../helpers/engine.js'
import { failingExecutor } from '../../helpers/executor.js'
import { Random } from '../../helpers/random.js'

/** Content of files outside, and of files that belong to git. */
const SECRET = 'the secret that must not be shown'
/** More names than anything looks at, which is 20 000. */
const MANY = 30_000
/** No result may be larger. */
const MAX_RESULT = 70_000

interface Tree {
  readonly root: string
  readonly outside: string
  /** Paths of everything that was made, relative to the root; names may not be UTF-8. */
  readonly paths: string[]
}

/** Names that the service looks at by itself, and names that are hard to handle. */
const NAMES: readonly string[] = [
  ...['package.json', 'Makefile', 'tsconfig.json', 'pyproject.toml', 'test.sh', 'a.test.js'],
  ...['go.mod', '.npmrc', 'conftest.py', 'node_modules', '.git', '.GIT', 'HEAD', 'objects', 'refs'],
  ...['new\nline', 'tab\tand\u001b[31m', '-rf', '__proto__', '..x', ' ', '\u202egpj.js', '*', '~'],
  ...['a', 'b.js', 'c.txt', 'src', 'test', `${'long'.repeat(63)}.js`, 'quote"\'`$(x)', '\\'],
]

type Make = (path: string, tree: Tree, random: Random) => void

const LINKS: readonly ((tree: Tree) => string)[] = [
  ({ outside }) => join(outside, 'secret'),
  ({ outside }) => outside,
  () => '/dev/zero',
  () => '/proc/self/environ',
  () => '/proc/self/pagemap',
  () => '/proc/self/fd/0',
  () => '../outside/secret',
  () => '..',
  () => '.',
  () => '.git/config',
  () => 'nowhere',
  () => '/',
  ({ root, paths }) => join(root, paths.at(-1) ?? ''),
]

const KINDS: readonly Make[] = [
  (path) => fs.writeFileSync(path, 'text\nof a file\n'),
  (path) => fs.writeFileSync(path, '{"scripts": {"test": "sh test.sh"}}'),
  (path) => fs.writeFileSync(path, Buffer.from([0, 255, 254])),
  (path) => {
    fs.writeFileSync(path, '')
    fs.truncateSync(path, 10 * 1024 ** 3)
  },
  (path) => void execFileSync('mkfifo', [path]),
  (path, tree, random) => fs.symlinkSync(random.pick(LINKS)(tree), path),
  (path, tree, random) => fs.symlinkSync(random.pick(LINKS)(tree), path),
  (path) => fs.mkdirSync(path),
  (path) => fs.mkdirSync(path),
  (path) => {
    for (const name of ['objects', 'refs']) fs.mkdirSync(join(path, name), { recursive: true })
    for (const name of ['HEAD', 'config']) fs.writeFileSync(join(path, name), SECRET)
  },
]

function makeTree(t: TestContext, random: Random): Tree {
  const top = scratch(t)
  const tree = { root: join(top, 'root'), outside: join(top, 'outside'), paths: [] as string[] }
  for (const folder of [tree.root, tree.outside]) fs.mkdirSync(folder)
  for (const name of ['secret', 'package.json', 'Makefile', 'a.test.js', 'test.sh']) {
    fs.writeFileSync(join(tree.outside, name), SECRET)
  }
  const folders = ['']
  for (let i = 0; i < 40; i++) {
    const path = join(random.pick(folders), random.pick(NAMES))
    const absolute = join(tree.root, path)
    if (fs.lstatSync(absolute, { throwIfNoEntry: false }) !== undefined) continue
    const isGit = /^\.git$/i.test(basename(path))
    ;(isGit ? KINDS.at(-1)! : random.pick(KINDS))(absolute, tree, random)
    tree.paths.push(path)
    const isFolder = fs.lstatSync(absolute).isDirectory()
    if (isFolder && !path.split('/').some((name) => /^\.git$/i.test(name))) folders.push(path)
  }
  const invalid = Buffer.concat([Buffer.from(`${tree.root}/`), Buffer.from([0xff, 0xfe])])
  fs.writeFileSync(invalid, 'a name that is not UTF-8')
  return tree
}

/** Everything below a folder, as far as a change of it can be seen. */
function stateOf(folder: string): string {
  const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true })
  return JSON.stringify(
    entries
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path, fs.lstatSync(path).mtimeMs, fs.lstatSync(path).size]),
  )
}

/** Calls every tool on every path, and everything else that reads a workspace. */
async function useAll(t: TestContext, tree: Tree): Promise<void> {
  const shown = (what: string, result: unknown): void => {
    const text = typeof result === 'string' ? result : JSON.stringify(result)
    assert.ok(!text.includes(SECRET), `${what} shows what is outside: ${text}`)
    assert.ok(text.length < 3 * MAX_RESULT, `${what} has ${text.length} characters`)
  }
  const { workspace, folder } = await openPinned(tree.root, {}, null, () => undefined)
  t.after(async () => await folder[Symbol.asyncDispose]())
  const signal = new AbortController().signal
  const context: ToolContext = {
    workspace, signal, runId: 'run', callId: 'call', run: () => assert.fail('no command'),
    startRun: () => assert.fail('no run'),
    copies: { slots: 1, open: () => assert.fail('no copy') },
  }
  const tools = new Map(builtinTools().map((tool) => [tool.name, tool]))
  const call = async (name: string, args: JsonObject): Promise<void> => {
    const tool = tools.get(name)!
    const what = `${name} ${JSON.stringify(args)}`
    shown(what, await tool.execute(args, context))
    if (tool.plan !== undefined) shown(what, await tool.plan(args, context))
  }
  await workspace.changes()
  for (const goal of ['auto', 'npm-test', 'make-test', 'lint', 'shell: sh test.sh && make test']) {
    const spec = await goalRegistry().resolve(goal, tree.root).catch((error: Error) => error)
    shown(goal, spec instanceof Error ? spec.message : spec)
  }
  const spec = await goalRegistry().resolve('shell: node --test; false', tree.root)
  const compared = async <T>(work: Promise<T>, otherwise: T): Promise<T> =>
    await work.catch((error: unknown) => {
      assert.ok(error instanceof GoalError && /is too large to watch/.test(error.message))
      return otherwise
    })
  const none = { files: {} }
  const baseline = await compared(captureBaseline(spec, folder.real, folder.path), none)
  await call('list_files', {})
  await call('list_files', { recursive: true })
  await call('search_files', { pattern: 'secret' })
  for (const path of tree.paths) {
    await call('read_file', { path })
    await call('list_files', { path, recursive: true })
    await call('search_files', { path, pattern: 'e' })
    await call('edit_file', { path, old_text: 'secret', new_text: 'x' })
    await call('write_file', { path: `${path}/new`, content: 'x' })
    await call('write_file', { path, content: 'x' })
  }
  shown('changes', await workspace.changes())
  shown(
    'changed files',
    await compared(compareFiles(spec, folder.real, baseline, folder.path), []),
  )
  const verdict = await checkGoal(spec, {
    cwd: folder.real, via: folder.path, executor: failingExecutor, mark: 'run', signal, baseline,
    baselineTests: null,
  })
  shown('the verdict', verdict)
}

async function useTree(t: TestContext, seed: number): Promise<void> {
  t.diagnostic(`seed ${seed}`)
  const tree = makeTree(t, new Random(seed))
  const before = stateOf(tree.outside)
  await useAll(t, tree)
  assert.equal(stateOf(tree.outside), before)
}

test('nothing outside a hostile tree is shown or changed', async (t) => {
  await useTree(t, Number(process.env['SEED'] ?? Date.now() % 1_000_000))
})

test('nothing outside 30 hostile trees is shown or changed', async (t) => {
  for (let seed = 1; seed <= 30; seed++) await useTree(t, seed)
})

/** Makes folders in folders, deeper than any path may be long. */
function nest(root: string, levels: number): void {
  let folder = fs.openSync(root, 'r')
  for (let level = 0; level < levels; level++) {
    const child = `/proc/self/fd/${folder}/deep`
    fs.mkdirSync(child)
    if (level % 100 === 99) fs.writeFileSync(`/proc/self/fd/${folder}/a.test.js`, 'x')
    const next = fs.openSync(child, 'r')
    fs.closeSync(folder)
    folder = next
  }
  fs.closeSync(folder)
}

for (const [what, make] of [
  [
    'a socket',
    async (t, { root, paths }) => {
      const server = createServer().listen(join(root, 'a.test.js'))
      await once(server, 'listening')
      t.after(() => server.close())
      paths.push('a.test.js')
    },
  ],
  [
    'a folder with more files than are listed',
    async (_, { root, paths }) => {
      fs.mkdirSync(join(root, 'many'))
      for (let i = 0; i < MANY; i++) fs.closeSync(fs.openSync(join(root, `many/${i}.js`), 'w'))
      paths.push('many')
    },
  ],
  [
    '10 000 levels of folders',
    async (_, { root, paths }) => {
      nest(root, 10_000)
      paths.push('deep', 'deep/'.repeat(60), 'deep/'.repeat(800), 'deep/'.repeat(5_000))
    },
  ],
] as [string, (t: TestContext, tree: Tree) => Promise<void>][]) {
  test(`everything that reads a workspace ends in one with ${what}`, async (t) => {
    const top = scratch(t)
    const tree: Tree = { root: join(top, 'root'), outside: join(top, 'outside'), paths: [] }
    for (const folder of [tree.root, tree.outside]) fs.mkdirSync(folder)
    await make(t, tree)
    await useAll(t, tree).finally(() => execFileSync('rm', ['-rf', join(tree.root, 'deep')]))
  })
}
