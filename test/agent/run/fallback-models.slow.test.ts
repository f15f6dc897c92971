/** Which model takes over when another one cannot go on, in each format, and what it is sent. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  anthropicAdapter,
  createHttpProvider,
  geminiAdapter,
  MemoryStore,
  ModelError,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type AgentEvent,
  type EventPayloads,
  type JsonObject,
  type Model,
  type ModelAdapter,
  type ModelErrorCode,
  type ModelProvider,
  type ModelRequest,
  type RunRecord,
} from 'runwright/agent'
import {
  follow, keepOpen, openEngine, runToEnd, scratch, testProvider, type Said,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { serve } from '../../helpers/serve.js'

const GOAL = 'shell: test -e done'
/** What a provider signs: no other model may get it. */
const SIGNED = 'c2lnbmVkLWJ5LXRoZS1maXJzdA=='

/** How a provider of one format answers: with a call of `bash`, with text, or with a refusal. */
interface Dialect {
  readonly adapter: ModelAdapter
  readonly call: (command: string) => JsonObject
  readonly says: (text: string) => JsonObject
  readonly refuses: JsonObject
}

const CHAT_USAGE = { prompt_tokens: 10, completion_tokens: 5 }
const USAGE = { input_tokens: 10, output_tokens: 5 }
const GEMINI_USAGE = { promptTokenCount: 10, candidatesTokenCount: 5 }
const ID = 'call_aaaaaaaaa1'
const chatAnswer = (message: JsonObject, finish_reason: string): JsonObject => ({
  choices: [{ message: { role: 'assistant', ...message }, finish_reason }], usage: CHAT_USAGE,
})
const DIALECTS: Readonly<Record<string, Dialect>> = {
  'Chat Completions': {
    adapter: openAiChatAdapter(),
    call: (command) =>
      chatAnswer({
        content: null,
        reasoning_details: [{ type: 'reasoning.encrypted', data: SIGNED }],
        tool_calls: [{
          id: ID, type: 'function',
          function: { name: 'bash', arguments: JSON.stringify({ command }) },
        }],
      }, 'tool_calls'),
    says: (content) => chatAnswer({ content }, 'stop'),
    refuses: chatAnswer({ content: '' }, 'content_filter'),
  },
  Responses: {
    adapter: openAiResponsesAdapter(),
    call: (command) => ({
      status: 'completed', usage: USAGE,
      output: [
        { type: 'reasoning', id: 'rs_1', encrypted_content: SIGNED, summary: [] },
        {
          type: 'function_call', id: 'fc_1', call_id: ID, name: 'bash',
          arguments: JSON.stringify({ command }),
        },
      ],
    }),
    says: (text) => ({
      status: 'completed', usage: USAGE,
      output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }],
    }),
    refuses: {
      status: 'completed', usage: USAGE,
      output: [
        { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      ],
    },
  },
  Messages: {
    adapter: anthropicAdapter(),
    call: (command) => ({
      type: 'message', stop_reason: 'tool_use', usage: USAGE,
      content: [
        { type: 'thinking', thinking: 'hm', signature: SIGNED },
        { type: 'tool_use', id: ID, name: 'bash', input: { command } },
      ],
    }),
    says: (text) => ({
      type: 'message', stop_reason: 'end_turn', usage: USAGE, content: [{ type: 'text', text }],
    }),
    refuses: { type: 'message', stop_reason: 'refusal', usage: USAGE, content: [] },
  },
  Gemini: {
    adapter: geminiAdapter(),
    call: (command) => ({
      candidates: [{
        finishReason: 'STOP',
        content: {
          parts: [{ functionCall: { name: 'bash', args: { command } }, thoughtSignature: SIGNED }],
        },
      }],
      usageMetadata: GEMINI_USAGE,
    }),
    says: (text) => ({
      candidates: [{ finishReason: 'STOP', content: { parts: [{ text }] } }],
      usageMetadata: GEMINI_USAGE,
    }),
    refuses: { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: GEMINI_USAGE },
  },
}

type Answer = readonly [status: number, body: JsonObject]

