import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, type AgentEvent, type ModelRequest } from 'runwright/agent'
import { openEngine, testProvider, type Said } from '../helpers/engine.js'
import { assertInvariants } from '../helpers/invariants.js'
import { Random } from '../helpers/random.js'

const RUNS = Number(process.env['RUNWRIGHT_RANDOM_RUNS'] ?? 60)

function randomTurn(random: Random, request: ModelRequest, n: number): Said {
  const tokens = [random.integer(0, 500), random.integer(0, 100)] as const
  if (random.chance(0.05)) {
    const retryable = random.chance(0.7)
    const modelMistake = !retryable && random.chance(0.7)
    throw new ModelError('ERR_AGENT_MODEL', 'a random fault', {
      retryable,
      modelMistake,
      retryAfterMs: 1,
    })
  }
  if (random.chance(0.02)) throw new Error('a random bug')
  if (random.chance(0.03)) return { text: 'I give up', tokens, stop: 'refusal' }
  const calls = Array.from({ length: random.integer(0, 4) }, (_, index) =>
    random.pick([
      { tool: 'list_files', args: {} },
      { tool: 'read_file', args: { path: random.pick(['a', 'b', '../x', '']) } },
      {
        tool: 'write_file',
        args: { path: random.pick(['a', 'b', '.git/config']), content: `${n}` },
      },
      { tool: 'edit_file', args: { path: 'a', old_text: `${n - 1}`, new_text: 'x' } },
      { tool: 'nothing', args: { deep: { er: [1] } } },
      { tool: 'write_file', args: {} },
      { tool: 'list_files', args: {}, call_id: 'same' },
      { tool: 'flaky', args: { index } },
    ]),
  )
  return { text: `turn ${request.run.turn}`, calls, tokens }
}

test(`${RUNS} random runs keep every invariant, whatever model, tools and humans do`, async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const ends: Record<string, number> = {}
  for (let index = 0; index < RUNS; index++) {
    const random = new Random(seed * 1000 + index)
    const flaky = {
      name: 'flaky',
      description: 'fails now and then',
      parameters: { type: 'object' },
      effect: random.pick(['read', 'unsafe'] as const),
      execute: () => {
        if (random.chance(0.3)) throw new Error('flaky broke')
        return Promise.resolve({ output: 'ok', exitCode: random.integer(0, 3) })
      },
    } as const
    const { engine } = await openEngine(t, {
      providers: [testProvider((request, n) => randomTurn(random, request, n))],
      tools: [flaky],
      random: () => 0,
      maxTurnsPerIteration: random.integer(1, 4),
    })
    const { details } = await engine.create({
      goal: random.pick(['shell: test -f a && grep -q 5 a', 'shell: false', 'shell: test -f b']),
      max_iterations: random.integer(1, 6),
      hitl_enabled: random.chance(0.4),
      approval: random.pick(['never', 'never', 'writes', 'all']),
      ...(random.chance(0.3) ? { max_total_tokens: random.integer(1, 3000) } : undefined),
    })
    const abortAt = random.chance(0.25) ? random.integer(1, 40) : Infinity
    const events: AgentEvent[] = []
    for await (const batch of await engine.subscribe(details.run_id)) {
      for (const { json } of batch) {
        const event = JSON.parse(json) as AgentEvent
        events.push(event)
        if (event.seq === abortAt) await engine.abort(details.run_id).catch(() => undefined)
        if (event.kind === 'human_check_required') {
          const decisions =
            event.payload.kind === 'tool'
              ? (['approve', 'approve', 'reject', 'abort'] as const)
              : (['approve', 'approve', 'abort'] as const)
          await engine
            .resume(details.run_id, { decision: random.pick(decisions), feedback: 'go on' })
            .catch(() => undefined)
        }
      }
    }
    try {
      assertInvariants(events)
      const { status, end_reason } = await engine.get(details.run_id)
      ends[`${status} ${end_reason}`] = (ends[`${status} ${end_reason}`] ?? 0) + 1
    } catch (error) {
      throw new Error(`seed ${seed}, run ${index}: ${events.map(({ kind }) => kind).join(' ')}`, {
        cause: error,
      })
    }
    await engine.close()
  }
  t.diagnostic(JSON.stringify(ends))
  if (RUNS >= 60)
    assert.ok(
      Object.keys(ends).length >= 4,
      `the runs end in several ways: ${JSON.stringify(ends)}`,
    )
})
