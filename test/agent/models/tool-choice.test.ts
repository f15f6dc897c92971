import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter,
  geminiAdapter,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type ModelAdapter,
  type ToolChoice,
} from 'runwright/agent'
import { modelRequest, tool } from './exchange.js'

const CHOICES: readonly (ToolChoice | undefined)[] = [
  undefined,
  'auto',
  'none',
  'required',
  { tool: 'verdict' },
]

const EXPECTED: readonly (readonly [string, ModelAdapter, string, readonly unknown[]])[] = [
  [
    'openai-chat',
    openAiChatAdapter(),
    'tool_choice',
    ['auto', 'auto', 'none', 'required', { type: 'function', function: { name: 'verdict' } }],
  ],
  [
    'openai-chat without names',
    openAiChatAdapter({ namedToolChoice: false }),
    'tool_choice',
    ['auto', 'auto', 'none', 'required', 'required'],
  ],
  [
    'openai-responses',
    openAiResponsesAdapter(),
    'tool_choice',
    ['auto', 'auto', 'none', 'required', { type: 'function', name: 'verdict' }],
  ],
  [
    'anthropic',
    anthropicAdapter(),
    'tool_choice',
    [
      { type: 'auto' },
      { type: 'auto' },
      { type: 'none' },
      { type: 'any' },
      { type: 'tool', name: 'verdict' },
    ],
  ],
  [
    'gemini',
    geminiAdapter(),
    'toolConfig',
    [
      { mode: 'AUTO' },
      { mode: 'AUTO' },
      { mode: 'NONE' },
      { mode: 'ANY' },
      { mode: 'ANY', allowedFunctionNames: ['verdict'] },
    ].map((config) => ({ functionCallingConfig: config })),
  ],
]

for (const [name, adapter, field, expected] of EXPECTED) {
  test(`the tool choice is encoded for ${name}`, () => {
    CHOICES.forEach((toolChoice, i) => {
      const request = modelRequest({ tools: [tool('verdict')], toolChoice })
      const { body } = adapter.encode(request, { model: 'm', stream: true })
      assert.deepEqual(body[field], expected[i])
    })
    const { body } = adapter.encode(modelRequest({ toolChoice: 'required' }), {
      model: 'm',
      stream: true,
    })
    assert.equal(body[field], undefined, 'without tools there is no choice')
  })
}

test('Anthropic’s thinking is off when a tool call is forced', () => {
  const options = { model: 'claude-sonnet-4-5', stream: true, thinkingBudget: 2048 }
  const adapter = anthropicAdapter({ thinkingBudget: 2048 })
  const tools = [tool('verdict')]
  const free = adapter.encode(modelRequest({ tools }), options).body
  const forced = adapter.encode(
    modelRequest({ tools, toolChoice: { tool: 'verdict' } }),
    options,
  ).body
  assert.deepEqual(free['thinking'], { type: 'enabled', budget_tokens: 2048 })
  assert.equal(forced['thinking'], undefined)
})