/** A provider of one format behind a local server, whose `n`th call gets the `n`th answer. */
async function provider(
  id: string,
  { adapter }: Dialect,
  answerTo: (call: number) => Answer,
): Promise<AsyncDisposable & { readonly provider: ModelProvider; readonly bodies: string[] }> {
  const bodies: string[] = []
  const served = await serve((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      bodies.push(body)
      const [status, answer] = answerTo(bodies.length - 1)
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer))
    })
  })
  const price = id === 'first' ? 1 : 10
  const made = createHttpProvider(adapter, {
    id, baseUrl: served.origin, stream: false,
    prices: { input: price, output: price, as_of: '2026-11-01' },
  })
  const dispose = async (): Promise<void> => {
    await made.close()
    await served[Symbol.asyncDispose]()
  }
  return { provider: made, bodies, [Symbol.asyncDispose]: dispose }
}

/** How the first model fails after its first turn, and how often it is asked then. */
const CAUSES: Readonly<
  Record<EventPayloads['model_switched']['cause'], {
    readonly answer: (dialect: Dialect) => Answer
    readonly calls: number
  }>
> = {
  refusal: { answer: ({ refuses }) => [200, refuses], calls: 1 },
  retries: { answer: () => [503, { error: { message: 'later' } }], calls: 5 },
  context: {
    // So short a conversation cannot be made shorter.
    answer: () => [400, { error: { message: 'maximum context length is 8 tokens' } }], calls: 1,
  },
  error: { answer: () => [401, { error: { message: 'no such key' } }], calls: 1 },
}

function switches(events: readonly AgentEvent[]): EventPayloads['model_switched'][] {
  return events.flatMap(({ kind, payload }) => (kind === 'model_switched' ? [payload] : []))
}

function cents(usd: number | undefined): number {
  return Math.round((usd ?? 0) * 1e6)
}

const names = Object.keys(DIALECTS)
const pairs = [...names.map((name, i) => [name, names[(i + 1) % names.length]!] as const),
  ...names.map((name) => [name, name] as const)]
for (const [from, to] of pairs)
  for (const [cause, { answer, calls }] of Object.entries(CAUSES)) {
    test(`${to} takes over from ${from}: ${cause}`, async (t) => {
      const [first, second] = [DIALECTS[from]!, DIALECTS[to]!]
      await using one = await provider('first', first, (call) =>
        call === 0 ? [200, first.call('true')] : answer(first))
      await using two = await provider('second', second, (call) =>
        [200, call === 0 ? second.call('touch done') : second.says('Done.')])
      const { engine } = await openEngine(t, {
        providers: [one.provider, two.provider], defaultModel: 'first:m', random: () => 0,
      })
      const { events, details } = await runToEnd(engine, {
        goal: GOAL, fallback_models: ['second:m'], max_cost_usd: 1,
      })
      assertInvariants(events)
      assert.equal(details.status, 'achieved', details.error?.message)
      assert.equal(one.bodies.length, 1 + calls)
      assert.equal(two.bodies.length, 2)
      const [switched, ...more] = switches(events)
      assert.deepEqual(more, [])
      assert.deepEqual([switched?.from, switched?.to], ['first:m', 'second:m'])
      assert.equal(switched?.cause, cause)
      assert.notEqual(switched?.message, '')
      assert.deepEqual([details.model_name, details.active_model], ['first:m', 'second:m'])
      // The first one did hear what it had signed; the second one gets the turn without that.
      if (calls > 0) assert.ok(one.bodies[1]!.includes(SIGNED), one.bodies[1])
      assert.ok(!two.bodies[0]!.includes(SIGNED), two.bodies[0])
      assert.ok(two.bodies[0]!.includes('bash'))
      assert.ok(two.bodies[1]!.includes(SIGNED))
      const used = (price: number, times: number): number => price * times * 15
      const refused = cause === 'refusal' ? 2 : 1
      assert.deepEqual(
        details.usage_by_model?.map(({ model_name, model_calls, cost_usd }) =>
          [model_name, model_calls, cents(cost_usd)]),
        [['first:m', refused, used(1, refused)], ['second:m', 2, used(10, 2)]],
      )
      assert.equal(cents(details.final_state.estimated_cost_usd), used(1, refused) + used(10, 2))
    })
  }

