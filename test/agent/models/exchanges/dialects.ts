/** Whole answers of each wire format, and the streams that say the same. */
import {
  anthropicAdapter, geminiAdapter, openAiChatAdapter, openAiResponsesAdapter,
  type JsonObject, type JsonValue, type ModelAdapter,
} from 'runwright/agent'

/** The wire formats. */
export const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini'] as const
export type Dialect = (typeof DIALECTS)[number]

export const ADAPTERS: Readonly<Record<Dialect, ModelAdapter>> = {
  'openai-chat': openAiChatAdapter(),
  'openai-responses': openAiResponsesAdapter(),
  anthropic: anthropicAdapter({ promptCaching: false }),
  gemini: geminiAdapter(),
}

export const object = (value: JsonValue | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
export const list = (value: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.map(object) : []

/** Events of a stream, with their names where the format has them. */
export function sse(events: readonly JsonValue[], isNamed = false): string {
  return events
    .map((event) => {
      const { type } = object(event)
      const name = isNamed && typeof type === 'string' ? `event: ${type}\n` : ''
      return `${name}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`
    })
    .join('')
}

/** A text in pieces that cut words. */
function pieces(text: string): readonly string[] {
  const third = Math.ceil(text.length / 3)
  return [text.slice(0, third), text.slice(third, 2 * third), text.slice(2 * third)]
}

/** The stream of a whole answer, whatever its format says. */
export const STREAMS: Readonly<Record<Dialect, (whole: JsonObject) => string>> = {
  'openai-chat': chatStream,
  'openai-responses': responsesStream,
  anthropic: anthropicStream,
  gemini: geminiStream,
}

function chatStream({ choices, usage }: JsonObject): string {
  const { message, finish_reason } = list(choices)[0]!
  const { role: _, tool_calls, ...fields } = object(message)
  const chunk = (delta: JsonObject): JsonObject => ({
    choices: [{ index: 0, delta, finish_reason: null }],
  })
  const deltas = Object.entries(fields).flatMap(([field, value]): JsonObject[] =>
    typeof value === 'string'
      ? pieces(value).map((piece) => ({ [field]: piece }))
      : [{ [field]: value }],
  )
  const calls = list(tool_calls).flatMap(({ id, function: named, ...rest }, index) => {
    const { name, arguments: args } = object(named)
    const begins = { index, id: id!, ...rest, function: { name: name!, arguments: '' } }
    const more = pieces(String(args)).map((piece) => ({ index, function: { arguments: piece } }))
    return [begins, ...more].map((call): JsonObject => ({ tool_calls: [call] }))
  })
  return sse([
    chunk({ role: 'assistant', content: '' }), ...deltas.map(chunk), ...calls.map(chunk),
    { choices: [{ index: 0, delta: {}, finish_reason: finish_reason! }] },
    ...(usage === undefined ? [] : [{ choices: [], usage }]),
    '[DONE]',
  ])
}

function responsesStream(whole: JsonObject): string {
  const events = list(whole['output']).flatMap((item, output_index): JsonObject[] => {
    const { content, arguments: args, ...head } = item
    const deltas = (type: string, text: JsonValue | undefined): JsonObject[] =>
      text === undefined ? [] : pieces(String(text)).map((delta) => ({ type, output_index, delta }))
    return [
      { type: 'response.output_item.added', output_index, item: head },
      ...list(content).flatMap(({ text, refusal }) => [
        ...deltas('response.output_text.delta', text),
        ...deltas('response.refusal.delta', refusal),
      ]),
      ...deltas('response.function_call_arguments.delta', args),
      { type: 'response.output_item.done', output_index, item },
    ]
  })
  return sse([
    { type: 'response.created', response: { status: 'in_progress', output: [] } },
    ...events,
    { type: `response.${String(whole['status'])}`, response: whole },
  ].map((event, sequence_number) => ({ ...event, sequence_number })), true)
}

function anthropicStream(whole: JsonObject): string {
  const { content, stop_reason, stop_details, usage, ...message } = whole
  const { output_tokens = 0, ...input } = object(usage)
  const blocks = list(content).flatMap((block, index): JsonObject[] => {
    const { text, thinking, signature, input, ...head } = block
    const deltas = (type: string, field: string, value: JsonValue | undefined): JsonObject[] =>
      value === undefined
        ? []
        : pieces(String(value)).map((piece) => ({
            type: 'content_block_delta', index, delta: { type, [field]: piece },
          }))
    const begun = {
      ...head, ...(text !== undefined && { text: '' }),
      ...(thinking !== undefined && { thinking: '', signature: '' }),
      ...(input !== undefined && { input: {} }),
    }
    return [
      { type: 'content_block_start', index, content_block: begun },
      ...deltas('text_delta', 'text', text),
      ...deltas('thinking_delta', 'thinking', thinking),
      ...deltas('signature_delta', 'signature', signature),
      ...deltas('input_json_delta', 'partial_json', input && JSON.stringify(input)),
      { type: 'content_block_stop', index },
    ]
  })
  const delta = { stop_reason: stop_reason!, ...(stop_details !== undefined && { stop_details }) }
  const begun = { ...message, content: [], usage: { ...input, output_tokens: 1 } }
  return sse([
    { type: 'message_start', message: begun },
    { type: 'ping' },
    ...blocks,
    { type: 'message_delta', delta, usage: { output_tokens } },
    { type: 'message_stop' },
  ], true)
}

function geminiStream({ candidates, ...rest }: JsonObject): string {
  const candidate = list(candidates)[0]
  if (candidate === undefined) return sse([rest]).replaceAll('\n', '\r\n')
  const { content, ...end } = candidate
  const parts = list(object(content)['parts']).flatMap((part): JsonObject[] => {
    const { text, thoughtSignature, ...kind } = part
    if (typeof text !== 'string') return [part]
    const signed = thoughtSignature === undefined ? {} : { thoughtSignature }
    return [
      ...pieces(text).slice(0, 2).map((piece) => ({ ...kind, text: piece })),
      { ...kind, text: pieces(text)[2]!, ...signed },
    ]
  })
  const { promptTokenCount } = object(rest['usageMetadata'])
  const told = promptTokenCount === undefined ? {} : { usageMetadata: { promptTokenCount } }
  const chunk = (part: JsonObject): JsonObject => ({
    candidates: [{ content: { role: 'model', parts: [part] } }], ...told,
  })
  return sse([
    ...parts.map(chunk),
    { candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, ...end }], ...rest },
  ]).replaceAll('\n', '\r\n')
}

