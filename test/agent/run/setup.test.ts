import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GoalError, InvalidRequestError, type JsonObject, type RunEngine } from 'runwright/agent'
import { World } from '../../helpers/world.js'
import { CLONE } from './setup-support.js'

/** The violations for a request; null if the run is created. */
async function violations(engine: RunEngine, request: JsonObject): Promise<unknown> {
  try {
    await engine.create({ goal: 'shell: true', ...request })
    return null
  } catch (error) {
    assert.ok(error instanceof InvalidRequestError)
    return error.violations.map(({ pointer, detail }) => `${pointer}: ${detail}`)
  }
}

test('a setup is a command of at most 32 KiB', async (t) => {
  const engine = await new World(t).open()
  assert.deepEqual(await violations(engine, { setup: ' \n' }), ['/setup: must not be blank'])
  for (const setup of ['', 1, 'é'.repeat(20_000)]) {
    const [first] = (await violations(engine, { setup })) as string[]
    assert.match(first ?? '', /^\/setup: must /)
  }
  const none = { goal: 'result: x', result_schema: { type: 'object' }, workspace: 'none' }
  const [refused] = (await violations(engine, { ...none, setup: 'true' })) as string[]
  assert.match(refused ?? '', /^\/setup: must be left out/)
  assert.equal(await violations(engine, { setup: 'true' }), null)
})

test('a fork has the setup of its source, and none of its own', async (t) => {
  const world = new World(t)
  const { runId } = await world.run({ goal: 'shell: true' })
  const engine = await world.open()
  await assert.rejects(engine.fork(runId, { setup: 'true' }), /\/setup/)
})

test('a run is refused whose packages are missing, unless a setup is given', async (t) => {
  const world = new World(t, { files: CLONE })
  const engine = await world.open()
  const request = { goal: 'npm-test', cwd: world.cwd }
  await assert.rejects(engine.create(request), (error: unknown) => {
    assert.ok(error instanceof GoalError && error.problem === 'dependencies_missing')
    return true
  })
  const { details } = await engine.create({ ...request, setup: 'exit 1' })
  assert.equal(details.status, 'pending')
})
