/** Recorded exchanges: what was sent, and the turn or error that results from the answer. */
import type { JsonObject, ModelRequest, ToolSpec } from 'runwright/agent'
import { modelRequest, recording } from '../exchange.js'
import type { Dialect } from './dialects.js'
import type { Exchange } from './table.js'

/** A recorded exchange. */
export interface Recorded extends Exchange {
  readonly dialect: Dialect
  /** The request that was recorded, as a run has it; omitted where no run would send it. */
  readonly asks?: ModelRequest
  /** The options with which that request is encoded. */
  readonly options?: object
  /** Fields of the recorded request, and of each of its tools, that are not sent. */
  readonly unsent?: readonly string[]
  /** Fields that are sent though they were not recorded. */
  readonly unrecorded?: JsonObject
}

const capital = { text: 'The capital of France is Paris.', stop: 'end' } as const
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const objects = (value: unknown): readonly JsonObject[] => (value ?? []) as readonly JsonObject[]

/** Returns the request of a run that has the messages and tools of a recorded one. */
function asked(
  system: unknown,
  messages: readonly string[],
  tools: readonly JsonObject[],
  schema: string,
): ModelRequest {
  return modelRequest({
    system: text(system),
    messages: messages.map((one) => ({ role: 'user', text: one })),
    tools: tools.map((tool): ToolSpec => ({
      name: text(tool['name']), description: text(tool['description']),
      parameters: tool[schema] as ToolSpec['parameters'],
    })),
  })
}

type Row = Omit<Recorded, 'title' | 'dialect' | 'asks'>

const recorded = (title: string, row: Row): Exchange => {
  const { status, body } = recording(title).response
  if (status >= 400) return { title, refused: { status, body }, ...row }
  return typeof body === 'string' ? { title, stream: body, ...row } : { title, body, ...row }
}

function anthropic(title: string, row: Row, options: object = {}): Recorded {
  const { body } = recording(title).request
  const messages = objects(body['messages']).map(({ content }) =>
    text(objects(content)[0]!['text']),
  )
  return {
    ...recorded(title, row), dialect: 'anthropic',
    asks: asked(body['system'], messages, objects(body['tools']), 'input_schema'),
    options: { maxOutputTokens: Number(body['max_tokens']), promptCaching: false, ...options },
  }
}

function chat(title: string, row: Row, options: object = {}): Recorded {
  const { body } = recording(title).request
  const messages = objects(body['messages'])
  const says = (speaker: string): string[] =>
    messages.filter(({ role }) => role === speaker).map(({ content }) => text(content))
  const tools = objects(body['tools']).map((one) => one['function'] as JsonObject)
  return {
    ...recorded(title, row), dialect: 'openai-chat', unsent: ['n'],
    asks: asked(says('system')[0], says('user'), tools, 'parameters'),
    options: { strictTools: true, ...options },
  }
}

function responses(title: string, row: Row): Recorded {
  const { body } = recording(title).request
  const messages = objects(body['input']).map(({ content }) => text(content))
  return {
    ...recorded(title, row), dialect: 'openai-responses',
    asks: asked('', messages, objects(body['tools']), 'parameters'),
    unsent: ['instructions'], unrecorded: { store: false },
  }
}

const GOT_CAPITAL = 'call_0001scrubbed'
const output = (title: string): readonly object[] =>
  objects((recording(title).response.body as JsonObject)['output'])
const blocks = objects(
  (recording('anthropic-parallel-tool-use').response.body as JsonObject)['content'],
)
const NAMES = ['Alice', 'Bob', 'Charlie', 'Daisy']
const TOOLU = [1, 2, 3, 4].map((n) => `toolu_000${n}scrubbed`)

