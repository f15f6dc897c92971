/** Which held-out tests are accepted of a run that asks for them, of a fork, and from folders. */
import assert from 'node:assert/strict'
import { symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MemoryStore, type JsonObject } from 'runwright/agent'
import { scratch } from '../../../helpers/engine.js'
import { writeFiles } from '../../../helpers/files.js'
import { worldOf } from './scenario.js'

const GOAL = 'shell: test -f code'
const HELD_OUT = { files: { a: '' }, command: 'true' }
const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`${i}`, '']))

test('a request may ask for the sealed checks that its held-out tests need', async (t) => {
  const world = worldOf(t, { files: { code: '' }, options: { sealedChecks: 'off' } })
  const { details } = await world.run({ goal: GOAL, holdout: HELD_OUT, sealed_checks: 'prefer' })
  assert.equal(details.assurance?.holdout, true)
})

test('a fork cannot bring held-out tests of its own', async (t) => {
  const world = worldOf(t, { files: { code: '' }, options: { checkpoints: 'auto' } })
  const engine = await world.open()
  const { runId } = await world.run({ goal: GOAL })
  await assert.rejects(engine.fork(runId, { holdout: HELD_OUT }), {
    code: 'ERR_AGENT_INVALID_REQUEST',
  })
})

test('a host gives held-out tests for some runs, from a folder', async (t) => {
  const folder = scratch(t)
  writeFiles(folder, {
    'held/check.sh': 'grep -q right code', '.git/config': '', 'node_modules/x/y': '',
  })
  symlinkSync('/etc/passwd', join(folder, 'link'))
  const world = worldOf(t, {
    files: {},
    options: {
      holdout: ({ request, principal }) => {
        assert.equal(principal, null)
        return request.metadata['team'] === 'a' ? { folder, command: 'sh held/check.sh' } : null
      },
    },
  })
  const endOf = async (code: string, metadata: JsonObject): Promise<unknown> => {
    world.write({ code })
    const { details } = await world.run({ goal: GOAL, metadata, max_iterations: 1 })
    return [details.status, details.assurance?.holdout]
  }
  assert.deepEqual(await endOf('right', { team: 'a' }), ['achieved', true])
  assert.deepEqual(await endOf('wrong', { team: 'a' }), ['failed', false])
  assert.deepEqual(await endOf('wrong', { team: 'b' }), ['achieved', false])
})

test('a folder that runs can reach is refused: in a root, or above one', async (t) => {
  const world = worldOf(t, { files: { code: '', 'held/a.sh': '' } })
  const { top: above, cwd } = world
  symlinkSync(join(cwd, 'held'), join(above, 'link'))
  for (const folder of [join(cwd, 'held'), cwd, above, join(above, 'link')]) {
    const holdout = { folder, command: 'true' }
    const engine = await world.open({ holdout })
    const refused = { name: 'TypeError', message: /runs can read/ }
    await assert.rejects(engine.create({ goal: GOAL }), refused)
  }
  // Closed folders do not exist for runs.
  const store = new MemoryStore()
  Object.defineProperty(store, 'closedFolders', { value: [join(cwd, 'held')] })
  const holdout = { folder: join(cwd, 'held'), command: 'true' }
  await world.open({ store, holdout })
  assert.equal((await world.run({ goal: GOAL })).details.status, 'achieved')
})

for (const [what, make, message] of [
  ['is too large', (folder: string) => truncateSync(fileIn(folder), 9 * 1024 ** 2), /8 MiB/],
  ['has too many files', (folder: string) => writeFiles(folder, many), /1000 files/],
  ['is empty', () => undefined, /at least one file/],
] as const) {
  test(`a folder with held-out tests that ${what} is refused`, async (t) => {
    const folder = scratch(t)
    make(folder)
    const holdout = { folder, command: 'true' }
    const engine = await worldOf(t, { options: { holdout } }).open()
    await assert.rejects(engine.create({ goal: GOAL }), { name: 'TypeError', message })
  })
}

function fileIn(folder: string): string {
  const path = join(folder, 'large')
  writeFileSync(path, '')
  return path
}
