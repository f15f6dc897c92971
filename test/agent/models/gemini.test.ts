import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  geminiAdapter,
  HttpModel,
  ModelError,
  type JsonObject,
  type ModelRequest,
  type ToolSpec,
} from 'runwright/agent'
import {
  decodeGeminiResponse,
  encodeGeminiRequest,
} from '../../../lib/agent/models/gemini/adapter.js'
import { GeminiStream } from '../../../lib/agent/models/gemini/stream.js'
import { serve } from '../../helpers/serve.js'
import {
  afterCalls,
  context,
  cutsInTwo,
  decodeEvents,
  decodePieces,
  modelRequest,
  prefixes,
  randomPieces,
  recording,
  seeded,
  tool,
} from './exchange.js'

const recorded = recording('gemini-function-call')

test('the request matches its recording, except for optional fields', () => {
  const { generationConfig: _, ...body } = recorded.request.body
  const [{ functionDeclarations }] = body['tools'] as unknown as [
    { functionDeclarations: JsonObject[] },
  ]
  const tools = functionDeclarations.map(({ name, description, parameters_json_schema }) => ({
    name: String(name),
    description: String(description),
    parameters: parameters_json_schema as ToolSpec['parameters'],
  }))
  const request = modelRequest({
    messages: [{ role: 'user', text: "What's the weather in Paris?" }],
    tools,
  })
  const wire = encodeGeminiRequest(request, { model: 'gemini-2.5-flash', stream: false })
  // The API accepts both spellings of its field names.
  const sent = JSON.parse(
    JSON.stringify(wire.body).replaceAll('parametersJsonSchema', 'parameters_json_schema'),
  ) as unknown
  assert.deepEqual(sent, body)
  assert.equal(wire.path, recorded.request.path)
})

test('a recorded call with finish reason STOP is a call and gets an id', () => {
  const turn = decodeGeminiResponse(recorded.response.body, modelRequest(), context)
  assert.deepEqual(turn.message.calls, [
    { call_id: 'call_1_0_1', tool: 'get_weather', args: { city: 'Paris' } },
  ])
  assert.equal(turn.stop, 'tool_calls')
  assert.deepEqual(turn.usage, {
    input_tokens: 49,
    output_tokens: 63,
    cached_tokens: 0,
    reasoning_tokens: 48,
  })
})

test('a signature is sent back on its own part, and a result by name and position', () => {
  const turn = decodeGeminiResponse(recorded.response.body, modelRequest(), context)
  const messages = [
    ...afterCalls(turn, [{ output: 'Rain' }]),
    { role: 'user' as const, text: 'And?' },
  ]
  const wire = encodeGeminiRequest(modelRequest({ messages }), {
    model: 'gemini-2.5-flash',
    stream: true,
  })
  assert.deepEqual(wire.body['contents'], [
    { role: 'user', parts: [{ text: 'Go.' }] },
    {
      role: 'model',
      parts: [
        {
          functionCall: { args: { city: 'Paris' }, name: 'get_weather' },
          thoughtSignature: 'U0NSVUJCRUQ0001',
        },
      ],
    },
    {
      role: 'user',
      parts: [{ functionResponse: { name: 'get_weather', response: { output: 'Rain' } } }],
    },
    { role: 'user', parts: [{ text: 'And?' }] },
  ])
  assert.deepEqual(
    [wire.path, wire.params],
    ['/v1beta/models/gemini-2.5-flash:streamGenerateContent', { alt: 'sse' }],
  )
})

const chunk = (parts: unknown[], candidate: object = {}, more: object = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, ...candidate }],
  ...more,
})
const functionCall = (name: string, args: unknown = {}, id?: string) => ({
  functionCall: { name, args, ...(id !== undefined && { id }) },
})
const decodeStream = (events: readonly unknown[]) =>
  decodeEvents(new GeminiStream(modelRequest(), context), events)
const decode = (body: unknown) => decodeGeminiResponse(body, modelRequest(), context)

/** A stream with thoughts and two calls, as the service sends it: CRLF, counts in each chunk. */
const STREAM = [
  chunk(
    [{ text: 'Let me ', thought: true }],
    {},
    { usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 } },
  ),
  chunk([{ text: 'see…', thought: true }]),
  chunk(
    [{ text: 'Looking ' }],
    {},
    {
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 2,
        thoughtsTokenCount: 5,
        totalTokenCount: 17,
      },
    },
  ),
  chunk([{ text: 'at ‘a’ and ‘b’.' }, { text: '', thoughtSignature: 'U0NS1' }]),
  chunk([
    { ...functionCall('read_file', { path: 'a' }), thoughtSignature: 'U0NS2' },
    functionCall('read_file', { path: 'b' }),
  ]),
  chunk(
    [],
    { finishReason: 'STOP' },
    {
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 9,
        thoughtsTokenCount: 5,
        cachedContentTokenCount: 4,
        totalTokenCount: 24,
      },
    },
  ),
]
const STREAM_TEXT = STREAM.map((value) => `data: ${JSON.stringify(value)}\r\n\r\n`).join('')

