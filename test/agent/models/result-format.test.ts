/** How each provider is asked for a result, and how its answer is read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter,
  checkSchema,
  geminiAdapter,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type JsonObject,
  type JsonSchema,
  type ModelAdapter,
  type ModelRequest,
  type ToolSpec,
} from 'runwright/agent'
import { HttpModel } from '../../../lib/agent/models/http-model.js'
import { anthropicFormat } from '../../../lib/agent/models/result-format.js'
import { readResult, resultTool } from '../../../lib/agent/goals/result-goal.js'
import { AsyncResponse, MockTransport, type Request } from 'runwright/http'
import {
  context, cutsInTwo, decodePieces, modelRequest, randomPieces, seeded, tool,
} from './exchange.js'

const SCHEMA = {
  type: 'object',
  properties: { total: { type: 'number', minimum: 0 }, currency: { type: 'string' } },
  required: ['total', 'currency'],
} satisfies JsonSchema
const CLOSED = { ...SCHEMA, additionalProperties: false }
const RESULT = { total: 12.5, currency: '€' }
const TEXT = JSON.stringify(RESULT)

/** The request for a result, of a run with these other tools. */
function asking(others: readonly ToolSpec[] = [], schema: JsonSchema = SCHEMA): ModelRequest {
  return modelRequest({
    tools: [...others, resultTool(schema)],
    toolChoice: { tool: 'give_result' },
    result: { schema, tool: 'give_result' },
  })
}

const others = [tool('read_file')]
const names = (body: JsonObject): unknown => {
  const tools = (body['tools'] ?? []) as readonly JsonObject[]
  const list = tools.flatMap(
    (one) => (one['functionDeclarations'] as readonly JsonObject[] | undefined) ?? [one],
  )
  return list.map((one) => (one['function'] as JsonObject | undefined)?.['name'] ?? one['name'])
}

interface Row {
  readonly what: string
  readonly adapter: ModelAdapter
  readonly model: string
  /** Where the format is, and what it is; null: a tool is forced. */
  readonly field: string
  readonly format: unknown
  readonly tools: readonly string[]
  readonly choice: readonly [field: string, value: unknown]
}

const forced = ['read_file', 'give_result']
const rows: readonly Row[] = [
  ...['gpt-5.2', 'o3-mini', 'gpt-4o-2024-08-06', 'openai/gpt-4.1-mini'].map((model): Row => ({
    what: 'Chat Completions', adapter: openAiChatAdapter(), model,
    field: 'response_format',
    format: {
      type: 'json_schema',
      json_schema: { name: 'result', schema: CLOSED, strict: true },
    },
    tools: ['read_file'], choice: ['tool_choice', 'none'],
  })),
  ...['gpt-4o-2024-05-13', 'o1-mini', 'gpt-4-turbo', 'llama3.3', 'deepseek-chat'].map(
    (model): Row => ({
      what: 'Chat Completions', adapter: openAiChatAdapter(), model,
      field: 'response_format', format: undefined, tools: forced,
      choice: ['tool_choice', { type: 'function', function: { name: 'give_result' } }],
    }),
  ),
  {
    what: 'a server that takes the format', adapter: openAiChatAdapter({ resultFormat: true }),
    model: 'llama3.3', field: 'response_format',
    format: {
      type: 'json_schema',
      json_schema: { name: 'result', schema: CLOSED, strict: true },
    },
    tools: ['read_file'], choice: ['tool_choice', 'none'],
  },
  {
    what: 'a server that does not', adapter: openAiChatAdapter({ resultFormat: false }),
    model: 'gpt-5.2', field: 'response_format', format: undefined, tools: forced,
    choice: ['tool_choice', { type: 'function', function: { name: 'give_result' } }],
  },
  {
    what: 'Responses', adapter: openAiResponsesAdapter(), model: 'gpt-5.2', field: 'text',
    format: { format: { type: 'json_schema', name: 'result', schema: CLOSED, strict: true } },
    tools: ['read_file'], choice: ['tool_choice', 'none'],
  },
  {
    what: 'Responses', adapter: openAiResponsesAdapter(), model: 'gpt-4-turbo', field: 'text',
    format: undefined, tools: forced,
    choice: ['tool_choice', { type: 'function', name: 'give_result' }],
  },
  ...['claude-sonnet-4-5', 'claude-opus-4-1-20250805', 'claude-haiku-5-5', 'claude-opus-5-5'].map(
    (model): Row => ({
      what: 'Anthropic', adapter: anthropicAdapter(), model, field: 'output_config',
      format: {
        format: {
          type: 'json_schema',
          schema: {
            ...CLOSED,
            properties: {
              total: { type: 'number', description: 'Must also satisfy: minimum 0' },
              currency: { type: 'string' },
            },
          },
        },
      },
      tools: ['read_file'], choice: ['tool_choice', { type: 'none' }],
    }),
  ),
  ...['claude-3-7-sonnet-latest', 'claude-sonnet-4-20250514', 'claude-opus-4-20250514'].map(
    (model): Row => ({
      what: 'Anthropic', adapter: anthropicAdapter(), model, field: 'output_config',
      format: undefined, tools: forced,
      choice: ['tool_choice', { type: 'tool', name: 'give_result' }],
    }),
  ),
  ...['gemini-2.5-flash', 'gemini-3.5-pro', 'gemini-flash-latest'].map((model): Row => ({
    what: 'Gemini', adapter: geminiAdapter(), model, field: 'generationConfig',
    format: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA },
    tools: [], choice: ['toolConfig', undefined],
  })),
  {
    what: 'Gemini', adapter: geminiAdapter(), model: 'gemini-1.5-pro', field: 'generationConfig',
    format: undefined, tools: forced,
    choice: [
      'toolConfig',
      { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['give_result'] } },
    ],
  },
]

