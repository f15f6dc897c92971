/** Answers of Gemini's `generateContent`. */
import type { JsonObject } from 'runwright/agent'
import { sse, STREAMS } from './dialects.js'
import type { Exchange, TurnFacts } from './table.js'

const chunk = (parts: readonly object[], candidate: object = {}, usage?: object): JsonObject =>
  ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...candidate }],
    ...(usage !== undefined && { usageMetadata: usage }), modelVersion: 'gemini', responseId: 'x',
  }) as JsonObject
const functionCall = (name: string, args: object = {}, more: object = {}): object => ({
  functionCall: { name, args, ...more },
})
const SIGNED = { thoughtSignature: 'c2ln' }
const STOP = { finishReason: 'STOP' }
/** A stream as the service sends it: with CRLF. */
const stream = (...chunks: readonly JsonObject[]): string => sse(chunks).replaceAll('\n', '\r\n')
const turn = (...parts: readonly object[]): object => ({ role: 'model', parts })
const result = (i: number, name: string, more: object = {}): object => ({
  functionResponse: { ...more, name, response: { output: `result ${i}` } },
})
const results = (...parts: readonly object[]): object => ({ role: 'user', parts })

/** A stream with thoughts and two calls, and with counts in each chunk. */
const THOUGHTFUL = [
  chunk([{ text: 'Let me ', thought: true }], {}, { promptTokenCount: 10, totalTokenCount: 10 }),
  chunk([{ text: 'see…', thought: true }]),
  chunk([{ text: 'Looking ' }], {}, {
    promptTokenCount: 10, candidatesTokenCount: 2, thoughtsTokenCount: 5, totalTokenCount: 17,
  }),
  chunk([{ text: 'at ‘a’ and ‘b’.' }, { text: '', thoughtSignature: 'U0NS1' }]),
  chunk([
    { ...functionCall('read_file', { path: 'a' }), thoughtSignature: 'U0NS2' },
    functionCall('read_file', { path: 'b' }),
  ]),
  chunk([], STOP, {
    promptTokenCount: 10, candidatesTokenCount: 9, thoughtsTokenCount: 5,
    cachedContentTokenCount: 4, totalTokenCount: 24,
  }),
]
/** The text and the call have signatures, the thoughts have none. */
const SIGNED_PARTS = chunk([
  { text: 'Hm, so.', thought: true }, { text: 'I look.', thoughtSignature: 'dGV4dA==' },
  { ...functionCall('read', { path: 'a' }), thoughtSignature: 'Y2FsbA==' },
], STOP)