interface Called {
  readonly id: string
  readonly name: string
  readonly args: JsonObject
}

/** What an answer says, in any format. */
export interface Saying {
  readonly text?: string
  readonly calls?: readonly Called[]
  /** The format's own word for why the answer ends; by default the usual one. */
  readonly stop?: string
  readonly usage?: readonly [input: number, output: number]
}

/** The whole answer that says this. */
export function whole(dialect: Dialect, saying: Saying): JsonObject {
  return WHOLES[dialect]({ text: '', calls: [], usage: [10, 5], ...saying })
}

type Complete = Required<Omit<Saying, 'stop'>> & Pick<Saying, 'stop'>

const WHOLES: Readonly<Record<Dialect, (saying: Complete) => JsonObject>> = {
  'openai-chat': ({ text, calls, stop = calls.length > 0 ? 'tool_calls' : 'stop', usage }) => ({
    choices: [{
      index: 0, finish_reason: stop,
      message: {
        role: 'assistant', content: text,
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, name, args }) => ({
            id, type: 'function', function: { name, arguments: JSON.stringify(args) },
          })),
        }),
      },
    }],
    usage: { prompt_tokens: usage[0], completion_tokens: usage[1] },
  }),
  'openai-responses': ({ text, calls, stop = 'completed', usage }) => ({
    status: stop === 'completed' ? stop : 'incomplete',
    ...(stop !== 'completed' && { incomplete_details: { reason: stop } }),
    output: [
      ...(text === ''
        ? []
        : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }]),
      ...calls.map(({ id, name, args }) => ({
        type: 'function_call', call_id: id, name, arguments: JSON.stringify(args),
      })),
    ],
    usage: { input_tokens: usage[0], output_tokens: usage[1] },
  }),
  anthropic: ({ text, calls, stop = calls.length > 0 ? 'tool_use' : 'end_turn', usage }) => ({
    type: 'message', role: 'assistant', stop_reason: stop,
    content: [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args })),
    ],
    usage: { input_tokens: usage[0], output_tokens: usage[1] },
  }),
  gemini: ({ text, calls, stop = 'STOP', usage }) => ({
    candidates: [{
      finishReason: stop,
      content: {
        role: 'model',
        parts: [
          ...(text === '' ? [] : [{ text }]),
          ...calls.map(({ id, name, args }) => ({
            functionCall: { ...(id !== '' && { id }), name, args },
          })),
        ],
      },
    }],
    usageMetadata: { promptTokenCount: usage[0], candidatesTokenCount: usage[1] },
  }),
}
