/** What the verdict of a sealed check covers, and what is delivered of a run's changes. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { FileGroup, JsonObject, ModelRequest } from 'runwright/agent'
import { bash, type Said } from '../../helpers/engine.js'
import type { Files } from '../../helpers/files.js'
import { World, type Run } from '../../helpers/world.js'

/** Tests whose cases only they read. */
const PROJECT: Files = {
  'src/double.js': 'exports.double = (n) => n\n',
  'test/double.test.js': `const { readFileSync } = require('node:fs')
const test = require('node:test')
const { double } = require('../src/double.js')
test('doubles', () => {
  for (const [n, twice] of JSON.parse(readFileSync('fixtures/cases.json', 'utf8')))
    require('node:assert').equal(double(n), twice)
})
`,
  'fixtures/cases.json': '[[1, 2], [2, 4]]\n',
  'README.md': 'doubles\n',
}

/** An honest fix, with other changes beside it. */
const TURN = bash(
  "echo 'exports.double = (n) => 2 * n' > src/double.js",
  "echo '[]' > fixtures/cases.json",
  "echo 'It doubles.' > README.md",
  `cat > test/more.test.js <<'END'
require('node:test')('doubles zero', () => {
  require('node:assert').equal(require('../src/double.js').double(0), 0)
})
END`,
)

const GROUPS: Readonly<Record<string, FileGroup>> = {
  'README.md': 'not_read',
  'fixtures/cases.json': 'held_back',
  'src/double.js': 'verified',
  'test/more.test.js': 'added',
}

async function played(
  t: TestContext,
  request: JsonObject,
): Promise<{ readonly world: World; readonly run: Run }> {
  const turns = ({ messages }: ModelRequest): Said =>
    messages.some(({ role }) => role === 'tool') ? { text: 'done' } : TURN
  const world = new World(t, { files: PROJECT, turns, engine: { sealedChecks: 'prefer' } })
  const run = await world.run({ goal: 'shell: node --test', max_iterations: 2, ...request })
  assert.deepEqual([run.details.status, run.details.assurance?.sealed], ['achieved', true])
  return { world, run }
}

test('each changed file has the group that the verdict gives it', async (t) => {
  const { world, run } = await played(t, {})
  assert.deepEqual(run.details.held_back, ['fixtures/cases.json'])
  const check = run.events.findLast(({ kind }) => kind === 'goal_check')
  assert.deepEqual((check?.payload as JsonObject)['held_back'], ['fixtures/cases.json'])
  const { workspaces } = await world.open({ sealedChecks: 'prefer' })
  const { changes } = await workspaces.changes(run.runId)
  assert.deepEqual(Object.fromEntries(changes.map(({ path, group }) => [path, group])), GROUPS)
  const delivered = await workspaces.changes(run.runId, { only: 'delivered' })
  assert.deepEqual(
    delivered.changes.map(({ path }) => path),
    Object.keys(GROUPS).filter((path) => path !== 'fixtures/cases.json'),
  )
  const patch = await workspaces.patch(run.runId, { only: 'delivered', raw: true })
  assert.doesNotMatch(Buffer.from(patch).toString(), /cases\.json/)
  // In place, nothing is taken back unless somebody asks for that.
  assert.equal(world.read('fixtures/cases.json'), '[]\n')
  const [start] = await workspaces.checkpoints(run.runId)
  const asked = { checkpoint_id: start!.checkpoint_id, paths: ['fixtures/cases.json'] }
  assert.deepEqual((await workspaces.restore(run.runId, asked)).paths, asked.paths)
  assert.equal(world.read('fixtures/cases.json'), PROJECT['fixtures/cases.json'])
  assert.match(world.read('src/double.js'), /2 \* n/)
})

test('what is held back is not applied by the run itself', async (t) => {
  const { world, run } = await played(t, { workspace: 'isolated', apply: 'on_achieved' })
  assert.equal(run.details.changes, 'applied')
  assert.equal(world.read('fixtures/cases.json'), PROJECT['fixtures/cases.json'])
  assert.match(world.read('src/double.js'), /2 \* n/)
  const end = run.events.at(-1)!
  assert.equal(end.kind, 'run_end')
  const { changes, delivered } = end.payload as { changes: unknown; delivered: unknown }
  assert.deepEqual([changes, delivered], [
    { files: 4, additions: 6, deletions: 3 }, { files: 3, additions: 5, deletions: 2 },
  ])
})

for (const [request, content] of [
  [{}, PROJECT['fixtures/cases.json']],
  [{ include_held_back: true }, '[]\n'],
  [{ paths: ['fixtures/cases.json', 'src/double.js'] }, '[]\n'],
] as const) {
  test(`an apply with ${JSON.stringify(request)}`, async (t) => {
    const { world, run } = await played(t, { workspace: 'isolated' })
    const { workspaces } = await world.open({ sealedChecks: 'prefer' })
    const held = Object.keys(request).length === 0 ? ['fixtures/cases.json'] : []
    const planned = await workspaces.apply(run.runId, { ...request, dry_run: true })
    assert.deepEqual(planned.held_back, held)
    const done = await workspaces.apply(run.runId, { ...request })
    assert.deepEqual([done.applied, done.held_back], [planned.applied, held])
    assert.equal(world.read('fixtures/cases.json'), content)
    assert.match(world.read('src/double.js'), /2 \* n/)
  })
}

test('what is held back of an attempt does not count for it, and is not applied', async (t) => {
  const attempts = { count: 2, models: ['test:m'], choose: 'smallest' }
  const { world, run } = await played(t, { attempts, workspace: 'isolated', apply: 'on_achieved' })
  assert.deepEqual(run.details.held_back, ['fixtures/cases.json'])
  assert.equal(run.details.changes, 'applied')
  assert.equal(world.read('fixtures/cases.json'), PROJECT['fixtures/cases.json'])
  assert.match(world.read('src/double.js'), /2 \* n/)
  const ends = run.events.filter(({ kind }) => kind === 'attempt_ended')
  assert.equal(ends.length, 2)
  for (const { payload } of ends) {
    const { changes, held_back } = payload as { changes: JsonObject; held_back: unknown }
    assert.deepEqual([changes['files'], held_back], [3, ['fixtures/cases.json']])
  }
})
