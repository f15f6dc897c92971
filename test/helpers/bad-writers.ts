import assert from 'node:assert/strict'
import {
  defineTool,
  ModelError,
  NO_USAGE,
  type EngineOptions,
  type JsonObject,
  type Model,
  type ModelRequest,
  type RunStore,
} from 'runwright/agent'
import { judgeProvider } from './judge.js'
import { UNSTORABLE } from './schema-texts.js'

/** A text with all that cannot be stored, and with what only looks so. */
export const BAD: string = `${UNSTORABLE.join(' ')} \\u0000 "\\ 🙂`

/** The same for what may hold names of files, in which a half may stand for a byte. */
const BAD_NAMES = BAD.replaceAll('\udc80', '\udc7f')

/** What a model calls in its first turn: with bad arguments, and tools that answer badly. */
const CALLS: readonly (readonly [tool: string, args: JsonObject])[] = [
  ['says', {}],
  ['throws', {}],
  ['plans', {}],
  [BAD, {}],
  ['update_plan', { steps: [{ text: BAD, status: 'done' }] }],
  ['write_file', { path: 'a', content: BAD }],
  ['write_file', { path: 'a', content: 'a\0b' }],
  ['write_file', { path: 'a', content: 'b', [BAD]: BAD }],
  ['bash', { command: `printf 'a\\000b\\355\\240\\200'` }],
]

/** The results of calls that were refused for their arguments. */
export const REFUSED: RegExp = /has NUL or half of a character. Nothing was run/

function bad(name: string): Model {
  return {
    name: `bad:${name}`,
    isLanguageModel: true,
    contextWindow: null,
    prices: null,
    complete: async ({ messages }: ModelRequest) => {
      if (name === 'fails')
        throw new ModelError('ERR_AGENT_MODEL', BAD, { retryable: false })
      const isFirst = !messages.some(({ role }) => role === 'assistant')
      const calls = (isFirst ? CALLS : []).map(([tool, args], i) => ({
        call_id: isFirst && i === 0 ? BAD : `c${i}`, tool, args,
      }))
      return {
        message: {
          ...{ role: 'assistant', text: BAD, calls },
          parts: { format: 'x', value: { [BAD]: BAD } },
        },
        reasoning: BAD,
        usage: NO_USAGE,
        stop: calls.length > 0 ? 'tool_calls' : 'end',
      }
    },
  }
}

/** Options of an engine whose models, tools and judge write bad texts wherever they can. */
export function badWriters(): Partial<EngineOptions> {
  const parameters = { type: 'object' } as const
  const judge = judgeProvider(() => ({ achieved: false, reason: BAD }))
  const models = {
    id: 'bad',
    description: 'writes texts that cannot be stored',
    isLanguageModel: true,
    suggestions: ['speaks', 'fails'],
    create: bad,
  }
  return {
    providers: [models, judge.provider],
    defaultModel: 'bad:speaks',
    judgeModel: 'judge:j',
    tools: [
      defineTool({
        ...{ name: 'says', description: 'answers', parameters, effect: 'read' },
        execute: () => ({ output: BAD, exitCode: 0 }),
      }),
      defineTool({
        ...{ name: 'throws', description: 'fails', parameters, effect: 'unsafe' },
        execute: () => {
          throw new Error(BAD)
        },
      }),
      defineTool({
        ...{ name: 'plans', description: 'plans', parameters, effect: 'idempotent' },
        plan: async () => ({ [BAD_NAMES]: [BAD_NAMES] }),
        verify: async () => 'undone',
        execute: () => BAD,
      }),
    ],
  }
}

/** Requests of runs that have such texts everywhere, and how each of them ends. */
export const BAD_RUNS: readonly (readonly [request: JsonObject, endReason: string])[] = [
  [{ goal: 'shell: printf "a\\000b"; false', model_name: 'bad:speaks' }, 'max_iterations'],
  [{ goal: 'make it nice', model_name: 'bad:speaks' }, 'max_iterations'],
  [{ goal: 'shell: false', model_name: 'bad:fails' }, 'provider_error'],
  [
    { goal: 'result: tell me', model_name: 'bad:speaks', result_schema: { type: 'object' } },
    'result_invalid',
  ],
  [
    { goal: 'shell: false', model_name: 'bad:fails', fallback_models: ['bad:speaks'] },
    'max_iterations',
  ],
].map(([request, end]) => [{ max_iterations: 2, ...(request as JsonObject) }, end as string])

/** Checks every text of a run's log and head, names of fields included. */
export async function assertStorable(store: RunStore, runId: string): Promise<void> {
  const visit = (value: unknown, place: string): void => {
    if (typeof value === 'string') {
      assert.ok(!/[\0\p{Surrogate}]/u.test(value), `${place}: ${JSON.stringify(value)}`)
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, part] of Object.entries(value)) {
        visit(name, place)
        visit(part, `${place}/${name}`)
      }
    }
  }
  for (const record of await store.read(runId, 0, 10_000)) visit(record, record.kind)
  visit(await store.head(runId), 'head')
}