for (const { what, adapter, model, field, format, tools, choice } of rows)
  test(`${what} ${format === undefined ? 'forces a call of' : 'holds'} ${model}`, () => {
    const { body, isHeld } = adapter.encode(asking(others), { model, stream: true })
    assert.deepEqual(body[field], format)
    assert.equal(isHeld === true, format !== undefined)
    assert.deepEqual(names(body), tools)
    assert.deepEqual(body[choice[0]], choice[1])
    const ordinary = adapter.encode(modelRequest({ tools: others }), { model, stream: true })
    assert.equal(ordinary.body[field], undefined, 'ordinary turns have no format')
    assert.equal(ordinary.isHeld, undefined)
  })

test('the format stands beside what the host and the run have set in its field', () => {
  const cases: readonly (readonly [ModelAdapter, string, string, JsonObject])[] = [
    [openAiResponsesAdapter(), 'gpt-5.2', 'text', { verbosity: 'low' }],
    [anthropicAdapter(), 'claude-opus-5-5', 'output_config', { effort: 'low' }],
    [geminiAdapter(), 'gemini-3.5-pro', 'generationConfig', { topK: 3 }],
  ]
  for (const [adapter, model, field, own] of cases) {
    const extraBody = { [field]: own }
    const { body } = adapter.encode(asking(), { model, stream: true, extraBody })
    const sent = body[field] as JsonObject
    for (const [name, value] of Object.entries(own)) assert.deepEqual(sent[name], value)
    assert.ok(Object.keys(sent).length > Object.keys(own).length)
  }
  const { body } = anthropicAdapter().encode(asking(), {
    model: 'claude-opus-5-5', stream: true, reasoningEffort: 'high',
  })
  assert.equal((body['output_config'] as JsonObject)['effort'], 'high')
  assert.ok('format' in (body['output_config'] as JsonObject))
})

const refusing = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-fable-5', 'claude-mythos-5-2']
const forcing = ['claude-opus-5', 'claude-sonnet-5', 'claude-haiku-5-5', 'claude-opus-4-8']
for (const model of [...refusing, ...forcing])
  test(`calls of ${model} are ${refusing.includes(model) ? 'asked for' : 'forced'}`, () => {
    const given = modelRequest({
      tools: [...others, tool('verdict')], toolChoice: { tool: 'verdict' },
    })
    const { body } = anthropicAdapter().encode(given, { model, stream: true })
    if (forcing.includes(model)) {
      assert.deepEqual(body['tool_choice'], { type: 'tool', name: 'verdict' })
      return
    }
    assert.deepEqual(body['tool_choice'], { type: 'auto' })
    assert.deepEqual(names(body), ['verdict'], 'there is no other tool to call')
    const required = { ...given, toolChoice: 'required' as const }
    const any = anthropicAdapter().encode(required, { model, stream: true }).body
    assert.deepEqual(any['tool_choice'], { type: 'auto' })
    assert.deepEqual(names(any), ['read_file', 'verdict'])
  })

