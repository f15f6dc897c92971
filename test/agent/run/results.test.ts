/** Results of runs: how they are asked for, repaired, recorded, redacted and bounded. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  ModelError,
  type AgentEvent,
  type EngineOptions,
  type JsonObject,
  type ModelRequest,
  type RunDetails,
  type RunEngine,
} from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const SCHEMA = {
  type: 'object',
  properties: { total: { type: 'number', minimum: 0 }, currency: { type: 'string' } },
  required: ['total'],
  additionalProperties: false,
}
const VALID = { total: 12.5, currency: 'EUR' }
const RUN = { goal: 'result: read the invoice', workspace: 'none', result_schema: SCHEMA }

/** Is this the request for the result? */
const asks = (request: ModelRequest): boolean => request.result !== undefined

/** A call of the tool that gives a result. */
function giving(args: JsonObject): Said {
  return { calls: [{ tool: 'give_result', args }], tokens: [10, 5] }
}

interface Ran {
  readonly details: RunDetails
  readonly events: readonly AgentEvent[]
  readonly requests: readonly ModelRequest[]
  readonly engine: RunEngine
}

/** Runs to the end; `answers` are given to the requests for the result, one after the other. */
async function run(
  t: TestContext,
  answers: readonly (Said | ModelError)[],
  request: JsonObject = RUN,
  options: Partial<EngineOptions> & { readonly cwd?: string } = {},
  worker: (request: ModelRequest) => Said = () => ({ text: 'It says 12.50.', tokens: [100, 10] }),
): Promise<Ran> {
  const requests: ModelRequest[] = []
  let asked = 0
  const provider = testProvider((given) => {
    requests.push(given)
    if (!asks(given)) return worker(given)
    const answer = answers[asked++] ?? { text: 'no more answers' }
    if (answer instanceof ModelError) throw answer
    return answer
  })
  const { engine } = await openEngine(t, { providers: [provider], ...options })
  const { details, events } = await runToEnd(engine, request)
  assertInvariants(events)
  return { details: await engine.get(details.run_id), events, requests, engine }
}

const kinds = (events: readonly AgentEvent[]): string[] => events.map(({ kind }) => kind)

test('a run without a folder ends with a valid result and its last text', async (t) => {
  const { details, events, requests } = await run(t, [giving(VALID)])
  assert.equal(details.status, 'achieved')
  assert.equal(details.end_reason, 'goal_achieved')
  assert.deepEqual(details.result, VALID)
  assert.equal(details.answer, 'It says 12.50.')
  assert.deepEqual(details.result_schema, SCHEMA)
  assert.equal(details.cwd, '')
  assert.equal(details.workspace, 'none')
  assert.deepEqual(details.assurance, {
    by: 'schema', sealed: false, canaries: false, holdout: false,
  })
  assert.equal(details.final_state.goal_achieved, true)
  assert.equal(details.final_state.total_tokens, 125)
  assert.equal(details.usage.tool_calls, 0)
  assert.deepEqual(kinds(events), [
    'run_created', 'run_started', 'goal_check',
    'step_start', 'llm_usage', 'model_turn',
    'step_start', 'llm_usage', 'model_turn', 'result',
    'goal_check', 'iteration_complete', 'run_end',
  ])
  const [first, last] = requests
  assert.match(first!.system, /asked for the result of your work/)
  assert.ok(first!.system.includes(JSON.stringify(SCHEMA)))
  assert.deepEqual(first!.tools, [])
  assert.equal(first!.result, undefined)
  assert.deepEqual(last!.toolChoice, { tool: 'give_result' })
  assert.deepEqual(last!.tools.map(({ name }) => name), ['give_result'])
  assert.deepEqual(last!.tools[0]!.parameters, SCHEMA)
  assert.deepEqual(last!.result, { schema: SCHEMA, tool: 'give_result' })
  assert.equal(last!.run.cwd, '')
  assert.equal(last!.run.check, null)
  assert.match(JSON.stringify(last!.messages.at(-1)), /Give the result of your work now/)
})

