/** Requests: what a run asks of a model, and what the provider is sent. */
import type {
  AssistantMessage, JsonObject, Message, ModelRequest, ToolMessage, ToolSpec,
} from 'runwright/agent'
import { imagePart } from '../../../../lib/agent/images.js'
import { imagesTitle } from '../../../../lib/agent/models/exchanges.js'
import { jpeg, png } from '../../../helpers/images.js'
import { tool } from '../exchange.js'
import type { Dialect } from './dialects.js'

/** A row: a request of a run, and the request or some fields of the request that are sent. */
export interface Sending {
  readonly title: string
  readonly asks?: Partial<ModelRequest>
  readonly options?: object
  /** The whole body. */
  readonly body?: JsonObject
  /** Fields of the body; an undefined one is absent. */
  readonly fields?: Readonly<Record<string, unknown>>
  readonly path?: string
  readonly params?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

const user = (text: string): Message => ({ role: 'user', text })
const assistant = (text: string, ...call_ids: readonly string[]): AssistantMessage => ({
  role: 'assistant', text,
  calls: call_ids.map((call_id) => ({ call_id, tool: 'bash', args: { command: 'ls' } })),
})
const result = (call_id: string, output: string, exit_code = 0): Message => ({
  role: 'tool', call_id, tool: 'bash', output, exit_code,
})
/** A turn of a model of another provider, whose parts this one does not know. */
const foreign = (format: string): Message => ({
  ...assistant('Look.', 'c1'), parts: { format, value: [{ type: 'thinking', signature: 'U0NS' }] },
})
const LOST = 'no result was recorded for this call\n[exit code -1]'

const A = imagePart(png(2, 3, 64, 1))!
const B = imagePart(jpeg())!
/** Images of a message, and of a result. */
const LOOKED: readonly Message[] = [
  { role: 'user', text: 'Look.', images: [A] },
  assistant('', 'call_aaaaaaaaa1'),
  { ...result('call_aaaaaaaaa1', 'done'), images: [B] } as Message,
]
const IMAGES = 'images of messages and results are where the format has them'
const urls = [A, B].map(({ media_type, data }) => `data:${media_type};base64,${data}`)

const chatCall = (id: string): object => ({
  id, type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' },
})
const REASONED = { temperature: 0.2, maxOutputTokens: 100, reasoningEffort: 'low' }

const CHAT: readonly Sending[] = [
  {
    title: 'results follow their calls, in the order of the calls',
    asks: {
      messages: [
        user('Go.'), assistant('', 'c1', 'c2'), result('c2', 'no space', 1), result('c1', 'gone'),
        user('Go on.'),
      ],
    },
    fields: {
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: null, tool_calls: [chatCall('c1'), chatCall('c2')] },
        { role: 'tool', tool_call_id: 'c1', content: 'gone' },
        { role: 'tool', tool_call_id: 'c2', content: 'no space\n[exit code 1]' },
        { role: 'user', content: 'Go on.' },
      ],
    },
  },
  {
    title: 'a call without a result gets one, and a result without a call is dropped',
    asks: { messages: [user('Go.'), assistant('', 'c1'), user('Hm'), result('c9', 'x')] },
    fields: {
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: null, tool_calls: [chatCall('c1')] },
        { role: 'tool', tool_call_id: 'c1', content: LOST },
        { role: 'user', content: 'Hm' },
      ],
    },
  },
  {
    title: 'a turn of another provider is rebuilt from its text and calls',
    asks: { messages: [foreign('anthropic')] },
    fields: {
      messages: [
        { role: 'assistant', content: 'Look.', tool_calls: [chatCall('c1')] },
        { role: 'tool', tool_call_id: 'c1', content: LOST },
      ],
    },
  },
  {
    title: 'reasoning models get no temperature, and max_completion_tokens',
    options: { ...REASONED, model: 'openai/gpt-5-mini', stream: false },
    path: '/chat/completions',
    body: {
      model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'Go.' }],
      max_completion_tokens: 100, reasoning_effort: 'low', stream: false,
    },
  },
  {
    title: 'other models get a temperature and max_tokens',
    options: { ...REASONED, model: 'llama3.1' }, fields: { temperature: 0.2, max_tokens: 100 },
  },
  {
    title: 'tool names that a provider would refuse are substituted',
    asks: { tools: [tool('files.read'), tool('files_read'), tool('1st'), tool('y'.repeat(70))] },
    fields: {
      tools: ['files.read', 'files_read', '1st', 'y'.repeat(70)].map((name, i) => ({
        type: 'function',
        function: {
          ...tool(name), name: ['files_read_2', 'files_read', '_1st', 'y'.repeat(60)][i],
        },
      })),
    },
  },
  {
    title: 'counts of a stream are asked for',
    fields: { stream_options: { include_usage: true } },
  },
  {
    title: 'stream_options can be omitted for servers that refuse it',
    options: { streamUsage: false }, fields: { stream_options: undefined },
  },
  {
    title: IMAGES, asks: { messages: LOOKED },
    fields: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look.' }, { type: 'image_url', image_url: { url: urls[0]! } },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [chatCall('call_aaaaaaaaa1')] },
        { role: 'tool', tool_call_id: 'call_aaaaaaaaa1', content: 'done' },
        {
          role: 'user',
          content: [
            { type: 'text', text: imagesTitle(LOOKED[2] as ToolMessage) },
            { type: 'image_url', image_url: { url: urls[1]! } },
          ],
        },
      ],
    },
  },
]

