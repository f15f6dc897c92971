/** Ids of calls on the wire: unique in a request, and the same for a call and its result. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, JsonValue, Message } from 'runwright/agent'
import { afterCalls, modelRequest, tool } from './exchange.js'
import { ADAPTERS, DIALECTS, list, object, whole, type Dialect } from './exchanges/dialects.js'
import { decode, formsOf } from './exchanges/table.js'

type Ids = readonly JsonValue[]

/** The ids of calls and of results in a request. */
const IDS: Readonly<Record<Dialect, (body: JsonObject) => readonly [Ids, Ids]>> = {
  'openai-chat': ({ messages }) => [
    list(messages).flatMap(({ tool_calls }) => list(tool_calls).map(({ id }) => id!)),
    list(messages).flatMap(({ tool_call_id }) => tool_call_id ?? []),
  ],
  'openai-responses': ({ input }) => {
    const of = (type: string): Ids =>
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
    const of = (field: string): Ids =>
      parts.flatMap((part) => (part[field] === undefined ? [] : (object(part[field])['id'] ?? '')))
    return [of('functionCall'), of('functionResponse')]
  },
}

type Turns = readonly (readonly string[])[]

/** The ids that are sent after turns whose calls got these ids from the provider. */
function sentIds(dialect: Dialect, turns: Turns, form: 0 | 1): readonly [Ids, Ids] {
  let messages: readonly Message[] = [{ role: 'user', text: 'Go.' }]
  turns.forEach((ids, i) => {
    const run = { run_id: 'r', iteration: 1, turn: i, goal: 'g', check: null, cwd: '/w' }
    const calls = ids.map((id, at) => ({ id, name: 'read', args: { path: `${at}` } }))
    const row = {
      title: '', whole: whole(dialect, { calls }),
      request: { messages, tools: [tool('read')], run },
    }
    const { turn } = decode(dialect, row, formsOf(dialect, row)[form]!)
    messages = [...messages, ...afterCalls(turn!, ids.map(() => ({ output: 'x' }))).slice(1)]
  })
  const request = modelRequest({ messages, tools: [tool('read')] })
  return IDS[dialect](ADAPTERS[dialect].encode(request, { model: 'm', stream: false }).body)
}

interface Row {
  readonly title: string
  readonly turns: Turns
  /** What is sent; otherwise ids that are unique. */
  readonly ids?: readonly string[]
}

const ROWS: readonly Row[] = [
  {
    title: 'ids that a provider repeats in several turns are unique in a request',
    turns: [['call_0', 'call_1'], ['call_0'], ['call_0', 'call_1']],
  },
  {
    title: 'ids that a provider repeats in one turn are unique in a request',
    turns: [['call_0', 'call_0']],
  },
  {
    title: 'ids that look like those of a run are unique in a request',
    turns: [['call_0'], ['call_1_1_1'], ['call_0']],
  },
  {
    title: 'an id of an earlier turn is replaced by that of the run',
    turns: [['call_abc_0001'], ['call_abc_0001']], ids: ['call_abc_0001', 'call_1_1_1'],
  },
  {
    title: 'ids that are unique already are the provider’s own',
    turns: [['call_0'], ['call_1']], ids: ['call_0', 'call_1'],
  },
]
const BY_DIALECT: Readonly<Partial<Record<Dialect, readonly Row[]>>> = {
  gemini: [{ title: 'calls without ids get none', turns: [[''], ['']], ids: ['', ''] }],
}

for (const dialect of DIALECTS)
  for (const form of [0, 1] as const) {
    const how = `${dialect}, ${form === 0 ? 'whole' : 'streamed'}`
    for (const { title, turns, ids } of [...ROWS, ...(BY_DIALECT[dialect] ?? [])])
      test(`${how}: ${title}`, () => {
        const [ofCalls, ofResults] = sentIds(dialect, turns, form)
        assert.equal(ofCalls.length, turns.flat().length)
        assert.deepEqual(ofResults, ofCalls)
        if (ids !== undefined) {
          assert.deepEqual(ofCalls, ids)
          return
        }
        assert.equal(new Set(ofCalls).size, ofCalls.length, ofCalls.join(' '))
        assert.ok(ofCalls.every((id) => /^[\w-]{1,64}$/.test(String(id))), ofCalls.join(' '))
      })

    test(`${how}: a longer conversation sends the ids that were sent before`, () => {
      const turns = [['call_0'], ['call_0'], ['call_0', 'call_0']]
      const [longer] = sentIds(dialect, turns, form)
      assert.deepEqual(longer.slice(0, 2), sentIds(dialect, turns.slice(0, 2), form)[0])
    })
  }
