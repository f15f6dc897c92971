/**
 * What each adapter sends is what the official SDK of its provider would accept: the bodies are
 * written as literals, which the compiler compares with the SDK's types, unknown fields included.
 */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  anthropicAdapter,
  geminiAdapter,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type ImagePart,
  type JsonObject,
  type Message,
  type ModelAdapter,
  type ModelRequest,
  type WireOptions,
} from 'runwright/agent'
import ts from 'typescript'
import { png } from '../../helpers/images.js'
import { modelRequest, tool } from '../../agent/models/exchange.js'

const folder = fileURLToPath(new URL('.', import.meta.url))
const IMAGE: ImagePart = { media_type: 'image/png', data: png().toString('base64') }
const ID = 'call_aaaaaaaaa1'

const TALK: readonly Message[] = [
  { role: 'user', text: 'Look.', images: [IMAGE] },
  { role: 'assistant', text: 'I look.', calls: [{ call_id: ID, tool: 'shot', args: { path: 'a' } }] },
  { role: 'tool', call_id: ID, tool: 'shot', output: 'done', exit_code: 0, images: [IMAGE] },
  { role: 'assistant', text: '', calls: [{ call_id: `${ID}2`, tool: 'shot', args: { path: 'b' } }] },
  { role: 'tool', call_id: `${ID}2`, tool: 'shot', output: 'no', exit_code: 1, images: [IMAGE] },
  { role: 'user', text: 'Go on.' },
]

/** Requests that use every part of a body; the turns are those of another provider. */
const REQUESTS: Readonly<Record<string, Partial<ModelRequest>>> = {
  'a question': {},
  'a talk with images': { system: 'Be kind.', messages: TALK, tools: [tool('shot')] },
  'a tool that must be called': {
    messages: TALK, tools: [tool('shot'), tool('other')], toolChoice: { tool: 'shot' },
  },
  'any tool': { tools: [tool('shot')], toolChoice: 'required' },
  'no tool': { tools: [tool('shot')], toolChoice: 'none' },
  settings: { settings: { reasoning_effort: 'low', max_output_tokens: 500 } },
}

interface Sdk {
  readonly adapter: ModelAdapter
  readonly models: readonly string[]
  readonly imports: string
  readonly type: string
  /** The parameters of the SDK's method for a body. */
  readonly params?: (body: JsonObject, model: string) => JsonObject
}

const SDKS: Readonly<Record<string, Sdk>> = {
  'openai, Chat Completions': {
    adapter: openAiChatAdapter({ strictTools: true }),
    models: ['gpt-4o', 'gpt-5.4'],
    imports: "import type OpenAI from 'openai'",
    type: 'OpenAI.ChatCompletionCreateParams',
  },
  'openai, Responses': {
    adapter: openAiResponsesAdapter(),
    models: ['gpt-4o', 'gpt-5.4'],
    imports: "import type OpenAI from 'openai'",
    type: 'OpenAI.Responses.ResponseCreateParams',
  },
  '@anthropic-ai/sdk': {
    adapter: anthropicAdapter(),
    models: ['claude-haiku-4-5', 'claude-opus-5'],
    imports: "import type Anthropic from '@anthropic-ai/sdk'",
    type: 'Anthropic.MessageCreateParams',
  },
  '@google/genai': {
    adapter: geminiAdapter({ includeThoughts: true }),
    models: ['gemini-2.5-pro', 'gemini-3.5-flash'],
    imports:
      'import { FunctionCallingConfigMode, ThinkingLevel, type GenerateContentParameters } ' +
      "from '@google/genai'",
    type: 'GenerateContentParameters',
    // The SDK puts everything but the contents into one object, and flattens what is generated.
    params: ({ contents, generationConfig, ...config }, model) => ({
      model, contents: contents!, config: { ...config, ...(generationConfig as JsonObject) },
    }),
  },
}

/** The SDK of Gemini has enums, whose members no text is assignable to. */
function literal(value: JsonObject): string {
  return JSON.stringify(value, null, 1)
    .replaceAll(/"mode": "(\w+)"/g, '"mode": FunctionCallingConfigMode.$1')
    .replaceAll(/"thinkingLevel": "(\w+)"/g, (_, level: string) =>
      `"thinkingLevel": ThinkingLevel.${level.toUpperCase()}`)
}

function sourceOf({ adapter, imports, models, params, type }: Sdk): string {
  const bodies = models.flatMap((model) =>
    [true, false].flatMap((stream) =>
      Object.values(REQUESTS).map((part) => {
        const { reasoning_effort, max_output_tokens } = part.settings ?? {}
        const options: WireOptions = {
          model, stream,
          ...(reasoning_effort !== undefined && { reasoningEffort: reasoning_effort }),
          ...(max_output_tokens !== undefined && { maxOutputTokens: max_output_tokens }),
        }
        const { body } = adapter.encode(modelRequest(part), options)
        return params === undefined ? body : params(body, model)
      })),
  )
  const lines = bodies.map((body) => `;(${literal(body)}) satisfies ${type}`)
  return [imports, 'export {}', ...lines, ''].join('\n')
}

/** What the compiler says of a source in this folder. */
function problemsOf(name: string, source: string): string[] {
  const file = join(folder, name)
  writeFileSync(file, source)
  try {
    const program = ts.createProgram([file], {
      strict: true, noEmit: true, skipLibCheck: true, exactOptionalPropertyTypes: false,
      target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext, types: ['node'],
    })
    const own = program.getSourceFile(file)
    assert.ok(own !== undefined)
    return ts.getPreEmitDiagnostics(program, own)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  } finally {
    rmSync(file, { force: true })
  }
}

for (const [i, [name, sdk]] of Object.entries(SDKS).entries()) {
  test(`the bodies of every request have the types of the SDK: ${name}`, () => {
    assert.deepEqual(problemsOf(`sdk-bodies-${i}.ts`, sourceOf(sdk)), [])
  })
}

test('a field that an SDK does not know is noticed', () => {
  const { imports, type } = SDKS['openai, Chat Completions']!
  const source = `${imports}\n;({ model: 'm', messages: [], colour: 1 }) satisfies ${type}\n`
  const [problem = ''] = problemsOf('sdk-bodies-wrong.ts', source)
  assert.match(problem, /colour/)
})