const item = (call_id: string): object => ({
  type: 'function_call', call_id, name: 'bash', arguments: '{"command":"ls"}',
})
const OPTIONAL: ToolSpec = {
  ...tool('bash'),
  parameters: {
    type: 'object', properties: { command: { type: 'string' } }, additionalProperties: false,
  },
}
const declared = (spec: ToolSpec, strict: boolean): object => ({
  type: 'function', ...spec, strict,
})

const RESPONSES: readonly Sending[] = [
  {
    title: 'reasoning models are asked for encrypted reasoning and get no temperature',
    asks: { system: 'Be good.' }, options: { ...REASONED, model: 'gpt-5-mini' }, path: '/responses',
    body: {
      model: 'gpt-5-mini', instructions: 'Be good.', input: [{ role: 'user', content: 'Go.' }],
      max_output_tokens: 100, reasoning: { effort: 'low' }, store: false,
      include: ['reasoning.encrypted_content'], stream: true,
    },
  },
  {
    title: 'other models get a temperature',
    options: { ...REASONED, model: 'gpt-4o' }, fields: { temperature: 0.2, include: undefined },
  },
  {
    title: 'a schema with optional arguments is marked as not strict',
    asks: { tools: [tool('a'), OPTIONAL] },
    fields: { tools: [declared(tool('a'), true), declared(OPTIONAL, false)] },
  },
  {
    title: 'a turn of another provider is rebuilt',
    asks: { messages: [foreign('anthropic'), user('Thanks.')] },
    fields: {
      input: [
        { role: 'assistant', content: 'Look.' }, item('c1'),
        { type: 'function_call_output', call_id: 'c1', output: LOST },
        { role: 'user', content: 'Thanks.' },
      ],
    },
  },
  {
    title: IMAGES, asks: { messages: LOOKED },
    fields: {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look.' },
            { type: 'input_image', detail: 'auto', image_url: urls[0]! },
          ],
        },
        item('call_aaaaaaaaa1'),
        {
          type: 'function_call_output', call_id: 'call_aaaaaaaaa1',
          output: [
            { type: 'input_text', text: 'done' },
            { type: 'input_image', detail: 'auto', image_url: urls[1]! },
          ],
        },
      ],
    },
  },
]

const blocks = (...texts: readonly string[]): object[] =>
  texts.map((text) => ({ type: 'text', text }))
const says = (role: string, ...texts: readonly string[]): object => ({
  role, content: blocks(...texts),
})
const toolUse = (id: string): object => ({
  type: 'tool_use', id, name: 'bash', input: { command: 'ls' },
})
const CACHED = { cache_control: { type: 'ephemeral' } }
const source = ({ media_type, data }: typeof A): object => ({
  type: 'image', source: { type: 'base64', media_type, data },
})
const THINKING = { temperature: 1, thinkingBudget: 2000, reasoningEffort: 'low' }