const wrong: readonly { readonly what: string; readonly said: Said; readonly problem: RegExp }[] = [
  { what: 'another type', said: giving({ total: 'a lot' }), problem: /\/total must be/ },
  { what: 'a missing field', said: giving({}), problem: /total/ },
  { what: 'a field too much', said: giving({ total: 1, vat: 2 }), problem: /vat/ },
  { what: 'no JSON', said: { text: 'The total is 12.50.' }, problem: /it is not JSON/ },
  { what: 'nothing', said: {}, problem: /it is empty/ },
  { what: 'a list', said: { text: '[1]' }, problem: /it is not a JSON object/ },
  {
    what: 'two calls',
    said: { calls: [...giving(VALID).calls!, ...giving(VALID).calls!] },
    problem: /it calls give_result 2 times/,
  },
  {
    what: 'a call of another tool',
    said: { calls: [{ tool: 'bash', args: { command: 'rm -rf .' } }] },
    problem: /it is empty/,
  },
  {
    what: 'too deep a value',
    said: { text: `{"total":${'['.repeat(80)}${']'.repeat(80)}}` },
    problem: /nested/,
  },
  {
    what: 'too long a value',
    said: giving({ total: 1, currency: 'x'.repeat(300_000) }),
    problem: /more than 262144 characters/,
  },
]

for (const { what, said, problem } of wrong) {
  test(`a result is asked for again after ${what}`, async (t) => {
    const { details, events, requests } = await run(t, [said, giving(VALID)])
    assert.equal(details.status, 'achieved')
    assert.deepEqual(details.result, VALID)
    const results = events.filter((event) => event.kind === 'result')
    assert.equal(results.length, 2)
    assert.match(results[0]!.payload.problem ?? '', problem)
    assert.equal(results[0]!.payload.result, null)
    assert.deepEqual(results[1]!.payload, { attempt: 2, result: VALID, problem: null })
    const told = requests.at(-1)!.messages.at(-1)!
    assert.equal(told.role, 'user')
    assert.match(told.role === 'user' ? told.text : '', problem)
    assert.equal(events.filter(({ kind }) => kind === 'tool_call').length, 0, 'nothing runs')
  })
}

for (const repairs of [0, 1, 2, 3]) {
  test(`a run with ${repairs} wrong results ${repairs < 3 ? 'is achieved' : 'fails'}`, async (t) => {
    const answers = [...Array.from({ length: repairs }, () => giving({ total: -1 })), giving(VALID)]
    const { details, events, requests } = await run(t, answers)
    const results = events.filter(({ kind }) => kind === 'result')
    assert.equal(results.length, Math.min(3, repairs + 1))
    assert.equal(requests.filter(asks).length, results.length)
    if (repairs < 3) {
      assert.deepEqual(details.result, VALID)
      return
    }
    assert.equal(details.status, 'failed')
    assert.equal(details.end_reason, 'result_invalid')
    assert.equal(details.error, null)
    assert.equal(details.result, null)
    assert.equal(details.final_state.goal_achieved, false)
    assert.match(details.final_state.goal_reason, /none of 3 answers was a valid result: \/total/)
  })
}

const texts: readonly string[] = [
  JSON.stringify(VALID),
  `  ${JSON.stringify(VALID, null, 2)}\n`,
  '```json\n' + JSON.stringify(VALID) + '\n```',
]
for (const text of texts)
  test(`a model may give its result as text: ${JSON.stringify(text).slice(0, 30)}`, async (t) => {
    const { details } = await run(t, [{ text }])
    assert.deepEqual(details.result, VALID)
    assert.equal(details.answer, 'It says 12.50.', 'the result is not the answer')
  })

test('the output of a provider that could not be read counts as a wrong answer', async (t) => {
  const mistake = new ModelError('ERR_AGENT_MODEL', 'malformed call', {
    retryable: false, modelMistake: true,
  })
  const { details, events } = await run(t, [mistake, giving(VALID)])
  assert.deepEqual(details.result, VALID)
  const [first] = events.filter((event) => event.kind === 'result')
  assert.match(first!.payload.problem ?? '', /malformed call/)
})

for (const stop of ['refusal', 'content_filter'] as const)
  test(`a model that answers with ${stop} is not asked again`, async (t) => {
    const { details, requests } = await run(t, [{ text: 'I cannot.', stop }])
    assert.equal(details.status, 'failed')
    assert.equal(details.end_reason, stop === 'refusal' ? 'stuck' : stop)
    assert.equal(requests.filter(asks).length, 1)
  })

