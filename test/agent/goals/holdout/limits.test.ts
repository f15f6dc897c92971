/** Which held-out tests are accepted, from requests and from hosts. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  InvalidRequestError,
  MemoryStore,
  type EngineOptions,
  type JsonObject,
  type RunStore,
} from 'runwright/agent'
import { follow, openEngine, scratch } from '../../../helpers/engine.js'
import { placeFiles } from '../../../../lib/agent/goals/holdout/place-files.js'
import { put } from './world.js'

const GOAL = 'shell: test -f code'
const SECRET = 'Rq2NameOfATest'

function named(...paths: readonly string[]): JsonObject {
  return { files: Object.fromEntries(paths.map((path) => [path, SECRET])), command: 'true' }
}

const large = 'x'.repeat(8 * 1024 ** 2)
const many = Array.from({ length: 1_001 }, (_, i) => `${i}`)
for (const [what, holdout, pointer] of [
  ['that are no object', SECRET, '/holdout'],
  ['with another field', { ...named('a'), [SECRET]: 1 }, '/holdout'],
  ['in a folder', { folder: `/${SECRET}`, command: 'true' }, '/holdout/folder'],
  ['without a file', { files: {}, command: 'true' }, '/holdout/files'],
  ['whose files are a list', { files: [SECRET], command: 'true' }, '/holdout/files'],
  ['with a file that is no text', { files: { [SECRET]: 5 }, command: 'true' }, '/holdout/files'],
  ['without a command', { files: { a: '' } }, '/holdout/command'],
  ['with a blank command', { files: { a: '' }, command: ' ' }, '/holdout/command'],
  ['with NUL in the command', { files: { a: '' }, command: 'a\0' }, '/holdout/command'],
  ['with a long command', { files: { a: '' }, command: 'é'.repeat(20_000) }, '/holdout/command'],
  ['that tell all', { ...named('a'), tell: SECRET }, '/holdout/tell'],
  ['with 1 001 files', named(...many), '/holdout/files'],
  ['of 8 MiB and a byte', { files: { a: large }, command: 'a' }, '/holdout/files'],
  ...[
    '', '/a', '//a', 'a//b', 'a/', './a', 'a/./b', '../a', 'a/../../b', '..', '.git/config',
    'a/.GIT/x', 'node_modules/a/b.js', 'a\\b', 'C:/a', 'a\0b', 'a\nb', 'a/\ud800',
    'x'.repeat(1_025),
  ].map(
    (path) => [`at ${JSON.stringify(path.slice(0, 20))}`, named(path), '/holdout/files'] as const,
  ),
  ['with one path twice', named('a/b', 'A/B'), '/holdout/files'],
  ['with one path twice in Unicode', named('\u00e9', 'e\u0301'), '/holdout/files'],
  ['with a file in a file', named(`${SECRET}/b`, SECRET), '/holdout/files'],
] as const) {
  test(`held-out tests ${what} are refused, and not quoted`, async (t) => {
    const { engine } = await openEngine(t, { sealedChecks: 'prefer' })
    await assert.rejects(engine.create({ goal: GOAL, holdout }), (error) => {
      assert.ok(error instanceof InvalidRequestError)
      assert.deepEqual(error.violations.map((violation) => violation.pointer), [pointer])
      assert.doesNotMatch(error.message, new RegExp(SECRET))
      return true
    })
    assert.deepEqual((await engine.list()).runs, [])
  })
}

for (const [what, options, request, expected] of [
  ['without sealed checks', { sealedChecks: 'off' }, {}, /sealed checks, which are off/],
  ['where runs may change tests', { allowTestChanges: true }, {}, /lets runs change tests/],
  ['of a judged goal', { judgeModel: 'builtin:repair' }, { goal: 'make it nice' }, /a command checks/],
  ['that the host has already', { holdout: named('a') }, {}, /the host has held-out tests/],
  ['in a store without a place for them', { store: plainStore() }, {}, /no place for held-out/],
] as readonly (readonly [string, Partial<EngineOptions>, JsonObject, RegExp])[]) {
  test(`a run ${what} can have no held-out tests of its request`, async (t) => {
    const { engine } = await openEngine(t, { sealedChecks: 'prefer', ...options })
    const asked = engine.create({ goal: GOAL, holdout: named('a'), ...request })
    await assert.rejects(asked, { code: 'ERR_AGENT_INVALID_REQUEST', message: expected })
  })
}

/** A store of an earlier version. */
function plainStore(): RunStore {
  const store = new MemoryStore()
  Object.defineProperty(store, 'holdouts', { value: undefined })
  return store
}

test('a request may ask for the sealed checks that its held-out tests need', async (t) => {
  const { engine, cwd } = await openEngine(t, { sealedChecks: 'off' })
  put(cwd, { code: '' })
  const request = { goal: GOAL, holdout: named('a'), sealed_checks: 'prefer' }
  const { details } = await engine.create(request)
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).assurance?.holdout, true)
})