/** A provider `test` whose models have names, windows, and functions for their turns. */
function models(
  answers: Readonly<Record<string, (request: ModelRequest) => Said | Promise<Said>>>,
  windows: Readonly<Record<string, number>> = {},
): ModelProvider {
  const made = new Map<string, Model>()
  return {
    ...testProvider(() => ({})),
    create: (name) => {
      const answer = answers[name]
      if (answer === undefined) throw new ModelError('ERR_AGENT_MODEL', `no ${name}`, FINAL)
      const model = made.get(name) ?? {
        ...testProvider(answer).create(name),
        name: `test:${name}`,
        contextWindow: windows[name] ?? null,
      }
      made.set(name, model)
      return model
    },
  }
}

const FINAL = { retryable: false } as const
const fails = (code: ModelErrorCode = 'ERR_AGENT_MODEL_AUTH') => (): never => {
  throw new ModelError(code, `failed with ${code}`, FINAL)
}
const touches = ({ messages }: ModelRequest): Said => {
  const last = messages.at(-1)
  const isDone = last?.role === 'tool' && last.exit_code === 0 && last.output.includes('touched')
  return isDone ? { text: 'Done.' } : { calls: [bash('touch done && echo touched')] }
}
const bash = (command: string): { tool: string; args: JsonObject } => ({
  tool: 'bash', args: { command },
})

test('models take over in turn, once each, and the last error ends the run', async (t) => {
  const provided = models({ m: fails(), a: fails('ERR_AGENT_MODEL_QUOTA'), b: fails() })
  const { engine } = await openEngine(t, { providers: [provided] })
  const fallback_models = ['test:a', 'test:m', 'test:a', 'test:b']
  const { events, details } = await runToEnd(engine, { goal: GOAL, fallback_models })
  assertInvariants(events)
  assert.deepEqual(switches(events).map(({ from, to }) => [from, to]), [
    ['test:m', 'test:a'], ['test:a', 'test:b'],
  ])
  assert.equal(details.end_reason, 'provider_error')
  assert.deepEqual(details.fallback_models, fallback_models)
})

test('the model that has taken over stays for the rest of the run', async (t) => {
  let first = 0
  const provided = models({
    m: () => {
      first += 1
      return fails()()
    },
    a: () => ({ text: 'I look at it.' }),
  })
  const { engine } = await openEngine(t, { providers: [provided] })
  const request = { goal: GOAL, fallback_models: ['test:a'], max_iterations: 3 }
  const { details } = await runToEnd(engine, request)
  assert.equal(first, 1)
  assert.equal(details.iteration, 3)
})

test('a refusal without another model ends the run as before', async (t) => {
  const provided = models({ m: fails(), a: () => ({ text: 'I cannot.', stop: 'refusal' }) })
  const { engine } = await openEngine(t, { providers: [provided] })
  const { events, details } = await runToEnd(engine, { goal: GOAL, fallback_models: ['test:a'] })
  assert.equal(details.end_reason, 'stuck')
  const said = events.flatMap(({ kind, payload }) => (kind === 'model_turn' ? [payload.text] : []))
  assert.deepEqual(said, ['I cannot.'])
})

test('a language model takes over from builtin:repair when that has nothing left', async (t) => {
  const { engine } = await openEngine(t, { providers: [models({ m: fails(), a: touches })] })
  const request = { goal: GOAL, model_name: 'builtin:repair', fallback_models: ['test:a'] }
  const { events, details } = await runToEnd(engine, request)
  assert.equal(details.status, 'achieved')
  assert.deepEqual(switches(events).map(({ from, cause }) => [from, cause]), [
    ['builtin:repair', 'refusal'],
  ])
})

test('a budget that is used up is no reason for another model', async (t) => {
  const usage = { input_tokens: 40, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 }
  let others = 0
  const provided = models({
    m: () => {
      throw new ModelError('ERR_AGENT_MODEL', 'broke off', { retryable: false, usage })
    },
    a: () => {
      others += 1
      return {}
    },
  })
  const { engine } = await openEngine(t, { providers: [provided] })
  const request = { goal: GOAL, fallback_models: ['test:a'], max_total_tokens: 40 }
  const { events, details } = await runToEnd(engine, request)
  assert.equal(details.end_reason, 'token_budget')
  assert.deepEqual([others, switches(events)], [0, []])
})

