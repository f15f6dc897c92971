/** Ids of calls on the wire: unique in a request, and the same for a call and its result. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter, geminiAdapter, openAiChatAdapter, openAiResponsesAdapter,
  type Message, type ModelAdapter, type ModelTurn,
} from 'runwright/agent'
import { context, modelRequest, tool } from './exchange.js'

type Body = Readonly<Record<string, unknown>>

interface Dialect {
  readonly adapter: ModelAdapter
  /** An answer with two calls of these ids. */
  readonly answer: (ids: readonly string[]) => Body
  /** The ids in a request, of calls and of results, in order. */
  readonly ids: (body: Body) => readonly (readonly ['call' | 'result', string])[]
}

const items = (value: unknown): readonly Body[] => (Array.isArray(value) ? (value as Body[]) : [])
const part = (body: Body | undefined, name: string): Body => (body?.[name] ?? {}) as Body
const id = (value: unknown): string => String(value)

const dialects: Readonly<Record<string, Dialect>> = {
  chat: {
    adapter: openAiChatAdapter(),
    answer: (ids) => ({
      choices: [
        {
          message: {
            content: null,
            tool_calls: ids.map((one) => ({
              id: one,
              type: 'function',
              function: { name: 'read', arguments: '{"path":"a"}' },
            })),
          },
          finish_reason: 'tool_calls',
        },
      ],
    }),
    ids: (body) =>
      items(body['messages']).flatMap((message) => [
        ...items(message['tool_calls']).map((call) => ['call', id(call['id'])] as const),
        ...(message['role'] === 'tool' ? [['result', id(message['tool_call_id'])] as const] : []),
      ]),
  },
  responses: {
    adapter: openAiResponsesAdapter(),
    answer: (ids) => ({
      status: 'completed',
      output: ids.map((one) => ({
        type: 'function_call',
        call_id: one,
        name: 'read',
        arguments: '{"path":"a"}',
      })),
    }),
    ids: (body) =>
      items(body['input']).flatMap(({ type, call_id }) =>
        type === 'function_call' || type === 'function_call_output'
          ? [[type === 'function_call' ? 'call' : 'result', id(call_id)] as const]
          : [],
      ),
  },
  anthropic: {
    adapter: anthropicAdapter(),
    answer: (ids) => ({
      content: ids.map((one) => ({
        type: 'tool_use',
        id: one,
        name: 'read',
        input: { path: 'a' },
      })),
      stop_reason: 'tool_use',
    }),
    ids: (body) =>
      items(body['messages'])
        .flatMap(({ content }) => items(content))
        .flatMap((block) => [
          ...(block['type'] === 'tool_use' ? [['call', id(block['id'])] as const] : []),
          ...(block['type'] === 'tool_result'
            ? [['result', id(block['tool_use_id'])] as const]
            : []),
        ]),
  },
  gemini: {
    adapter: geminiAdapter(),
    answer: (ids) => ({
      candidates: [
        {
          content: {
            parts: ids.map((one) => ({
              functionCall: { id: one, name: 'read', args: { path: 'a' } },
              thoughtSignature: 'sig',
            })),
          },
          finishReason: 'STOP',
        },
      ],
    }),
    ids: (body) =>
      items(body['contents'])
        .flatMap(({ parts }) => items(parts))
        .flatMap((one) => [
          ...('functionCall' in one ? [['call', id(part(one, 'functionCall')['id'])] as const] : []),
          ...('functionResponse' in one
            ? [['result', id(part(one, 'functionResponse')['id'])] as const]
            : []),
        ]),
  },
}

/** Three turns whose calls have these ids from the provider, with their results. */
function conversation(
  { adapter, answer }: Dialect,
  turns: readonly (readonly string[])[],
): Message[] {
  const messages: Message[] = [{ role: 'user', text: 'Go.' }]
  turns.forEach((ids, i) => {
    const run = { run_id: 'r', iteration: 1, turn: i, goal: 'g', check: null, cwd: '/w' }
    const request = modelRequest({ messages: [...messages], tools: [tool('read')], run })
    const { message }: ModelTurn = adapter.decode(answer(ids), request, context)
    messages.push(message)
    for (const { call_id, tool: name } of message.calls)
      messages.push({ role: 'tool', call_id, tool: name, output: 'x', exit_code: 0 })
  })
  return messages
}

for (const [name, dialect] of Object.entries(dialects)) {
  const sent = (turns: readonly (readonly string[])[], cut = 0): [string, string][] => {
    const messages = conversation(dialect, turns).slice(cut)
    const request = modelRequest({ messages, tools: [tool('read')] })
    const wire = dialect.adapter.encode(request, { model: 'm', stream: false })
    return dialect.ids(wire.body).map(([kind, one]) => [kind, one])
  }

  for (const { what, turns } of [
    { what: 'in several turns', turns: [['call_0', 'call_1'], ['call_0'], ['call_0', 'call_1']] },
    { what: 'in one turn', turns: [['call_0', 'call_0']] },
    { what: 'as ours', turns: [['call_0'], ['call_1_1_1'], ['call_0']] },
  ]) {
    test(`${name}: ids that a provider repeats ${what} are unique in a request`, () => {
      const ids = sent(turns)
      const calls = ids.filter(([kind]) => kind === 'call').map(([, one]) => one)
      assert.equal(calls.length, turns.flat().length)
      assert.equal(new Set(calls).size, calls.length, calls.join(' '))
      const results = ids.filter(([kind]) => kind === 'result').map(([, one]) => one)
      assert.deepEqual(results, calls)
      assert.ok(calls.every((one) => /^[\w-]{1,64}$/.test(one)), calls.join(' '))
    })
  }

  test(`${name}: ids that are unique already are the provider's own`, () => {
    const ids = sent([['call_0'], ['call_1']])
    assert.deepEqual(ids.map(([, one]) => one), ['call_0', 'call_0', 'call_1', 'call_1'])
  })

  test(`${name}: a longer conversation sends the ids that were sent before`, () => {
    const turns = [['call_0'], ['call_0'], ['call_0', 'call_0']]
    assert.deepEqual(sent(turns).slice(0, 4), sent(turns.slice(0, 2)))
  })
}