const ANTHROPIC: readonly Sending[] = [
  {
    title: 'the results of parallel calls come in one message, before any text',
    asks: {
      messages: [
        user('Go.'), assistant('', 't1', 't2', 't3', 't4'), result('t1', '30'), result('t2', ''),
        result('t3', 'no such person', 1), result('t4', '9'), user('A human says: hurry.'),
      ],
    },
    path: '/v1/messages', headers: { 'anthropic-version': '2023-06-01' },
    fields: {
      messages: [
        says('user', 'Go.'),
        { role: 'assistant', content: ['t1', 't2', 't3', 't4'].map(toolUse) },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 't1', content: '30' },
            { type: 'tool_result', tool_use_id: 't2', content: '(no output)' },
            {
              type: 'tool_result', tool_use_id: 't3', content: 'no such person\n[exit code 1]',
              is_error: true,
            },
            { type: 'tool_result', tool_use_id: 't4', content: '9' },
            ...blocks('A human says: hurry.'),
          ],
        },
      ],
    },
  },
  {
    title: 'the system prompt and the end of the conversation are marked for the cache',
    asks: { system: 'Be good.' }, options: { promptCaching: undefined },
    fields: {
      system: [{ type: 'text', text: 'Be good.', ...CACHED }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Go.', ...CACHED }] }],
    },
  },
  ...(
    [
      ['claude-3-opus-latest', undefined, 4096],
      ['claude-sonnet-4-5', undefined, 32_000],
      ['unknown-model', undefined, 4096],
      ['unknown-model', 8000, 9024],
    ] as const
  ).map(([model, thinkingBudget, max_tokens]) => ({
    title: `max_tokens of ${model} with ${thinkingBudget ?? 'no'} tokens of thoughts: ${max_tokens}`,
    options: { model, thinkingBudget }, fields: { max_tokens },
  })),
  ...(
    [
      ['claude-haiku-4-5', { type: 'enabled', budget_tokens: 2000 }, undefined, 1],
      ['claude-opus-4-6', { type: 'adaptive' }, { effort: 'low' }, 1],
      ['claude-sonnet-5', { type: 'adaptive' }, { effort: 'low' }, undefined],
    ] as const
  ).flatMap(([model, thinking, output_config, temperature]) => [
    {
      title: `${model} gets the thinking fields that it accepts`,
      options: { ...THINKING, model }, fields: { thinking, output_config, temperature: undefined },
    },
    {
      title: `${model} gets the sampling fields that it accepts`,
      options: { model, temperature: 1 }, fields: { thinking: undefined, temperature },
    },
  ]),
  ...(
    [
      [
        'consecutive user messages are merged', [user('a'), user('b')], [says('user', 'a', 'b')],
      ],
      [
        'consecutive turns are merged', [user('a'), assistant('b'), assistant('c'), user('d')],
        [says('user', 'a'), says('assistant', 'b', 'c'), says('user', 'd')],
      ],
      [
        'an empty turn is dropped', [user('a'), assistant(''), user('b')], [says('user', 'a', 'b')],
      ],
      [
        'a conversation that begins with the model gets a user message first',
        [assistant('a'), user('b')],
        [
          says('user', '(The beginning of this conversation was left out.)'),
          says('assistant', 'a'), says('user', 'b'),
        ],
      ],
      [
        'a conversation that ends with the model gets a user message last',
        [user('a'), assistant('b')],
        [says('user', 'a'), says('assistant', 'b'), says('user', 'Go on.')],
      ],
      ['a blank message is dropped', [user('a'), user(' ')], [says('user', 'a')]],
      ['an empty conversation gets a user message', [], [says('user', 'Begin.')]],
    ] as const
  ).map(([title, messages, sent]) => ({ title, asks: { messages }, fields: { messages: sent } })),
  {
    title: 'a turn of another provider is rebuilt from its text and calls',
    asks: { messages: [user('a'), foreign('openai-chat')] },
    fields: {
      messages: [
        says('user', 'a'), { role: 'assistant', content: [...blocks('Look.'), toolUse('c1')] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'c1', content: LOST, is_error: true }],
        },
      ],
    },
  },
  {
    title: IMAGES, asks: { messages: LOOKED },
    fields: {
      messages: [
        { role: 'user', content: [source(A), ...blocks('Look.')] },
        { role: 'assistant', content: [toolUse('call_aaaaaaaaa1')] },
        {
          role: 'user',
          content: [{
            type: 'tool_result', tool_use_id: 'call_aaaaaaaaa1',
            content: [...blocks('done'), source(B)],
          }],
        },
      ],
    },
  },
]