const PARTS: readonly Exchange[] = [
  {
    title: 'thoughts, text and calls; thought summaries are not sent back',
    stream: stream(...THOUGHTFUL),
    gives: {
      text: 'Looking at ‘a’ and ‘b’.', reasoning: 'Let me see…',
      calls: [['read_file', { path: 'a' }], ['read_file', { path: 'b' }]], usage: [10, 14, 4, 5],
    },
    back: [
      turn(
        { text: 'Looking at ‘a’ and ‘b’.' }, { text: '', thoughtSignature: 'U0NS1' },
        { ...functionCall('read_file', { path: 'a' }), thoughtSignature: 'U0NS2' },
        functionCall('read_file', { path: 'b' }),
      ),
      results(result(0, 'read_file'), result(1, 'read_file')),
    ],
  },
  {
    title: 'signatures are sent back on their parts',
    body: SIGNED_PARTS,
    gives: { text: 'I look.', reasoning: 'Hm, so.' },
    back: [
      turn(
        { text: 'I look.', thoughtSignature: 'dGV4dA==' },
        { ...functionCall('read', { path: 'a' }), thoughtSignature: 'Y2FsbA==' },
      ),
    ],
  },
  {
    title: 'signatures are sent back on their parts, where a text came in pieces',
    stream: STREAMS.gemini(SIGNED_PARTS),
    gives: { text: 'I look.', reasoning: 'Hm, so.' },
    back: [
      turn(
        { text: 'I look' }, { text: '.', thoughtSignature: 'dGV4dA==' },
        { ...functionCall('read', { path: 'a' }), thoughtSignature: 'Y2FsbA==' },
      ),
    ],
  },
  {
    title: 'a signed call, an empty part at the end, and counts of which the last apply',
    stream: stream(
      chunk([{ ...functionCall('now'), ...SIGNED }], {}, {
        promptTokenCount: 29, candidatesTokenCount: 4, totalTokenCount: 33,
      }),
      chunk([{ text: '' }], STOP, {
        promptTokenCount: 29, candidatesTokenCount: 10, thoughtsTokenCount: 110,
        totalTokenCount: 149,
      }),
    ),
    gives: { text: '', stop: 'tool_calls', calls: [['now', {}]], usage: [29, 120, 0, 110] },
    back: [turn({ ...functionCall('now'), ...SIGNED }), results(result(0, 'now'))],
  },
  {
    title: 'a signature in an otherwise empty part is kept',
    stream: stream(
      chunk([{ text: 'Hel' }]), chunk([{ text: 'lo' }]), chunk([{ text: '', ...SIGNED }], STOP),
    ),
    gives: { text: 'Hello', stop: 'end' },
    back: [turn({ text: 'Hello' }, { text: '', ...SIGNED })],
  },
  {
    title: 'several calls with ids, only the first one signed, beside thoughts and text',
    stream: stream(
      chunk([{ text: 'I wonder.', thought: true }, { text: 'Reading.' }]),
      chunk([
        { ...functionCall('read', { path: 'a' }, { id: 'a1' }), ...SIGNED },
        functionCall('read', { path: 'b' }, { id: 'b2' }),
      ], STOP),
    ),
    gives: {
      text: 'Reading.', reasoning: 'I wonder.',
      calls: [['read', { path: 'a' }], ['read', { path: 'b' }]],
    },
    back: [
      turn(
        { text: 'Reading.' }, { ...functionCall('read', { path: 'a' }, { id: 'a1' }), ...SIGNED },
        functionCall('read', { path: 'b' }, { id: 'b2' }),
      ),
      results(result(0, 'read', { id: 'a1' }), result(1, 'read', { id: 'b2' })),
    ],
  },
  {
    title: 'the result of a call with an id has that id',
    whole: chunk([functionCall('bash', { command: 'ls' }, { id: 'fn-1' })], STOP),
    gives: { ids: ['call_1_0_1'] },
    back: [
      turn(functionCall('bash', { command: 'ls' }, { id: 'fn-1' })),
      results(result(0, 'bash', { id: 'fn-1' })),
    ],
  },
  {
    title: 'the arguments of a call in a separate piece without its name',
    stream: stream(
      chunk([{ ...functionCall('read'), ...SIGNED }]),
      chunk([{ functionCall: { args: { path: 'a' } } }], STOP),
    ),
    gives: { calls: [['read', { path: 'a' }]] },
    back: [turn({ ...functionCall('read', { path: 'a' }), ...SIGNED })],
  },
  {
    title: 'code that the server executed, with its tokens counted as input',
    stream: stream(
      chunk([{ executableCode: { language: 'PYTHON', code: 'print(1)' }, thought: true }]),
      chunk([{ executableCode: { language: 'PYTHON', code: 'print(1)' } }], STOP),
      chunk([{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } }]),
      chunk([{ text: 'One.' }], STOP, {
        promptTokenCount: 46, toolUsePromptTokenCount: 1268, candidatesTokenCount: 235,
        thoughtsTokenCount: 563, cachedContentTokenCount: 40, totalTokenCount: 2112,
      }),
    ),
    gives: { text: 'One.', stop: 'end', calls: [], usage: [1314, 798, 40, 563] },
    back: [
      turn(
        { executableCode: { language: 'PYTHON', code: 'print(1)' } },
        { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } }, { text: 'One.' },
      ),
    ],
  },
  {
    title: 'a call of an undeclared tool is a call',
    whole: chunk([functionCall('fly')], { finishReason: 'UNEXPECTED_TOOL_CALL' }),
    gives: { calls: [['fly', {}]] },
  },
  {
    title: 'a stream in the form of one array is accepted',
    body: [
      { candidates: [{ content: { parts: [{ text: 'Hel' }] } }] },
      {
        candidates: [{
          content: {
            parts: [
              { text: 'lo' }, { functionCall: { name: 'a' } },
              { functionCall: { name: 'a', args: null } },
            ],
          },
          finishReason: 'STOP',
        }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 },
      },
    ],
    gives: { text: 'Hello', calls: [['a', {}], ['a', {}]], usage: [3, 2, 0, 0] },
  },
]

