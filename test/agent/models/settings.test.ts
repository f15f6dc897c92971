/** What runs ask of their models: in each dialect, and what models refuse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter,
  geminiAdapter,
  HttpModel,
  InvalidRequestError,
  MemoryStore,
  openAiChatAdapter,
  openAiResponsesAdapter,
  RunEngine,
  type HttpModelOptions,
  type JsonObject,
  type ModelAdapter,
  type ModelSettings,
} from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'
import { delegateStart } from '../../../lib/agent/request/creation.js'
import type { RunState } from '../../../lib/agent/log/run-state.js'
import { serve } from '../../helpers/serve.js'
import { modelRequest } from './exchange.js'

const ALL: ModelSettings = { temperature: 0.5, reasoning_effort: 'low', max_output_tokens: 99 }
const chat = openAiChatAdapter()
const responses = openAiResponsesAdapter()
const anthropic = anthropicAdapter()
const gemini = geminiAdapter()

async function bodyOf(
  adapter: ModelAdapter,
  model: string,
  settings: ModelSettings,
  options: Partial<HttpModelOptions> = {},
): Promise<JsonObject> {
  let body = ''
  await using served = await serve((request, response) => {
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => response.writeHead(400).end('no'))
  })
  await using http = new HttpModel(adapter, { model, baseUrl: served.origin, ...options })
  await assert.rejects(http.complete(modelRequest({ settings })))
  return JSON.parse(body) as JsonObject
}

for (const [title, adapter, model, settings, expected] of [
  ['chat', chat, 'any', ALL, { temperature: 0.5, reasoning_effort: 'low', max_tokens: 99 }],
  ['chat', chat, 'o3', { max_output_tokens: 99 }, { max_completion_tokens: 99 }],
  [
    'responses', responses, 'gpt-5', { reasoning_effort: 'low', max_output_tokens: 99 },
    { reasoning: { effort: 'low' }, max_output_tokens: 99 },
  ],
  ['responses', responses, 'gpt-4.1', { temperature: 0 }, { temperature: 0 }],
  [
    'anthropic', anthropic, 'claude-opus-5', { reasoning_effort: 'low', max_output_tokens: 99 },
    { output_config: { effort: 'low' }, thinking: { type: 'adaptive' }, max_tokens: 99 },
  ],
  ['anthropic', anthropic, 'claude-haiku-4-5', { temperature: 0.5 }, { temperature: 0.5 }],
  [
    'gemini', gemini, 'gemini-3.5-flash', ALL,
    {
      generationConfig: {
        temperature: 0.5, maxOutputTokens: 99, thinkingConfig: { thinkingLevel: 'low' },
      },
    },
  ],
  [
    'gemini', gemini, 'gemini-2.5-flash', { reasoning_effort: 'none' },
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  ],
] as const) {
  test(`${title} sends ${JSON.stringify(settings)} to ${model} in its own way`, async () => {
    assert.equal(adapter.refusedSetting(settings, model), null)
    const body = await bodyOf(adapter, model, settings)
    const sent = Object.keys(expected).map((name) => [name, body[name]])
    assert.deepEqual(Object.fromEntries(sent), expected)
  })
}

test('settings of a run take precedence over those of the host', async () => {
  const options = { temperature: 1, maxOutputTokens: 5, reasoningEffort: 'high' }
  const body = await bodyOf(chat, 'any', ALL, options)
  const { temperature, reasoning_effort, max_tokens } = body
  assert.deepEqual([temperature, reasoning_effort, max_tokens], [0.5, 'low', 99])
  const { generationConfig } = await bodyOf(
    geminiAdapter({ thinkingBudget: 7 }), 'gemini-2.5-pro', { reasoning_effort: 'high' },
  )
  assert.deepEqual(generationConfig, { thinkingConfig: { thinkingBudget: 24_576 } })
})

for (const [adapter, model, settings, setting] of [
  [chat, 'gpt-5', { temperature: 1 }, 'temperature'],
  [responses, 'gpt-6.2-sol', { temperature: 1 }, 'temperature'],
  [chat, 'gpt-4o', { reasoning_effort: 'low' }, 'reasoning_effort'],
  [anthropic, 'claude-opus-5-5', { temperature: 1 }, 'temperature'],
  [anthropic, 'claude-haiku-4-5', { temperature: 1.5 }, 'temperature'],
  [anthropic, 'claude-haiku-4-5', { reasoning_effort: 'low' }, 'reasoning_effort'],
  [anthropic, 'claude-opus-5', { reasoning_effort: 'minimal' }, 'reasoning_effort'],
  [anthropic, 'claude-sonnet-4-6', { reasoning_effort: 'low', temperature: 1 }, 'temperature'],
  [gemini, 'gemini-3.5-flash', { reasoning_effort: 'max' }, 'reasoning_effort'],
  [gemini, 'gemini-2.5-pro', { reasoning_effort: 'none' }, 'reasoning_effort'],
  [gemini, 'gemini-2.5-pro', { reasoning_effort: 'max' }, 'reasoning_effort'],
] as const) {
  test(`${model} does not take ${JSON.stringify(settings)}`, () => {
    assert.equal(adapter.refusedSetting(settings, model)?.setting, setting)
  })
}

test('what may be set instead is the same, whatever was asked for', () => {
  const told = (['none', 'max'] as const).map(
    (reasoning_effort) => gemini.refusedSetting({ reasoning_effort }, 'gemini-2.5-pro')?.detail,
  )
  assert.match(told[0] ?? '', /minimal to high/)
  assert.equal(told[1], told[0])
})

test('a run whose model refuses a setting is not created', async (t) => {
  const { engine } = await openEngine(t, { providers: [testProvider(() => ({}))] })
  const create = engine.create({ goal: 'shell: false', temperature: 0 })
  await assert.rejects(create, (error: InvalidRequestError) => {
    assert.equal(error.violations[0]?.pointer, '/temperature')
    assert.match(error.violations[0]?.detail ?? '', /cannot be set for test:m/)
    return true
  })
})

for (const [field, value] of [
  ['temperature', 2.1],
  ['temperature', -1],
  ['reasoning_effort', 'much'],
  ['max_output_tokens', 0],
  ['max_output_tokens', 99.5],
] as const) {
  test(`${field} ${value} is refused`, async (t) => {
    const { engine } = await openEngine(t)
    const create = engine.create({ goal: 'shell: false', [field]: value })
    await assert.rejects(create, (error: InvalidRequestError) => {
      assert.equal(error.violations[0]?.pointer, `/${field}`)
      return true
    })
  })
}

test('settings are frozen, shown, and kept by retries and forks', async (t) => {
  const done = () => ({ text: 'Done.' })
  const model = new ScriptedModel([done, done, done, done], { name: 's:m' })
  const provider = {
    id: 's', description: 's', isLanguageModel: false, suggestions: [], create: () => model,
  }
  const cwd = scratch(t)
  const engine = await RunEngine.open({
    store: new MemoryStore(), roots: [cwd], providers: [provider], defaultModel: 's:m',
    checkpoints: 'off', sealedChecks: 'off',
  })
  t.after(() => engine.close())
  const request = { goal: 'shell: false', max_iterations: 1, ...ALL }
  const { details } = await runToEnd(engine, request)
  assert.deepEqual(model.requests[0]?.settings, ALL)
  const again = await engine.retry(details.run_id)
  const fork = await engine.fork(details.run_id, { workspace: 'in_place', temperature: 1 })
  const runs = [[details, 0.5], [again, 0.5], [fork.details, 1]] as const
  for (const [run, temperature] of runs) {
    assert.equal(run.temperature, temperature)
    assert.deepEqual([run.reasoning_effort, run.max_output_tokens], ['low', 99])
  }
  const plain = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assert.equal(plain.details.temperature, null)
  const last = model.requests.filter(({ run }) => run.run_id === plain.details.run_id).at(-1)
  assert.equal(last?.settings, undefined)
})

test('a run that another one starts has its settings', () => {
  const request = { approval: 'never', cwd: '/w', hitl_enabled: false, metadata: {}, ...ALL }
  const state = {
    frozen: { request: { ...request, model_name: 'm' } }, head: { details: { may_change: null } },
  } as unknown as RunState
  const left = {
    max_total_tokens: null, max_cost_usd: null, max_seconds: null, max_tool_calls: null,
  }
  const { temperature, reasoning_effort, max_output_tokens } = delegateStart(
    state, { goal: 'x' }, left, new Map(),
  )
  assert.deepEqual({ temperature, reasoning_effort, max_output_tokens }, ALL)
})