test('each name is resolved when the run is created, with its settings and price', async (t) => {
  const priced = models({ m: () => ({}), a: () => ({}) })
  const free: ModelProvider = {
    ...priced, id: 'free', create: (name) => ({ ...priced.create(name), prices: null }),
  }
  const { engine } = await openEngine(t, { providers: [priced, free] })
  for (const [request, pointer] of [
    [{ fallback_models: ['test:a', 'test:nobody'] }, '/fallback_models/1'],
    [{ fallback_models: [] }, '/fallback_models'],
    [{ fallback_models: Array.from({ length: 9 }, () => 'test:a') }, '/fallback_models'],
    [{ fallback_models: ['free:a'], max_cost_usd: 1 }, '/max_cost_usd'],
    [{ fallback_models: ['test:a'], temperature: 1 }, '/temperature'],
  ] as const)
    await assert.rejects(engine.create({ goal: GOAL, ...request }), (error: object) => {
      const { violations } = error as { violations: readonly { pointer: string }[] }
      assert.deepEqual(violations.map((one) => one.pointer), [pointer])
      return true
    })
})

test('a model with a larger window gets what the one before had no room for', async (t) => {
  const seen: string[] = []
  const provided = models({
    m: ({ run }) =>
      run.iteration < 6
        ? { calls: [bash(`echo MARK${run.iteration}; head -c 3000 /dev/zero | tr "\\0" x`)] }
        : fails()(),
    a: (request) => {
      seen.push(JSON.stringify(request.messages))
      return touches(request)
    },
  }, { m: 8_000, a: 1_000_000 })
  const { engine } = await openEngine(t, { providers: [provided], maxTurnsPerIteration: 1 })
  const { details } = await runToEnd(engine, { goal: GOAL, fallback_models: ['test:a'] })
  assert.equal(details.status, 'achieved')
  for (let i = 1; i < 6; i++) assert.match(seen[0]!, new RegExp(`MARK${i}\\\\nx`))
})

test('attempts have the same fallback models, and skip their own', async (t) => {
  const provided = models({ m: fails(), a: fails(), b: touches })
  const folder = scratch(t)
  const { engine } = await openEngine(t, {
    providers: [provided], checkpoints: 'auto', workspaceFolder: folder,
  })
  const { details } = await runToEnd(engine, {
    goal: GOAL,
    fallback_models: ['test:a', 'test:b'],
    attempts: { count: 2, models: ['test:a', 'test:m'] },
  })
  assert.equal(details.status, 'achieved')
  for (const { run_id } of details.attempts?.runs ?? []) {
    const attempt = await engine.get(run_id)
    if (attempt.status === 'achieved') assert.equal(attempt.active_model, 'test:b')
  }
})

/** The records of a run in which another model takes over, and after how many the store had it. */
async function switchedRun(
  t: Parameters<typeof scratch>[0],
  cwd: string,
): Promise<{ readonly records: readonly RunRecord[]; readonly counts: readonly number[] }> {
  const store = new MemoryStore()
  const counts: number[] = []
  const append = store.append.bind(store)
  store.append = (runId, records) => {
    counts.push(records.at(-1)!.seq)
    return append(runId, records)
  }
  const { engine } = await openEngine(t, { cwd, store, providers: [crashing()] })
  const { details } = await runToEnd(engine, { goal: GOAL, fallback_models: ['test:a'] })
  assert.equal(details.status, 'achieved')
  return { records: await store.read(details.run_id, 0, 1_000), counts }
}

/** One turn of the first model, which then refuses. */
function crashing(): ModelProvider {
  return models({
    m: ({ messages }) =>
      messages.length === 1 ? { calls: [bash('true')] } : { text: 'No.', stop: 'refusal' },
    a: touches,
  })
}