test('a stream gives the same turn wherever it is split', () => {
  const pieces = (list: Iterable<Uint8Array>) =>
    decodePieces(new GeminiStream(modelRequest(), context), list)
  const whole = pieces([Buffer.from(STREAM_TEXT)])
  assert.equal(whole.turn.message.text, 'Looking at ‘a’ and ‘b’.')
  assert.equal(whole.visible, whole.turn.message.text)
  assert.equal(whole.turn.reasoning, 'Let me see…')
  assert.deepEqual(
    whole.turn.message.calls.map(({ args }) => args),
    [{ path: 'a' }, { path: 'b' }],
  )
  assert.deepEqual(whole.turn.usage, {
    input_tokens: 10,
    output_tokens: 14,
    cached_tokens: 4,
    reasoning_tokens: 5,
  })
  for (const list of cutsInTwo(STREAM_TEXT)) assert.deepEqual(pieces(list), whole)
  const random = seeded(4)
  for (let i = 0; i < 100; i++) assert.deepEqual(pieces(randomPieces(STREAM_TEXT, random)), whole)
  for (const prefix of prefixes(STREAM_TEXT.slice(0, STREAM_TEXT.indexOf('"finishReason"')))) {
    assert.throws(
      () => pieces([prefix]),
      (error) => error instanceof ModelError && error.retryable,
    )
  }
})

test('streamed parts are sent back with their signatures; thought summaries are not', () => {
  const turn = decodeStream(STREAM)
  const messages = afterCalls(turn, [{ output: 'A' }, { output: 'gone', exit_code: 1 }])
  const { body } = encodeGeminiRequest(modelRequest({ messages }), {
    model: 'gemini-3.5-flash',
    stream: true,
  })
  assert.deepEqual((body['contents'] as JsonObject[]).slice(1), [
    {
      role: 'model',
      parts: [
        { text: 'Looking at ‘a’ and ‘b’.' },
        { text: '', thoughtSignature: 'U0NS1' },
        { ...functionCall('read_file', { path: 'a' }), thoughtSignature: 'U0NS2' },
        functionCall('read_file', { path: 'b' }),
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { name: 'read_file', response: { output: 'A' } } },
        { functionResponse: { name: 'read_file', response: { error: 'gone\n[exit code 1]' } } },
      ],
    },
  ])
})

test('the result of a call with an id has that id', () => {
  const turn = decode(
    chunk([functionCall('bash', { command: 'ls' }, 'fn-1')], { finishReason: 'STOP' }),
  )
  assert.equal(turn.message.calls[0]!.call_id, 'call_1_0_1')
  const { body } = encodeGeminiRequest(
    modelRequest({ messages: afterCalls(turn, [{ output: 'a' }]) }),
    { model: 'm', stream: true },
  )
  assert.match(JSON.stringify(body), /"functionResponse":\{"id":"fn-1","name":"bash"/)
})

test('calls of another provider’s model get a placeholder signature, for Gemini 3 only', () => {
  const calls = [
    { call_id: 'c1', tool: 'bash', args: {} },
    { call_id: 'c2', tool: 'bash', args: {} },
  ]
  const messages = [{ role: 'assistant' as const, text: 'Look.', calls }]
  const parts = (model: string) =>
    (
      encodeGeminiRequest(modelRequest({ messages }), { model, stream: true }).body['contents'] as {
        parts: JsonObject[]
      }[]
    )[1]!.parts
  assert.deepEqual(
    parts('gemini-3-pro').map((part) => part['thoughtSignature']),
    [undefined, 'skip_thought_signature_validator', undefined],
  )
  assert.deepEqual(
    parts('gemini-2.5-pro').map((part) => part['thoughtSignature']),
    [undefined, undefined, undefined],
  )
})

test('calls of an answer that was cut off carry an error', () => {
  const turn = decode({
    ...chunk([functionCall('write_file', { path: 'a' })], { finishReason: 'MAX_TOKENS' }),
    usageMetadata: { candidatesTokenCount: 8_192 },
  })
  assert.equal(turn.stop, 'length')
  assert.match(turn.message.calls[0]!.error ?? '', /cut off after 8192 tokens/)
})

for (const { title, body } of [
  {
    title: 'MALFORMED_FUNCTION_CALL without a call',
    body: chunk([], {
      finishReason: 'MALFORMED_FUNCTION_CALL',
      finishMessage: 'Malformed function call: print(x)',
    }),
  },
  {
    title: 'MALFORMED_FUNCTION_CALL with a call',
    body: chunk([functionCall('bash')], {
      finishReason: 'MALFORMED_FUNCTION_CALL',
      finishMessage: 'print(x)',
    }),
  },
  {
    title: 'UNEXPECTED_TOOL_CALL without a call',
    body: { candidates: [{ finishReason: 'UNEXPECTED_TOOL_CALL', finishMessage: 'print(x)' }] },
  },
]) {
  test(`${title} is the model’s mistake, with the provider’s message`, () => {
    assert.throws(
      () => decode(body),
      (error) =>
        error instanceof ModelError &&
        error.modelMistake &&
        !error.retryable &&
        error.message.includes('print(x)'),
    )
  })
}

test('a call of an undeclared tool is a call', () => {
  const turn = decode(chunk([functionCall('fly')], { finishReason: 'UNEXPECTED_TOOL_CALL' }))
  assert.equal(turn.message.calls[0]!.tool, 'fly')
})

for (const { title, body, text } of [
  {
    title: 'a blocked prompt',
    body: {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount: 3 },
    },
    text: '(the prompt was refused: PROHIBITED_CONTENT)',
  },
  { title: 'a blocked answer', body: chunk([], { finishReason: 'SAFETY' }), text: '' },
]) {
  test(`${title} was filtered`, () => {
    assert.deepEqual([decode(body).stop, decode(body).message.text], ['content_filter', text])
    assert.equal(decodeStream([body]).stop, 'content_filter')
  })
}

