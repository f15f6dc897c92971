/** What a provider is sent: what it said before, images, the form of a result. */
import assert from 'node:assert/strict'
import type { ImagePart, JsonObject, JsonValue, Message, ModelRequest } from 'runwright/agent'
import { deepFreeze } from '../../../../lib/internal/deep-freeze.js'
import { imagePart } from '../../../../lib/agent/images.js'
import { jpeg, png } from '../../../helpers/images.js'
import { afterCalls, modelRequest, tool } from '../exchange.js'
import { DIALECTS, list, object, sse, whole, type Dialect } from './dialects.js'
import {
  corner, RESULT_SCHEMA, run, withModel, type Corner, type How, type Reply, type Row,
} from './table.js'

type Rows<R extends Row> = Readonly<Record<Dialect, readonly R[]>>

const inAllFormats = <R extends Row>(rows: (dialect: Dialect) => readonly R[]): Rows<R> =>
  Object.fromEntries(DIALECTS.map((one) => [one, rows(one)])) as unknown as Rows<R>

const READ = tool('read')
const parsed = (body: string | undefined): JsonObject => JSON.parse(body ?? '') as JsonObject

/** Calls the model once for each answer but the last, with results, and returns the last request. */
async function converse(how: How, replies: readonly Reply[], model = 'm'): Promise<JsonObject> {
  return await withModel(how, replies, model, async (call, server) => {
    let messages: readonly Message[] = [{ role: 'user', text: 'Go.' }]
    for (let turn = 0; turn < replies.length; turn++) {
      const run = { run_id: 'r', iteration: 1, turn, goal: 'g', check: null, cwd: '/w' }
      const outcome = await call(modelRequest({ messages, tools: [READ], run }))
      assert.equal(outcome.error, null)
      const results = outcome.turn!.message.calls.map(() => ({ output: 'x' }))
      messages = [...messages, ...afterCalls(outcome.turn!, results).slice(1)]
    }
    return parsed(server.requests.at(-1))
  })
}

interface Echoed extends Row {
  readonly whole: JsonObject
  readonly model?: string
  /** The part of the next request that holds the answer, without what is not the provider's. */
  readonly back: (body: JsonObject) => unknown
  readonly expected: unknown
}

async function isEchoed(row: Echoed, how: How): Promise<unknown> {
  const end = whole(how.dialect, { text: 'Done.' })
  const body = await converse(how, [{ whole: row.whole }, { whole: end }], row.model)
  assert.deepEqual(row.back(body), row.expected)
  return body
}

const ID = 'call_aaaaaaaaa1'
const NEXT = { id: ID, name: 'read', args: { path: 'a' } }
/** An answer of Chat Completions with a call, and further fields of its message. */
const chatSays = (fields: JsonObject, ofCall: JsonObject = {}): JsonObject => {
  const said = whole('openai-chat', { calls: [NEXT] })
  const choice = list(said['choices'])[0]!
  const message = object(choice['message'])
  const tool_calls = list(message['tool_calls']).map((call) => ({ ...call, ...ofCall }))
  return { ...said, choices: [{ ...choice, message: { ...message, ...fields, tool_calls } }] }
}
const FIELDS = ['reasoning', 'reasoning_content', 'reasoning_details', 'thinking_blocks']
const chatEchoes = (title: string, fields: JsonObject, expected = fields): Echoed => ({
  title, whole: chatSays(fields), expected,
  back: ({ messages }) => {
    const sent = Object.entries(list(messages)[1]!)
    return Object.fromEntries(sent.filter(([name]) => FIELDS.includes(name)))
  },
})
const DETAILS = [{ type: 'reasoning.encrypted', data: 'c2ln', id: 'rs_1', index: 0 }]
const BLOCKS = [{ type: 'thinking', thinking: 'Hm, so.', signature: 'c2ln' }]
const SIGNED = { google: { thought_signature: 'c2ln' } }

const RESPONSES_ITEMS: readonly JsonObject[] = [
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2ln' },
  {
    type: 'function_call', id: 'fc_1', call_id: ID, name: 'read', arguments: '{"path":"a"}',
    status: 'completed',
  },
]
const ANTHROPIC_BLOCKS: readonly JsonObject[] = [
  { type: 'thinking', thinking: 'Hm, so.', signature: 'c2lnbmVk' },
  { type: 'redacted_thinking', data: 'b3BhcXVl' },
  { type: 'text', text: 'I look.' },
  { type: 'tool_use', id: ID, name: 'read', input: { path: 'a' } },
]
const GEMINI_PARTS: readonly JsonObject[] = [
  { text: 'I look.', thoughtSignature: 'dGV4dA==' },
  { functionCall: { name: 'read', args: { path: 'a' } }, thoughtSignature: 'Y2FsbA==' },
]

