import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter, geminiAdapter, HttpModel, openAiChatAdapter, openAiResponsesAdapter,
  type ModelAdapter, type ModelProvider,
} from 'runwright/agent'
import { AsyncResponse, MockTransport } from 'runwright/http'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const chat = openAiChatAdapter()
const gemini = geminiAdapter()
const azure = {
  error: {
    message: 'The response was filtered due to the prompt triggering Azure’s policy.',
    type: null,
    param: 'prompt',
    code: 'content_filter',
    status: 400,
    innererror: { code: 'ResponsibleAIPolicyViolation' },
  },
}
const finished = (reason: string): object => ({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Half' }, finish_reason: reason }],
})
const candidate = (finishReason: string): object => ({
  candidates: [{ content: { parts: [{ text: 'Half' }] }, finishReason }],
})

interface Case {
  readonly what: string
  readonly adapter: ModelAdapter
  readonly status?: number
  readonly body: object
}

function providerOf({ adapter, status = 200, body }: Case): ModelProvider {
  const transport = new MockTransport(() => new AsyncResponse(status, { json: body }))
  return {
    ...testProvider(() => ({})),
    create: () => new HttpModel(adapter, { model: 'm', name: 'test:m', transport }),
  }
}

for (const one of [
  { what: 'Chat Completions', adapter: chat, body: finished('content_filter') },
  { what: 'Chat Completions (safety)', adapter: chat, body: finished('SAFETY') },
  {
    what: 'Responses',
    adapter: openAiResponsesAdapter(),
    body: {
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'Half' }] }],
    },
  },
  ...['SAFETY', 'PROHIBITED_CONTENT', 'BLOCKLIST', 'RECITATION', 'SPII', 'MODEL_ARMOR'].map(
    (reason) => ({ what: `Gemini (${reason})`, adapter: gemini, body: candidate(reason) }),
  ),
  {
    what: 'Anthropic (its classifiers)',
    adapter: anthropicAdapter(),
    body: {
      type: 'message', role: 'assistant', content: [], stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: 'cyber', explanation: 'It could harm.' },
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  },
  {
    what: 'Gemini (a blocked prompt)',
    adapter: gemini,
    body: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } },
  },
] satisfies Case[]) {
  test(`${one.what}: an answer that a filter stopped ends the run as content_filter`, async (t) => {
    const { engine } = await openEngine(t, { providers: [providerOf(one)] })
    const { events, details } = await runToEnd(engine, { goal: 'shell: false' })
    assertInvariants(events)
    assert.deepEqual(
      [details.status, details.end_reason, details.error],
      ['failed', 'content_filter', null],
    )
    assert.match(details.final_state.goal_reason, /./)
    const turn = events.find(({ kind }) => kind === 'model_turn')
    assert.equal(turn?.kind === 'model_turn' && turn.payload.stop, 'content_filter')
    const end = events.at(-1)
    assert.match(end?.kind === 'run_end' ? end.payload.reason : '', /content filter/)
  })
}

for (const one of [
  { what: 'Chat Completions (Azure)', adapter: chat, status: 400, body: azure },
  { what: 'Responses (Azure)', adapter: openAiResponsesAdapter(), status: 400, body: azure },
  {
    what: 'Responses (a failed response)',
    adapter: openAiResponsesAdapter(),
    body: { status: 'failed', error: { code: 'invalid_prompt', message: 'Your prompt was flagged.' } },
  },
  {
    what: 'Anthropic',
    adapter: anthropicAdapter(),
    status: 400,
    body: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'Output blocked by content filtering policy',
      },
    },
  },
  {
    what: 'Chat Completions (OpenRouter)',
    adapter: chat,
    status: 403,
    body: {
      error: {
        code: 403,
        message: 'x requires moderation on X. Your input was flagged for "violence".',
        metadata: { reasons: ['violence'], flagged_input: 'x', provider_name: 'X' },
      },
    },
  },
] satisfies Case[]) {
  test(`${one.what}: a request that a filter refuses ends the run as content_filter`, async (t) => {
    const { engine } = await openEngine(t, { providers: [providerOf(one)] })
    const { events, details } = await runToEnd(engine, { goal: 'shell: false' })
    assertInvariants(events)
    assert.deepEqual([details.status, details.end_reason], ['failed', 'content_filter'])
    assert.equal(details.error?.code, 'ERR_AGENT_MODEL_FILTER')
    assert.equal(events.filter(({ kind }) => kind === 'log').length, 0, 'it is not tried again')
  })
}

test('a refusal of the model itself stays one', async (t) => {
  const message = { role: 'assistant', content: null, refusal: 'No.' }
  const body = { choices: [{ index: 0, message, finish_reason: 'stop' }] }
  const providers = [providerOf({ what: '', adapter: chat, body })]
  const { engine } = await openEngine(t, { providers })
  const { details } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(details.end_reason, 'stuck')
})

test('the work before the filter counts: a goal that is met is achieved', async (t) => {
  const calls = [{ tool: 'write_file', args: { path: 'done', content: '' } }]
  const providers = [testProvider((_, n) => (n === 0 ? { calls } : { stop: 'content_filter' }))]
  const { engine } = await openEngine(t, { providers })
  const { details } = await runToEnd(engine, { goal: 'shell: test -f done' })
  assert.equal(details.end_reason, 'goal_achieved')
})