test('a fork cannot bring held-out tests of its own', async (t) => {
  const { engine, cwd } = await openEngine(t, { sealedChecks: 'prefer', checkpoints: 'auto' })
  put(cwd, { code: '' })
  const { details } = await engine.create({ goal: GOAL })
  await follow(engine, details.run_id)
  await assert.rejects(engine.fork(details.run_id, { holdout: named('a') }), {
    code: 'ERR_AGENT_INVALID_REQUEST',
  })
})

test('a host gives held-out tests for some runs, from a folder', async (t) => {
  const folder = scratch(t)
  put(folder, { 'held/check.sh': 'grep -q right code', '.git/config': '', 'node_modules/x/y': '' })
  fs.symlinkSync('/etc/passwd', join(folder, 'link'))
  const { engine, cwd } = await openEngine(t, {
    sealedChecks: 'prefer',
    holdout: ({ request, principal }) => {
      assert.equal(principal, null)
      return request.metadata['team'] === 'a' ? { folder, command: 'sh held/check.sh' } : null
    },
  })
  const endOf = async (code: string, metadata: JsonObject): Promise<unknown> => {
    put(cwd, { code })
    const { details } = await engine.create({ goal: GOAL, metadata, max_iterations: 1 })
    await follow(engine, details.run_id)
    const { status, assurance } = await engine.get(details.run_id)
    return [status, assurance?.holdout]
  }
  assert.deepEqual(await endOf('right', { team: 'a' }), ['achieved', true])
  assert.deepEqual(await endOf('wrong', { team: 'a' }), ['failed', false])
  assert.deepEqual(await endOf('wrong', { team: 'b' }), ['achieved', false])
})

test('a folder that runs can reach is refused: in a root, or above one', async (t) => {
  const above = scratch(t)
  const cwd = join(above, 'work')
  put(cwd, { 'code': '', 'held/a.sh': '' })
  fs.symlinkSync(join(cwd, 'held'), join(above, 'link'))
  for (const folder of [join(cwd, 'held'), cwd, above, join(above, 'link')]) {
    const holdout = { folder, command: 'true' }
    const { engine } = await openEngine(t, { cwd, sealedChecks: 'prefer', holdout })
    const refused = { name: 'TypeError', message: /runs can read/ }
    await assert.rejects(engine.create({ goal: GOAL }), refused)
  }
  // Closed folders do not exist for runs.
  const store = new MemoryStore()
  Object.defineProperty(store, 'closedFolders', { value: [join(cwd, 'held')] })
  const holdout = { folder: join(cwd, 'held'), command: 'true' }
  const { engine } = await openEngine(t, { cwd, store, sealedChecks: 'prefer', holdout })
  const { details } = await engine.create({ goal: GOAL })
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).status, 'achieved')
})

for (const [what, make, message] of [
  ['is too large', (folder: string) => fs.truncateSync(open(folder), 9 * 1024 ** 2), /8 MiB/],
  ['has too many files', (folder: string) => put(folder, empty(many)), /1000 files/],
  ['is empty', () => undefined, /at least one file/],
] as const) {
  test(`a folder with held-out tests that ${what} is refused`, async (t) => {
    const folder = scratch(t)
    make(folder)
    const holdout = { folder, command: 'true' }
    const { engine } = await openEngine(t, { sealedChecks: 'prefer', holdout })
    await assert.rejects(engine.create({ goal: GOAL }), { name: 'TypeError', message })
  })
}

function empty(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, '']))
}

function open(folder: string): string {
  const path = join(folder, 'large')
  fs.writeFileSync(path, '')
  return path
}

for (const holdout of [5, null, {}, { files: { a: '' } }, { folder: 5, command: 'a' },
  { folder: '/a', command: '' }, { folder: '/a', files: {}, command: 'a' },
  { folder: '/a', command: 'a', tell: 'all' }]) {
  test(`an engine refuses the option holdout: ${JSON.stringify(holdout)}`, async (t) => {
    const refused = { name: 'TypeError', message: /^holdout/ }
    await assert.rejects(openEngine(t, { holdout: holdout as never }), refused)
  })
}

test('held-out files replace what lies at their paths, and never leave the copy', async (t) => {
  const [root, outside] = [scratch(t), scratch(t)]
  put(outside, { 'kept.txt': 'kept', 'f/kept.txt': 'kept' })
  put(root, { 'file/x': '', plain: 'a file', 'folder.txt/y': '' })
  fs.symlinkSync(outside, join(root, 'link'))
  fs.symlinkSync(join(outside, 'kept.txt'), join(root, 'last'))
  fs.linkSync(join(outside, 'kept.txt'), join(root, 'hard'))
  const paths = [
    'link/kept.txt', 'link/f/kept.txt', 'last', 'hard', 'plain/deep/er', 'folder.txt', 'file/x',
  ]
  await placeFiles(new Map(paths.map((path) => [path, Buffer.from('new')])), root)
  for (const path of paths) assert.equal(fs.readFileSync(join(root, path), 'utf8'), 'new', path)
  for (const path of ['kept.txt', 'f/kept.txt'])
    assert.equal(fs.readFileSync(join(outside, path), 'utf8'), 'kept')
})