/** Two texts, of which a stream makes several parts, are one again. */
const joined = (parts: readonly JsonObject[]): unknown => {
  const texts = parts.filter(({ text }) => text !== undefined)
  return [
    texts.map(({ text }) => String(text)).join(''),
    texts.at(-1)?.['thoughtSignature'],
    ...parts.filter(({ text }) => text === undefined),
  ]
}

const ECHOED: Rows<Echoed> = {
  'openai-chat': [
    chatEchoes('vLLM: reasoning', { reasoning: 'Hm, so.' }),
    chatEchoes('DeepSeek: reasoning_content', { reasoning_content: 'Hm, so.' }),
    chatEchoes(
      'OpenRouter: its details alone', { reasoning: 'Hm, so.', reasoning_details: DETAILS },
      { reasoning_details: DETAILS },
    ),
    chatEchoes('LiteLLM: blocks of Claude', { thinking_blocks: BLOCKS }),
    {
      title: 'Google: the signature of a call',
      whole: chatSays({}, { extra_content: SIGNED }), expected: SIGNED,
      back: ({ messages }) => list(list(messages)[1]!['tool_calls'])[0]!['extra_content'],
    },
    {
      title: 'no text of reasoning without a call', expected: ['role', 'content'],
      whole: {
        choices: [{
          index: 0, finish_reason: 'stop',
          message: { role: 'assistant', content: 'I look.', reasoning: 'Hm.' },
        }],
      },
      back: ({ messages }) => Object.keys(list(messages)[1]!),
    },
  ],
  'openai-responses': [{
    title: 'encrypted reasoning before its call', model: 'gpt-5', expected: RESPONSES_ITEMS,
    whole: { status: 'completed', output: RESPONSES_ITEMS, usage: { input_tokens: 1 } },
    back: ({ input }) => list(input).slice(1, 3),
  }],
  anthropic: [{
    title: 'thinking, also redacted, with its signature', expected: ANTHROPIC_BLOCKS,
    whole: { type: 'message', role: 'assistant', content: ANTHROPIC_BLOCKS, stop_reason: 'tool_use' },
    back: ({ messages }) => list(list(messages)[1]!['content']),
  }],
  gemini: [{
    title: 'signatures on their parts, without summaries', expected: joined(GEMINI_PARTS),
    whole: {
      candidates: [{
        finishReason: 'STOP',
        content: { role: 'model', parts: [{ text: 'Hm, so.', thought: true }, ...GEMINI_PARTS] },
      }],
    },
    back: ({ contents }) => joined(list(list(contents)[1]!['parts'])),
  }],
}

/** The ids of calls and of results in a request. */
const IDS: Readonly<Record<Dialect, (body: JsonObject) => readonly [JsonValue[], JsonValue[]]>> = {
  'openai-chat': ({ messages }) => [
    list(messages).flatMap(({ tool_calls }) => list(tool_calls).map(({ id }) => id!)),
    list(messages).flatMap(({ tool_call_id }) => tool_call_id ?? []),
  ],
  'openai-responses': ({ input }) => {
    const of = (type: string): JsonValue[] =>
      list(input).flatMap((item) => (item['type'] === type ? item['call_id']! : []))
    return [of('function_call'), of('function_call_output')]
  },
  anthropic: ({ messages }) => {
    const blocks = list(messages).flatMap(({ content }) => list(content))
    return [
      blocks.flatMap(({ type, id }) => (type === 'tool_use' ? id! : [])),
      blocks.flatMap(({ tool_use_id }) => tool_use_id ?? []),
    ]
  },
  gemini: ({ contents }) => {
    const parts = list(contents).flatMap((one) => list(one['parts']))
    const of = (field: string): JsonValue[] =>
      parts.flatMap((part) => (part[field] === undefined ? [] : (object(part[field])['id'] ?? '')))
    return [of('functionCall'), of('functionResponse')]
  },
}

interface Repeated extends Row {
  readonly replies: readonly Reply[]
  readonly calls: number
  /** The ids that are sent, where each is the provider's own. */
  readonly ids?: readonly string[]
}