export const RECORDINGS: readonly Recorded[] = [
  anthropic('anthropic-plain', { gives: { ...capital, usage: [20, 10, 0, 0] } }),
  anthropic('anthropic-parallel-tool-use', {
    gives: {
      text: /^I'll help you find out who is the youngest/, stop: 'tool_calls', ids: TOOLU,
      calls: NAMES.map((name) => ['retrieve_entity_info', { name }]), usage: [423, 202, 0, 0],
    },
    back: [{ role: 'assistant', content: blocks }],
  }),
  anthropic(
    'anthropic-stream-thinking',
    {
      gives: {
        text: /^Here are the basic steps for safely crossing the street:/, calls: [], stop: 'end',
        reasoning: /^This is a straightforward question about pedestrian safety\..* accidents\.$/,
        usage: [43, 282, 0, 0],
      },
    },
    { thinkingBudget: 1024 },
  ),
  {
    ...recorded('gemini-function-call', {
      gives: {
        text: '', ids: ['call_1_0_1'], calls: [['get_weather', { city: 'Paris' }]],
        stop: 'tool_calls', usage: [49, 63, 0, 48],
      },
      back: [
        {
          role: 'model',
          parts: [{
            functionCall: { args: { city: 'Paris' }, name: 'get_weather' },
            thoughtSignature: 'U0NSVUJCRUQ0001',
          }],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { name: 'get_weather', response: { output: 'result 0' } } }],
        },
      ],
    }),
    dialect: 'gemini', options: { model: 'gemini-2.5-flash' }, unsent: ['generationConfig'],
    asks: asked(
      '', ["What's the weather in Paris?"],
      objects(objects(recording('gemini-function-call').request.body['tools'])[0]![
        'functionDeclarations'
      ]),
      'parameters_json_schema',
    ),
  },
  {
    ...recorded('groq-tool-use-failed-400', {
      fails: {
        code: 'ERR_AGENT_MODEL', retryable: false, isMistake: true,
        message: /answered 400: .*missing properties: 'name'.*\nWhat the model wrote: \{"name": "get_something_by_name"/,
      },
    }),
    dialect: 'openai-chat',
  },
  {
    ...recorded('openai-chat-error-400', {
      fails: {
        code: 'ERR_AGENT_MODEL', retryable: false,
        message: /answered 400: Web search options not supported with this model\.$/,
      },
    }),
    dialect: 'openai-chat',
  },
  chat('openai-chat-parallel-tools', {
    gives: {
      ids: ['call_0001scrubbed', 'call_0002scrubbed'], stop: 'tool_calls', usage: [71, 46, 0, 0],
      calls: [['delete_file', { path: '.env' }], ['create_file', { path: 'test.txt' }]],
    },
  }),
  chat('openai-chat-plain', { gives: { ...capital, calls: [], usage: [24, 8, 0, 0] } }),
  chat(
    'openai-chat-stream-parallel-tools',
    {
      gives: {
        ids: ['call_0001scrubbed', 'call_0002scrubbed'], stop: 'tool_calls',
        calls: [['get_country', {}], ['get_product_name', {}]], usage: [364, 40, 0, 0],
      },
    },
    { extraBody: { tool_choice: 'required' } },
  ),
  chat('openai-chat-tool-call', {
    gives: {
      calls: [['get_weather', { city: 'Paris' }]], stop: 'tool_calls', usage: [132, 23, 0, 0],
    },
  }),
  responses('openai-responses-stream-tool-call', {
    gives: {
      ids: [GOT_CAPITAL], calls: [['get_capital', { country: 'France' }]], stop: 'tool_calls',
      usage: [255, 16, 0, 0],
    },
  }),
  responses('openai-responses-tool-call', {
    gives: {
      // Not the id of the item.
      ids: [GOT_CAPITAL], calls: [['get_capital', { country: 'PotatoLand' }]], stop: 'tool_calls',
      usage: [40, 18, 0, 0],
    },
    back: [
      ...output('openai-responses-tool-call'),
      { type: 'function_call_output', call_id: GOT_CAPITAL, output: 'result 0' },
    ],
  }),
]
