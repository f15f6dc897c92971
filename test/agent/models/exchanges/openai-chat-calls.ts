/** Calls in answers of OpenAI's Chat Completions and of the servers that speak them. */
import { tool } from '../exchange.js'
import {
  answer, call, callDelta, calling, counts, delta, DONE, finish, ID, SIGNED,
} from './openai-chat-parts.js'
import type { Exchange, TurnFacts } from './table.js'

const ARGUMENTS: readonly Exchange[] = [
  ...(
    [
      ['JSON text', '{"command":"ls"}', { command: 'ls' }],
      ['an object', { command: 'ls' }, { command: 'ls' }],
      ['JSON text encoded twice', '"{\\"command\\":\\"ls\\"}"', { command: 'ls' }],
      ['empty text', '', {}],
      ['null', null, {}],
      ['the text null', 'null', {}],
      ['nothing', undefined, {}],
    ] as const
  ).map(([form, args, read]) => ({
    title: `arguments as ${form} are read`,
    body: calling(args),
    stream: [callDelta(call(0, ID, 'bash', args)), finish('tool_calls'), DONE],
    gives: { ids: [ID], calls: [['bash', read]] as const, stop: 'tool_calls' as const },
  })),
  ...['{"command":"rm -rf ', '[1]', '"text"', '7', [1], 'command=ls'].map((args) => ({
    title: `arguments ${JSON.stringify(args)} are an error for the model, not repaired`,
    body: calling(args),
    gives: { calls: [['bash', {}]] as const, callError: /could not be read/ },
  })),
  {
    title: 'invalid arguments are not sent back',
    whole: calling('{"command":'),
    gives: { callError: /could not be read/ },
    back: [
      {
        role: 'assistant', content: null,
        tool_calls: [{ id: ID, type: 'function', function: { name: 'bash', arguments: '{}' } }],
      },
    ],
  },
  {
    title: 'all calls of an answer that was cut off carry an error, even complete ones',
    whole: answer(
      {
        content: 'I will',
        tool_calls: [
          call(undefined, ID, 'bash', '{"command":"ls"}'),
          call(undefined, 'call_987654321', 'write_file', '{"path":"a","content":"ab'),
        ],
      },
      'length', { prompt_tokens: 1, completion_tokens: 4096 },
    ),
    gives: {
      stop: 'length', calls: [['bash', {}], ['write_file', {}]],
      callError: /cut off after 4096 tokens/,
    },
  },
  {
    title: 'a call without a name carries an error',
    whole: answer({ tool_calls: [{ id: ID, function: { arguments: '{}' } }] }),
    gives: { callError: /names no tool/ },
  },
]

const SUBSTITUTES = ['files_read_2', 'files_read', '_1st', 'y'.repeat(60)]
const TOOLS = ['files.read', 'files_read', '1st', 'y'.repeat(70)]

const CALLS: readonly Exchange[] = [
  {
    title: 'missing, short and repeated ids are replaced by unique, deterministic ids',
    body: answer({
      tool_calls: ['', '0', 'functions.bash:0', ID, ID, 'x'.repeat(80)].map((id) =>
        call(undefined, id, 'bash', '{}'),
      ),
    }),
    gives: {
      ids: ['call_1_0_1', 'call_1_0_2', 'call_1_0_3', ID, 'call_1_0_5', 'call_1_0_6'],
    },
  },
  {
    title: 'substituted tool names become the names of the tools again',
    whole: answer({
      tool_calls: SUBSTITUTES.map((name, i) => call(undefined, `call_00000000${i}`, name, '{}')),
    }),
    request: { tools: TOOLS.map((name) => tool(name)) },
    gives: { calls: TOOLS.map((name) => [name, {}] as const) },
  },
  {
    title: 'the function_call of old servers is a call',
    whole: answer(
      { content: null, function_call: { name: 'ls', arguments: '{"a":1}' } }, 'function_call',
    ),
    stream: [
      delta({ function_call: { name: 'ls', arguments: '{"a"' } }),
      delta({ function_call: { arguments: ':1}' } }),
      finish('function_call'),
    ],
    gives: { calls: [['ls', { a: 1 }]], stop: 'tool_calls' },
  },
  {
    title: 'calls that share one id are sent back with distinct ids, each with its result',
    body: answer(
      {
        content: null,
        tool_calls: ['a', 'b'].map((path) =>
          call(undefined, 'call_same_for_all', 'read', `{"path":"${path}"}`),
        ),
      },
      'tool_calls',
    ),
    gives: { ids: ['call_same_for_all', 'call_1_0_2'] },
    back: [
      {
        role: 'assistant', content: null,
        tool_calls: [
          call(undefined, 'call_same_for_all', 'read', '{"path":"a"}'),
          call(undefined, 'call_1_0_2', 'read', '{"path":"b"}'),
        ],
      },
      { role: 'tool', tool_call_id: 'call_same_for_all', content: 'result 0' },
      { role: 'tool', tool_call_id: 'call_1_0_2', content: 'result 1' },
    ],
  },
  {
    title: 'Groq: a call without content, with reasoning and timings beside it',
    whole: {
      ...answer(
        {
          role: 'assistant', reasoning: 'So.',
          tool_calls: [
            call(undefined, 'fc_3b660a12-1bb6-48d9-b318-07f6d4a64bfb', 'now', '{"zone":"UTC"}'),
          ],
        },
        'tool_calls',
        {
          queue_time: 0.005, prompt_tokens: 245, completion_tokens: 104, total_tokens: 349,
          completion_tokens_details: { reasoning_tokens: 70 },
        },
      ),
      x_groq: { id: 'req_1' },
    },
    gives: {
      text: '', reasoning: 'So.', calls: [['now', { zone: 'UTC' }]], usage: [245, 104, 0, 70],
    },
  },
]