async function isUnique({ replies, calls, ids }: Repeated, how: How): Promise<unknown> {
  const body = await converse(how, [...replies, { whole: whole(how.dialect, { text: 'Done.' }) }])
  const [ofCalls, ofResults] = IDS[how.dialect](body)
  assert.equal(ofCalls.length, calls)
  assert.deepEqual(ofResults, ofCalls)
  if (ids !== undefined) assert.deepEqual(ofCalls, ids)
  else assert.equal(new Set(ofCalls).size, calls, ofCalls.join(' '))
  return body
}

const callsOf = (dialect: Dialect, ids: readonly string[]): Reply => ({
  whole: whole(dialect, {
    calls: ids.map((id, i) => ({ id, name: 'read', args: { path: `${i}` } })),
  }),
})
const repeated = (dialect: Dialect): readonly Repeated[] => [
  {
    title: 'Bedrock behind a gateway: call_0 in each turn', calls: 5,
    replies: [['call_0', 'call_1'], ['call_0'], ['call_0', 'call_1']].map((ids) =>
      callsOf(dialect, ids)),
  },
  { title: 'two in one turn', calls: 2, replies: [callsOf(dialect, ['call_0', 'call_0'])] },
  {
    title: 'none is repeated', calls: 2, ids: ['call_0', 'call_1'],
    replies: [callsOf(dialect, ['call_0']), callsOf(dialect, ['call_1'])],
  },
]

/** Two calls with one id, whole in one chunk each, without an index or with the same. */
const sameId = (index: object): Reply => ({
  stream: sse([
    ...['a', 'b'].map((path) => ({
      choices: [{
        index: 0,
        delta: {
          tool_calls: [{
            ...index, id: 'call_0', type: 'function',
            function: { name: 'read', arguments: JSON.stringify({ path }) },
          }],
        },
      }],
    })),
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    '[DONE]',
  ]),
})

const REPEATED: Rows<Repeated> = {
  'openai-chat': [
    ...repeated('openai-chat'),
    { title: 'two in a stream without an index', calls: 2, once: true, replies: [sameId({})] },
    {
      title: 'two in a stream with one index', calls: 2, once: true,
      replies: [sameId({ index: 0 })],
    },
  ],
  'openai-responses': repeated('openai-responses'),
  anthropic: repeated('anthropic'),
  gemini: [
    ...repeated('gemini'),
    {
      title: 'none at all', calls: 2, ids: ['', ''],
      replies: [callsOf('gemini', ['']), callsOf('gemini', [''])],
    },
  ],
}

const A = imagePart(png(2, 3, 64, 1))!
const B = imagePart(jpeg())!
const LOOKED: readonly Message[] = [
  { role: 'user', text: 'Look.', images: [A] },
  { role: 'assistant', text: '', calls: [{ call_id: ID, tool: 'read', args: {} }] },
  { role: 'tool', call_id: ID, tool: 'read', output: 'done', exit_code: 0, images: [B] },
]
const url = ({ media_type, data }: ImagePart): JsonValue => `data:${media_type};base64,${data}`

type Seen = readonly [of: (body: JsonObject) => unknown, as: unknown]
/** The images of the message, and of the result. */
const IMAGES: Readonly<Record<Dialect, Seen>> = {
  'openai-chat': [
    ({ messages }) => [0, 3].map((at) => list(list(messages)[at]!['content'])[1]),
    [A, B].map((one) => ({ type: 'image_url', image_url: { url: url(one) } })),
  ],
  'openai-responses': [
    ({ input }) => [list(list(input)[0]!['content'])[1], list(list(input)[2]!['output'])[1]],
    [A, B].map((one) => ({ type: 'input_image', detail: 'auto', image_url: url(one) })),
  ],
  anthropic: [
    ({ messages }) => {
      const [first, , last] = list(messages)
      return [list(first!['content'])[0], list(list(last!['content'])[0]!['content'])[1]]
    },
    [A, B].map(({ media_type, data }) => ({
      type: 'image', source: { type: 'base64', media_type, data },
    })),
  ],
  gemini: [
    ({ contents }) => {
      const [first, , last] = list(contents)
      const response = object(list(last!['parts'])[0]!['functionResponse'])
      return [list(first!['parts'])[0], list(response['parts'])[0]]
    },
    [A, B].map(({ media_type, data }) => ({ inlineData: { mimeType: media_type, data } })),
  ],
}