test('a run goes on with the right model after a crash after any append', async (t) => {
  const cwd = scratch(t)
  const { records, counts } = await switchedRun(t, cwd)
  const at = records.findIndex(({ kind }) => kind === 'model_switched')
  const end = records.length - 1
  assert.ok(at > 5 && at < end)
  const results = records.filter(({ kind }) => kind === 'tool_result')
  assert.ok(counts.includes(at + 1), 'the switch is durable before the next call')
  for (const count of counts.filter((one) => one <= end)) {
    // What the second model has done is there once the log says so.
    if (records[count - 1]!.seq < results.at(-1)!.seq) rmSync(join(cwd, 'done'), { force: true })
    const store = keepOpen(new MemoryStore())
    const first = records[0]!
    await store.open()
    await store.append(first.run_id, records.slice(0, count) as RunRecord[])
    const provided = crashing()
    const asked: string[] = []
    const counted: ModelProvider = {
      ...provided,
      create: (name) => {
        const model = provided.create(name)
        const complete = (request: ModelRequest): ReturnType<Model['complete']> => {
          asked.push(name)
          return model.complete(request)
        }
        return { ...model, complete }
      },
    }
    const { engine } = await openEngine(t, { cwd, store, providers: [counted] })
    const events = await follow(engine, first.run_id)
    assertInvariants(events)
    const details = await engine.get(first.run_id)
    assert.equal(details.status, 'achieved', `${count}: ${details.error?.message}`)
    assert.equal(details.active_model, 'test:a', `${count}`)
    assert.equal(switches(events).length, 1, `${count}`)
    if (count > at) assert.ok(!asked.includes('m'), `${count}: ${asked.join()}`)
    await engine.close()
  }
})

test('a replay of a run in which another model took over gives the same turns', async (t) => {
  const cwd = scratch(t)
  const store = new MemoryStore()
  const { engine } = await openEngine(t, { cwd, store, providers: [crashing()] })
  const source = await runToEnd(engine, { goal: GOAL, fallback_models: ['test:a'] })
  rmSync(join(cwd, 'done'))
  const model_name = `replay:${source.details.run_id}`
  const { events, details } = await runToEnd(engine, { goal: GOAL, model_name })
  assert.equal(details.status, 'achieved')
  const turns = (list: readonly AgentEvent[]): unknown[] =>
    list.flatMap(({ kind, payload }) => (kind === 'model_turn' ? [payload.text] : []))
  assert.deepEqual(turns(events), turns(source.events))
})

const RESULT = {
  type: 'object', properties: { total: { type: 'number' } }, required: ['total'],
  additionalProperties: false,
} as const
const gives = (total: number | string): Said => ({
  calls: [{ tool: 'give_result', args: { total } }],
})

for (const [what, says, cause] of [
  ['refuses to give the result', (): Said => ({ text: 'No.', stop: 'refusal' }), 'refusal'],
  ['cannot be asked for the result', fails(), 'error'],
] as const) {
  test(`another model takes over from one that ${what}`, async (t) => {
    const worker = (request: ModelRequest): Said => {
      if (request.result === undefined) return { text: 'It is 3.', tokens: [100, 10] }
      return says()
    }
    const heard: ModelRequest[] = []
    const second = (request: ModelRequest): Said => {
      heard.push(request)
      // An answer that is not valid is repaired by the model that works then.
      return heard.length === 1 ? gives('three') : gives(3)
    }
    const { engine } = await openEngine(t, { providers: [models({ m: worker, a: second })] })
    const { events, details } = await runToEnd(engine, {
      goal: 'result: add it up', workspace: 'none', result_schema: RESULT,
      fallback_models: ['test:a'],
    })
    assertInvariants(events)
    assert.equal(details.status, 'achieved', details.error?.message)
    assert.deepEqual((await engine.get(details.run_id)).result, { total: 3 })
    assert.deepEqual(switches(events).map((one) => [one.to, one.cause]), [['test:a', cause]])
    assert.deepEqual(heard.map(({ toolChoice }) => toolChoice), [
      { tool: 'give_result' }, { tool: 'give_result' },
    ])
    assert.equal(details.active_model, 'test:a')
  })
}
