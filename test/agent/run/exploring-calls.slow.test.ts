/** A search makes progress by what it tries: it is not stuck before it tries the same again. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defineTool, type JsonObject, type RunDetails, type Tool } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

/** Tries patches in copies: nothing changes here, whatever comes of them. */
function tryTool(explores: boolean, answer: () => string, exitCode = 1): Tool {
  return defineTool({
    name: 'try_it',
    description: 'Tries something out.',
    parameters: { type: 'object', properties: { what: { type: 'string' } } },
    explores,
    execute: () => ({ output: answer(), exitCode }),
  })
}

type Call = readonly [tool: string, args: JsonObject]

/** How a run ends whose model makes one call in each iteration. */
async function endOf(
  t: TestContext,
  tool: Tool,
  calls: (iteration: number) => Call,
  iterations: number,
): Promise<RunDetails> {
  const provider = testProvider((_, n) => {
    const [name, args] = calls(n)
    return { calls: [{ tool: name, args }] }
  })
  const { engine } = await openEngine(t, {
    providers: [provider], tools: [tool], maxTurnsPerIteration: 1,
  })
  const request = { goal: 'shell: false', max_iterations: iterations }
  const { events, details } = await runToEnd(engine, request)
  assertInvariants(events)
  return details
}

const NONE_HELPED = (): string => '12 patches tried, 0 helped'
let answers = 0
const DIFFERS = (): string => `12 patches tried in /tmp/try-${answers++}, 0 helped`

/** Ten times as many as end a run that repeats itself. */
const MANY = 40

for (const explores of [true, false]) {
  test(`a search with ever new arguments goes on, explores: ${explores}`, async (t) => {
    const next = (n: number): Call => ['try_it', { what: `patch ${n}` }]
    const { end_reason, iteration } = await endOf(t, tryTool(explores, NONE_HELPED), next, MANY)
    assert.deepEqual([end_reason, iteration], ['max_iterations', MANY])
  })
}

const SAME = (): Call => ['try_it', { what: 'the same' }]
const IN_TURN = (n: number): Call => ['try_it', { what: `patch ${n % 2}` }]

for (const { name, exitCode, calls, turns } of [
  { name: 'one', exitCode: 0, calls: SAME, turns: 4 },
  { name: 'one that fails', exitCode: 1, calls: SAME, turns: 3 },
  { name: 'two in turn', exitCode: 0, calls: IN_TURN, turns: 6 },
]) {
  test(`trying the same again is no progress, even if the answer differs: ${name}`, async (t) => {
    const details = await endOf(t, tryTool(true, DIFFERS, exitCode), calls, 20)
    assert.deepEqual([details.end_reason, details.iteration], ['stuck', turns])
    // Of other tools, a new answer is news.
    const other = await endOf(t, tryTool(false, DIFFERS, exitCode), calls, 20)
    assert.equal(other.end_reason, 'max_iterations')
  })
}

test('after a change of files the same may be tried again, but not after the way back', async (t) => {
  const write = (content: string): Call => ['write_file', { path: 'a', content }]
  const forward = (n: number): Call => (n % 2 === 0 ? write(`version ${n}`) : SAME())
  const onward = await endOf(t, tryTool(true, NONE_HELPED), forward, 20)
  assert.equal(onward.end_reason, 'max_iterations')
  const back = (n: number): Call => (n % 2 === 0 ? write(n % 4 === 0 ? 'x' : 'y') : SAME())
  const around = await endOf(t, tryTool(true, DIFFERS), back, 20)
  assert.deepEqual([around.end_reason, around.iteration < 12], ['stuck', true])
})

test('explores is a boolean', () => {
  assert.equal(tryTool(true, NONE_HELPED).explores, true)
  assert.equal('explores' in tryTool(false, NONE_HELPED), false)
  const definition = { name: 'a', description: 'b', parameters: { type: 'object' } as const }
  assert.throws(
    () => defineTool({ ...definition, explores: 'yes' as never, execute: () => '' }),
    /explores/,
  )
})
