/** Which held-out tests are accepted, from requests and from hosts. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  InvalidRequestError, MemoryStore, type EngineOptions, type JsonObject, type RunStore,
} from 'runwright/agent'
import { placeFiles } from '../../../../lib/agent/goals/holdout/place-files.js'
import { openEngine, scratch, testProvider } from '../../../helpers/engine.js'
import { writeFiles } from '../../../helpers/files.js'

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
  ['with -1 allowed skip', { ...named('a'), allowed_skips: -1 }, '/holdout/allowed_skips'],
  ['with half of a skip', { ...named('a'), allowed_skips: 0.5 }, '/holdout/allowed_skips'],
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
  [
    'of a judged goal',
    { judgeModel: 'builtin:repair', providers: [testProvider(() => ({}))] },
    { goal: 'make it nice', model_name: 'test:m' },
    /a command checks/,
  ],
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
  writeFiles(outside, { 'kept.txt': 'kept', 'f/kept.txt': 'kept' })
  writeFiles(root, { 'file/x': '', plain: 'a file', 'folder.txt/y': '' })
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