const TWO: TurnFacts = {
  calls: [['a', { x: 1 }], ['b', { y: 2 }]],
  // Calls decide, not the stop word.
  stop: 'tool_calls',
}
const A = 'call_aaaaaaaa'
const B = 'call_bbbbbbbb'
const ALL_CHARACTERS = { text: '}{"\\"]\\', list: [{ a: [] }], '{': 1 }

const STREAMED_CALLS: readonly Exchange[] = [
  ...(
    [
      ['distinguished by index', [
        call(0, A, 'a', ''), call(1, B, 'b', ''), call(0, undefined, undefined, '{"x":'),
        call(1, undefined, undefined, '{"y":2}'), call(0, undefined, undefined, '1}'),
      ]],
      ['all with index 0 and their own ids', [
        call(0, A, 'a', '{"x":1}'), call(0, B, 'b', '{"y":2}'),
      ]],
      ['all with index 0 and no ids', [call(0, '', 'a', '{"x":1}'), call(0, '', 'b', '{"y":2}')]],
      ['without index, with ids repeated on each piece', [
        call(undefined, A, 'a', '{"x":'), call(undefined, A, undefined, '1}'),
        call(undefined, B, 'b', '{"y":2}'),
      ]],
      ['without index and id, complete, with arguments as objects', [
        call(undefined, undefined, 'a', { x: 1 }), call(undefined, undefined, 'b', { y: 2 }),
      ]],
      ['with the name on every piece', [
        call(0, A, 'a', '{"x"'), call(0, A, 'a', ':1}'), call(1, B, 'b', '{"y":2}'),
      ]],
    ] as const
  ).map(([form, pieces]) => ({
    title: `streamed calls ${form} become two calls`,
    stream: [...pieces.map((piece) => callDelta(piece)), finish('stop'), DONE],
    gives: TWO,
  })),
  {
    title: 'the same call twice without ids is two calls',
    stream: [
      ...[1, 2].map(() => callDelta(call(0, '', 'list_files', '{}'))), finish('stop'),
    ],
    gives: { calls: [['list_files', {}], ['list_files', {}]] },
  },
  ...['', 'call_0'].flatMap((id) =>
    [undefined, 0].map((index) => ({
      title: `deltas that all have the name are one call, with id "${id}" and index ${index}`,
      stream: [
        ...[...JSON.stringify(ALL_CHARACTERS)].map((char) =>
          callDelta(call(index, id, 'write', char)),
        ),
        finish('stop'),
      ],
      gives: { calls: [['write', ALL_CHARACTERS]] as const },
    })),
  ),
  ...[undefined, 0].map((index) => ({
    title: `two calls of one id in a chunk each, with index ${index}, go back with distinct ids`,
    stream: [
      ...['a', 'b'].map((path) => callDelta(call(index, 'call_0', 'read', `{"path":"${path}"}`))),
      finish('tool_calls'), DONE,
    ],
    gives: { calls: [['read', { path: 'a' }], ['read', { path: 'b' }]] as const },
    back: [
      {
        role: 'assistant', content: null,
        tool_calls: [
          call(undefined, 'call_0', 'read', '{"path":"a"}'),
          call(undefined, 'call_1_0_2', 'read', '{"path":"b"}'),
        ],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'result 0' },
      { role: 'tool', tool_call_id: 'call_1_0_2', content: 'result 1' },
    ],
  })),
  {
    title: 'calls with interleaved arguments, and with repeated or null names and ids',
    stream: [
      callDelta(call(0, 'call_aaaaaaaa1', 'read', '')),
      callDelta(call(1, 'call_bbbbbbbb2', 'list', '{"d')),
      callDelta(call(0, null, null, '{"path":')),
      callDelta(call(1, 'call_bbbbbbbb2', 'list', 'ir":"/"}')),
      callDelta(call(0, undefined, undefined, '"a"}')),
      finish('tool_calls'), counts(9, 8), DONE,
    ],
    gives: {
      text: '', stop: 'tool_calls', calls: [['read', { path: 'a' }], ['list', { dir: '/' }]],
      usage: [9, 8, 0, 0],
    },
    back: [
      {
        role: 'assistant', content: null,
        tool_calls: [
          call(undefined, 'call_aaaaaaaa1', 'read', '{"path":"a"}'),
          call(undefined, 'call_bbbbbbbb2', 'list', '{"dir":"/"}'),
        ],
      },
      { role: 'tool', tool_call_id: 'call_aaaaaaaa1', content: 'result 0' },
      { role: 'tool', tool_call_id: 'call_bbbbbbbb2', content: 'result 1' },
    ],
  },
  {
    title: 'late names, indexes from 1, and empty names after them',
    stream: [
      callDelta(call(1, 'call_aaaaaaaa1', null, '{}')),
      callDelta(call(1, undefined, 'now', '')),
      callDelta(call(2, 'call_bbbbbbbb2', 'read', '{"path"')),
      callDelta(call(2, undefined, '', ':"a"}')),
      finish('tool_calls'), DONE,
    ],
    gives: { calls: [['now', {}], ['read', { path: 'a' }]] },
  },
  {
    title: 'vLLM: long ids, finish reason "stop" despite a call, null counts, no blank after data:',
    stream: [
      { ...delta({ role: 'assistant', content: null }), usage: null },
      {
        ...callDelta(call(0, 'chatcmpl-tool-0123456789abcdef0123456789abcdef', 'now', '{}')),
        usage: null,
      },
      { ...finish('stop'), usage: null },
      counts(3, 4),
    ].map((event) => `data:${JSON.stringify(event)}`).concat('data:[DONE]'),
    gives: { stop: 'tool_calls', calls: [['now', {}]], usage: [3, 4, 0, 0] },
  },
  {
    title: 'Moonshot: usage in the choice, and numbered ids that must be sent back unchanged',
    stream: [
      delta({ role: 'assistant', content: '' }),
      callDelta(call(0, 'functions.now:0', 'now', '{}')),
      delta({}, {
        finish_reason: 'tool_calls',
        usage: { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32, cached_tokens: 19 },
      }),
      DONE,
    ],
    gives: { calls: [['now', {}]], usage: [19, 13, 19, 0] },
    back: [
      {
        role: 'assistant', content: null,
        tool_calls: [call(undefined, 'functions.now:0', 'now', '{}')],
      },
      { role: 'tool', tool_call_id: 'functions.now:0', content: 'result 0' },
    ],
  },
  {
    title: 'Gemini’s Chat Completions: no index, a signature in the call, a total above the sum',
    stream: [
      {
        choices: [{
          index: 0, finish_reason: 'stop',
          delta: {
            role: 'assistant',
            tool_calls: [call(undefined, 'function-call-29000242544586487', 'now', '{}', SIGNED)],
          },
        }],
        usage: { prompt_tokens: 35, completion_tokens: 12, total_tokens: 126 },
      },
      DONE,
    ],
    gives: { calls: [['now', {}]], stop: 'tool_calls', usage: [35, 91, 0, 79] },
    back: [
      {
        role: 'assistant', content: null,
        tool_calls: [call(undefined, 'function-call-29000242544586487', 'now', '{}', SIGNED)],
      },
    ],
  },
]

export const CHAT_CALLS: readonly Exchange[] = [...ARGUMENTS, ...CALLS, ...STREAMED_CALLS]
