/** Runs that are refused as a test of the start was put back, until a human lets it change. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { EngineOptions, EventPayloads, ModelRequest } from 'runwright/agent'
import {
  atGate, follow, payloads, testProvider, write, type Said,
} from '../../../helpers/engine.js'
import { World } from '../../../helpers/world.js'

const TEST = 'test/price.test.js'
const MAY_CHANGE = { may_change: [TEST] }

/** The goal is to change what the first test of the start asks for. */
function testOf(price: string): string {
  return `const test = require('node:test')
const assert = require('node:assert')
const { price } = require('../src/price.js')
test('a price has a currency', () => assert.equal(price(3), '${price}'))
test('a price has cents', () => assert.match(price(3), /\\.00/))
`
}

const PROJECT = {
  'src/price.js': "exports.price = (n) => '$' + n\n",
  [TEST]: testOf('$3'),
}
const CHANGE = write({
  'src/price.js': "exports.price = (n) => '€' + n + '.00'\n",
  [TEST]: testOf('€3.00'),
})

/** Changes code and test in its first turn. */
function turns({ messages }: ModelRequest): Said {
  return messages.some(({ role }) => role === 'tool') ? { text: 'done' } : CHANGE
}

function openWorld(t: TestContext, engine: Partial<EngineOptions> = {}): World {
  return new World(t, { files: PROJECT, turns, engine: { sealedChecks: 'prefer', ...engine } })
}

type Check = EventPayloads['goal_check']

function assertRefused(check: Check | undefined): void {
  assert.equal(check?.achieved, false)
  assert.match(check.reason, /^sealed check: .*; as at the start: test\/price\.test\.js$/)
}

function assertAllowed(check: Check | undefined): void {
  const { achieved, allowed, assurance, cached, changed_tests, held_back } = check!
  assert.deepEqual(
    { achieved, allowed, cached, changed_tests, held_back, sealed: assurance?.sealed },
    {
      achieved: true, allowed: [TEST], cached: false, changed_tests: [TEST], held_back: undefined,
      sealed: true,
    },
  )
}

for (const [what, restarts] of [
  ['the next check', false],
  ['the next check after a restart', true],
] as const) {
  test(`${what} goes by the files that a human lets the run change`, async (t) => {
    const world = openWorld(t)
    let engine = await world.open()
    const { events, runId } = await world.run({ goal: 'node-test', hitl_enabled: true }, atGate)
    assertRefused(payloads(events, 'goal_check').at(-1))
    const updated = await engine.update(runId, MAY_CHANGE)
    assert.deepEqual(updated.may_change, [TEST])
    if (restarts) {
      await engine.close()
      engine = await world.open()
    }
    await engine.resume(runId, { decision: 'approve' })
    const all = await follow(engine, runId)
    assertAllowed(payloads(all, 'goal_check').at(-1))
    const { allowed, changed_tests, held_back, may_change, status } = await engine.get(runId)
    assert.deepEqual(
      { allowed, changed_tests, held_back, may_change, status },
      {
        allowed: [TEST], changed_tests: [TEST], held_back: [], may_change: [TEST],
        status: 'achieved',
      },
    )
    const told = world.requests.at(-1)!.messages.findLast((one) => one.role === 'user')
    assert.match(told!.text, /^Message from the user:\n\n.*count as part of your work.*\n- test\//)
  })
}

test('a check goes by them even if the model has no turn left to hear of them', async (t) => {
  const world = openWorld(t, { maxTurnsPerIteration: 1 })
  const engine = await world.open({
    providers: [
      testProvider(async (request, call) => {
        if (call === 1) await engine.update(runId, MAY_CHANGE)
        return turns(request)
      }),
    ],
  })
  const { details } = await engine.create({ goal: 'node-test', max_iterations: 2 })
  const runId = details.run_id
  const events = await follow(engine, runId)
  const checks = payloads(events, 'goal_check')
  assertRefused(checks[1])
  assertAllowed(checks[2])
  assert.equal(checks.length, 3)
})

test('an attempt shows the tests that it has edited to the human who chooses one', async (t) => {
  const world = openWorld(t)
  const attempts = { count: 1, choose: 'human' }
  const request = { goal: 'node-test', workspace: 'isolated', attempts, ...MAY_CHANGE }
  const { events } = await world.run(request, atGate)
  const [end] = payloads(events, 'attempt_ended')
  const [gate] = payloads(events, 'human_check_required')
  assert.deepEqual([end?.status, end?.changed_tests], ['achieved', [TEST]])
  assert.deepEqual(gate?.candidates?.[0]?.changed_tests, [TEST])
})
