import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  type Model,
  type ModelProvider,
  type ModelTurn,
  NO_USAGE,
  type RunEngine,
} from 'runwright/agent'
import { follow, openEngine, runToEnd } from '../../helpers/engine.js'
import { failingExecutor } from '../../helpers/executor.js'
import { hostileThrow, hostileTurn, KEY_SHAPED, nested } from '../../helpers/hostile-turn.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { Random } from '../../helpers/random.js'

function provider(complete: (call: number) => unknown): ModelProvider {
  let calls = 0
  const model: Model = {
    name: 'test:m',
    isLanguageModel: true,
    contextWindow: null,
    prices: null,
    complete: () => complete(calls++) as Promise<ModelTurn>,
  }
  return {
    id: 'test',
    description: 'a hostile model',
    isLanguageModel: true,
    suggestions: [],
    create: () => model,
  }
}

async function hostileEngine(
  t: TestContext,
  complete: (call: number) => unknown,
): Promise<RunEngine> {
  const { engine } = await openEngine(t, {
    providers: [provider(complete)],
    executor: failingExecutor,
    random: () => 0,
  })
  return engine
}

const call = (args: unknown, call_id = 'c1', tool = 'write_file'): unknown => ({
  tool,
  args,
  call_id,
})

function turnWith(calls: readonly unknown[], more: object = {}): unknown {
  return {
    message: { role: 'assistant', text: '', calls },
    reasoning: '',
    usage: NO_USAGE,
    stop: 'tool_calls',
    ...more,
  }
}

for (const { name, turn } of [
  { name: 'arguments nested 5 000 deep', turn: turnWith([call(nested(5_000))]) },
  { name: 'arguments nested 100 000 deep', turn: turnWith([call(nested(100_000))]) },
  { name: 'a call id of the shape of a key', turn: turnWith([call({ path: 'a' }, KEY_SHAPED)]) },
  { name: 'a tool named __proto__', turn: turnWith([call({}, 'c', '__proto__')]) },
]) {
  test(`a run whose model answers with ${name} ends`, async (t) => {
    const engine = await hostileEngine(t, () => Promise.resolve(turn))
    const { events, details } = await runToEnd(engine, { goal: 'shell: x', max_iterations: 2 })
    assertInvariants(events)
    t.diagnostic(`${details.status} ${details.end_reason}`)
    await engine.delete(details.run_id)
  })
}

const RUNS = Number(process.env['RUNWRIGHT_RANDOM_RUNS'] ?? 150)

test(`${RUNS} runs with hostile models end, and keep every invariant`, async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? 7)
  const ends: Record<string, number> = {}
  for (let index = 0; index < RUNS; index++) {
    const random = new Random(seed * 1000 + index)
    const engine = await hostileEngine(t, () => {
      if (random.chance(0.03)) return hostileThrow(random)
      const turn = hostileTurn(random)
      return random.chance(0.03) ? turn : Promise.resolve(turn)
    })
    const { details } = await engine.create({
      goal: 'shell: x',
      max_iterations: 3,
      approval: random.pick(['never', 'never', 'writes', 'all']),
      hitl_enabled: random.chance(0.2),
    })
    const runId = details.run_id
    const abortAt = random.chance(0.1) ? random.integer(1, 20) : Infinity
    const events = await follow(engine, runId, ({ kind, seq }) => {
      if (seq === abortAt) void engine.abort(runId).catch(() => undefined)
      if (kind !== 'human_check_required') return false
      void engine.resume(runId, { decision: 'approve' }).catch(() => undefined)
      return false
    })
    try {
      assertInvariants(events)
    } catch (error) {
      const kinds = events.map(({ kind }) => kind).join(' ')
      throw new Error(`seed ${seed}, run ${index}: ${kinds}`, { cause: error })
    }
    const { status, end_reason } = await engine.get(runId)
    ends[`${status} ${end_reason}`] = (ends[`${status} ${end_reason}`] ?? 0) + 1
    await engine.close()
  }
  t.diagnostic(JSON.stringify(ends))
})

test('a goal whose judge answers with hostile turns is not achieved, and its run ends', async (t) => {
  for (let index = 0; index < 40; index++) {
    const random = new Random(11_000 + index)
    const judge = { ...provider(() => Promise.resolve(hostileTurn(random))), id: 'judge' }
    const { engine } = await openEngine(t, {
      providers: [provider(() => Promise.resolve(turnWith([]))), judge],
      judgeModel: 'judge:m',
      executor: failingExecutor,
      random: () => 0,
    })
    const { events, details } = await runToEnd(engine, { goal: 'do it', max_iterations: 2 })
    assertInvariants(events)
    assert.equal(details.status, 'failed')
    await engine.close()
  }
})