async function isSeen(_: Row, how: How): Promise<unknown> {
  const reply = { whole: whole(how.dialect, { text: 'I see.' }) }
  const [of, expected] = IMAGES[how.dialect]
  return await withModel(how, [reply], 'gemini-3.5-flash', async (call, server) => {
    const outcome = await call(modelRequest({ messages: LOOKED, tools: [READ] }))
    assert.equal(outcome.turn?.message.text, 'I see.')
    assert.deepEqual(of(parsed(server.requests[0])), expected)
    return outcome
  })
}

async function isFrozen(_: Row, how: How): Promise<unknown> {
  const { dialect } = how
  const says = { whole: whole(dialect, { text: 'Yes.' }) }
  const replies = [callsOf(dialect, ['call_0', 'call_0']), says]
  return await withModel(how, [...replies, ...replies], 'm', async (call, server) => {
    for (const change of [deepFreeze, (request: ModelRequest) => request]) {
      const first = await call(change(modelRequest({ messages: LOOKED, tools: [READ] })))
      const results = first.turn!.message.calls.map(() => ({ output: 'x' }))
      const messages = [...LOOKED, ...afterCalls(first.turn!, results).slice(1)]
      const request = change(modelRequest({ messages, tools: [READ] }))
      const before = JSON.stringify(request)
      assert.equal((await call(request)).turn?.message.text, 'Yes.')
      assert.equal(JSON.stringify(request), before)
    }
    assert.deepEqual(server.requests.slice(2), server.requests.slice(0, 2))
    return server.requests
  })
}

interface Resulting extends Row {
  readonly model: string
  readonly isNative: boolean
  /** Is the format refused at first? */
  readonly isRefused?: boolean
}

/** The field of a request in which a format is asked for its result. */
const FORMATS: Readonly<Record<Dialect, (body: JsonObject) => unknown>> = {
  'openai-chat': (body) => object(object(body['response_format'])['json_schema'])['schema'],
  'openai-responses': (body) => object(object(body['text'])['format'])['schema'],
  anthropic: (body) => object(object(body['output_config'])['format'])['schema'],
  gemini: (body) => object(body['generationConfig'])['responseJsonSchema'],
}

async function givesResult({ model, isNative, isRefused }: Resulting, how: How): Promise<unknown> {
  const { dialect } = how
  const given = [{ id: ID, name: 'give_result', args: { total: 3 } }]
  const isText = isNative && isRefused !== true
  const refusal: Reply = { status: 400, body: { error: { message: 'The grammar is too large.' } } }
  const outcome = await run(how, [{
    model,
    replies: [
      { whole: whole(dialect, { text: 'It is 3.' }) },
      ...(isRefused === true ? [refusal] : []),
      { whole: whole(dialect, isText ? { text: '{"total":3}' } : { calls: given }) },
    ],
  }])
  assert.equal(outcome.status, 'achieved', outcome.message)
  assert.deepEqual(outcome.result, { total: 3 })
  const [worked, asked, again] = outcome.requests[0]!
  assert.equal(FORMATS[dialect](worked!), undefined)
  assert.deepEqual(FORMATS[dialect](asked!), isNative ? RESULT_SCHEMA : undefined)
  const last = again ?? asked!
  const names = JSON.stringify([last['tool_choice'], last['toolConfig']])
  assert.equal(names.includes('give_result'), !isText)
  return outcome
}

const MODELS: Readonly<Record<Dialect, readonly [native: string, other: string]>> = {
  'openai-chat': ['gpt-5.2', 'llama3.3'],
  'openai-responses': ['gpt-5.2', 'gpt-4-turbo'],
  anthropic: ['claude-sonnet-4-5', 'claude-3-7-sonnet-latest'],
  gemini: ['gemini-2.5-flash', 'gemini-1.5-pro'],
}

export const REQUESTS: readonly Corner[] = [
  corner('reasoning that a provider must get back', isEchoed, ECHOED),
  corner('ids that a provider repeats', isUnique, REPEATED),
  corner('images of messages and results', isSeen, inAllFormats(() => [
    { title: 'are where the format has them', once: true },
  ])),
  corner('a result', givesResult, inAllFormats((dialect) => [
    { title: 'in the form that the provider enforces', model: MODELS[dialect][0], isNative: true },
    { title: 'by a call that is forced', model: MODELS[dialect][1], isNative: false },
    {
      title: 'by a call when the form is refused', model: MODELS[dialect][0], isNative: true,
      isRefused: true,
    },
  ])),
  corner('requests that cannot be changed', isFrozen, inAllFormats(() => [
    { title: 'are sent as others are' },
  ])),
]
