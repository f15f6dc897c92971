/** Held-out tests in a file store: private files, and none that belong to no run. */
import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'

test('a file store removes held-out tests of runs that were never created', async (t) => {
  const directory = scratch(t)
  const folder = join(directory, 'holdouts')
  const store = new FileStore({ directory })
  await store.open()
  for (const runId of ['kept', 'never']) await store.holdouts.put(runId, Buffer.from(runId))
  await store.append('kept', sampleRun('kept', { status: 'running' }))
  assert.deepEqual(readdirSync(folder).sort(), ['kept', 'never'])
  assert.equal(statSync(join(folder, 'kept')).mode & 0o777, 0o600)
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  await store.close()
  await assert.rejects(store.holdouts.get('kept'), { code: 'ERR_AGENT_STORE' })
  await using again = new FileStore({ directory })
  await again.open()
  assert.deepEqual(readdirSync(folder), ['kept'])
  assert.deepEqual(Buffer.from((await again.holdouts.get('kept'))!), Buffer.from('kept'))
})

test('retention removes held-out tests with their runs', async (t) => {
  const directory = scratch(t)
  await using store = new FileStore({ directory, retain: { runs: 1 } })
  await store.open()
  for (const [i, runId] of ['old', 'new'].entries()) {
    await store.holdouts.put(runId, Buffer.from(runId))
    const records = sampleRun(runId, { createdAt: i + 1 })
    await store.append(runId, records)
  }
  while ((await store.head('old')) !== null) await new Promise(setImmediate)
  while (readdirSync(join(directory, 'holdouts')).length > 1) await new Promise(setImmediate)
  assert.deepEqual(readdirSync(join(directory, 'holdouts')), ['new'])
})

for (const runId of ['../journal', 'a/b', '', '.hidden']) {
  test(`a file store takes no held-out tests of a run ${JSON.stringify(runId)}`, async (t) => {
    await using store = new FileStore({ directory: scratch(t) })
    await store.open()
    await assert.rejects(store.holdouts.put(runId, Buffer.from('x')), { code: 'ERR_AGENT_STORE' })
  })
}
