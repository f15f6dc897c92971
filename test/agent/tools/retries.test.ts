/** Time limits and retries of single tools. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defineTool, type Tool, type ToolContext } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

type Options = Pick<Parameters<typeof defineTool>[0], 'effect' | 'retries' | 'timeoutMs'>

function toolThat(work: (context: ToolContext) => unknown, options: Options = {}): Tool {
  return defineTool({
    name: 'own', description: 'works', parameters: { type: 'object' }, effect: 'read', ...options,
    execute: async (_, context) => String(await work(context)),
  })
}

/** The result of one call; a random number of 0 makes every wait 0. */
async function resultOf(
  t: TestContext,
  tool: Tool,
  clock?: ManualClock,
): Promise<readonly [exitCode: number, output: string]> {
  const { engine } = await openEngine(t, {
    tools: [tool], clock, random: () => 0,
    providers: [testProvider((_, n) => (n > 0 ? {} : { calls: [{ tool: 'own', args: {} }] }))],
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const result = events.find(({ kind }) => kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  return [result.payload.exit_code, result.payload.output]
}

function failing(times: number): { calls: number; work: () => string } {
  const counter = {
    calls: 0,
    work: () => {
      counter.calls += 1
      if (counter.calls <= times) throw new Error(`failure ${counter.calls}`)
      return 'done'
    },
  }
  return counter
}

for (const [fails, retries, calls, result] of [
  [0, 2, 1, [0, 'done']],
  [2, 2, 3, [0, 'done']],
  [5, 5, 6, [0, 'done']],
  [3, 2, 3, [1, 'own failed: failure 3']],
  [1, 0, 1, [1, 'own failed: failure 1']],
  [1, undefined, 1, [1, 'own failed: failure 1']],
] as const) {
  test(`a tool that throws ${fails} times, with ${retries} retries`, async (t) => {
    const counter = failing(fails)
    assert.deepEqual(await resultOf(t, toolThat(counter.work, { retries })), result)
    assert.equal(counter.calls, calls)
  })
}

test('a result with an exit code is not tried again', async (t) => {
  let calls = 0
  const tool = defineTool({
    name: 'own', description: 'fails', parameters: { type: 'object' }, effect: 'read', retries: 5,
    execute: () => {
      calls += 1
      return { output: 'no', exitCode: 3 }
    },
  })
  assert.deepEqual([await resultOf(t, tool), calls], [[3, 'no'], 1])
})

test('a tool that is no read is not tried again, whatever it says', async (t) => {
  const counter = failing(9)
  const { name, description, parameters } = toolThat(counter.work)
  const tool: Tool = {
    name, description, parameters, effect: 'unsafe', retries: 3,
    execute: async () => ({ output: counter.work(), exitCode: 0 }),
  }
  assert.deepEqual(await resultOf(t, tool), [1, 'own failed: failure 1'])
})

test('the time of one call is that of the tool, and holds for its retries together', async (t) => {
  const clock = new ManualClock()
  let calls = 0
  const tool = toolThat(({ signal }) => {
    calls += 1
    if (calls === 1) throw new Error('once')
    clock.advance(49)
    assert.ok(!signal.aborted)
    clock.advance(1)
    signal.throwIfAborted()
  }, { retries: 5, timeoutMs: 50 })
  // Its only wait is over as soon as the clock moves.
  const going = resultOf(t, tool, clock)
  let over = false
  void going.finally(() => (over = true)).catch(() => undefined)
  while (calls < 2 && !over) {
    await new Promise(setImmediate)
    clock.advance(0)
  }
  const [exitCode, output] = await going
  assert.equal(exitCode, 124)
  assert.match(output, /did not end within 0.05 s/)
  assert.equal(calls, 2)
})

for (const [options, message] of [
  [{ timeoutMs: 0 }, /own: timeoutMs must be a positive integer, got 0/],
  [{ timeoutMs: 1.5 }, /own: timeoutMs must be a positive integer, got 1.5/],
  [{ retries: 6 }, /own: retries must be an integer from 0 to 5, got 6/],
  [{ retries: -1 }, /own: retries must be an integer from 0 to 5, got -1/],
  [{ retries: 1, effect: 'unsafe' }, /own: retries are for tools of effect read/],
] as const) {
  test(`a tool with ${JSON.stringify(options)} is refused`, () => {
    assert.throws(() => toolThat(() => '', options), { name: 'TypeError', message })
  })
}