const RICH: ToolSpec = {
  name: 'bash', description: 'Runs.',
  parameters: {
    type: 'object',
    properties: {
      command: {
        type: 'string', minLength: 1, maxLength: 9, pattern: '^a', default: 'ls', examples: ['ls'],
      },
      when: { type: 'string', format: 'date-time' },
      where: { type: 'string', format: 'uri' },
      kind: { const: 'x' },
      list: {
        type: 'array', items: { type: 'integer', minimum: 1, maxProperties: 3 }, minItems: 1,
      },
      either: { anyOf: [{ type: 'string', pattern: 'x' }, { type: 'null' }] },
    },
    required: ['command'], additionalProperties: false,
  },
}
const BARE: ToolSpec = {
  name: 'now', description: 'Tells the time.', parameters: { type: 'object', properties: {} },
}
const must = (description: string): object => ({ description: `Must also satisfy: ${description}` })
const functionCall = { functionCall: { name: 'bash', args: { command: 'ls' } } }
const functionResponse = (response: object, more: object = {}): object => ({
  functionResponse: { name: 'bash', response, ...more },
})
const inline = ({ media_type, data }: typeof A): object => ({
  inlineData: { mimeType: media_type, data },
})
const parts = (role: string, ...list: readonly object[]): object => ({ role, parts: list })

const GEMINI: readonly Sending[] = [
  {
    title: 'results come alone in a message, by name and position, and text after it',
    asks: {
      messages: [
        user('Go.'), assistant('', 'c1', 'c2'), result('c1', 'A'), result('c2', 'gone', 1),
        user('And?'),
      ],
    },
    options: { model: 'gemini-2.5-flash' },
    path: '/v1beta/models/gemini-2.5-flash:streamGenerateContent', params: { alt: 'sse' },
    fields: {
      contents: [
        parts('user', { text: 'Go.' }), parts('model', functionCall, functionCall),
        parts(
          'user', functionResponse({ output: 'A' }),
          functionResponse({ error: 'gone\n[exit code 1]' }),
        ),
        parts('user', { text: 'And?' }),
      ],
    },
  },
  ...(
    [
      ['gemini-3-pro', 'get a placeholder signature', [
        { ...functionCall, thoughtSignature: 'skip_thought_signature_validator' }, functionCall,
      ]],
      ['gemini-2.5-pro', 'get no signature', [functionCall, functionCall]],
    ] as const
  ).map(([model, get, calls]) => ({
    title: `calls of another provider’s model ${get} for ${model}`,
    asks: {
      messages: [assistant('Look.', 'c1', 'c2'), result('c1', 'A'), result('c2', 'B')],
    },
    options: { model },
    fields: {
      contents: [
        parts('user', { text: '(The beginning of this conversation was left out.)' }),
        parts('model', { text: 'Look.' }, ...calls),
        parts('user', functionResponse({ output: 'A' }), functionResponse({ output: 'B' })),
      ],
    },
  })),
  {
    title: 'schemas keep what Gemini accepts; a tool without arguments has no schema',
    asks: { tools: [RICH, BARE] },
    fields: {
      tools: [{
        functionDeclarations: [
          {
            name: 'bash', description: 'Runs.',
            parametersJsonSchema: {
              type: 'object',
              properties: {
                command: { type: 'string', ...must('minLength 1; maxLength 9; pattern "^a"') },
                when: { type: 'string', format: 'date-time' },
                where: { type: 'string' },
                kind: { enum: ['x'] },
                list: {
                  type: 'array', minItems: 1,
                  items: { type: 'integer', minimum: 1, ...must('maxProperties 3') },
                },
                either: {
                  anyOf: [{ type: 'string', ...must('pattern "x"') }, { type: 'null' }],
                },
              },
              required: ['command'], additionalProperties: false,
            },
          },
          { name: 'now', description: 'Tells the time.' },
        ],
      }],
    },
  },
  {
    title: 'options become a generation configuration',
    asks: { system: 'Be good.' },
    options: {
      model: 'gemini-2.5-flash', maxOutputTokens: 9, temperature: 0, includeThoughts: true,
      thinkingBudget: 100, reasoningEffort: 'low',
    },
    body: {
      systemInstruction: { parts: [{ text: 'Be good.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Go.' }] }],
      generationConfig: {
        maxOutputTokens: 9, temperature: 0,
        thinkingConfig: { includeThoughts: true, thinkingBudget: 100, thinkingLevel: 'low' },
      },
    },
  },
  {
    title: IMAGES, asks: { messages: LOOKED }, options: { model: 'gemini-3.5-flash' },
    fields: {
      contents: [
        parts('user', inline(A), { text: 'Look.' }),
        parts(
          'model',
          { ...functionCall, thoughtSignature: 'skip_thought_signature_validator' },
        ),
        parts('user', functionResponse({ output: 'done' }, { parts: [inline(B)] })),
      ],
    },
  },
]

export const REQUESTS: Readonly<Record<Dialect, readonly Sending[]>> = {
  'openai-chat': CHAT, 'openai-responses': RESPONSES, anthropic: ANTHROPIC, gemini: GEMINI,
}