const unfit: readonly (readonly [string, JsonObject])[] = [
  ['fields of any name', { type: 'object', additionalProperties: { type: 'string' } }],
  ['no named fields', { type: 'object' }],
  ['conditions', { ...SCHEMA, if: { required: ['total'] }, then: {} }],
  ['parts that are joined', { ...SCHEMA, allOf: [{ required: ['total'] }] }],
  ['patterns of names', { ...SCHEMA, patternProperties: { '^x': true } }],
  ['anything as a field', { ...SCHEMA, properties: { total: {} } }],
  [
    'a part that leads to itself',
    {
      type: 'object',
      properties: { next: { $ref: '#/$defs/node' } },
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    },
  ],
  ['a reference to the whole', { type: 'object', properties: { next: { $ref: '#' } } }],
  [
    'too many fields that may be missing',
    {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 25 }, (_, i) => [`f${i}`, { type: 'string' }]),
      ),
    },
  ],
  [
    'too many unions',
    {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 17 }, (_, i) => [`f${i}`, { type: ['string', 'null'] }]),
      ),
      required: Array.from({ length: 17 }, (_, i) => `f${i}`),
    },
  ],
  ['objects as values', { ...SCHEMA, properties: { total: { enum: [{ a: 1 }] } } }],
]
for (const [what, schema] of unfit)
  test(`Anthropic gets a tool for a schema with ${what}`, () => {
    assert.equal(anthropicFormat(schema, 'claude-sonnet-4-5'), null)
    const given = asking(others, schema as JsonSchema)
    const { body } = anthropicAdapter().encode(given, { model: 'claude-sonnet-4-5', stream: true })
    assert.deepEqual(body['tool_choice'], { type: 'tool', name: 'give_result' })
  })

test('what Anthropic is sent accepts every result that has the named fields only', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      lines: {
        type: 'array', minItems: 2, maxItems: 4,
        items: {
          type: 'object',
          properties: { sku: { type: 'string', pattern: '^[A-Z]+$' }, n: { type: 'integer' } },
          required: ['sku'],
        },
      },
      paid: { oneOf: [{ type: 'boolean' }, { type: 'null' }] },
      due: { type: 'string', format: 'date', examples: ['2026-01-01'] },
      kind: { enum: ['a', 'b'] },
      from: { $ref: '#/$defs/party' },
      to: { $ref: '#/$defs/party' },
    },
    required: ['lines'],
    $defs: { party: { type: 'object', properties: { name: { type: 'string' } } } },
  }
  const sent = anthropicFormat(schema, 'claude-sonnet-4-5')?.['schema'] as JsonSchema
  const party = { name: 'x' }
  const valid = {
    lines: [{ sku: 'AB', n: 1 }, { sku: 'C' }], paid: null, due: '2026-01-01', kind: 'a',
    from: party, to: party,
  }
  assert.deepEqual(checkSchema(schema as JsonSchema, valid), [])
  assert.deepEqual(checkSchema(sent, valid), [])
  const text = JSON.stringify(sent)
  for (const keyword of ['"pattern"', '"maxItems"', '"oneOf"', '"examples"'])
    assert.ok(!text.includes(`${keyword}:`), keyword)
  assert.match(text, /Must also satisfy: pattern/)
  assert.equal(text.split('"additionalProperties":false').length, 4)
})