test('an answer without candidates is retryable', () => {
  assert.throws(() => decode({ usageMetadata: {} }), {
    code: 'ERR_AGENT_MODEL_PROTOCOL',
    retryable: true,
  })
})

test('an error inside a stream or a 200 response is thrown', () => {
  const error = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }
  for (const run of [
    () => decodeStream([chunk([{ text: 'a' }]), error]),
    () => decode(error),
    () => decode([error]),
  ]) {
    assert.throws(run, { retryable: true, statusCode: 503 })
  }
})

test('schemas keep what Gemini accepts; a tool without arguments has no schema', () => {
  const rich: ToolSpec = {
    name: 'bash',
    description: 'Runs.',
    parameters: {
      type: 'object',
      properties: {
        command: {
          type: 'string',
          minLength: 1,
          maxLength: 9,
          pattern: '^a',
          default: 'ls',
          examples: ['ls'],
        },
        when: { type: 'string', format: 'date-time' },
        where: { type: 'string', format: 'uri' },
        kind: { const: 'x' },
        list: {
          type: 'array',
          items: { type: 'integer', minimum: 1, maxProperties: 3 },
          minItems: 1,
        },
        either: { anyOf: [{ type: 'string', pattern: 'x' }, { type: 'null' }] },
      },
      required: ['command'],
      additionalProperties: false,
    },
  }
  const bare: ToolSpec = {
    name: 'now',
    description: 'Tells the time.',
    parameters: { type: 'object', properties: {} },
  }
  const { body } = encodeGeminiRequest(modelRequest({ tools: [rich, bare] }), {
    model: 'm',
    stream: true,
  })
  assert.deepEqual(body['tools'], [
    {
      functionDeclarations: [
        {
          name: 'bash',
          description: 'Runs.',
          parametersJsonSchema: {
            type: 'object',
            properties: {
              command: {
                type: 'string',
                description: 'Must also satisfy: minLength 1; maxLength 9; pattern "^a"',
              },
              when: { type: 'string', format: 'date-time' },
              where: { type: 'string' },
              kind: { enum: ['x'] },
              list: {
                type: 'array',
                items: { type: 'integer', minimum: 1, description: 'Must also satisfy: maxProperties 3' },
                minItems: 1,
              },
              either: {
                anyOf: [
                  { type: 'string', description: 'Must also satisfy: pattern "x"' },
                  { type: 'null' },
                ],
              },
            },
            required: ['command'],
            additionalProperties: false,
          },
        },
        { name: 'now', description: 'Tells the time.' },
      ],
    },
  ])
})

test('options become a generation configuration', () => {
  const options = {
    model: 'gemini-2.5-flash',
    stream: true,
    maxOutputTokens: 9,
    temperature: 0,
    includeThoughts: true,
    thinkingBudget: 100,
    reasoningEffort: 'low',
  }
  assert.deepEqual(encodeGeminiRequest(modelRequest({ system: 'Be good.' }), options).body, {
    systemInstruction: { parts: [{ text: 'Be good.' }] },
    contents: [{ role: 'user', parts: [{ text: 'Go.' }] }],
    generationConfig: {
      maxOutputTokens: 9,
      temperature: 0,
      thinkingConfig: { includeThoughts: true, thinkingBudget: 100, thinkingLevel: 'low' },
    },
  })
})

test('over HTTP the key is sent in a header, not in the URL', async () => {
  let seen: { url: string; key: unknown } | undefined
  await using served = await serve((request, response) => {
    seen = { url: request.url ?? '', key: request.headers['x-goog-api-key'] }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(STREAM_TEXT)
  })
  await using model = new HttpModel(geminiAdapter(), {
    model: 'gemini-2.5-flash',
    apiKey: 'g-key',
    baseUrl: served.origin,
  })
  const turn = await model.complete(
    modelRequest({ tools: [tool('read_file')] }) satisfies ModelRequest,
  )
  assert.equal(turn.message.calls.length, 2)
  assert.deepEqual(seen, {
    url: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    key: 'g-key',
  })
})