const CHECKED = { goal: 'shell: test -f done', result_schema: SCHEMA }
const write = { tool: 'write_file', args: { path: 'done', content: '' } }

test('a goal with a check is achieved once the check passed and the result is valid', async (t) => {
  const { details, events } = await run(t, [giving({}), giving(VALID)], CHECKED, {}, (request) =>
    request.run.turn === 0 ? { calls: [write] } : { text: 'Done.' },
  )
  assert.equal(details.status, 'achieved')
  assert.deepEqual(details.result, VALID)
  assert.equal(details.answer, 'Done.')
  assert.equal(details.assurance?.by, 'exit_code')
  const order = kinds(events)
  const check = order.lastIndexOf('goal_check')
  assert.deepEqual(order.slice(check), [
    'goal_check', 'llm_usage', 'model_turn', 'result', 'llm_usage', 'model_turn', 'result',
    'iteration_complete', 'run_end',
  ])
})

test('a check that passed is not enough: three invalid results fail the run', async (t) => {
  const { details } = await run(
    t, [giving({}), giving({}), giving({})], CHECKED, {}, () => ({ calls: [write] }),
  )
  assert.equal(details.status, 'failed')
  assert.equal(details.end_reason, 'result_invalid')
  assert.equal(details.final_state.goal_achieved, false)
})

test('a goal that is met at the start lets the model look before it gives the result', async (t) => {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'done'), 'twelve')
  const seen: string[] = []
  const { details, events } = await run(t, [giving(VALID)], CHECKED, { cwd }, (request) => {
    const last = request.messages.at(-1)!
    if (last.role === 'tool') {
      seen.push(last.output)
      return { text: 'Read.' }
    }
    return { calls: [{ tool: 'read_file', args: { path: 'done' } }] }
  })
  assert.equal(details.status, 'achieved')
  assert.equal(details.iteration, 1)
  assert.match(seen.join(), /twelve/)
  assert.equal(events.filter(({ kind }) => kind === 'goal_check').length, 2)
})

test('a result goal may have a folder, and goes on until the model is done', async (t) => {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'invoice.txt'), 'Total: 12.50')
  let turns = 0
  const request = { goal: 'result: read invoice.txt', result_schema: SCHEMA, max_iterations: 3 }
  const reads = (n: number): Said => ({
    calls: [{ tool: 'read_file', args: { path: 'invoice.txt', n } }],
  })
  const { details, events } = await run(t, [giving(VALID)], request, { cwd }, () =>
    ++turns <= 10 ? reads(turns) : { text: 'Read.' },
  )
  assert.equal(details.status, 'achieved')
  assert.equal(details.iteration, 2, 'eight turns, then the rest')
  assert.equal(details.workspace, 'in_place')
  const checks = events.filter((event) => event.kind === 'goal_check')
  assert.deepEqual(checks.map(({ payload }) => payload.achieved), [false, false, true])
  assert.deepEqual(checks.map(({ payload }) => payload.verified_by), ['schema', 'schema', 'schema'])
})

test('in its last iteration, a model that is not done is asked all the same', async (t) => {
  let turns = 0
  const request = { goal: 'result: x', result_schema: SCHEMA, max_iterations: 1 }
  const { details } = await run(t, [giving(VALID)], request, {}, () => ({
    calls: [{ tool: 'list_files', args: { path: '.', n: ++turns } }],
  }))
  assert.equal(details.status, 'achieved')
  assert.deepEqual(details.result, VALID)
})

test('a result is not asked of builtin:repair alone', async (t) => {
  const { engine } = await openEngine(t)
  await assert.rejects(engine.create({ ...CHECKED, model_name: 'builtin:repair' }), {
    violations: [
      {
        pointer: '/model_name',
        detail: 'must be a language model for a request with a result: builtin:repair gives none',
      },
    ],
  })
})

test('a schema that its caller changes later is the one that was sent', async (t) => {
  const required = ['total']
  const schema = { ...SCHEMA, required }
  const { details } = await run(t, [giving({}), giving(VALID)], { ...RUN, result_schema: schema },
    {}, () => {
      required.length = 0
      return { text: 'Read.' }
    })
  assert.deepEqual([details.status, details.result], ['achieved', VALID])
  assert.deepEqual(details.result_schema, SCHEMA)
})