/** The events of a stream that has these pieces of text, or of the arguments of one call. */
const sse = (events: readonly unknown[]): string =>
  events.map((data) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`).join('')
const pieces = [TEXT.slice(0, 5), TEXT.slice(5, 9), TEXT.slice(9)]
const call = { name: 'give_result', id: 'call_123456789' }

const answers: readonly (readonly [string, ModelAdapter, string])[] = [
  [
    'a text of Chat Completions', openAiChatAdapter(), sse([
      ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content } }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      '[DONE]',
    ]),
  ],
  [
    'a call of Chat Completions', openAiChatAdapter(), sse([
      ...pieces.map((piece, i) => ({
        choices: [{
          index: 0,
          delta: {
            tool_calls: [{
              index: 0,
              ...(i === 0 && { id: call.id, type: 'function' }),
              function: { ...(i === 0 && { name: call.name }), arguments: piece },
            }],
          },
        }],
      })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      '[DONE]',
    ]),
  ],
  [
    'a text of Responses', openAiResponsesAdapter(), sse([
      ...pieces.map((delta) => ({ type: 'response.output_text.delta', delta })),
      {
        type: 'response.completed',
        response: {
          status: 'completed',
          output: [{ type: 'message', content: [{ type: 'output_text', text: TEXT }] }],
        },
      },
    ]),
  ],
  [
    'a text of Anthropic', anthropicAdapter(), sse([
      { type: 'message_start', message: { content: [], usage: { input_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...pieces.map((text) => ({
        type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ]),
  ],
  [
    'a call of Anthropic', anthropicAdapter(), sse([
      { type: 'message_start', message: { content: [], usage: { input_tokens: 1 } } },
      {
        type: 'content_block_start', index: 0,
        content_block: { type: 'tool_use', ...call, input: {} },
      },
      ...pieces.map((partial_json) => ({
        type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ]),
  ],
  [
    'a text of Gemini', geminiAdapter(), sse(
      pieces.map((text, i) => ({
        candidates: [{
          content: { role: 'model', parts: [{ text }] },
          ...(i === pieces.length - 1 && { finishReason: 'STOP' }),
        }],
      })),
    ),
  ],
  [
    'a call of Gemini', geminiAdapter(), sse([{
      candidates: [{
        content: { parts: [{ functionCall: { name: call.name, args: RESULT } }] },
        finishReason: 'STOP',
      }],
    }]),
  ],
]

for (const [what, adapter, text] of answers)
  test(`a result is read from ${what}, however it is cut`, () => {
    const request = asking(others)
    const random = seeded(7)
    const pieced = Array.from({ length: 20 }, () => randomPieces(text, random))
    const ways = [...cutsInTwo(text), ...pieced]
    for (const way of ways) {
      const { turn } = decodePieces(adapter.decodeStream(request, context), way)
      const plain = { value: <T>(value: T): T => value }
      assert.deepEqual(readResult(turn.message, SCHEMA, plain), { result: RESULT, problem: null })
    }
  })

/** A model whose provider answers each request with the next of these. */
function modelThat(
  answers: readonly { readonly status: number; readonly body: JsonObject }[],
  sent: JsonObject[],
): HttpModel {
  const transport = new MockTransport((request: Request) => {
    sent.push(JSON.parse(request.content.toString()) as JsonObject)
    const { status, body } = answers[sent.length - 1]!
    return new AsyncResponse(status, { json: body })
  })
  return new HttpModel(anthropicAdapter(), {
    model: 'claude-sonnet-4-5', transport, stream: false, apiKey: 'k',
  })
}

const tooLarge = {
  status: 400,
  body: {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'The compiled grammar is too large.' },
  },
}
const given = {
  status: 200,
  body: {
    type: 'message',
    content: [{ type: 'tool_use', ...call, input: RESULT }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
}

test('a schema that the provider finds too large is sent once more, as a tool', async (t) => {
  const sent: JsonObject[] = []
  const model = modelThat([tooLarge, given], sent)
  t.after(() => model.close())
  const turn = await model.complete(asking())
  assert.deepEqual(turn.message.calls[0]?.args, RESULT)
  assert.ok('output_config' in sent[0]!)
  assert.ok(!('output_config' in sent[1]!))
  assert.deepEqual(sent[1]!['tool_choice'], { type: 'tool', name: 'give_result' })
})

test('an ordinary request that is refused is not sent again', async (t) => {
  const sent: JsonObject[] = []
  const model = modelThat([tooLarge, given], sent)
  t.after(() => model.close())
  await assert.rejects(model.complete(modelRequest()), /too large/)
  assert.equal(sent.length, 1)
})