const FILTERED: TurnFacts = { stop: 'content_filter', calls: [] }
const PRINT = 'Malformed function call: print(x)'
const mistake = (title: string, whole: JsonObject): Exchange => ({
  title: `${title} is the model’s mistake, with the provider’s message`, whole,
  fails: { retryable: false, isMistake: true, message: /print\(x\)/ },
})

const STOPS: readonly Exchange[] = [
  {
    title: 'no finish reason',
    body: {
      candidates: [{ content: { parts: [{ text: 'Hi\n' }], role: 'model' }, avgLogprobs: -0.1 }],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 11, totalTokenCount: 18 },
    },
    gives: { text: 'Hi\n', stop: 'end', usage: [7, 11, 0, 0] },
  },
  {
    title: 'calls of an answer that was cut off carry an error',
    whole: chunk(
      [functionCall('write_file', { path: 'a' })], { finishReason: 'MAX_TOKENS' },
      { candidatesTokenCount: 8_192 },
    ),
    gives: { stop: 'length', callError: /cut off after 8192 tokens/ },
  },
  {
    title: 'an answer that used up its tokens with thinking',
    stream: stream({
      candidates: [{ content: { role: 'model' }, finishReason: 'MAX_TOKENS', index: 0 }],
      usageMetadata: { promptTokenCount: 15, thoughtsTokenCount: 2, totalTokenCount: 17 },
    }),
    gives: { text: '', stop: 'length', usage: [15, 2, 0, 2] },
  },
  ...['SAFETY', 'MODEL_ARMOR', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY'].map((finishReason) => ({
    title: `a withheld answer: ${finishReason}`,
    stream: stream({
      candidates: [{ finishReason, finishMessage: 'It broke a rule.' }],
      usageMetadata: {
        promptTokenCount: 19, candidatesTokenCount: 6, thoughtsTokenCount: 27, totalTokenCount: 52,
      },
    }),
    gives: { ...FILTERED, usage: [19, 33, 0, 27] as const },
  })),
  {
    title: 'an empty answer that was filtered', whole: chunk([], { finishReason: 'SAFETY' }),
    gives: { ...FILTERED, text: '' },
  },
  {
    title: 'a prompt that was refused, in words',
    whole: {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 3 },
    },
    gives: {
      ...FILTERED, text: '(the prompt was refused: PROHIBITED_CONTENT)', shown: '',
      usage: [3, 0, 0, 0],
    },
  },
  {
    title: 'a prompt that was refused, without counts',
    whole: {
      promptFeedback: { blockReason: 'MODEL_ARMOR', blockReasonMessage: 'No.' },
      usageMetadata: { trafficType: 'ON_DEMAND' },
    },
    gives: { ...FILTERED, shown: '', usage: [0, 0, 0, 0] },
  },
  mistake(
    'MALFORMED_FUNCTION_CALL without a call',
    chunk([], { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: PRINT }),
  ),
  mistake(
    'MALFORMED_FUNCTION_CALL with a call',
    chunk([functionCall('bash')], {
      finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'print(x)',
    }),
  ),
  mistake('UNEXPECTED_TOOL_CALL without a call', {
    candidates: [{ finishReason: 'UNEXPECTED_TOOL_CALL', finishMessage: 'print(x)' }],
  }),
]

const OVERLOADED = {
  error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' },
}

const FAILURES: readonly Exchange[] = [
  {
    title: 'a malformed call has its usage in the error',
    whole: {
      candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }],
      usageMetadata: { promptTokenCount: 30, candidatesTokenCount: 7, totalTokenCount: 37 },
    },
    fails: { retryable: false, isMistake: true, used: [30, 7] },
  },
  {
    title: 'an answer without candidates', body: { usageMetadata: {} },
    fails: { retryable: true, code: 'ERR_AGENT_MODEL_PROTOCOL' },
  },
  {
    title: 'an error in a 200 response or a stream', body: OVERLOADED,
    stream: stream(chunk([{ text: 'a' }]), OVERLOADED),
    fails: { retryable: true, message: /answered 503/ },
  },
  {
    title: 'an error in a list', body: [OVERLOADED],
    fails: { retryable: true, message: /answered 503/ },
  },
]

export const GEMINI: readonly Exchange[] = [...PARTS, ...STOPS, ...FAILURES]
